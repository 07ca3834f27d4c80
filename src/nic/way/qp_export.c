/* SPDX-License-Identifier: BSD-2-Clause */

/* What peers see of this NIC's QPs (mem.c does the same for keys). */

#include "nic/way/qp_export.h"
#include "nic/way/peer.h"
#include "nic/way/watch/watch.h"

#define REMOTE_FETCH (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define REMOTE_ALL (IBV_ACCESS_REMOTE_WRITE | REMOTE_FETCH)

/* What the QP grants its peer at present (IBA 9.7.4) without having to see the request. */
static unsigned granted(const struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);
	unsigned access = qp->resp.access & REMOTE_ALL;

	if (!vb_qp_is(qp, VB_IS_REACHED) || !qp->to.peer || vb_peer_is_lost(qp->to.peer) ||
	    qp->shown.withdrawn || vb_nic_is_watched(qp->nic))
		return 0;
	/* The first request in RTR raises an event, so the QP has to see one. */
	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD &&
	    !(state == IBV_QPS_RTR && qp->events.comm_est))
		return 0;
	return qp->resp.resources_max ? access : access & ~REMOTE_FETCH;
}

static struct vb_export_qp *entry_of(const struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;
	uint32_t qpn = qp->ibv.qp.qp_num;

	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot =
			atomic_load_explicit(&nic->leased.slot[i], memory_order_acquire);

		if (slot && slot->slot == qpn >> VB_INDEX_BITS)
			return &nic->export->qp[i][qpn & (VB_INDICES - 1)];
	}
	return NULL;
}

static void entry_write(struct vb_qp *qp, unsigned access)
{
	struct vb_export_qp *entry = entry_of(qp);
	uint32_t seq;

	/* Most QPs have never granted anything, and their entries take no memory. */
	if (access == qp->shown.rights || !entry)
		return;
	qp->shown.rights = access;
	seq = atomic_load_explicit(&entry->seq, memory_order_relaxed);
	VB_EXPORT_SET(entry->seq, seq + 1);
	VB_EXPORT_SET(entry->qpn, access ? qp->ibv.qp.qp_num : 0);
	VB_EXPORT_SET(entry->pd, ((struct vb_pd *)qp->ibv.qp.pd)->id);
	VB_EXPORT_SET(entry->dqpn, qp->to.dqpn);
	VB_EXPORT_SET(entry->access, access);
	VB_EXPORT_SET(entry->seq, seq + 2);
}

/*
 * Does it use the wire to a peer that may have chosen a ring? Only our export can tell that peer.
 */
static bool goes_by_wire(const struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	return vb_qp_is(qp, VB_CONNECTS) && !qp->to.peer && qp->to.path.local &&
	       qp->nic->host.peers && (state == IBV_QPS_RTR || state == IBV_QPS_RTS);
}

static void wire_write(struct vb_qp *qp, bool wire)
{
	struct vb_export_qp *entry = wire == qp->shown.wire_told ? NULL : entry_of(qp);

	if (!entry)
		return;
	qp->shown.wire_told = wire;
	VB_EXPORT_SET(entry->wire_dqpn, wire ? qp->to.dqpn : 0);
	VB_EXPORT_SET(entry->wire_qpn, wire ? qp->ibv.qp.qp_num : 0);
}

void vb_export_qp_locked(struct vb_qp *qp)
{
	wire_write(qp, goes_by_wire(qp));
	entry_write(qp, granted(qp));
}

bool vb_export_qp_withdraw(struct vb_qp *qp)
{
	struct vb_lane *lane = NULL;

	if (!vb_qp_is(qp, VB_IS_REACHED))
		return true;
	vb_lock_take(&qp->lock);
	qp->shown.withdrawn++;
	entry_write(qp, granted(qp));
	if (qp->to.peer)
		lane = qp->lane.rx;
	vb_lock_drop(&qp->lock);
	if (!lane || vb_direct_settle(qp->nic, lane, 0))
		return true;
	vb_export_qp_restore(qp);
	return false;
}

void vb_export_qp_restore(struct vb_qp *qp)
{
	if (!vb_qp_is(qp, VB_IS_REACHED))
		return;
	vb_lock_take(&qp->lock);
	qp->shown.withdrawn--;
	vb_export_qp_locked(qp);
	vb_lock_drop(&qp->lock);
}

void vb_export_qp_hide(struct vb_qp *qp)
{
	vb_lock_take(&qp->lock);
	wire_write(qp, false);
	vb_lock_drop(&qp->lock);
}
