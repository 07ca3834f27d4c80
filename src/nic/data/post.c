/* SPDX-License-Identifier: BSD-2-Clause */

/* Each work request is decoded completely before it is queued. */
#include "nic/data/post.h"

#include <errno.h>

#include "base/check.h"
#include "base/guard.h"
#include "engine/newer.h"
#include "nic/data/acks.h"
#include "nic/data/post_why.h"
#include "nic/way/direct.h"
#include "nic/way/send_ring.h"
#include "nic/mem/mkey.h"
#include "nic/way/peer.h"
#include "nic/data/qp.h"
#include "nic/queue/rq.h"
#include "nic/data/window.h"

/* Where the opcode may be posted: by any call, or by a builder only. */
enum { ANYBODY = 1, BUILDER = 2 };

/* The meaning of opcodes. The services' tables say which of them each supports. */
struct opcode_row {
	uint8_t by;
	uint8_t kind;
	uint8_t extra;
	uint8_t wc_opcode;
};

static const struct opcode_row opcode_rows[] = {
	[IBV_WR_RDMA_WRITE] = { ANYBODY, VB_K_WRITE, 0, IBV_WC_RDMA_WRITE },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { ANYBODY, VB_K_WRITE, VB_H_IMM, IBV_WC_RDMA_WRITE },
	[IBV_WR_SEND] = { ANYBODY, VB_K_SEND, 0, IBV_WC_SEND },
	[IBV_WR_TSO] = { ANYBODY, VB_K_TSO, 0, IBV_WC_TSO },
	[IBV_WR_SEND_WITH_IMM] = { ANYBODY, VB_K_SEND, VB_H_IMM, IBV_WC_SEND },
	[IBV_WR_RDMA_READ] = { ANYBODY, VB_K_READ_REQ, 0, IBV_WC_RDMA_READ },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { ANYBODY, VB_K_CMP_SWP, 0, IBV_WC_COMP_SWAP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { ANYBODY, VB_K_FETCH_ADD, 0, IBV_WC_FETCH_ADD },
	[IBV_WR_LOCAL_INV] = { ANYBODY, VB_K_LOCAL_INV, 0, IBV_WC_LOCAL_INV },
	[IBV_WR_BIND_MW] = { ANYBODY, VB_K_BIND, 0, IBV_WC_BIND_MW },
	[IBV_WR_SEND_WITH_INV] = { ANYBODY, VB_K_SEND, VB_H_IETH, IBV_WC_SEND },
	[VB_WR_FLUSH] = { BUILDER, VB_K_FLUSH, 0, VB_WC_FLUSH },
	[IBV_WR_ATOMIC_WRITE] = { ANYBODY, VB_K_ATOMIC_WRITE, 0, IBV_WC_ATOMIC_WRITE },
	/* mlx5dv_wr_post(3), with the opcodes of their completions. */
	[VB_WR_MKEY] = { BUILDER, VB_K_MKEY, 0, IBV_WC_DRIVER1 },
	[VB_WR_MEMCPY] = { BUILDER, VB_K_MEMCPY, 0, IBV_WC_DRIVER3 },
};

/*
 * Finds the row of an opcode. Returns 0, VB_POST_LATE, EOPNOTSUPP if no service supports it, EINVAL
 * if this one does not.
 */
static int opcode_row(const struct vb_qp *qp, const struct ibv_send_wr *wr,
		      const struct vb_post *post, const struct opcode_row **row)
{
	if ((unsigned)wr->opcode >= VB_ARRAY_LEN(opcode_rows))
		return EINVAL;
	if (!opcode_rows[wr->opcode].by)
		return wr->opcode <= IBV_WR_DRIVER1 ? EOPNOTSUPP : EINVAL;
	*row = &opcode_rows[wr->opcode];
	if ((*row)->by == BUILDER && !post)
		return EINVAL;
	if (qp->service->post.opcodes & VB_POSTS(wr->opcode))
		return 0;
	return qp->service->post.late & VB_POSTS(wr->opcode) ? VB_POST_LATE : EINVAL;
}

static uint64_t total_bytes(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* ibv_post_send(3): SEND and WRITE; and operations whose value the builder provides. */
static bool may_be_inline(const struct opcode_row *row)
{
	return row->kind == VB_K_SEND || row->kind == VB_K_WRITE || row->kind == VB_K_ATOMIC_WRITE;
}

/* Eight octets fit in any work request. */
static uint32_t inline_max(const struct vb_qp *qp, const struct opcode_row *row)
{
	return row->kind == VB_K_ATOMIC_WRITE ? sizeof(uint64_t) : qp->made.cap.max_inline_data;
}

static bool flags_known(const struct vb_qp *qp, const struct ibv_send_wr *wr)
{
	unsigned unknown = wr->send_flags & ~VB_SEND_FLAGS_KNOWN;

	return !(unknown & ~qp->service->post.flags);
}

/* Errors that do not depend on the device. */
static inline bool is_well_formed(const struct vb_qp *qp, const struct ibv_send_wr *wr,
				  const struct opcode_row *row)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->made.cap.max_send_sge ||
	    !flags_known(qp, wr))
		return false;
	return !(wr->send_flags & IBV_SEND_INLINE) ||
	       (may_be_inline(row) && total_bytes(wr) <= inline_max(qp, row));
}

