/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * DC targets and their contexts: one responder for each connected initiator. The connection number
 * makes sure that a message arrives once, however late its packets: a context accepts no lower
 * number than it has seen, and is kept for a while after its initiator has disconnected.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/psn.h"
#include "engine/rc_resp.h"
#include "nic/core/ah.h"
#include "nic/data/acks.h"
#include "nic/queue/rq.h"
#include "nic/service/dc/dc_target.h"
#include "nic/way/peer.h"
#include "nic/way/way.h"

static struct vb_dct *dct_of(const struct vb_qp *qp)
{
	return (struct vb_dct *)qp->special.dc;
}

static bool admits(const struct vb_qp *target, const struct vb_pkt *pkt)
{
	return pkt->dceth.key == dct_of(target)->access_key;
}

static const struct vb_dct_kind dct_kind = {
	.context = &vb_service_dc_context,
	.connect = VB_K_CONNECT,
	.contexts_max = VB_DC_CONTEXTS_MAX,
	.admits = admits,
};

int vb_dct_make(struct vb_qp *target, const struct vb_qp_extra *extra)
{
	struct vb_dct *dct = calloc(1, sizeof(*dct));

	if (!dct)
		return ENOMEM;
	dct->access_key = extra->dc->access_key;
	return vb_dct_begin(target, dct, &dct_kind);
}

int vb_dct_begin(struct vb_qp *target, struct vb_dct *dct, const struct vb_dct_kind *kind)
{
	target->special.dc = &dct->dc;
	dct->kind = kind;
	dct->all = calloc(kind->contexts_max, sizeof(struct vb_dcx *));
	if (!dct->all)
		return ENOMEM;
	atomic_store(&target->nic->special.has_targets, true);
	vb_peers_reach_back(target->nic);
	return 0;
}

void vb_dct_unmake(struct vb_qp *target)
{
	struct vb_dct *dct = dct_of(target);

	for (unsigned i = 0; dct && i < atomic_load(&dct->count); i++) {
		free(dct->all[i]->qp.resp.ring);
		free(dct->all[i]->qp.recv.unacked);
		vb_lock_fini(&dct->all[i]->qp.lock);
		free(dct->all[i]);
	}
	if (dct)
		free(dct->all);
	free(dct);
}

static struct vb_dcx *dcx_of(const struct vb_qp *qp)
{
	return (struct vb_dcx *)qp->special.dc;
}

/* --- the table; target locked --- */

/* The sender: an address and a number; within a host the number alone. */
struct who {
	uint8_t gid[VB_GID_BYTES];
	uint32_t dci;
};

static struct who who_is(const struct vb_from *from, const struct vb_pkt *pkt)
{
	struct who who = { .dci = pkt->sqpn };

	if (!from->lane)
		memcpy(who.gid, from->frame->path.src, VB_GID_BYTES);
	return who;
}

static struct vb_dcx **bucket_of(struct vb_dct *dct, const uint8_t *gid, uint32_t dci)
{
	uint32_t h = dci * 2654435761u;

	for (unsigned i = 0; i < VB_GID_BYTES; i++)
		h = (h ^ gid[i]) * 16777619u;
	return &dct->bucket[(h >> 8) % VB_DC_BUCKETS];
}

static bool is_of(const struct vb_dcx *x, const struct who *who)
{
	return x->dci == who->dci && !memcmp(x->gid, who->gid, VB_GID_BYTES);
}

static struct vb_dcx *find(struct vb_dct *dct, const struct who *who)
{
	struct vb_dcx *x = *bucket_of(dct, who->gid, who->dci);

	while (x && !is_of(x, who))
		x = x->next;
	return x;
}

static struct vb_dcx *make(struct vb_qp *target)
{
	struct vb_dct *dct = dct_of(target);
	struct vb_dcx *x = calloc(1, sizeof(*x));
	struct vb_qp *qp;

