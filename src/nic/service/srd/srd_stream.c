/* SPDX-License-Identifier: BSD-2-Clause */

#include "nic/service/srd/srd_stream.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/psn.h"
#include "nic/core/ah.h"
#include "nic/core/slots.h"
#include "nic/way/way.h"

/*
 * How long it waits for an answer: 8 times 268 ms. Far longer than a busy peer needs, and what is
 * sent to one that is gone should fail within seconds.
 */
enum { TIMEOUT = 16, RETRIES = 7 };

static struct vb_srd_stream *stream_of(const struct vb_qp *qp)
{
	return (struct vb_srd_stream *)qp->special.dc;
}

/* Prepares it for the first message, as ibv_modify_qp() does a DC initiator. */
static void begin(struct vb_srd_stream *s)
{
	const struct vb_qp *owner = s->dci.owner;
	struct vb_req *req = &s->qp.req;

	req->transport = s->qp.resp.transport = VB_DC;
	req->mtu = s->qp.resp.mtu = 256;
	req->flight.max = 4;
	req->max_fetches = VB_DC_RESOURCES;
	req->retry.timeout = s->qp.attr.timeout = TIMEOUT;
	req->retry.count = s->qp.attr.retry_cnt = RETRIES;
	req->retry.rnr_count = s->qp.attr.rnr_retry = owner->attr.rnr_retry;
	s->qp.attr.path_mtu = IBV_MTU_256;
	vb_req_start(req, owner->attr.sq_psn);
	atomic_store(&s->qp.state, IBV_QPS_RTS);
}

/* Everything but the number. Returns false if there is no memory. */
static bool fill(struct vb_srd_stream *s, struct vb_qp *owner)
{
	struct vb_qp *qp = &s->qp;

	s->dci.owner = owner;
	qp->nic = owner->nic;
	qp->service = &vb_service_srd_stream;
	vb_timer_init(&qp->later.timer, false);
	vb_lock_init(&qp->lock, VB_RANK_QP_CONTEXT);
	vb_req_reset(&qp->req);
	vb_resp_reset(&qp->resp);
	qp->ibv.qp = owner->ibv.qp;
	qp->ibv.qp.srq = &vb_srd_of(owner)->srq.ibv;
	qp->made = owner->made;
	qp->to.migreq = true;
	qp->user.qpn = owner->ibv.qp.qp_num;
	qp->req.sq.mask = VB_SRD_STREAM_PLACES - 1;
	qp->req.sq.stride = owner->req.sq.stride;
	/* The events of an ordinary QP do not apply. */
	qp->events.comm_est = qp->events.last_wqe = true;
	return !vb_qp_sq_make(qp) && !vb_dci_begin(qp, &s->dci);
}

struct vb_srd_stream *vb_srd_stream_make(struct vb_qp *owner)
{
	struct vb_srd_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	/* Last the number, since packets find it from there on. */
	if (!fill(s, owner) ||
	    vb_nic_qp_add_here(owner->nic, &s->qp, &s->qp.ibv.qp.qp_num)) {
		vb_srd_stream_free(s);
		return NULL;
	}
	s->qp.special.sqpn = s->qp.ibv.qp.qp_num;
	return s;
}

void vb_srd_stream_free(struct vb_srd_stream *s)
{
	free(s->dci.to);
	free(s->qp.req.sq.ring);
	vb_lock_fini(&s->qp.lock);
	free(s);
}

void vb_srd_stream_reset(struct vb_srd_stream *s)
{
	vb_lock_take(&s->qp.lock);
	vb_dc_part(&s->qp);
	vb_qp_unbind_locked(&s->qp);
	vb_req_reset(&s->qp.req);
	vb_resp_reset(&s->qp.resp);
	atomic_store(&s->qp.user.sq_released, 0);
	atomic_store(&s->qp.state, IBV_QPS_RESET);
	vb_lock_drop(&s->qp.lock);
}

/* --- posting --- */