static int check(const struct vb_qp *qp, const struct ibv_send_wr *wr,
		 const struct opcode_row *row, const struct vb_post *post)
{
	if (!is_well_formed(qp, wr, row))
		return EINVAL;
	if (!qp->service->post.check || row->kind >= VB_K_COUNT)
		return 0;
	return qp->service->post.check(qp, wr, post);
}

/* Errors that only the device finds, reported by a completion (IBA 10.10.3, 11.6.2). */
static enum ibv_wc_status device_fault(const struct vb_qp *qp, const struct vb_wqe *wqe,
				       uint64_t bytes)
{
	uint64_t max = vb_qp_is(qp, VB_DATAGRAMS) ? qp->req.mtu : VB_MESSAGE_BYTES_MAX;

	if (bytes > max)
		return IBV_WC_LOC_LEN_ERR;
	if (bytes != sizeof(uint64_t) &&
	    (vb_wqe_is_atomic(wqe) || wqe->kind == VB_K_ATOMIC_WRITE))
		return IBV_WC_LOC_LEN_ERR;
	if (vb_wqe_is_fetch(wqe) && !qp->req.max_fetches)
		return IBV_WC_LOC_QP_OP_ERR;
	return IBV_WC_SUCCESS;
}

/* EFAULT: an invalid pointer of the application. */
static int copy_inline(struct vb_wqe *wqe, const struct ibv_send_wr *wr)
{
	uint32_t at = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!vb_guard_copy(wqe->data + at, (const void *)(uintptr_t)sge->addr, sge->length))
			return EFAULT;
		at += sge->length;
	}
	wqe->sge_count = 0;
	return 0;
}

static void fill_flush(struct vb_wqe *wqe, const struct vb_post *post)
{
	wqe->remote.flush_type = post->flush.type;
	wqe->remote.flush_level = post->flush.level;
	if (post->flush.bytes > VB_MESSAGE_BYTES_MAX)
		wqe->fault = IBV_WC_LOC_LEN_ERR;
	wqe->bytes = wqe->fault ? 0 : (uint32_t)post->flush.bytes;
}

static void fill_remote(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post)
{
	switch (wqe->kind) {
	case VB_K_FLUSH:
		fill_flush(wqe, post);
		/* fall through */
	case VB_K_WRITE:
	case VB_K_READ_REQ:
	case VB_K_ATOMIC_WRITE:
		wqe->remote.va = wr->wr.rdma.remote_addr;
		wqe->remote.rkey = wr->wr.rdma.rkey;
		break;
	case VB_K_CMP_SWP:
	case VB_K_FETCH_ADD:
		wqe->remote.va = wr->wr.atomic.remote_addr;
		wqe->remote.rkey = wr->wr.atomic.rkey;
		wqe->remote.compare = wqe->kind == VB_K_CMP_SWP ? wr->wr.atomic.compare_add : 0;
		wqe->remote.swap_add = wqe->kind == VB_K_CMP_SWP ? wr->wr.atomic.swap
								 : wr->wr.atomic.compare_add;
		break;
	default:
		break;
	}
	if (qp->service->post.address)
		qp->service->post.address(qp, wqe, wr, post);
}

/* The part that is common to all kinds. */
static inline void begin(const struct vb_qp *qp, const struct ibv_send_wr *wr,
			 const struct opcode_row *row, struct vb_wqe *wqe)
{
	wqe->wr_id = wr->wr_id;
	wqe->kind = row->kind;
	wqe->extra = row->extra;
	wqe->wc_opcode = row->wc_opcode;
	wqe->flags = (uint8_t)wr->send_flags | qp->made.wqe_flags;
	/* or inv_rkey, which is at the same offset in both structures */
	wqe->imm_be = wr->imm_data;
}

static int decode_memcpy(const struct vb_copy *copy, struct vb_wqe *wqe)
{
	if (!copy->bytes || copy->bytes > VB_MEMCPY_BYTES_MAX)
		return EINVAL;
	wqe->copy = *copy;
	return 0;
}

/* Decodes kinds that no packet has. */
static int decode_local(const struct vb_qp *qp, const struct ibv_send_wr *wr,
			const struct vb_post *post, const struct opcode_row *row,
			enum ibv_mw_type type, struct vb_wqe *wqe)
{
	int err;

