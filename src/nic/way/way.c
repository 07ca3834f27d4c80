/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/way.h"

#include <errno.h>

#include "base/probe.h"
#include "engine/rc_resp.h"
#include "nic/service/eth/segment.h"
#include "nic/core/export.h"

/* A slot that could not be reached is not asked for again within this time. */
#define REFUSED_NS 100000000u

/* How long work requests wait for the answer before they go by the wire. */
#define HOLD_NS 20000000u

/* --- asking --- */

static _Atomic uint64_t *asked_place(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn)
{
	const struct vb_slot *own = vb_nic_slot_find(nic, qpn >> VB_INDEX_BITS);

	return own ? &nic->peering.asked_until_ns[own->place][dqpn >> VB_INDEX_BITS] : NULL;
}

static void refused(struct vb_nic *nic, uint16_t slot)
{
	atomic_store(&nic->peering.refused_until_ns[slot], vb_nic_now_ns(nic) + REFUSED_NS);
}

/* Stored before asking: the answer may come at once, and clears it. */
static enum vb_way ask(struct vb_nic *nic, uint16_t own_slot, uint16_t slot,
		       _Atomic uint64_t *asked_ns, uint64_t now_ns)
{
	int rc;

	atomic_store(asked_ns, now_ns + HOLD_NS);
	rc = nic->host.peers->reach(nic->host.arg, own_slot, slot);
	if (rc == EINPROGRESS)
		return VB_WAY_ASKED;
	if (rc)
		refused(nic, slot);
	atomic_store(asked_ns, 0);
	return VB_WAY_WIRE;
}

enum vb_way vb_way_seek(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn, struct vb_peer **peer)
{
	uint16_t own_slot = (uint16_t)(qpn >> VB_INDEX_BITS);
	uint16_t slot = (uint16_t)(dqpn >> VB_INDEX_BITS);
	enum vb_way way = VB_WAY_WIRE;
	_Atomic uint64_t *asked_ns;
	uint64_t now_ns, until_ns;

	*peer = vb_peer_known(nic, qpn, dqpn);
	if (*peer)
		return VB_WAY_RING;
	if (!nic->host.peers)
		return VB_WAY_WIRE;
	now_ns = vb_nic_now_ns(nic);
	if (now_ns < atomic_load(&nic->peering.refused_until_ns[slot]))
		return VB_WAY_WIRE;
	asked_ns = asked_place(nic, qpn, dqpn);
	if (!asked_ns)
		return VB_WAY_WIRE;
	until_ns = atomic_load(asked_ns);
	if (until_ns)
		way = now_ns < until_ns ? VB_WAY_ASKED : VB_WAY_WIRE;
	else
		way = ask(nic, own_slot, slot, asked_ns, now_ns);
	/* The answer may have come by now. */
	*peer = vb_peer_known(nic, qpn, dqpn);
	return *peer ? VB_WAY_RING : way;
}

/* --- waiting in the queue --- */

/* Without a wire, reliable packets wait for a ring as long as necessary. */
static bool is_patient(const struct vb_qp *qp)
{
	return qp->nic->host.no_wire && vb_transport_aims(qp->req.transport);
}

bool vb_way_is_awaited(struct vb_qp *qp, uint32_t dqpn)
{
	struct vb_nic *nic = qp->nic;
	_Atomic uint64_t *asked_ns = asked_place(nic, qp->ibv.qp.qp_num, dqpn);
	uint64_t until_ns = asked_ns ? atomic_load(asked_ns) : 0;

	if (!until_ns || (!is_patient(qp) && vb_nic_now_ns(nic) >= until_ns) ||
	    vb_peer_known(nic, qp->ibv.qp.qp_num, dqpn))
		return false;
	atomic_store(&qp->send.awaits_way, true);
	/* Ordered: either the thread with the answer sees that we wait, or we see the answer. */
	if (!atomic_load(asked_ns)) {
		atomic_store(&qp->send.awaits_way, false);
		return false;
	}
	if (!is_patient(qp))
		vb_timer_arm(nic, qp, until_ns);
	return true;
}

enum vb_way vb_way_choose(struct vb_qp *qp, uint32_t dqpn, struct vb_peer **peer)
{
	enum vb_way way = vb_way_seek(qp->nic, qp->ibv.qp.qp_num, dqpn, peer);