	if (!x)
		return NULL;
	qp = &x->qp;
	qp->resp.ring = calloc(VB_DC_RESOURCES + 1u, sizeof(*qp->resp.ring));
	qp->recv.unacked = calloc(1, sizeof(*qp->recv.unacked));
	if (!qp->resp.ring || !qp->recv.unacked) {
		free(qp->recv.unacked);
		free(qp->resp.ring);
		free(x);
		return NULL;
	}
	x->target = target;
	qp->special.dc = &x->dc;
	qp->service = dct->kind->context;
	qp->nic = target->nic;
	vb_timer_init(&qp->later.timer, false);
	vb_lock_init(&qp->lock, VB_RANK_QP_CONTEXT);
	vb_req_reset(&qp->req);
	qp->req.transport = qp->resp.transport = VB_DC;
	qp->resp.unsolicited = dct->unsolicited;
	qp->recv.rq = target->recv.rq;
	qp->ibv.qp = target->ibv.qp;
	if (dct->srq)
		qp->ibv.qp.srq = dct->srq;
	qp->ibv.qp.send_cq = NULL;
	qp->special.sqpn = qp->ibv.qp.qp_num;
	/* The events of an ordinary QP do not apply to the target. */
	qp->events.comm_est = qp->events.last_wqe = true;
	dct->all[atomic_load(&dct->count)] = x;
	atomic_fetch_add(&dct->count, 1);
	return x;
}

/* Ends its connection; it only remembers. Context locked. */
static void close_locked(struct vb_dcx *x)
{
	struct vb_qp *qp = &x->qp;

	atomic_store(&qp->state, IBV_QPS_RESET);
	vb_unacked_give(qp);
	vb_resp_drop_message(&qp->resp);
	if (qp->resp.has_recv) {
		qp->resp.has_recv = false;
		x->spare = true;
	}
	qp->resp.done = qp->resp.fresh = qp->resp.tail;
	qp->resp.ack_owed = qp->resp.nak_owed = false;
	vb_qp_unbind_locked(qp);
	x->dc.connected = false;
}

static bool may_be_forgotten(struct vb_dcx *x, uint64_t now_ns)
{
	return now_ns - x->used_ns >= (x->dc.connected ? VB_DC_FORGET_NS : VB_DC_LINGER_NS);
}

/*
 * A context that may be forgotten; NULL. They are looked at in turn, and not again before one of
 * them may be: a crowd of initiators does not cost each of them a look at all.
 */
static struct vb_dcx *forgettable(struct vb_dct *dct, uint64_t now_ns)
{
	uint64_t soonest_ns = UINT64_MAX;

	for (unsigned i = 0; i < dct->kind->contexts_max && now_ns >= dct->full_until_ns; i++) {
		struct vb_dcx *x = dct->all[dct->hand];

		dct->hand = (dct->hand + 1) % dct->kind->contexts_max;
		if (may_be_forgotten(x, now_ns))
			return x;
		soonest_ns = vb_min_u64(soonest_ns, x->used_ns + VB_DC_LINGER_NS);
	}
	if (soonest_ns != UINT64_MAX)
		dct->full_until_ns = soonest_ns;
	return NULL;
}

static void unlink_from(struct vb_dct *dct, struct vb_dcx *x)
{
	struct vb_dcx **at = bucket_of(dct, x->gid, x->dci);

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
}

/* A context for a new initiator; NULL: too many, or no memory. */
static struct vb_dcx *enter(struct vb_qp *target, const struct who *who, uint64_t now_ns)
{
	struct vb_dct *dct = dct_of(target);
	struct vb_dcx **bucket = bucket_of(dct, who->gid, who->dci), *x;

	if (atomic_load(&dct->count) < dct->kind->contexts_max) {
		x = make(target);
		if (!x)
			return NULL;
		vb_lock_take(&x->qp.lock);
	} else {
		x = forgettable(dct, now_ns);
		if (!x)
			return NULL;
		/* A holder of this lock never waits for a target. */
		vb_lock_take(&x->qp.lock);
		unlink_from(dct, x);
		close_locked(x);
	}
	memcpy(x->gid, who->gid, VB_GID_BYTES);
	x->dci = who->dci;
	x->dc.connection = 0;
	x->used_ns = now_ns;
	vb_lock_drop(&x->qp.lock);
	x->next = *bucket;
	*bucket = x;
	return x;
}

/* --- answers outside any context --- */

