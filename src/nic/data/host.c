/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What the engine asks of its host. Every access checks key, PD, bounds and rights anew; nothing is
 * cached.
 */

#include "engine/host.h"

#include "base/check.h"
#include "base/guard.h"
#include "base/probe.h"
#include "engine/newer.h"
#include "nic/data/explain.h"
#include "nic/data/acks.h"
#include "nic/queue/comp_cntr.h"
#include "nic/mem/journal.h"
#include "nic/mem/mkey.h"
#include "nic/data/qp.h"
#include "nic/data/host.h"
#include "nic/mem/payload.h"
#include "nic/data/qp_extra.h"
#include "nic/queue/rq.h"
#include "nic/data/window.h"
#include "nic/service/tm/tm.h"

static struct vb_qp *qp_of_req(struct vb_req *req)
{
	return vb_container_of(req, struct vb_qp, req);
}

static struct vb_qp *qp_of_resp(struct vb_resp *resp)
{
	return vb_container_of(resp, struct vb_qp, resp);
}

static inline __attribute__((always_inline)) void
complete_send(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t index,
	      enum ibv_wc_status status, enum vb_why why)
{
	struct vb_cqe cqe = {
		.wc = { .wr_id = wqe->wr_id,
			.status = status,
			.opcode = (enum ibv_wc_opcode)wqe->wc_opcode,
			.vendor_err = why,
			.byte_len = wqe->bytes,
			.qp_num = qp->user.qpn },
		.solicited = status != IBV_WC_SUCCESS,
		.user = &qp->user,
		.sq_released = index + 1 - qp->req.own.done,
	};
	if (qp->user.has_parcels && vb_parcel_goes(qp)) {
		cqe.note = VB_CQE_PARCEL;
		qp->user.parcels->waiting = true;
	}
	vb_cq_push((struct vb_cq *)qp->ibv.qp.send_cq, &cqe);
}

/* A work request of our own, or one that is counted; only the latter may be unsignaled. */
static __attribute__((cold, noinline)) void
complete_aside(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t index,
	       enum ibv_wc_status status, enum vb_why why)
{
	if (vb_tm_is_own(wqe)) {
		vb_tm_sent(qp, wqe, status);
		return;
	}
	vb_counted_sent(qp->user.counted, wqe, status);
	if (status != IBV_WC_SUCCESS || (wqe->flags & IBV_SEND_SIGNALED))
		complete_send(qp, wqe, index, status, why);
}

static __attribute__((cold, noinline)) void send_failed(struct vb_qp *qp, const struct vb_wqe *wqe,
							uint32_t index,
							enum ibv_wc_status status)
{
	enum vb_why why = vb_explain_send(qp, wqe, index, status);

	if (qp->service->fail.translate)
		qp->service->fail.translate(qp, &status);
	VB_PROBE(wc_error, qp->ibv.qp.qp_num, wqe->wr_id, status, why);
	why = (enum vb_why)vb_why_vendor(qp->nic, status, why);
	if (wqe->flags & VB_WQE_ASIDE)
		complete_aside(qp, wqe, index, status, why);
	else
		complete_send(qp, wqe, index, status, why);
}

void vb_host_send_done(struct vb_req *req, const struct vb_wqe *wqe, uint32_t index,
		       enum ibv_wc_status status)
{
	struct vb_qp *qp = qp_of_req(req);

	if (status != IBV_WC_SUCCESS)
		send_failed(qp, wqe, index, status);
	else if (!(wqe->flags & (IBV_SEND_SIGNALED | VB_WQE_ASIDE)))
		return;
	else if (wqe->flags & VB_WQE_ASIDE)
		complete_aside(qp, wqe, index, IBV_WC_SUCCESS, VB_WHY_NONE);
	else
		complete_send(qp, wqe, index, IBV_WC_SUCCESS, VB_WHY_NONE);
}

enum ibv_wc_status vb_host_local(struct vb_req *req, const struct vb_wqe *wqe)
{
	struct vb_qp *qp = qp_of_req(req);

