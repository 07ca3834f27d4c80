/* SPDX-License-Identifier: BSD-2-Clause */

/* XRC domains, and the application's handles of receive QPs. */

#include "nic/service/xrc/xrc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/data/qp_error.h"
#include "nic/service/xrc/xrc_rx.h"
#include "nic/service/xrc/xrc_tell.h"
#include "nic/way/peer.h"
#include "nic/way/way.h"

static void store_lock(struct vb_nic *nic)
{
	nic->host.xrc->lock(nic->host.arg);
}

static void store_unlock(struct vb_nic *nic)
{
	nic->host.xrc->unlock(nic->host.arg);
}

/* The first domain that is opened makes the NIC's part of XRC. */
static int attach(struct vb_nic *nic)
{
	struct vb_xrc *xrc;
	int err;

	if (!nic->host.xrc)
		return EOPNOTSUPP;
	if (atomic_load(&nic->special.xrc))
		return 0;
	xrc = calloc(1, sizeof(*xrc));
	if (!xrc)
		return ENOMEM;
	err = vb_nic_slot_any(nic, &xrc->slot);
	if (!err) {
		xrc->store = nic->host.xrc->store(nic->host.arg);
		err = xrc->store ? 0 : EOPNOTSUPP;
	}
	if (err) {
		free(xrc);
		return err;
	}
	vb_lock_init(&xrc->lock, VB_RANK_XRC);
	/* The slot's last owner has died, perhaps unnoticed. */
	store_lock(nic);
	vb_xrc_collect(xrc->store, xrc->slot);
	store_unlock(nic);
	xrc->seen = atomic_load(&xrc->store->log.count);
	atomic_store(&nic->special.xrc, xrc);
	vb_peers_reach_back(nic);
	return 0;
}

void vb_xrc_fini(struct vb_nic *nic)
{
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);

	if (!xrc)
		return;
	store_lock(nic);
	vb_xrc_collect(xrc->store, xrc->slot);
	store_unlock(nic);
	for (unsigned i = 0; i < VB_XRC_RCVS_MAX; i++) {
		struct vb_qp *qp = atomic_load(&xrc->shadow[i]);

		if (!qp)
			continue;
		vb_timer_cancel(nic, qp);
		vb_qp_unbind_locked(qp);
		vb_qp_free(qp);
	}
	vb_lock_fini(&xrc->lock);
	free(xrc);
}

/* --- domains --- */

int vb_xrcd_open(struct vb_ctx *ctx, const uint64_t file[2], int flags, struct vb_xrcd **out)
{
	struct vb_nic *nic = ctx->nic;
	struct vb_xrcd *xrcd;
	struct vb_xrc *xrc;
	int err;

	vb_lock_take(&nic->special.xrc_lock);
	err = attach(nic);
	vb_lock_drop(&nic->special.xrc_lock);
	if (err)
		return err;
	xrc = atomic_load(&nic->special.xrc);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return ENOMEM;
	xrcd->ibv.context = &ctx->ibv.context;
	store_lock(nic);
	err = vb_xrc_domain_open(xrc->store, file, flags, xrc->slot, &xrcd->id);
	store_unlock(nic);
	if (err) {
		free(xrcd);
		return err;
	}
	*out = xrcd;
	return 0;
}

int vb_xrcd_close(struct vb_xrcd *xrcd)
{
	struct vb_nic *nic = vb_nic_of(xrcd->ibv.context);
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);

	if (atomic_load(&xrcd->users))
		return vb_refuse(EBUSY, "%u QPs or SRQs still belong to the XRC domain",
				 (unsigned)atomic_load(&xrcd->users));
	store_lock(nic);
	vb_xrc_domain_close(xrc->store, xrcd->id, xrc->slot);
	store_unlock(nic);
	free(xrcd);
	return 0;
}

/* --- receive QPs: handles --- */

struct vb_qp *vb_xrc_rcv_alloc(struct vb_nic *nic, const struct vb_service *service)
{
	struct vb_qp *qp = calloc(1, sizeof(*qp));
	struct vb_xrc_qp *x = calloc(1, sizeof(*x));