/* Its MTU code, which is invalid, tells that it does not belong to a connection. */
static void answer_as(struct vb_nic *nic, const struct vb_qp *target, const struct vb_from *from,
		      const struct vb_pkt *pkt, uint32_t psn, uint8_t syndrome)
{
	struct vb_path back = { .hop_limit = 64 };
	struct vb_lane *lane = NULL;
	struct vb_pkt nak = {
		.opcode = VB_OP_DC_ACK,
		.psn = psn,
		.aeth.syndrome = syndrome,
		.sqpn = pkt->dqpn,
		.dceth.start_psn = pkt->dceth.start_psn,
		.dceth.connection = pkt->dceth.connection,
	};

	vb_pkt_begin(&nak, pkt->sqpn, VB_PKEY_DEFAULT);
	if (from->lane) {
		/* The ring back may not exist yet: then the initiator asks again. */
		if (!atomic_load(&from->lane->peer->has_tx) || vb_peer_is_lost(from->lane->peer))
			return;
		lane = vb_lane_of(from->lane->peer, VB_DC, nak.sqpn);
	} else {
		back = from->frame->path;
		memcpy(back.src, from->frame->path.dst, VB_GID_BYTES);
		memcpy(back.dst, from->frame->path.src, VB_GID_BYTES);
		back.hop_limit = 64;
		vb_path_sport_answer(nic, &back, (uint16_t)(nak.sqpn >> VB_INDEX_BITS),
				     nak.dqpn, VB_STRANGER);
	}
	/* Without room, it is lost as any packet may be. */
	vb_dc_send(nic, target, &nak, &back, lane);
}

static void answer_to(const struct vb_qp *target, const struct vb_from *from,
		      const struct vb_pkt *pkt, uint8_t syndrome)
{
	answer_as(target->nic, target, from, pkt, pkt->dceth.start_psn, syndrome);
}

void vb_dc_nobody(struct vb_batch *batch, const struct vb_from *from, const struct vb_pkt *pkt)
{
	if (!from->lane || pkt->sqpn >> VB_INDEX_BITS == from->lane->peer->slot)
		answer_as(batch->nic, NULL, from, pkt, pkt->psn, vb_aeth_nak(VB_NAK_ACCESS));
}

/* Only the first packet of a connection is answered. */
static void ask_to_connect(struct vb_batch *batch, struct vb_qp *target,
			   const struct vb_from *from, const struct vb_pkt *pkt)
{
	vb_batch_count(batch, VB_STAT_DROP_NO_CONTEXT);
	if (pkt->psn == pkt->dceth.start_psn)
		answer_to(target, from, pkt, vb_aeth_nak(VB_NAK_PSN));
}

/* --- connecting --- */

static bool is_connect(uint8_t kind)
{
	return kind == VB_K_CONNECT || kind == VB_K_CONNECT_SRD;
}

/* The size of the initiator's pieces; 0: invalid for this way. */
static uint32_t mtu_bytes(const struct vb_from *from, const struct vb_pkt *pkt)
{
	if (pkt->dceth.mtu_code == VB_DC_MTU_LARGE)
		return from->lane ? VB_LANE_MTU_BYTES : 0;
	return pkt->dceth.mtu_code < IBV_MTU_256 || pkt->dceth.mtu_code > IBV_MTU_4096
		       ? 0
		       : 128u << pkt->dceth.mtu_code;
}

/* Starts this connection in the context. Context locked. Returns false if there is no ring back. */
static bool open_locked(struct vb_dcx *x, const struct vb_from *from, const struct vb_pkt *pkt)
{
	const struct vb_qp *target = x->target;
	struct vb_qp *qp = &x->qp;
	struct vb_resp *resp = &qp->resp;

	close_locked(x);
	/* It has failed since the target was asked: nothing begins behind its back. */
	if (vb_qp_state(target) == IBV_QPS_ERR)
		return false;
	qp->to.dqpn = pkt->sqpn;
	x->src_qpn = pkt->srd.qpn;
	x->src_ahn = 0;
	memcpy(x->src_gid, from->lane ? pkt->srd.gid : from->frame->path.src, VB_GID_BYTES);
	if (from->lane) {
		if (!atomic_load(&from->lane->peer->has_tx))
			return false;
		vb_qp_bind_locked(qp, from->lane->peer, pkt->sqpn);
		if (!qp->to.peer)
			return false;
	} else {
		qp->to.path = from->frame->path;
		memcpy(qp->to.path.src, from->frame->path.dst, VB_GID_BYTES);
		memcpy(qp->to.path.dst, from->frame->path.src, VB_GID_BYTES);
		qp->to.path.hop_limit = 64;
		vb_path_sport_answer(qp->nic, &qp->to.path,
				     (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS), qp->to.dqpn,
				     VB_GUEST);
	}
	x->dc.connection = pkt->dceth.connection;
	x->dc.start_psn = pkt->dceth.start_psn;
	x->dc.mtu_code = pkt->dceth.mtu_code;
	x->dc.connected = true;
	resp->mtu = qp->req.mtu = mtu_bytes(from, pkt);
	resp->resources_max = VB_DC_RESOURCES;
	resp->min_rnr_timer = target->attr.min_rnr_timer;
	resp->access = target->attr.qp_access_flags;
	resp->epsn = pkt->dceth.start_psn;
	resp->msn = 0;
	resp->nak_sent = resp->broken = false;
	resp->done = resp->fresh = resp->tail = 0;
	atomic_store(&qp->state, IBV_QPS_RTR);
	return true;
}

