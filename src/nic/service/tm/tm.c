/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/tm/tm.h"

#include <errno.h>
#include <infiniband/tm_types.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/queue/rq.h"

_Static_assert(VB_TMH_BYTES == sizeof(struct ibv_tmh) && VB_RVH_BYTES == sizeof(struct ibv_rvh) &&
		       (int)VB_TMH_NO_TAG == IBV_TMH_NO_TAG && (int)VB_TMH_RNDV == IBV_TMH_RNDV &&
		       (int)VB_TMH_FIN == IBV_TMH_FIN && (int)VB_TMH_EAGER == IBV_TMH_EAGER,
	       "the headers are those of <infiniband/tm_types.h>");

/* In the list of tags: no place. */
#define NOWHERE UINT32_MAX

/* A tagged buffer: in the list, in order of addition, or free. */
struct tag {
	uint64_t tag, mask;
	uint32_t next, prev; /* places */
	/* its place in the lower bits, a number that changes in the upper ones */
	uint32_t handle;
	bool listed;
	uint32_t sge_count, bytes;
	uint64_t wr_id;
	struct ibv_sge sge[VB_TM_SGE_MAX];
};

struct vb_tm {
	vb_lock lock;
	struct vb_cq *cq;
	struct tag *tags;
	uint32_t max;
	uint32_t first, last; /* of the list */
	uint32_t idle;	      /* the first added while counts differed: it and all behind it wait */
	uint32_t free;
	/*
	 * Unexpected messages: how many came, and how many software has handled. 16 bits, as in
	 * programs, which is far more than there are receive requests.
	 */
	uint16_t came, handled;
};

_Static_assert(VB_SRQ_WR_MAX < UINT16_MAX, "unexpected messages are counted in 16 bits");

/* --- the list --- */

int vb_tm_create(struct vb_cq *cq, const struct ibv_tm_cap *cap, struct vb_tm **out)
{
	uint32_t max = cap->max_num_tags;
	struct vb_tm *tm;

	if (!max || max > VB_TM_TAGS_MAX || cap->max_ops > VB_TM_OPS_MAX)
		return vb_refuse(EINVAL,
				 "max_num_tags is %u and max_ops %u; they may be 1 to %u, "
				 "and at most %u",
				 max, cap->max_ops, (unsigned)VB_TM_TAGS_MAX,
				 (unsigned)VB_TM_OPS_MAX);
	tm = calloc(1, sizeof(*tm));
	if (!tm)
		return ENOMEM;
	tm->tags = calloc(max, sizeof(tm->tags[0]));
	if (!tm->tags) {
		free(tm);
		return ENOMEM;
	}
	vb_lock_init(&tm->lock, VB_RANK_TAGS);
	tm->cq = cq;
	tm->max = max;
	tm->first = tm->last = tm->idle = NOWHERE;
	for (uint32_t i = 0; i < max; i++) {
		tm->tags[i].handle = i;
		tm->tags[i].next = i + 1 < max ? i + 1 : NOWHERE;
	}
	atomic_fetch_add(&cq->users, 1);
	*out = tm;
	return 0;
}

void vb_tm_destroy(struct vb_tm *tm)
{
	atomic_fetch_sub(&tm->cq->users, 1);
	vb_lock_fini(&tm->lock);
	free(tm->tags);
	free(tm);
}

void vb_tm_query(struct ibv_tm_caps *caps)
{
	*caps = (struct ibv_tm_caps){
		.max_rndv_hdr_size = VB_TM_RNDV_BYTES_MAX,
		.max_num_tags = VB_TM_TAGS_MAX,
		.flags = IBV_TM_CAP_RC,
		.max_ops = VB_TM_OPS_MAX,
		.max_sge = VB_TM_SGE_MAX,
	};
}

static void append(struct vb_tm *tm, struct tag *tag)
{
	uint32_t place = (uint32_t)(tag - tm->tags);

	tag->listed = true;
	tag->next = NOWHERE;
	tag->prev = tm->last;
	if (tm->last == NOWHERE)
		tm->first = place;
	else
		tm->tags[tm->last].next = place;
	tm->last = place;
	if (tm->idle == NOWHERE)
		tm->idle = place;
}