	if (qp->user.has_parcels)
		vb_parcels_settle(qp);
	switch (wqe->kind) {
	case VB_K_MKEY:
		return vb_mkey_configure(qp->nic, qp->ibv.qp.pd, wqe);
	case VB_K_MEMCPY:
		return vb_memcpy(qp->nic, qp->ibv.qp.pd, wqe);
	default:
		return vb_window_local(qp, wqe);
	}
}

static enum vb_verdict write_remote(struct vb_qp *qp, uint32_t key, uint64_t va,
				    const uint8_t *data, uint32_t bytes)
{
	bool paged;
	uint8_t *to = vb_remote_find(qp, key, va, bytes, IBV_ACCESS_REMOTE_WRITE, &paged);

	return vb_mr_write_found(qp->nic, qp->ibv.qp.pd, key, va, data, bytes,
				 IBV_ACCESS_REMOTE_WRITE, to, paged);
}

enum ibv_wc_status vb_host_local_write(struct vb_req *req, const struct vb_wqe *wqe,
				       uint32_t offset, const void *data, uint32_t bytes)
{
	struct vb_qp *qp = qp_of_req(req);
	/* A rendezvous reads to a buffer of the SRQ. */
	struct ibv_pd *pd = vb_tm_is_own(wqe) ? qp->ibv.qp.srq->pd : qp->ibv.qp.pd;

	if (qp->user.has_parcels && vb_parcel_take_fetch(qp, wqe, offset, data, bytes))
		return IBV_WC_SUCCESS;
	/* Deliver the data of earlier completions first, to keep the order. */
	if (qp->user.has_parcels)
		vb_parcels_settle(qp);
	if (!vb_mr_scatter(qp->nic, pd, wqe->sge, wqe->sge_count, offset, data, bytes))
		return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

bool vb_host_recv_take(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info)
{
	struct vb_qp *qp = qp_of_resp(resp);
	struct vb_srq *srq = (struct vb_srq *)qp->ibv.qp.srq;

	if (!srq)
		return vb_rq_take(qp->recv.rq, &resp->recv);
	if (srq->tm)
		return vb_tm_take(qp, pkt, info);
	if (resp->transport == VB_DC)
		return qp->service->receive.recv_take(qp);
	return vb_srq_take(srq, &resp->recv);
}

enum vb_verdict vb_host_datagram_take(struct vb_resp *resp, uint32_t bytes)
{
	struct vb_qp *qp = qp_of_resp(resp);
	enum vb_verdict verdict;

	if (qp->ibv.qp.srq)
		return vb_srq_take_for((struct vb_srq *)qp->ibv.qp.srq, &resp->recv, bytes);
	verdict = vb_rq_look(qp->recv.rq, bytes);
	if (verdict == VB_OK)
		vb_rq_take(qp->recv.rq, &resp->recv);
	return verdict;
}

/* Packets that there is room for: in the current message, and in those that may follow. */
static __attribute__((noinline)) uint32_t packets_of(const struct vb_qp *qp)
{
	const struct vb_resp *resp = &qp->resp;
	uint32_t packets = vb_rq_packets(qp->recv.rq, resp->mtu);

	if (resp->message == VB_M_SEND && resp->offset < resp->recv.bytes)
		packets += vb_packets(resp->recv.bytes - resp->offset, resp->mtu);
	return packets;
}

uint32_t vb_host_recv_count(struct vb_resp *resp)
{
	struct vb_qp *qp = qp_of_resp(resp);

	if (qp->ibv.qp.srq)
		return UINT32_MAX;
	return qp->made.dv_flags & VB_QP_PACKET_CREDITS ? packets_of(qp) : vb_rq_count(qp->recv.rq);
}

/* Keys of a receive request belong to the PD of its queue, which may be an SRQ. */
enum vb_verdict vb_host_recv_write(struct vb_resp *resp, uint32_t offset, const void *data,
				   uint32_t bytes)
{
	struct vb_qp *qp = qp_of_resp(resp);
	struct ibv_pd *pd = qp->ibv.qp.srq ? qp->ibv.qp.srq->pd : qp->ibv.qp.pd;
	const struct vb_recv *recv = &resp->recv;

	if (resp->mark && !vb_tm_place(resp, &offset, &data, &bytes))
		return VB_OK;
	if ((uint64_t)offset + bytes > recv->bytes)
		return VB_TOO_LONG;
	if (qp->user.has_parcels && vb_parcel_take_recv(qp, offset, data, bytes))
		return VB_OK;
	if (!vb_mr_scatter(qp->nic, pd, recv->sge, recv->sge_count, offset, data, bytes))
		return VB_BAD_RECV_SGE;
	return VB_OK;
}

static __attribute__((noinline)) void add_extras(struct vb_qp *qp, struct vb_cqe *cqe)
{
	if (qp->user.is_counted)
		vb_counted_received(qp->user.counted, &cqe->wc);
	if (qp->user.has_parcels && vb_parcel_goes(qp)) {
		cqe->note = VB_CQE_PARCEL;
		cqe->user = &qp->user;
	}
}

void vb_host_recv_done(struct vb_resp *resp, const struct vb_pkt *pkt,
		       const struct vb_op_info *info, uint32_t bytes, enum ibv_wc_status status)
{
	struct vb_qp *qp = qp_of_resp(resp);
	struct vb_cqe cqe = {
		.wc = { .wr_id = resp->recv.wr_id,
			.status = status,
			.opcode = info->kind == VB_K_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM
							   : IBV_WC_RECV,
			.byte_len = bytes,
			.qp_num = qp->ibv.qp.qp_num,
			.src_qp = qp->to.dqpn },
		.solicited = pkt->se,
	};

	if (status != IBV_WC_SUCCESS) {
		cqe.solicited = true;
		cqe.wc.vendor_err = vb_why_vendor(qp->nic, status,
						  vb_why_verdict((enum vb_verdict)resp->verdict));
		VB_PROBE(wc_error, cqe.wc.qp_num, cqe.wc.wr_id, status, cqe.wc.vendor_err);
	}
	if (info->headers & VB_H_IMM) {
		cqe.wc.wc_flags |= IBV_WC_WITH_IMM;
		cqe.wc.imm_data = pkt->imm_be;
	} else if (info->headers & VB_H_IETH) {
		cqe.wc.wc_flags |= IBV_WC_WITH_INV;
		cqe.wc.invalidated_rkey = pkt->inv_rkey;
	}
	if (resp->transport == VB_UD) {
		/* Clients of mlx5 devices read the kind of IP header off sl: 1 IPv6, 2 IPv4. */
		cqe.wc.wc_flags |= IBV_WC_GRH;
		cqe.wc.src_qp = pkt->sqpn;
		cqe.wc.sl = qp->special.rx_ipv4 ? 2 : 1;
		cqe.wc.slid = qp->special.rx_from.slid;
		cqe.ahn = qp->special.rx_from.ahn;
	}
	if (qp->user.has_extras)
		add_extras(qp, &cqe);
	if (resp->mark)
		vb_tm_done(qp, &cqe);
	else if (vb_transport_aims(resp->transport))
		vb_unacked_add(qp, (struct vb_cq *)qp->ibv.qp.recv_cq, &cqe);
	else
		vb_cq_push((struct vb_cq *)qp->ibv.qp.recv_cq, &cqe);
}

void vb_host_refused(struct vb_resp *resp, const struct vb_pkt *pkt, const struct vb_op_info *info,
		     enum vb_verdict verdict)
{
	/* What came before is answered before the refusal. */
	vb_journal_settle();
	if (vb_transport_acks(resp->transport) || verdict == VB_BAD_RECV_SGE)
		vb_explain_refusal(qp_of_resp(resp), pkt, info, verdict);
	else
		vb_explain_lost(qp_of_resp(resp), pkt, info, verdict);
}

enum vb_verdict vb_host_remote_check(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     uint32_t bytes, unsigned access)
{
	struct vb_qp *qp = qp_of_resp(resp);
	bool paged;

	return vb_remote_get(qp, rkey, va, bytes, access) ||
			       vb_mkey_allows(qp->nic, qp->ibv.qp.pd, rkey, va, bytes, access) ||
			       vb_remote_find(qp, rkey, va, bytes, access, &paged)
		       ? VB_OK
		       : VB_BAD_ACCESS;
}

enum vb_verdict vb_host_remote_write(struct vb_resp *resp, uint32_t rkey, uint64_t va,
				     const void *data, uint32_t bytes)
{
	struct vb_qp *qp = qp_of_resp(resp);
	uint8_t *to = vb_remote_get(qp, rkey, va, bytes, IBV_ACCESS_REMOTE_WRITE);

	if (!to)
		return write_remote(qp, rkey, va, data, bytes);
	return vb_guard_copy(to, data, bytes) ? VB_OK : VB_BAD_MEMORY;
}

bool vb_atomic_guarded(uint64_t *at, enum vb_kind kind, uint64_t swap_add, uint64_t compare,
		       uint64_t *orig)
{
	struct vb_guard guard;

	vb_guard_cover(&guard, at, at, sizeof(*at));
	if (!vb_guard_enter(&guard))
		return false;
	if (kind == VB_K_ATOMIC_WRITE) {
		__atomic_store_n(at, swap_add, __ATOMIC_SEQ_CST);
	} else if (kind == VB_K_FETCH_ADD) {
		*orig = __atomic_fetch_add(at, swap_add, __ATOMIC_SEQ_CST);
	} else {
		uint64_t expected = compare;

		__atomic_compare_exchange_n(at, &expected, swap_add, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		*orig = expected;
	}
	vb_guard_leave();
	return true;
}

/* Finds the operand of an atomic in paged memory, after bringing it in. */
static enum vb_verdict find_paged(struct vb_qp *qp, const struct vb_pkt *pkt, unsigned access,
				  uint8_t **at)
{
	const struct vb_nic_host *host = &qp->nic->host;
	bool paged;

	*at = vb_remote_find(qp, pkt->reth.rkey, pkt->reth.va, sizeof(uint64_t), access, &paged);
	if (!*at)
		return VB_BAD_ACCESS;
	return !paged || !host->paging || host->paging->touch(host->arg, *at) ? VB_OK
									      : VB_BAD_MEMORY;
}

enum vb_verdict vb_host_remote_atomic(struct vb_resp *resp, const struct vb_pkt *pkt,
				      enum vb_kind kind, uint64_t *orig)
{
	struct vb_qp *qp = qp_of_resp(resp);
	unsigned access = kind == VB_K_ATOMIC_WRITE ? IBV_ACCESS_REMOTE_WRITE
						    : IBV_ACCESS_REMOTE_ATOMIC;
	uint8_t *at = vb_remote_get(qp, pkt->reth.rkey, pkt->reth.va, sizeof(*orig), access);
	uint64_t operand = pkt->atomic.swap_add;
	enum vb_verdict found = at ? VB_OK : find_paged(qp, pkt, access, &at);
	bool ok;

	if (found != VB_OK)
		return found;
	if (kind == VB_K_ATOMIC_WRITE) /* stored as received, without changing the byte order */
		memcpy(&operand, pkt->payload, sizeof(operand));
	/* An address aligned at the peer may be misaligned here (zero-based, iova). */
	ok = ((uintptr_t)at & 7) == 0 &&
	     vb_atomic_guarded((uint64_t *)at, kind, operand, pkt->atomic.compare, orig);
	return ok ? VB_OK : VB_BAD_MEMORY;
}

/* This CPU made the copies, and all see them in order: there is nothing to wait for. */
enum vb_verdict vb_host_flush(struct vb_resp *resp, const struct vb_pkt *pkt, unsigned access)
{
	struct vb_qp *qp = qp_of_resp(resp);
	bool ok = true, paged;

	if (pkt->flush.level == VB_FLUSH_MR)
		ok = vb_key_grants(qp->nic, qp->ibv.qp.pd, pkt->reth.rkey, access);
	else if (pkt->reth.bytes)
		ok = vb_mr_find(qp->nic, qp->ibv.qp.pd, pkt->reth.rkey, pkt->reth.va,
				pkt->reth.bytes, access, &paged);
	atomic_thread_fence(memory_order_seq_cst);
	return ok ? VB_OK : VB_BAD_ACCESS;
}

enum vb_verdict vb_host_invalidate(struct vb_resp *resp, uint32_t rkey)
{
	return vb_window_invalidate(qp_of_resp(resp), rkey) ? VB_OK : VB_BAD_INVALIDATE;
}