	if (way != VB_WAY_ASKED || vb_way_is_awaited(qp, dqpn))
		return way;
	*peer = vb_peer_known(qp->nic, qp->ibv.qp.qp_num, dqpn);
	return *peer ? VB_WAY_RING : VB_WAY_WIRE;
}

/* --- RC and UC: one way per connection --- */

void vb_qp_bind_locked(struct vb_qp *qp, struct vb_peer *peer, uint32_t dqpn)
{
	vb_qp_unbind_locked(qp);
	/* If the process has just died, the QP goes by way of the wire, and finds nobody there. */
	if (!vb_peer_hold(peer))
		return;
	if (peer->slot != dqpn >> VB_INDEX_BITS) {
		vb_peer_drop(peer);
		return;
	}
	qp->to.peer = peer;
	qp->lane.tx = vb_lane_of(peer, qp->req.transport, qp->ibv.qp.qp_num);
	qp->lane.rx = vb_lane_of(peer, qp->req.transport, dqpn);
}

void vb_qp_unbind_locked(struct vb_qp *qp)
{
	struct vb_peer *peer = qp->to.peer;

	vb_lane_unwait(qp);
	qp->to.peer = NULL;
	qp->lane.tx = qp->lane.rx = NULL;
	if (peer)
		vb_peer_drop(peer);
}

/* Has nothing been received, or acknowledged, since it was connected? */
static bool is_fresh(const struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	return (state == IBV_QPS_RTR || state == IBV_QPS_RTS) &&
	       qp->resp.epsn == qp->attr.rq_psn &&
	       (state == IBV_QPS_RTR || qp->req.una_psn == qp->attr.sq_psn);
}

/* ... and nothing been sent? */
static bool is_untouched(const struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	return is_fresh(qp) && !qp->resp.nak_sent && req->head == req->tail &&
	       req->una_psn == req->top_psn;
}

/* After a change of way: cuts queued messages anew, and sends them from the start. */
static void begin(struct vb_qp *qp)
{
	uint32_t mtu = qp->to.peer ? VB_LANE_MTU_BYTES : 128u << qp->attr.path_mtu;
	struct vb_req *req = &qp->req;

	vb_req_rewind(req);
	req->top_psn = req->una_psn;
	req->retry.left = req->retry.count;
	vb_req_mtu_set(req, mtu);
	qp->resp.mtu = mtu;
	qp->now_ns = vb_nic_now_ns(qp->nic);
	vb_qp_link_set(qp);
	vb_export_qp_locked(qp);
}

/* Packets by the other way have another size. */
static void hear(struct vb_qp *qp, uint32_t mtu)
{
	if (qp->resp.mtu == mtu)
		return;
	vb_resp_drop_message(&qp->resp);
	qp->resp.mtu = mtu;
}

bool vb_way_heeds_wire(struct vb_batch *batch, struct vb_qp *qp)
{
	/* Any process of this host could send such a packet, but not write to the peer's export. */
	if (!vb_export_says_wire(qp->to.peer->export, qp->to.dqpn, qp->ibv.qp.qp_num))
		return false;
	if (qp->req.transport == VB_UC) {
		hear(qp, 128u << qp->attr.path_mtu);
		return true;
	}
	if (qp->req.transport != VB_RC || !is_fresh(qp))
		return false;
	vb_qp_unbind_locked(qp);
	begin(qp);
	vb_batch_touch(batch, qp);
	return true;
}

/* It uses the wire and could use rings. */
static bool may_bind(const struct vb_qp *qp, struct vb_peer *peer)
{
	return !qp->to.peer && qp->to.path.local && qp->to.dqpn >> VB_INDEX_BITS == peer->slot &&
	       (qp->req.transport == VB_RC || qp->req.transport == VB_UC) &&
	       atomic_load_explicit(&peer->has_tx, memory_order_acquire) &&
	       !vb_peer_is_lost(peer) && is_untouched(qp);
}

static void bind(struct vb_qp *qp, struct vb_peer *peer)
{
	vb_qp_bind_locked(qp, peer, qp->to.dqpn);
	if (!qp->to.peer)
		return;
	VB_PROBE(path_change, qp->ibv.qp.qp_num, "ring");
	begin(qp);
}