/* Half a handshake: requests that follow are accepted at once, and answered instead of this. */
static void connect(struct vb_batch *batch, struct vb_dcx *x, const struct vb_from *from,
		    const struct vb_pkt *pkt)
{
	if (!mtu_bytes(from, pkt))
		vb_batch_count(batch, VB_STAT_DROP_MALFORMED);
	else if (!open_locked(x, from, pkt))
		vb_batch_count(batch, VB_STAT_DROP_NO_CONTEXT);
}

/* The answer that ended the connection may have been lost, or an earlier one: repeats it. */
static void refuse_again(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt,
			 const struct vb_op_info *info)
{
	struct vb_resp *resp = &qp->resp;

	if (!is_connect(info->kind) && vb_psn_diff(pkt->psn, resp->epsn) < 0) {
		resp->broken = false;
		vb_rc_request(resp, pkt, info);
		resp->broken = true;
	}
	resp->nak_owed = resp->nak_sent;
	vb_batch_count(batch, VB_STAT_DUPLICATES);
	vb_batch_touch(batch, qp);
}

/* Context held. */
static void context_rx(struct vb_batch *batch, struct vb_dcx *x, const struct vb_from *from,
		       const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	uint64_t now_ns = x->qp.now_ns;
	/* After a while it is not a late packet, but a sender whose clock was set back. */
	bool connects = info->kind == dct_of(x->target)->kind->connect;
	bool afresh = connects && pkt->dceth.connection != x->dc.connection &&
		      may_be_forgotten(x, now_ns);

	if (!afresh && (pkt->dceth.connection < x->dc.connection ||
			(pkt->dceth.connection == x->dc.connection && !x->dc.connected))) {
		vb_batch_count(batch, VB_STAT_DROP_STALE);
		return;
	}
	x->used_ns = now_ns;
	if (pkt->dceth.connection != x->dc.connection) {
		if (connects)
			connect(batch, x, from, pkt);
		else if (info->kind != VB_K_DISCONNECT)
			ask_to_connect(batch, x->target, from, pkt);
		return;
	}
	if (from->lane && from->lane != x->qp.lane.rx) {
		vb_batch_count(batch, VB_STAT_DROP_STRANGER);
		return;
	}
	if (info->kind == VB_K_DISCONNECT)
		close_locked(x);
	else if (vb_qp_state(&x->qp) == IBV_QPS_ERR)
		refuse_again(batch, &x->qp, pkt, info);
	else if (!connects)
		vb_batch_packet(batch, &x->qp, from->frame, pkt, info);
}

void vb_dct_take(struct vb_batch *batch, struct vb_qp *target, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	struct vb_dct *dct = dct_of(target);
	struct who who = who_is(from, pkt);
	uint64_t now_ns = batch->now_ns ? batch->now_ns : vb_nic_now_ns(batch->nic);
	struct vb_dcx *x;

	if (!vb_batch_admit(batch, target, pkt, info))
		return;
	if (vb_kind_is_answer(info->kind) ||
	    (info->kind != dct->kind->connect && is_connect(info->kind))) {
		vb_batch_count(batch, VB_STAT_DROP_TRANSPORT);
		return;
	}
	if (from->lane && pkt->sqpn >> VB_INDEX_BITS != from->lane->peer->slot) {
		vb_batch_count(batch, VB_STAT_DROP_STRANGER);
		return;
	}
	x = find(dct, &who);
	if (info->kind == dct->kind->connect) {
		if (!dct->kind->admits(target, pkt)) {
			vb_batch_count(batch, VB_STAT_DROP_ACCESS);
			answer_to(target, from, pkt, vb_aeth_nak(VB_NAK_ACCESS));
			return;
		}
		if (!x)
			x = enter(target, &who, now_ns);
		if (!x) {
			vb_batch_count(batch, VB_STAT_DROP_NO_CONTEXT);
			answer_to(target, from, pkt, vb_aeth_rnr(target->attr.min_rnr_timer));
			return;
		}
	}
	if (!x) {
		if (info->kind != VB_K_DISCONNECT)
			ask_to_connect(batch, target, from, pkt);
		return;
	}
	/* Meanwhile nothing was locked, and the context may have been reused. */
	vb_batch_hold(batch, &x->qp);
	if (!is_of(x, &who)) {
		vb_batch_count(batch, VB_STAT_DROP_STALE);
		return;
	}
	x->qp.now_ns = now_ns;
	context_rx(batch, x, from, pkt, info);
}

