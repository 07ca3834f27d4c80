/* SPDX-License-Identifier: BSD-2-Clause */

/* What one shadow finds out and all processes have to know. */

#include "nic/service/xrc/xrc_tell.h"

#include "nic/service/xrc/xrc.h"
#include "nic/service/xrc/xrc_rx.h"

/* When to try again if the store is busy. */
#define AGAIN_NS 1000000u

void vb_xrc_note(struct vb_qp *qp, enum ibv_event_type type)
{
	struct vb_nic *nic = qp->nic;
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);
	const struct vb_xrc_qp *x = qp->special.xrc;
	struct vb_xrc_note note = {
		.wall_ns = nic->host.stamps ? nic->host.stamps->wall_ns(nic->host.arg) : 0,
		.domain = x->xrcd ? x->xrcd->id : x->domain,
		.qpn = qp->ibv.qp.qp_num,
		.type = type,
		.slot = xrc->slot,
	};

	vb_xrc_log_add(&xrc->store->log, &note);
}

static bool store_try(struct vb_qp *qp)
{
	return qp->nic->host.xrc->try_lock(qp->nic->host.arg);
}

static void store_unlock(struct vb_qp *qp)
{
	qp->nic->host.xrc->unlock(qp->nic->host.arg);
}

/* Sets the QP to error for all, unless it was made or reset since. */
static void fail(struct vb_xrc_qp *x)
{
	if (x->owes_failure && atomic_load(&x->rcv->life) == x->life)
		vb_xrc_rcv_state_set(x->rcv, IBV_QPS_ERR);
	x->owes_failure = false;
}

static void note_events(struct vb_qp *qp)
{
	uint32_t events = qp->special.xrc->owes_events;

	for (unsigned type = 0; events; type++, events >>= 1) {
		if (events & 1)
			vb_xrc_note(qp, (enum ibv_event_type)type);
	}
	qp->special.xrc->owes_events = 0;
}

static void step(struct vb_xrc_attr *at, enum vb_migration_step to)
{
	if (to == VB_MIGRATION_ARM)
		at->attr.path_mig_state = IBV_MIG_ARMED;
	else if (to == VB_MIGRATION_MIGRATE)
		vb_migration_change(&at->attr, &at->path, &at->migration);
	else
		at->migration.refused = true;
}

/*
 * Takes the step of migration that is owed, if the attributes are as when the packet was checked:
 * another NIC may have had the same packet. Returns false if there was none to take.
 */
static bool migrate(struct vb_xrc_qp *x, enum vb_migration_step to)
{
	struct vb_xrc_attr at;

	x->owes_step = VB_MIGRATION_STAY;
	if (to == VB_MIGRATION_STAY || atomic_load(&x->rcv->seq) != x->step_seq)
		return false;
	vb_xrc_rcv_get(x->rcv, &at);
	step(&at, to);
	vb_xrc_rcv_write(x->rcv, &at, false);
	return true;
}

void vb_xrc_on_time(struct vb_qp *qp)
{
	struct vb_xrc_qp *x = qp->special.xrc;
	enum vb_migration_step to = x->owes_step;
	bool tells = x->owes_events, steps;

	if (!tells && !x->owes_failure && to == VB_MIGRATION_STAY)
		return;
	if (!store_try(qp)) {
		vb_timer_arm(qp->nic, qp, vb_nic_now_ns(qp->nic) + AGAIN_NS);
		return;
	}
	fail(x);
	note_events(qp);
	steps = migrate(x, to);
	store_unlock(qp);
	if (tells)
		qp->nic->host.xrc->tell(qp->nic->host.arg);
	if (steps && to != VB_MIGRATION_ARM)
		vb_xrc_event(qp, to == VB_MIGRATION_MIGRATE ? IBV_EVENT_PATH_MIG
							    : IBV_EVENT_PATH_MIG_ERR);
	if (to != VB_MIGRATION_STAY)
		vb_xrc_refresh(qp);
}

void vb_xrc_migration(struct vb_qp *qp, enum vb_migration_step to)
{
	qp->special.xrc->owes_step = to;
	qp->special.xrc->step_seq = qp->special.xrc->seq;
	vb_xrc_on_time(qp);
}

void vb_xrc_failed(struct vb_qp *qp)
{
	qp->special.xrc->owes_failure = true;
	vb_xrc_on_time(qp);
}

/* The log is for users without an event channel: the QP belongs to no process. */
void vb_xrc_event(struct vb_qp *qp, enum ibv_event_type type)
{
	qp->special.xrc->owes_events |= 1u << type;
	vb_xrc_on_time(qp);
	vb_xrc_handles_tell(qp->nic, qp->ibv.qp.qp_num, type);
}
