/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shadows: the responder of one NIC for a receive QP that many NICs serve in turn. They all read
 * the expected PSN and the message count from one word, and update them there.
 */

#include "nic/service/xrc/xrc_rx.h"

#include <stdlib.h>

#include "base/psn.h"
#include "engine/rc_resp.h"
#include "nic/core/ah.h"
#include "nic/data/acks.h"
#include "nic/data/qp_error.h"
#include "nic/queue/rq.h"
#include "nic/service/xrc/xrc.h"
#include "nic/way/peer.h"
#include "nic/way/way.h"
#include "wire/bytes.h"

static struct vb_qp *make(struct vb_nic *nic, struct vb_xrc_rcv *rcv, uint32_t qpn)
{
	struct vb_qp *qp = vb_xrc_rcv_alloc(nic, &vb_service_xrc_shadow);

	if (!qp)
		return NULL;
	qp->recv.unacked = calloc(1, sizeof(*qp->recv.unacked));
	if (!qp->recv.unacked) {
		vb_qp_free(qp);
		return NULL;
	}
	qp->special.xrc->rcv = rcv;
	qp->special.xrc->seq = 1; /* no value that is read */
	vb_req_reset(&qp->req);
	vb_resp_reset(&qp->resp);
	qp->req.transport = qp->resp.transport = VB_XRC;
	vb_rq_init(&qp->recv.own_rq, 0, 0);
	qp->recv.rq = &qp->recv.own_rq;
	qp->ibv.qp.qp_num = qp->special.sqpn = qpn;
	/* It is shared by many, and these two events have no receiver. */
	qp->events.comm_est = qp->events.last_wqe = true;
	return qp;
}

struct vb_qp *vb_xrc_shadow(struct vb_nic *nic, uint32_t qpn)
{
	struct vb_xrc *xrc = atomic_load_explicit(&nic->special.xrc, memory_order_acquire);
	struct vb_xrc_rcv *rcv = xrc ? vb_xrc_rcv_of(xrc->store, qpn) : NULL;
	struct vb_qp *qp, *made;

	if (!rcv || !atomic_load(&rcv->domain) || vb_nic_has_failed(nic))
		return NULL;
	qp = atomic_load(&xrc->shadow[qpn]);
	if (qp)
		return qp;
	made = make(nic, rcv, qpn);
	/* The first packets may come by the wire and by a ring at the same time. */
	if (!made || atomic_compare_exchange_strong(&xrc->shadow[qpn], &qp, made))
		return made;
	vb_qp_free(made);
	return qp;
}

/* Makes room for answers of READs and atomics. Returns false: no memory, or all are in use. */
static bool resize(struct vb_resp *resp, uint32_t places)
{
	struct vb_resource *ring;

	if (resp->ring && resp->resources_max == places)
		return true;
	ring = vb_resp_ring_fits(resp, places) ? calloc(places + 1u, sizeof(*ring)) : NULL;
	if (!ring)
		return false;
	free(vb_resp_ring_replace(resp, ring, places));
	return true;
}

/* The QP was made anew, or reset: drops what was under way. */
static void begin_life(struct vb_qp *qp, uint32_t life)
{
	vb_qp_flush_recv_locked(qp);
	vb_resp_reset(&qp->resp);
	qp->resp.transport = VB_XRC;
	qp->special.xrc->life = life;
	qp->special.xrc->owes_failure = false;
}

bool vb_xrc_refresh(struct vb_qp *qp)
{
	struct vb_xrc_qp *x = qp->special.xrc;
	struct vb_resp *resp = &qp->resp;
	struct vb_xrc_attr at;
	uint32_t seq, life;

	if (atomic_load_explicit(&x->rcv->seq, memory_order_acquire) == x->seq)
		return true;
	life = atomic_load(&x->rcv->life);
	if (!vb_xrc_rcv_read(x->rcv, &at, &seq))
		return false;
	if (life != x->life)
		begin_life(qp, life);
	if (!resize(resp, at.attr.max_dest_rd_atomic))
		return false;
	if (at.has_alt && !qp->to.migration)
		qp->to.migration = calloc(1, sizeof(*qp->to.migration));
	if (at.has_alt && !qp->to.migration)
		return false;
	if (at.has_alt)
		*qp->to.migration = at.migration;
	qp->to.migrates = at.has_alt;
	qp->attr = at.attr;
	qp->to.dqpn = at.attr.dest_qp_num;
	qp->to.path = at.path;
	qp->to.migreq = at.attr.path_mig_state == IBV_MIG_MIGRATED;
	vb_path_sport_set(qp->nic, &qp->to.path, atomic_load(&qp->nic->special.xrc)->slot,
			  qp->to.dqpn);
	if (resp->mtu != VB_LANE_MTU_BYTES)
		qp->req.mtu = resp->mtu = 128u << at.attr.path_mtu;
	resp->min_rnr_timer = at.attr.min_rnr_timer;
	resp->access = at.attr.qp_access_flags;
	/* Another NIC's shadow failed, so the message being received here will not end. */
	if (at.attr.qp_state == IBV_QPS_ERR && resp->has_recv)
		vb_qp_flush_recv_locked(qp);
	x->domain = atomic_load(&x->rcv->domain);
	x->seq = seq;
	atomic_store(&qp->state, x->owes_failure ? IBV_QPS_ERR : at.attr.qp_state);
	return true;
}