	begin(qp, wr, row, wqe);
	wqe->fault = IBV_WC_SUCCESS;
	wqe->bytes = 0;
	wqe->sge_count = 0;
	switch (row->kind) {
	case VB_K_TSO:
		return qp->service->post.tso_decode(qp, wr, wqe);
	case VB_K_BIND:
		err = vb_bind_decode(wr, type, wqe);
		/* In a batch, another work request may still be refused. */
		if (!err && !post)
			vb_bind_posted(wr);
		return err;
	case VB_K_MKEY:
		return vb_mkey_decode(&qp->req.sq, &qp->made.cap, post->mkey, wqe);
	case VB_K_MEMCPY:
		return decode_memcpy(&post->copy, wqe);
	default:
		return 0;
	}
}

/* Queues an invalid work request as an empty SEND, which fails in its turn and never leaves. */
static __attribute__((noinline)) int decode_wrong(const struct vb_qp *qp,
						  const struct ibv_send_wr *wr,
						  const struct opcode_row *row,
						  struct vb_wqe *wqe)
{
	if (!is_well_formed(qp, wr, row))
		return EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	begin(qp, wr, row, wqe);
	wqe->kind = VB_K_SEND;
	wqe->extra = 0;
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
	wqe->fault = IBV_WC_LOC_QP_OP_ERR;
	return 0;
}

/* post: contains wr if a builder made it; else NULL. Inlined in both callers, for speed. */
static inline __attribute__((always_inline)) int decode(struct vb_qp *qp,
							const struct ibv_send_wr *wr,
							const struct vb_post *post,
							struct vb_wqe *wqe)
{
	const struct opcode_row *row;
	uint64_t bytes;
	int err = opcode_row(qp, wr, post, &row);

	if (!err)
		err = check(qp, wr, row, post);
	if (err)
		return err == VB_POST_LATE ? decode_wrong(qp, wr, row, wqe) : err;
	if (row->kind >= VB_K_COUNT)
		return decode_local(qp, wr, post, row, IBV_MW_TYPE_2, wqe);
	begin(qp, wr, row, wqe);
	bytes = total_bytes(wr);
	wqe->fault = device_fault(qp, wqe, bytes);
	wqe->bytes = wqe->fault ? 0 : (uint32_t)bytes;
	wqe->sge_count = (uint16_t)wr->num_sge;
	fill_remote(qp, wqe, wr, post);
	if (wr->send_flags & IBV_SEND_INLINE)
		return copy_inline(wqe, wr);
	vb_sges_copy(wqe->sge, wr->sg_list, wqe->sge_count);
	return 0;
}

/* Can it be carried out in the peer's memory at once (direct.h)? Nothing may be before it. */
static bool may_go_directly(const struct vb_qp *qp, enum ibv_qp_state state,
			    const struct vb_wqe *wqe)
{
	return qp->req.head == qp->req.tail && qp->to.peer && wqe->kind != VB_K_SEND &&
	       qp->req.transport == VB_RC && state == IBV_QPS_RTS &&
	       /* Migration and rate limits need packets. */
	       !(qp->to.migrates | qp->send.paced);
}

/* Is the send queue full if so many more are added? */
static bool sq_full(const struct vb_qp *qp, uint32_t more)
{
	uint32_t released = atomic_load_explicit(&qp->user.sq_released, memory_order_acquire);

	return qp->req.tail - qp->req.own.posted + more - released >=
	       qp->made.cap.max_send_wr;
}

/* IBA 10.8.2: no sends before RTS; in SQE and ERR they are flushed. */
static int can_post(struct vb_qp *qp, enum ibv_qp_state state)
{
	if (state < IBV_QPS_RTS)
		return EINVAL;
	return qp->req.sq.ring ? 0 : vb_qp_sq_make(qp);
}

/* Queues the valid work request at the tail. */
static inline void commit(struct vb_qp *qp, enum ibv_qp_state state, struct vb_wqe *wqe, bool more)
{
	if (qp->user.has_parcels && (wqe->flags & IBV_SEND_FENCE))
		vb_parcels_fence(qp);
	if (may_go_directly(qp, state, wqe) && vb_direct_try(qp, wqe, more))
		vb_req_done_directly(&qp->req);
	else
		vb_req_commit(&qp->req, wqe);
}

/* Sends what may leave after a post. */
static inline void send_off(struct vb_qp *qp, enum ibv_qp_state state)
{
	if (state >= IBV_QPS_RTS && qp->to.peer) {
		if (qp->req.pos.next != qp->req.tail)
			vb_qp_transmit_locked(qp);
	} else if (state >= IBV_QPS_RTS) {
		qp->now_ns = vb_nic_now_ns(qp->nic);
		vb_ack_posted(qp, qp->now_ns);
		if (state != IBV_QPS_RTS || vb_req_urgent(&qp->req, qp->now_ns))
			vb_qp_transmit_locked(qp);
	}
}