static void remove_tag(struct vb_tm *tm, struct tag *tag)
{
	uint32_t place = (uint32_t)(tag - tm->tags);

	if (tag->prev == NOWHERE)
		tm->first = tag->next;
	else
		tm->tags[tag->prev].next = tag->next;
	if (tag->next == NOWHERE)
		tm->last = tag->prev;
	else
		tm->tags[tag->next].prev = tag->prev;
	if (tm->idle == place)
		tm->idle = tag->next;
	tag->listed = false;
	tag->next = tm->free;
	tm->free = place;
}

/* The oldest buffer that a message's tag matches (ibv_post_srq_ops(3)); NULL: none. */
static struct tag *match(struct vb_tm *tm, uint64_t of_message)
{
	for (uint32_t i = tm->first; i != tm->idle; i = tm->tags[i].next) {
		struct tag *tag = &tm->tags[i];

		if ((of_message & tag->mask) == tag->tag)
			return tag;
	}
	return NULL;
}

/* If the counts agree, makes all added buffers usable. */
static bool in_step(struct vb_tm *tm)
{
	if (tm->came != tm->handled)
		return false;
	tm->idle = NOWHERE;
	return true;
}

/* --- operations --- */

static int add(struct vb_tm *tm, struct ibv_ops_wr *wr)
{
	int count = wr->tm.add.num_sge;
	uint64_t bytes = 0;
	struct tag *tag;

	if (count < 0 || count > VB_TM_SGE_MAX)
		return EINVAL;
	for (int i = 0; i < count; i++)
		bytes += wr->tm.add.sg_list[i].length;
	if (bytes > VB_MESSAGE_BYTES_MAX)
		return EINVAL;
	if (tm->free == NOWHERE)
		return ENOMEM;
	tag = &tm->tags[tm->free];
	tm->free = tag->next;
	tag->tag = wr->tm.add.tag;
	tag->mask = wr->tm.add.mask;
	tag->wr_id = wr->tm.add.recv_wr_id;
	tag->bytes = (uint32_t)bytes;
	tag->sge_count = (uint32_t)count;
	for (int i = 0; i < count; i++)
		tag->sge[i] = wr->tm.add.sg_list[i];
	tag->handle += VB_TM_TAGS_MAX;
	append(tm, tag);
	wr->tm.handle = tag->handle;
	return 0;
}

/* Removes a tag. Returns its status: it may have been used meanwhile. */
static enum ibv_wc_status del(struct vb_tm *tm, uint32_t handle)
{
	struct tag *tag = &tm->tags[handle % VB_TM_TAGS_MAX];

	if (!tag->listed || tag->handle != handle)
		return IBV_WC_TM_ERR;
	remove_tag(tm, tag);
	return IBV_WC_SUCCESS;
}

static int carry_out(struct vb_tm *tm, struct ibv_ops_wr *wr)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_TAG_ADD] = IBV_WC_TM_ADD,
		[IBV_WR_TAG_DEL] = IBV_WC_TM_DEL,
		[IBV_WR_TAG_SYNC] = IBV_WC_TM_SYNC,
	};
	struct vb_cqe cqe = { .wc = { .wr_id = wr->wr_id, .status = IBV_WC_SUCCESS } };
	int err = 0;

	if ((unsigned)wr->opcode >= VB_ARRAY_LEN(opcodes) ||
	    (wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC)))
		return EINVAL;
	if (wr->opcode == IBV_WR_TAG_DEL && wr->tm.handle % VB_TM_TAGS_MAX >= tm->max)
		return EINVAL;
	if (wr->opcode == IBV_WR_TAG_ADD)
		err = add(tm, wr);
	else if (wr->opcode == IBV_WR_TAG_DEL)
		cqe.wc.status = del(tm, wr->tm.handle);
	if (err)
		return err;
	if (wr->flags & IBV_OPS_TM_SYNC)
		tm->handled = (uint16_t)wr->tm.unexpected_cnt;
	cqe.wc.opcode = opcodes[wr->opcode];
	if (!in_step(tm))
		cqe.wc.wc_flags = IBV_WC_TM_SYNC_REQ;
	cqe.solicited = cqe.wc.status != IBV_WC_SUCCESS;
	if (wr->flags & IBV_OPS_SIGNALED)
		vb_cq_push(tm->cq, &cqe);
	return 0;
}