static struct vb_srq *srq_named(const struct vb_qp *qp, const struct vb_pkt *pkt)
{
	struct vb_srq *srq = vb_nic_srq_find(qp->nic, pkt->srqn);

	return srq && srq->xrcd->id == qp->special.xrc->domain ? srq : NULL;
}

/*
 * Selects the SRQ that the packet names, which provides receives and whose PD checks keys. Returns
 * false if the domain has no such SRQ, or another SRQ has the current message.
 */
static bool aim(struct vb_qp *qp, const struct vb_pkt *pkt)
{
	struct ibv_qp *ibv = &qp->ibv.qp;
	struct vb_srq *srq = srq_named(qp, pkt);

	if (!srq)
		return false;
	if (ibv->srq == &srq->ibv)
		return true;
	if (qp->resp.message != VB_M_NONE)
		return false;
	/* It was taken for a message that never ended. */
	if (qp->resp.has_recv)
		vb_qp_flush_recv_locked(qp);
	ibv->srq = &srq->ibv;
	ibv->pd = srq->ibv.pd;
	ibv->recv_cq = srq->cq;
	return true;
}

/* Answers still owed to READs use the keys of the SRQ that these READs named. */
static bool settle_reads(struct vb_qp *qp, const struct vb_pkt *pkt)
{
	const struct ibv_srq *srq = qp->ibv.qp.srq;

	if (!srq || srq->handle == pkt->srqn || qp->resp.done == qp->resp.tail)
		return true;
	vb_qp_transmit_locked(qp);
	return qp->resp.done == qp->resp.tail;
}

static struct vb_resp_result dropped(void)
{
	return (struct vb_resp_result){ VB_RESP_DROPPED, VB_BAD_SEQUENCE };
}

/*
 * A READ that was answered is requested again in the middle of another SRQ's message. The sender
 * may wait for it, so it is answered at once, with the keys of its own SRQ.
 */
static struct vb_resp_result answer_between(struct vb_qp *qp, const struct vb_pkt *pkt,
					    const struct vb_op_info *info)
{
	const struct vb_srq *srq = srq_named(qp, pkt);
	struct vb_resp *resp = &qp->resp;
	struct ibv_pd *pd = qp->ibv.qp.pd;
	struct vb_resp_result result;

	if (!srq)
		return dropped();
	qp->ibv.qp.pd = srq->ibv.pd;
	result = vb_rc_request(resp, pkt, info);
	vb_qp_transmit_locked(qp);
	/* What did not leave will be requested again. */
	resp->done = resp->tail;
	qp->ibv.qp.pd = pd;
	return result;
}

static struct vb_resp_result request(struct vb_qp *qp, const struct vb_pkt *pkt,
				     const struct vb_op_info *info)
{
	uint16_t own = atomic_load(&qp->nic->special.xrc)->slot;
	struct vb_xrc_rcv *rcv = qp->special.xrc->rcv;
	struct vb_resp *resp = &qp->resp;
	uint64_t word = atomic_load(&rcv->word);
	struct vb_xrc_at at = vb_xrc_at(word);
	struct vb_resp_result result;

	if (!settle_reads(qp, pkt))
		return dropped();
	if (resp->epsn != at.epsn || resp->msn != at.msn) {
		vb_resp_drop_message(resp);
		resp->nak_sent = false;
		resp->epsn = at.epsn;
		resp->msn = at.msn;
	}
	/*
	 * It is ahead of its turn, and another NIC had the last packet, which it may still be
	 * processing.
	 */
	if (vb_psn_diff(pkt->psn, at.epsn) > 0 && at.slot && at.slot != own)
		return dropped();
	if (aim(qp, pkt))
		result = vb_rc_request(resp, pkt, info);
	else if (info->kind == VB_K_READ_REQ && vb_psn_diff(pkt->psn, at.epsn) < 0)
		result = answer_between(qp, pkt, info);
	else
		result = vb_rc_refuse(resp, pkt, info, VB_BAD_OPCODE);
	if (resp->epsn == at.epsn && resp->msn == at.msn)
		return result;
	at = (struct vb_xrc_at){ .epsn = resp->epsn, .msn = resp->msn, .slot = own };
	/* Another NIC cannot have moved it, unless a forged packet did. */
	return atomic_compare_exchange_strong(&rcv->word, &word, vb_xrc_word(at)) ? result
										  : dropped();
}