void vb_dc_context_request(struct vb_batch *batch, struct vb_qp *context,
			   const struct vb_frame *frame, const struct vb_pkt *pkt,
			   const struct vb_op_info *info)
{
	struct vb_resp_result result = vb_rc_request(&context->resp, pkt, info);

	(void)frame;
	vb_batch_acknowledge(batch, context);
	vb_batch_heed(batch, context, result);
}

/* --- receive requests --- */

/* Does the context have a receive request that its message no longer needs? Context locked. */
static bool has_spare(struct vb_dcx *x, uint64_t now_ns)
{
	if (!x->spare && x->qp.resp.has_recv && may_be_forgotten(x, now_ns))
		close_locked(x);
	return x->spare;
}

/* SRD: the queue is the target's own, and the SRQ no more than a lock for it. */
static bool take_new(const struct vb_dct *dct, struct vb_qp *context)
{
	struct vb_srq *srq = (struct vb_srq *)context->ibv.qp.srq;
	bool got;

	if (!dct->srq)
		return vb_srq_take(srq, &context->resp.recv);
	vb_lock_take(&srq->take_lock);
	got = vb_rq_take(context->recv.rq, &context->resp.recv);
	vb_lock_drop(&srq->take_lock);
	return got;
}

bool vb_dc_context_recv_take(struct vb_qp *context)
{
	struct vb_dcx *own = dcx_of(context);
	struct vb_dct *dct = dct_of(own->target);
	unsigned count = atomic_load(&dct->count);
	uint64_t now_ns;

	if (own->spare) {
		own->spare = false;
		return true;
	}
	if (take_new(dct, context))
		return true;
	/* Other contexts may have taken one for a message whose sender is gone. */
	now_ns = vb_nic_now_ns(context->nic);
	for (unsigned i = 0; i < count; i++) {
		struct vb_dcx *x = dct->all[i];
		bool got;

		if (x == own || !vb_lock_try(&x->qp.lock))
			continue;
		got = has_spare(x, now_ns);
		if (got)
			context->resp.recv = x->qp.resp.recv;
		x->spare = false;
		vb_lock_drop(&x->qp.lock);
		if (got)
			return true;
	}
	return false;
}

/* --- ending --- */

void vb_dct_peer_gone(struct vb_qp *target, struct vb_peer *peer)
{
	struct vb_dct *dct = dct_of(target);

	for (unsigned i = 0; i < atomic_load(&dct->count); i++) {
		struct vb_dcx *x = dct->all[i];

		vb_lock_take(&x->qp.lock);
		if (x->qp.to.peer == peer)
			close_locked(x);
		vb_lock_drop(&x->qp.lock);
	}
}

void vb_dct_close(struct vb_qp *target, bool flush)
{
	struct vb_dct *dct = dct_of(target);

	for (unsigned i = 0; i < atomic_load(&dct->count); i++) {
		struct vb_dcx *x = dct->all[i];

		vb_lock_take(&x->qp.lock);
		close_locked(x);
		if (x->spare && flush)
			vb_qp_flush_one_recv(target, x->qp.resp.recv.wr_id);
		x->spare = false;
		vb_lock_drop(&x->qp.lock);
	}
}

void vb_dct_leave(struct vb_qp *target)
{
	struct vb_dct *dct = dct_of(target);

	for (unsigned i = 0; i < atomic_load(&dct->count); i++) {
		struct vb_dcx *x = dct->all[i];

		vb_ack_settle(&x->qp);
		vb_lock_take(&x->qp.lock);
		close_locked(x);
		vb_lock_drop(&x->qp.lock);
		vb_qp_silence(&x->qp);
	}
}