/* Nothing can be posted here; perhaps elsewhere. Returns 0 if that is done, else an errno. */
static __attribute__((cold, noinline)) int
cannot_post(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, int err)
{
	*bad = wr;
	if (err == VB_POST_ELSEWHERE)
		err = qp->service->post.list(qp, wr, bad);
	if (err)
		vb_send_refused(qp, *bad, err);
	return err;
}

int vb_qp_post_check(struct vb_qp *qp, const struct ibv_send_wr *wr, const struct vb_post *post)
{
	const struct opcode_row *row;
	int err = opcode_row(qp, wr, post, &row);

	return err ? err : check(qp, wr, row, post);
}

int vb_qp_post_one(struct vb_qp *qp, const struct ibv_send_wr *wr, const struct vb_post *post)
{
	struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, qp->req.tail);
	int err = decode(qp, wr, post, wqe);

	if (!err)
		vb_req_commit(&qp->req, wqe);
	return err;
}

int vb_qp_post_send(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	enum ibv_qp_state state;
	int err = 0;

	vb_lock_take(&qp->lock);
	state = vb_qp_state(qp);
	if (wr)
		err = can_post(qp, state);
	if (err) {
		err = cannot_post(qp, wr, bad, err);
		vb_lock_drop(&qp->lock);
		return err;
	}
	for (; wr && !err; wr = wr->next) {
		struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, qp->req.tail);

		err = sq_full(qp, 0) ? ENOMEM : decode(qp, wr, NULL, wqe);
		if (err) {
			*bad = wr;
			vb_send_refused(qp, wr, err);
			break;
		}
		commit(qp, state, wqe, wr->next);
	}
	send_off(qp, state);
	vb_lock_drop(&qp->lock);
	return err;
}

int vb_qp_post_batch(struct vb_qp *qp, const struct vb_post *posts, uint32_t count)
{
	enum ibv_qp_state state;
	uint32_t from, done = 0;
	int err;

	vb_lock_take(&qp->lock);
	state = vb_qp_state(qp);
	err = can_post(qp, state);
	if (err == VB_POST_ELSEWHERE) {
		err = qp->service->post.batch(qp, posts, count, &done);
		goto out;
	}
	from = qp->req.tail;
	for (uint32_t i = 0; i < count && !err; done = i++)
		err = sq_full(qp, i) ? ENOMEM
				     : decode(qp, &posts[i].wr, &posts[i],
					      vb_sq_at(&qp->req.sq, from + i));
	if (!err) {
		for (uint32_t i = 0; i < count; i++) {
			struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, from + i);

			if (wqe->kind == VB_K_BIND)
				vb_bind_posted(&posts[i].wr);
			commit(qp, state, wqe, i + 1 < count);
		}
		send_off(qp, state);
	}
out:
	if (err && count)
		vb_send_refused(qp, &posts[done].wr, err);
	vb_lock_drop(&qp->lock);
	return err;
}

int vb_qp_post_bind(struct vb_qp *qp, const struct ibv_send_wr *wr)
{
	const struct opcode_row *row;
	enum ibv_qp_state state;
	struct vb_wqe *wqe = NULL;
	int err;

	vb_lock_take(&qp->lock);
	state = vb_qp_state(qp);
	err = can_post(qp, state);
	if (!err)
		err = opcode_row(qp, wr, NULL, &row);
	if (!err && sq_full(qp, 0))
		err = ENOMEM;
	if (!err) {
		wqe = vb_sq_at(&qp->req.sq, qp->req.tail);
		err = decode_local(qp, wr, NULL, row, IBV_MW_TYPE_1, wqe);
	}
	if (!err) {
		vb_req_commit(&qp->req, wqe);
		send_off(qp, state);
	}
	vb_lock_drop(&qp->lock);
	return err;
}

int vb_qp_post_recv(struct vb_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err;

	if (vb_qp_state(qp) == IBV_QPS_RESET || qp->ibv.qp.srq ||
	    !vb_qp_is(qp, VB_RECEIVES)) {
		*bad = wr;
		return vb_recv_refused(qp, wr, EINVAL);
	}
	err = vb_rq_post(qp->recv.rq, wr, bad);
	if (err)
		vb_recv_refused(qp, *bad, err);
	/*
	 * Moving the QP to the error state sets the state first, then waits for posts under way
	 * (vb_rq_await_posts), and then empties the queue: either our requests were flushed, or we
	 * see the state here.
	 */
	if (vb_qp_state(qp) == IBV_QPS_ERR) {
		vb_lock_take(&qp->lock);
		vb_qp_flush_recv_locked(qp);
		vb_lock_drop(&qp->lock);
	}
	return err;
}