void vb_xrc_request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_resp_result result = request(qp, pkt, info);

	(void)frame;
	vb_batch_acknowledge(batch, qp);
	vb_batch_heed(batch, qp, result);
}

/* True if the shadow's sender is this lane's process, and the SRQ is ours. */
static bool hears(const struct vb_qp *qp, const struct vb_lane *lane, uint32_t srqn)
{
	return qp->to.path.local && qp->to.dqpn >> VB_INDEX_BITS == lane->peer->slot &&
	       srqn >> VB_INDEX_BITS == lane->peer->own_slot;
}

static uint32_t xrceth(const struct vb_ring_frame *from)
{
	return vb_be32_get(from->octets + VB_BTH_BYTES);
}

static bool take_middle(struct vb_batch *batch, struct vb_qp *qp, const struct vb_bare *bare,
			uint32_t srqn, const uint8_t *payload, uint32_t bytes)
{
	enum vb_kind kind = (enum vb_kind)vb_op_info(bare->opcode)->kind;
	uint16_t own = atomic_load_explicit(&qp->nic->special.xrc, memory_order_relaxed)->slot;
	struct vb_xrc_at at = { qp->resp.epsn, qp->resp.msn, own };
	struct vb_xrc_rcv *rcv = qp->special.xrc->rcv;
	uint64_t word = vb_xrc_word(at);

	if (atomic_load_explicit(&rcv->seq, memory_order_acquire) != qp->special.xrc->seq ||
	    qp->to.migrates || vb_qp_state(qp) < IBV_QPS_RTR || vb_qp_state(qp) == IBV_QPS_ERR ||
	    atomic_load(&rcv->word) != word || !qp->ibv.qp.srq || qp->ibv.qp.srq->handle != srqn ||
	    !vb_resp_middle(&qp->resp, kind, bare->psn, bare->ackreq, payload, bytes))
		return false;
	if (qp->resp.ack_owed)
		vb_batch_touch(batch, qp);
	at.epsn = qp->resp.epsn;
	/* As in request(): if it moved meanwhile, the next request finds out. */
	atomic_compare_exchange_strong(&rcv->word, &word, vb_xrc_word(at));
	return true;
}

/* The shadow has taken a packet by this lane before. */
bool vb_xrc_middle(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane,
		   const struct vb_ring_frame *from)
{
	struct vb_bare bare;
	uint32_t srqn, word = xrceth(from);

	if (from->head_bytes != VB_BTH_BYTES + VB_XRCETH_BYTES ||
	    !vb_pkt_head_is_plain(&bare, from->octets, VB_PKEY_DEFAULT, VB_H_XRCETH) ||
	    bare.dqpn != qp->ibv.qp.qp_num || vb_op_info(bare.opcode)->pos != VB_P_MIDDLE)
		return false;
	srqn = word & 0xffffff;
	return hears(qp, lane, srqn) &&
	       (word & VB_LANE_LARGE) == (qp->resp.mtu == VB_LANE_MTU_BYTES ? VB_LANE_LARGE : 0) &&
	       take_middle(batch, qp, &bare, srqn, from->payload, from->payload_bytes);
}

static void answer_by(struct vb_qp *qp, struct vb_peer *peer)
{
	if (qp->to.peer == peer)
		return;
	if (peer && atomic_load_explicit(&peer->has_tx, memory_order_acquire) &&
	    !vb_peer_is_lost(peer))
		vb_qp_bind_locked(qp, peer, qp->to.dqpn);
	else if (qp->to.peer)
		vb_qp_unbind_locked(qp);
}

void vb_xrc_shadows_look(struct vb_nic *nic)
{
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);

	for (unsigned i = 0; i < VB_XRC_RCVS_MAX; i++) {
		struct vb_qp *qp = atomic_load(&xrc->shadow[i]);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		if (qp->resp.has_recv && !atomic_load(&qp->special.xrc->rcv->domain))
			vb_qp_flush_recv_locked(qp);
		else if (qp->resp.has_recv)
			vb_xrc_refresh(qp);
		vb_lock_drop(&qp->lock);
	}
}