int vb_tm_post(struct vb_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	struct vb_tm *tm = srq->tm;
	int err = 0;

	if (!tm) {
		*bad = wr;
		return vb_refuse(EINVAL, "the SRQ is not of type IBV_SRQT_TM");
	}
	vb_lock_take(&tm->lock);
	for (; wr && !err; wr = wr->next) {
		err = carry_out(tm, wr);
		if (err) {
			vb_refuse(err,
				  "opcode %d, wr_id 0x%" PRIx64 ": no such operation, no tag "
				  "of this handle, a wrong unexpected_cnt, too many SGEs, or "
				  "no room",
				  (int)wr->opcode, wr->wr_id);
			*bad = wr;
		}
	}
	vb_lock_drop(&tm->lock);
	return err;
}

/* --- messages --- */

static struct vb_srq *srq_of(const struct vb_qp *qp)
{
	return (struct vb_srq *)qp->ibv.qp.srq;
}

/* Can we read the data ourselves? */
static bool can_read(const struct vb_qp *qp, const struct tag *tag, const struct vb_tmh *tmh,
		     const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	return info->pos == VB_P_ONLY && pkt->payload_bytes <= VB_TM_RNDV_BYTES_MAX &&
	       tmh->len <= tag->bytes && qp->req.max_fetches &&
	       (state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

/* Is there room in the send queue for another READ and FIN? */
static bool has_room(const struct vb_qp *qp)
{
	return qp->req.own.posted - qp->req.own.done <= 2 * (VB_TM_RNDV_MAX - 1);
}

/* Assigns the buffer to this message. */
static void use(struct vb_qp *qp, struct vb_tm *tm, struct tag *tag, const struct vb_tmh *tmh)
{
	struct vb_recv *recv = &qp->resp.recv;

	recv->wr_id = tag->wr_id;
	recv->bytes = tag->bytes;
	recv->sge_count = tag->sge_count;
	memcpy(recv->sge, tag->sge, tag->sge_count * sizeof(tag->sge[0]));
	qp->recv.tm->tmh = *tmh;
	remove_tag(tm, tag);
}

/* A message with a tag. Matched, or counted, under one lock: nothing is added in between. */
static enum vb_tm_mark take_tagged(struct vb_qp *qp, struct vb_tm *tm, const struct vb_tmh *tmh,
				   const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct tag *tag = match(tm, tmh->tag);
	enum vb_tm_mark mark = VB_TM_EAGER;

	if (!tag) {
		if (!vb_srq_take(srq_of(qp), &qp->resp.recv))
			return VB_TM_NOTHING;
		tm->came++;
		return VB_TM_UNEXPECTED;
	}
	if (tmh->op == VB_TMH_RNDV) {
		mark = can_read(qp, tag, tmh, pkt, info) ? VB_TM_RNDV : VB_TM_SW_RNDV;
		/* Rendezvous under way will end: let the sender try again. */
		if (mark == VB_TM_RNDV && !has_room(qp))
			return VB_TM_NOTHING;
	}
	use(qp, tm, tag, tmh);
	return mark;
}

bool vb_tm_take(struct vb_qp *qp, const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_srq *srq = srq_of(qp);
	struct vb_resp *resp = &qp->resp;
	struct vb_tmh tmh;

	resp->mark = info->kind == VB_K_SEND ? VB_TM_NO_TAG : VB_TM_OTHER;
	if (resp->mark == VB_TM_OTHER || !vb_tmh_parse(&tmh, pkt->payload, pkt->payload_bytes) ||
	    (tmh.op != VB_TMH_EAGER && tmh.op != VB_TMH_RNDV))
		return vb_srq_take(srq, &resp->recv);
	vb_lock_take(&srq->tm->lock);
	resp->mark = take_tagged(qp, srq->tm, &tmh, pkt, info);
	vb_lock_drop(&srq->tm->lock);
	return resp->mark != VB_TM_NOTHING;
}

static bool has_header_cut(enum vb_tm_mark mark)
{
	return mark == VB_TM_EAGER || mark == VB_TM_SW_RNDV;
}

bool vb_tm_place(const struct vb_resp *resp, uint32_t *offset, const void **data, uint32_t *bytes)
{
	enum vb_tm_mark mark = (enum vb_tm_mark)resp->mark;
	uint32_t cut, room;

	if (mark == VB_TM_RNDV)
		return false;
	if (!has_header_cut(mark))
		return true;
	/* The first packet contains the whole header, since no MTU is that small. */
	cut = *offset ? 0 : VB_TMH_BYTES;
	*data = (const uint8_t *)*data + cut;
	*bytes -= cut;
	*offset -= VB_TMH_BYTES - cut;
	/* If software handles the message anyway, it gets as much as fits. */
	room = *offset < resp->recv.bytes ? resp->recv.bytes - *offset : 0;
	if (mark == VB_TM_SW_RNDV && *bytes > room)
		*bytes = room;
	return *bytes > 0;
}

/* A work request of ours in the send queue, for a rendezvous. */
static struct vb_wqe *own_wqe(struct vb_qp *qp, enum vb_kind kind, enum ibv_wc_opcode opcode)
{
	struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, qp->req.tail);

	memset(wqe, 0, sizeof(*wqe));
	wqe->kind = (uint8_t)kind;
	wqe->wc_opcode = (uint8_t)opcode;
	wqe->flags = VB_WQE_ASIDE; /* so that vb_tm_sent() is called */
	return wqe;
}

static void begin_rendezvous(struct vb_qp *qp, bool solicited)
{
	const struct vb_recv *recv = &qp->resp.recv;
	const struct vb_tmh *tmh = &qp->recv.tm->tmh;
	struct vb_wqe *wqe;

	wqe = own_wqe(qp, VB_K_READ_REQ, IBV_WC_TM_RECV);
	wqe->wr_id = recv->wr_id;
	wqe->bytes = tmh->len;
	wqe->sge_count = (uint16_t)recv->sge_count;
	memcpy(wqe->sge, recv->sge, recv->sge_count * sizeof(recv->sge[0]));
	wqe->remote.va = tmh->va;
	wqe->remote.rkey = tmh->rkey;
	if (solicited)
		wqe->flags |= IBV_SEND_SOLICITED;
	vb_req_commit(&qp->req, wqe);

	/* After the FIN the sender may reuse its buffer, so it is fenced behind the READ. */
	wqe = own_wqe(qp, VB_K_SEND, IBV_WC_TM_NO_TAG);
	wqe->flags |= IBV_SEND_INLINE | IBV_SEND_FENCE;
	wqe->bytes = VB_TMH_BYTES;
	vb_tmh_put(wqe->data, VB_TMH_FIN, tmh->app_ctx, tmh->tag);
	vb_req_commit(&qp->req, wqe);
	qp->req.own.posted += 2;
	/* Makes the batch send at its end. */
	qp->resp.ack_owed = true;
}

/* Counts an unexpected message: how far are we ahead of software, and does it need to know? */
static unsigned unexpected(struct vb_tm *tm, bool delivered)
{
	bool far;

	vb_lock_take(&tm->lock);
	/* Software never sees one that failed, and will not count it. */
	if (!delivered) {
		tm->came--;
		in_step(tm);
	}
	far = (uint16_t)(tm->came - tm->handled) > VB_TM_AHEAD_MAX;
	vb_lock_drop(&tm->lock);
	return far ? IBV_WC_TM_SYNC_REQ : 0;
}

void vb_tm_done(struct vb_qp *qp, struct vb_cqe *cqe)
{
	static const struct {
		enum ibv_wc_opcode opcode;
		unsigned flags;
		enum ibv_wc_status status;
		bool matched;
	} rows[VB_TM_MARKS] = {
		[VB_TM_NO_TAG] = { IBV_WC_TM_NO_TAG, 0, IBV_WC_SUCCESS, false },
		[VB_TM_UNEXPECTED] = { IBV_WC_TM_RECV, 0, IBV_WC_SUCCESS, false },
		[VB_TM_EAGER] = { IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID,
				  IBV_WC_SUCCESS, true },
		[VB_TM_RNDV] = { IBV_WC_TM_RECV, IBV_WC_TM_MATCH, IBV_WC_SUCCESS, true },
		[VB_TM_SW_RNDV] = { IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID,
				    IBV_WC_TM_RNDV_INCOMPLETE, true },
	};
	struct vb_tm *tm = srq_of(qp)->tm;
	const struct vb_recv *recv = &qp->resp.recv;
	enum vb_tm_mark mark = (enum vb_tm_mark)qp->resp.mark;
	bool ok = cqe->wc.status == IBV_WC_SUCCESS;

	if (mark != VB_TM_OTHER)
		cqe->wc.opcode = rows[mark].opcode;
	cqe->wc.wc_flags |= rows[mark].flags;
	if (mark == VB_TM_UNEXPECTED)
		cqe->wc.wc_flags |= unexpected(tm, ok);
	if (has_header_cut(mark) && cqe->wc.byte_len)
		cqe->wc.byte_len -= VB_TMH_BYTES;
	if (mark == VB_TM_SW_RNDV)
		cqe->wc.byte_len = (uint32_t)vb_min_u64(cqe->wc.byte_len, recv->bytes);
	if (mark == VB_TM_RNDV)
		cqe->wc.byte_len = 0; /* another completion follows when the data was read */
	if (ok && rows[mark].status) {
		cqe->wc.status = rows[mark].status;
		cqe->solicited = true; /* as all that is not a success */
	}
	if (rows[mark].matched) {
		cqe->note = VB_CQE_TM;
		cqe->tm_tag = qp->recv.tm->tmh.tag;
		cqe->tm_priv = qp->recv.tm->tmh.app_ctx;
	}
	vb_cq_push(tm->cq, cqe);
	if (mark == VB_TM_RNDV && ok)
		begin_rendezvous(qp, cqe->solicited);
}

/* The second completion of a rendezvous. A FIN has no completion; an event reports its failure. */
void vb_tm_sent(struct vb_qp *qp, const struct vb_wqe *wqe, enum ibv_wc_status status)
{
	struct vb_cqe cqe = {
		.wc = { .wr_id = wqe->wr_id,
			.status = status,
			.opcode = (enum ibv_wc_opcode)wqe->wc_opcode,
			.wc_flags = IBV_WC_TM_DATA_VALID,
			.byte_len = wqe->bytes,
			.qp_num = qp->ibv.qp.qp_num,
			.src_qp = qp->to.dqpn },
		.solicited = (wqe->flags & IBV_SEND_SOLICITED) || status != IBV_WC_SUCCESS,
	};

	qp->req.own.done++;
	if (wqe->wc_opcode == IBV_WC_TM_RECV)
		vb_cq_push(srq_of(qp)->tm->cq, &cqe);
	else if (status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR)
		vb_qp_event(qp, IBV_EVENT_QP_FATAL);
}

void vb_tm_leave(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;
	struct vb_cqe cqe = {
		.wc = { .wr_id = qp->resp.recv.wr_id,
			.status = IBV_WC_WR_FLUSH_ERR,
			.qp_num = qp->ibv.qp.qp_num },
		.solicited = true,
	};

	if (!qp->recv.tm)
		return;
	if (qp->resp.has_recv)
		vb_tm_done(qp, &cqe);
	qp->resp.has_recv = false;
	for (uint32_t i = req->head; i != req->tail; i++) {
		const struct vb_wqe *wqe = vb_sq_at(&req->sq, i);

		if (vb_tm_is_own(wqe))
			vb_tm_sent(qp, wqe, IBV_WC_WR_FLUSH_ERR);
	}
}

struct ibv_cq *vb_tm_cq(const struct vb_qp *qp)
{
	return qp->recv.tm ? &srq_of(qp)->tm->cq->ibv.cq : NULL;
}