bool vb_way_heeds_lane(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane)
{
	struct vb_peer *peer = lane->peer;

	if (!qp->to.path.local || qp->to.dqpn >> VB_INDEX_BITS != peer->slot ||
	    qp->ibv.qp.qp_num >> VB_INDEX_BITS != peer->own_slot ||
	    lane != vb_lane_of(peer, qp->req.transport, qp->to.dqpn))
		return false;
	if (qp->req.transport == VB_UC) {
		hear(qp, VB_LANE_MTU_BYTES);
		return true;
	}
	if (qp->req.transport != VB_RC || qp->to.peer)
		return false;
	if (may_bind(qp, peer)) {
		bind(qp, peer);
		return qp->lane.rx == lane;
	}
	/* Makes the peer send everything again, by the wire as we do. */
	vb_rc_ask_again(&qp->resp);
	vb_batch_touch(batch, qp);
	return false;
}

/* --- the answer --- */

/* Destroying a QP takes the rx right before freeing it. */
static void qp_answered(struct vb_qp *qp, struct vb_peer *peer)
{
	bool connects = vb_qp_is(qp, VB_CONNECTS);

	if (!atomic_load(&qp->send.awaits_way) && !(peer && connects))
		return;
	vb_lock_take(&qp->lock);
	if (peer && may_bind(qp, peer))
		bind(qp, peer);
	if (atomic_exchange(&qp->send.awaits_way, false)) {
		qp->now_ns = vb_nic_now_ns(qp->nic);
		vb_qp_transmit_locked(qp);
	}
	vb_lock_drop(&qp->lock);
}

void vb_peer_answered(struct vb_nic *nic, uint16_t own_slot, uint16_t slot, int rc)
{
	struct vb_peer *peer = rc ? NULL : vb_peer_find(nic, own_slot, slot);
	_Atomic uint64_t *asked_ns = asked_place(nic, (uint32_t)own_slot << VB_INDEX_BITS,
						 (uint32_t)slot << VB_INDEX_BITS);

	if (rc)
		refused(nic, slot);
	if (asked_ns)
		atomic_store(asked_ns, 0);
	if (rc == ENOENT)
		vb_segment_look(nic, slot);
	vb_lock_take(&nic->rx);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *own =
			atomic_load_explicit(&nic->leased.slot[i], memory_order_acquire);

		for (unsigned k = 0; own && own->slot == own_slot && k < VB_INDICES; k++) {
			struct vb_qp *qp = atomic_load_explicit(&own->qp[k], memory_order_acquire);

			if (qp)
				qp_answered(qp, peer);
		}
	}
	vb_lock_drop(&nic->rx);
}

/* --- ending --- */

/* A process may exit within a call of ours, in a signal handler: waits for no lock. */
static void qp_finish(struct vb_qp *qp)
{
	if (!atomic_load(&qp->send.awaits_way) || !vb_lock_try(&qp->lock))
		return;
	atomic_store(&qp->send.awaits_way, false);
	qp->now_ns = vb_nic_now_ns(qp->nic);
	vb_qp_transmit_locked(qp);
	vb_lock_drop(&qp->lock);
}

/* All questions for that slot are answered, or waited for without success. */
static void slot_finish(struct vb_nic *nic, unsigned own)
{
	const struct vb_slot *slot =
		atomic_load_explicit(&nic->leased.slot[own], memory_order_acquire);

	for (uint16_t other = 1; slot && other < VB_SLOTS; other++) {
		if (atomic_load(&nic->peering.asked_until_ns[own][other]))
			nic->host.peers->await(nic->host.arg, slot->slot, other);
	}
}

void vb_way_finish(struct vb_qp *qp)
{
	if (!atomic_load(&qp->send.awaits_way))
		return;
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++)
		slot_finish(qp->nic, i);
	qp_finish(qp);
}

void vb_ways_finish(struct vb_nic *nic)
{
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++)
		slot_finish(nic, i);
	if (!vb_lock_try(&nic->rx))
		return;
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *own =
			atomic_load_explicit(&nic->leased.slot[i], memory_order_acquire);

		for (unsigned k = 0; own && k < VB_INDICES; k++) {
			struct vb_qp *qp = atomic_load_explicit(&own->qp[k], memory_order_acquire);

			if (qp)
				qp_finish(qp);
		}
	}
	vb_lock_drop(&nic->rx);
}