void vb_srd_to_set(const struct vb_qp *qp, struct vb_dc_to *to, const struct ibv_send_wr *wr,
		   const struct vb_post *post)
{
	const struct vb_dc_address classic = {
		.ah = wr->wr.ud.ah,
		.dctn = wr->wr.ud.remote_qpn,
		.key = wr->wr.ud.remote_qkey,
	};

	vb_dc_to_set(to, post ? &post->dc : &classic);
	if (vb_nic_offers_srd(qp->nic))
		to->dctn = vb_qpn_widen(to->dctn);
}

void vb_srd_stream_address(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			   const struct vb_post *post)
{
	uint32_t max = wqe->kind == VB_K_SEND ? VB_SRD_SEND_BYTES_MAX : VB_SRD_RDMA_BYTES_MAX;
	struct vb_dc_to to;

	/* EFA's READs complete as SENDs do. */
	if (wqe->kind == VB_K_READ_REQ && vb_nic_offers_srd(qp->nic))
		wqe->wc_opcode = IBV_WC_SEND;
	if (wqe->bytes > max) {
		wqe->fault = IBV_WC_LOC_LEN_ERR;
		wqe->bytes = 0;
	}
	vb_srd_to_set(qp, &to, wr, post);
	vb_dc_to_keep(qp, wqe, &to);
}

int vb_srd_stream_post(struct vb_srd_stream *s, const struct ibv_send_wr *wr,
		       const struct vb_post *post)
{
	int err;

	vb_lock_take(&s->qp.lock);
	if (vb_qp_state(&s->qp) == IBV_QPS_RESET)
		begin(s);
	err = vb_qp_post_one(&s->qp, wr, post);
	vb_lock_drop(&s->qp.lock);
	return err;
}

void vb_srd_stream_send(struct vb_srd_stream *s)
{
	vb_lock_take(&s->qp.lock);
	s->qp.now_ns = vb_nic_now_ns(s->qp.nic);
	vb_qp_transmit_locked(&s->qp);
	vb_lock_drop(&s->qp.lock);
}

/* --- answers and failures --- */

void vb_srd_stream_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
			const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_srd_stream *s = stream_of(qp);

	s->refused = info->kind == VB_K_ACK && !pkt->dceth.mtu_code;
	vb_dc_initiator_take(batch, qp, from, pkt, info);
	s->refused = false;
}

/* As rdma-core's provider translates what an EFA device reports. */
void vb_srd_stream_translate(struct vb_qp *qp, enum ibv_wc_status *status)
{
	struct vb_srd_stream *s = stream_of(qp);

	s->failed = *status;
	if (s->failed == IBV_WC_RETRY_EXC_ERR)
		*status = IBV_WC_RESP_TIMEOUT_ERR;
	else if (s->failed == IBV_WC_REM_ACCESS_ERR && s->refused)
		*status = IBV_WC_REM_INV_RD_REQ_ERR;
}

/* Has the peer refused the message? Then it has executed none of those behind it. */
static bool is_refusal(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

/*
 * What is said of messages that were sent behind one that failed. Whether they arrived is not
 * known; if they were sent again, by another connection, they might arrive twice.
 */
static enum ibv_wc_status doubtful(enum ibv_wc_status failed)
{
	return failed == IBV_WC_RETRY_EXC_ERR || failed == IBV_WC_RNR_RETRY_EXC_ERR
		       ? failed
		       : IBV_WC_REM_ABORT_ERR;
}

bool vb_srd_stream_isolate(struct vb_qp *qp)
{
	enum ibv_wc_status failed = stream_of(qp)->failed;
	struct vb_req *req = &qp->req;

	vb_dc_part(qp);
	while (!is_refusal(failed) && req->head != req->tail &&
	       vb_psn_diff(vb_sq_at(&req->sq, req->head)->psn, req->top_psn) < 0)
		vb_req_complete_head(req, doubtful(failed));
	vb_req_go_on(req);
	/* Not now, since this QP is being processed. */
	vb_timer_arm(qp->nic, qp, qp->now_ns);
	return true;
}