	if (!qp || !x) {
		free(qp);
		free(x);
		return NULL;
	}
	qp->nic = nic;
	qp->service = service;
	qp->special.xrc = x;
	vb_timer_init(&qp->later.timer, false);
	vb_lock_init(&qp->lock, VB_RANK_QP);
	qp->ibv.qp.qp_type = IBV_QPT_XRC_RECV;
	return qp;
}

void vb_xrc_rcv_unmake(struct vb_qp *qp)
{
	free(qp->special.xrc);
}

static struct vb_qp *handle_make(struct vb_xrcd *xrcd, void *context)
{
	struct vb_qp *qp = vb_xrc_rcv_alloc(vb_nic_of(xrcd->ibv.context), &vb_service_xrc_recv);

	if (!qp)
		return NULL;
	qp->special.xrc->xrcd = xrcd;
	qp->ibv.qp.context = xrcd->ibv.context;
	qp->ibv.qp.qp_context = context;
	return qp;
}

/* Enters a handle, which has its number. */
static void handle_add(struct vb_qp *qp, uint32_t qpn)
{
	struct vb_xrc *xrc = atomic_load(&qp->nic->special.xrc);
	struct ibv_qp *ibv = &qp->ibv.qp;
	struct vb_xrc_attr at;

	ibv->qp_num = ibv->handle = qpn;
	qp->special.sqpn = qpn;
	qp->special.xrc->rcv = vb_xrc_rcv_of(xrc->store, qpn);
	vb_xrc_rcv_get(qp->special.xrc->rcv, &at);
	ibv->state = at.attr.qp_state;
	atomic_fetch_add(&qp->special.xrc->xrcd->users, 1);
	vb_lock_take(&xrc->lock);
	qp->special.xrc->next = xrc->handles;
	xrc->handles = qp;
	vb_lock_drop(&xrc->lock);
}

int vb_xrc_qp_create(const struct ibv_qp_init_attr_ex *attr, struct vb_qp **out)
{
	struct vb_xrcd *xrcd = (struct vb_xrcd *)attr->xrcd;
	struct vb_nic *nic;
	struct vb_xrc *xrc;
	struct vb_qp *qp;
	uint32_t qpn;
	int err;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !xrcd)
		return vb_refuse(EINVAL, "a QP of type XRC_RECV needs IBV_QP_INIT_ATTR_XRCD and "
					 "xrcd");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EINVAL;
	/* It neither sends nor has a receive queue, and its domain replaces the PD. */
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return vb_refuse(EINVAL,
				 "comp_mask 0x%x: a QP of type XRC_RECV has a domain (xrcd), "
				 "and no PD",
				 attr->comp_mask);
	nic = vb_nic_of(xrcd->ibv.context);
	xrc = atomic_load(&nic->special.xrc);
	qp = handle_make(xrcd, attr->qp_context);
	if (!qp)
		return ENOMEM;
	store_lock(nic);
	err = vb_xrc_rcv_make(xrc->store, xrcd->id, xrc->slot, &qpn);
	store_unlock(nic);
	if (err) {
		vb_qp_free(qp);
		return err;
	}
	handle_add(qp, qpn);
	*out = qp;
	return 0;
}