/*
 * A request of this kind has come through shared memory from that peer (large: in pieces of
 * VB_LANE_MTU_BYTES); NULL: by the wire. Answers take the way of the last request, if there is one
 * back. Returns false if it is too late or too early: it has other pieces than requests still to be
 * answered, or its answer would go by the wire in pieces too large for that.
 */
static bool comes_by(struct vb_qp *qp, struct vb_peer *peer, bool large, enum vb_kind kind)
{
	uint32_t mtu = large ? VB_LANE_MTU_BYTES : 128u << qp->attr.path_mtu;
	struct vb_resp *resp = &qp->resp;

	if (mtu != resp->mtu && resp->done != resp->tail)
		return false;
	answer_by(qp, peer);
	if (large && kind == VB_K_READ_REQ && !qp->to.peer)
		return false;
	qp->req.mtu = resp->mtu = mtu;
	return true;
}

static bool is_from_sender(struct vb_qp *qp, const struct vb_from *from, const struct vb_pkt *pkt,
			   const struct vb_op_info *info)
{
	const struct vb_path *path = from->lane ? NULL : &from->frame->path;

	if (from->lane && !((info->headers & VB_H_XRCETH) && hears(qp, from->lane, pkt->srqn)))
		return false;
	if (qp->to.migrates)
		return vb_migration_admit(qp, path, pkt, info) || from->lane;
	return from->lane || vb_qp_path_fits(qp, path);
}

void vb_xrc_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_peer *peer = from->lane ? from->lane->peer : NULL;

	if (!vb_xrc_refresh(qp)) {
		vb_batch_count(batch, VB_STAT_DROP_STATE);
		return;
	}
	if (!vb_batch_admit(batch, qp, pkt, info))
		return;
	if (!is_from_sender(qp, from, pkt, info)) {
		vb_batch_count(batch, VB_STAT_DROP_STRANGER);
		return;
	}
	if (!comes_by(qp, peer, peer && (xrceth(from->ring) & VB_LANE_LARGE), info->kind)) {
		vb_batch_count(batch, VB_STAT_DROP_SEQUENCE);
		return;
	}
	vb_batch_packet(batch, qp, from->frame, pkt, info);
}

void vb_xrc_peer_gone(struct vb_peer *peer)
{
	struct vb_xrc *xrc = atomic_load(&peer->nic->special.xrc);

	for (unsigned i = 0; xrc && i < VB_XRC_RCVS_MAX; i++) {
		struct vb_qp *qp = atomic_load(&xrc->shadow[i]);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		if (qp->to.peer == peer) {
			vb_qp_unbind_locked(qp);
			/*
			 * These answers have no receiver, and the wire cannot carry such large
			 * pieces.
			 */
			qp->resp.done = qp->resp.tail;
		}
		vb_lock_drop(&qp->lock);
	}
}

/* Waits for what is owed for messages of this SRQ, with no right held. */
static void settle(struct vb_xrc *xrc, const struct vb_srq *srq)
{
	for (unsigned i = 0; i < VB_XRC_RCVS_MAX; i++) {
		struct vb_qp *qp = atomic_load(&xrc->shadow[i]);
		bool takes;

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		takes = qp->ibv.qp.srq == &srq->ibv;
		vb_lock_drop(&qp->lock);
		if (takes)
			vb_ack_settle(qp);
	}
}

void vb_xrc_srq_leave(struct vb_srq *srq)
{
	struct vb_nic *nic = vb_nic_of(srq->ibv.context);
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);

	settle(xrc, srq);
	vb_lock_take(&nic->rx);
	for (unsigned i = 0; i < VB_XRC_RCVS_MAX; i++) {
		struct vb_qp *qp = atomic_load(&xrc->shadow[i]);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		if (qp->ibv.qp.srq == &srq->ibv) {
			vb_ack_flush(qp);
			vb_resp_drop_message(&qp->resp);
			qp->resp.has_recv = false;
			qp->resp.done = qp->resp.fresh = qp->resp.tail;
			qp->ibv.qp.srq = NULL;
			qp->ibv.qp.pd = NULL;
			qp->ibv.qp.recv_cq = NULL;
		}
		/*
		 * Even during a batch, in which completions of this SRQ may come before another's.
		 */
		vb_unacked_give(qp);
		vb_lock_drop(&qp->lock);
	}
	vb_lock_drop(&nic->rx);
}