int vb_xrc_qp_open(struct vb_ctx *ctx, const struct ibv_qp_open_attr *attr, struct vb_qp **out)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct vb_xrcd *xrcd = (struct vb_xrcd *)attr->xrcd;
	struct vb_nic *nic = ctx->nic;
	struct vb_qp *qp;
	int err;

	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
		return EOPNOTSUPP;
	if ((attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV || !xrcd ||
	    xrcd->ibv.context != &ctx->ibv.context)
		return vb_refuse(EINVAL,
				 "comp_mask 0x%x, qp_type %d: needed are qp_num, xrcd of "
				 "this context, and qp_type IBV_QPT_XRC_RECV (%d)",
				 attr->comp_mask, (int)attr->qp_type, (int)IBV_QPT_XRC_RECV);
	qp = handle_make(xrcd,
			 attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	if (!qp)
		return ENOMEM;
	store_lock(nic);
	err = vb_xrc_rcv_open(atomic_load(&nic->special.xrc)->store, xrcd->id, attr->qp_num,
			      atomic_load(&nic->special.xrc)->slot);
	store_unlock(nic);
	if (err) {
		vb_qp_free(qp);
		return err;
	}
	handle_add(qp, attr->qp_num);
	*out = qp;
	return 0;
}

void vb_xrc_qp_destroy(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);
	struct vb_qp **at = &xrc->handles;

	vb_lock_take(&xrc->lock);
	while (*at != qp)
		at = &(*at)->special.xrc->next;
	*at = qp->special.xrc->next;
	vb_lock_drop(&xrc->lock);
	store_lock(nic);
	vb_xrc_rcv_close(xrc->store, qp->ibv.qp.qp_num, xrc->slot);
	store_unlock(nic);
	vb_xrc_rcv_left(nic, qp->special.xrc->rcv);
	vb_ctx_events_cancel(vb_ctx_of(qp->ibv.qp.context), &qp->events.delivered);
	atomic_fetch_sub(&qp->special.xrc->xrcd->users, 1);
}

int vb_xrc_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	struct vb_xrc_attr at;

	store_lock(qp->nic);
	vb_xrc_rcv_get(qp->special.xrc->rcv, &at);
	store_unlock(qp->nic);
	*attr = at.attr;
	attr->cur_qp_state = attr->qp_state;
	*init = (struct ibv_qp_init_attr){
		.qp_context = qp->ibv.qp.qp_context,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	return 0;
}

/*
 * As set_alt_path() and set_migration() in qp_modify.c; *then already has the attributes to be
 * stored.
 */
static int plan_migration(struct vb_qp *qp, const struct vb_xrc_attr *now,
			  const struct ibv_qp_attr *attr, int mask, struct vb_xrc_attr *then)
{
	struct vb_migration *migration = &then->migration;
	enum ibv_mig_state from = now->attr.path_mig_state, to = then->attr.path_mig_state;
	int err = 0;

	if (mask & IBV_QP_AV)
		migration->has_old = false;
	if (mask & IBV_QP_ALT_PATH) {
		err = vb_qp_path_check(qp, &attr->alt_ah_attr, then->attr.path_mtu,
				       &migration->alt);
		then->has_alt = true;
	}
	if (err || !(mask & IBV_QP_PATH_MIG_STATE))
		return err;
	err = vb_migration_check(from, to, then->has_alt);
	if (!err && to == IBV_MIG_REARM && from == IBV_MIG_MIGRATED)
		migration->refused = false;
	if (!err && to == IBV_MIG_MIGRATED && from == IBV_MIG_ARMED)
		vb_migration_change(&then->attr, &then->path, migration);
	return err;
}

static int check(struct vb_qp *qp, const struct vb_xrc_attr *now, const struct ibv_qp_attr *attr,
		 int mask, struct vb_xrc_attr *then)
{
	enum ibv_qp_state from = now->attr.qp_state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	enum ibv_mtu mtu = mask & IBV_QP_PATH_MTU ? attr->path_mtu : now->attr.path_mtu;
	int err;

	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return EINVAL;
	if (mask & (IBV_QP_CAP | qp->service->modify.not_done))
		return EOPNOTSUPP;
	err = vb_service_transition_check(qp->service, from, to, mask);
	if (!err)
		err = vb_qp_values_check(qp->nic, attr, mask);
	if (err)
		return err;
	*then = *now;
	if (to == IBV_QPS_RESET)
		*then = (struct vb_xrc_attr){ .attr.path_mig_state = IBV_MIG_MIGRATED };
	vb_qp_attr_keep(&then->attr, attr, mask);
	then->attr.qp_state = to;
	err = mask & IBV_QP_AV ? vb_qp_path_check(qp, &attr->ah_attr, mtu, &then->path) : 0;
	return err ? err : plan_migration(qp, now, attr, mask, then);
}

int vb_xrc_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct vb_xrc_rcv *rcv = qp->special.xrc->rcv;
	struct vb_xrc_attr now, then;
	bool migrated;
	int err;

	if (!mask)
		return 0;
	if (vb_nic_has_failed(qp->nic))
		return EIO;
	store_lock(qp->nic);
	vb_xrc_rcv_get(rcv, &now);
	err = check(qp, &now, attr, mask, &then);
	if (!err)
		vb_xrc_rcv_write(rcv, &then,
				 then.attr.qp_state == IBV_QPS_RESET ||
					 (mask & IBV_QP_RQ_PSN));
	migrated = !err && (mask & IBV_QP_PATH_MIG_STATE) &&
		   now.attr.path_mig_state == IBV_MIG_ARMED;
	if (migrated)
		vb_xrc_note(qp, IBV_EVENT_PATH_MIG);
	store_unlock(qp->nic);
	if (err)
		return err;
	if (migrated) {
		qp->nic->host.xrc->tell(qp->nic->host.arg);
		vb_xrc_handles_tell(qp->nic, qp->ibv.qp.qp_num, IBV_EVENT_PATH_MIG);
	}
	qp->ibv.qp.state = then.attr.qp_state;
	if (then.attr.qp_state == IBV_QPS_RESET || then.attr.qp_state == IBV_QPS_ERR)
		vb_xrc_rcv_left(qp->nic, rcv);
	return 0;
}

void vb_xrc_rcv_left(struct vb_nic *nic, const struct vb_xrc_rcv *rcv)
{
	uint16_t slot = vb_xrc_at(atomic_load(&rcv->word)).slot;

	vb_xrc_shadows_look(nic);
	if (slot && slot != atomic_load(&nic->special.xrc)->slot)
		nic->host.xrc->tell(nic->host.arg);
}

int vb_xrc_srq_announce(struct vb_srq *srq)
{
	struct vb_nic *nic = vb_nic_of(srq->ibv.context);
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);
	int err;

	store_lock(nic);
	err = vb_xrc_srq_note(&xrc->store->srqs, srq->xrcd->id, srq->ibv.handle, xrc->slot,
			      &srq->xrc_place);
	store_unlock(nic);
	return err;
}

void vb_xrc_srq_recall(struct vb_srq *srq)
{
	struct vb_nic *nic = vb_nic_of(srq->ibv.context);
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);

	store_lock(nic);
	vb_xrc_srq_strike(&xrc->store->srqs, srq->xrc_place, srq->ibv.handle);
	store_unlock(nic);
}

/* Is it an event of a QP? The log may contain anything. */
static bool is_event(uint32_t type)
{
	return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) ||
	       type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

/* With the lock of handles. */
static void tell_handles(struct vb_xrc *xrc, uint32_t qpn, enum ibv_event_type type)
{
	for (struct vb_qp *qp = xrc->handles; qp; qp = qp->special.xrc->next) {
		struct ibv_async_event event = { .element.qp = &qp->ibv.qp, .event_type = type };

		if (qp->ibv.qp.qp_num == qpn)
			vb_ctx_event_push(vb_ctx_of(qp->ibv.qp.context), &event,
					  &qp->events.delivered);
	}
}

void vb_xrc_handles_tell(struct vb_nic *nic, uint32_t qpn, enum ibv_event_type type)
{
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);

	vb_lock_take(&xrc->lock);
	tell_handles(xrc, qpn, type);
	vb_lock_drop(&xrc->lock);
}

void vb_xrc_look(struct vb_nic *nic)
{
	struct vb_xrc *xrc = atomic_load(&nic->special.xrc);
	struct vb_xrc_note note;
	uint64_t count;

	if (!xrc)
		return;
	vb_xrc_shadows_look(nic);
	vb_lock_take(&xrc->lock);
	/* Read once: if the count moves on, the hub is told, and we look again. */
	count = atomic_load(&xrc->store->log.count);
	if (xrc->seen > count || xrc->seen < vb_xrc_log_first(count))
		xrc->seen = vb_xrc_log_first(count);
	for (; xrc->seen < count; xrc->seen++) {
		/* Events logged by this NIC were given here before. */
		if (vb_xrc_log_read(&xrc->store->log, xrc->seen, &note) &&
		    note.slot != xrc->slot && is_event(note.type))
			tell_handles(xrc, note.qpn, (enum ibv_event_type)note.type);
	}
	vb_lock_drop(&xrc->lock);
}
