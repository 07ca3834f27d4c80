/* SPDX-License-Identifier: BSD-2-Clause */

/* XRC receive QPs by number, without an object of the application. */

#include "nic/service/xrc/xrc_rcv.h"

#include <errno.h>

#include "nic/service/xrc/xrc.h"

static struct vb_nic *nic_of(const struct vb_xrcd *xrcd)
{
	return vb_nic_of(xrcd->ibv.context);
}

static struct vb_xrc *lock(struct vb_xrcd *xrcd)
{
	struct vb_nic *nic = nic_of(xrcd);

	nic->host.xrc->lock(nic->host.arg);
	return atomic_load(&nic->special.xrc);
}

static void unlock(struct vb_xrcd *xrcd)
{
	nic_of(xrcd)->host.xrc->unlock(nic_of(xrcd)->host.arg);
}

int vb_xrc_rcv_new(struct vb_xrcd *xrcd, uint32_t *qpn)
{
	struct vb_xrc *xrc = lock(xrcd);
	int err = vb_xrc_rcv_make(xrc->store, xrcd->id, xrc->slot, qpn);

	if (!err) {
		vb_xrc_rcv_of(xrc->store, *qpn)->registered[xrc->slot] = 1;
		vb_xrc_rcv_close(xrc->store, *qpn, xrc->slot);
	}
	unlock(xrcd);
	return err;
}

void vb_xrc_rcv_keep(struct vb_xrcd *xrcd, uint32_t qpn)
{
	struct vb_xrc *xrc = lock(xrcd);

	vb_xrc_rcv_of(xrc->store, qpn)->kept = 1;
	unlock(xrcd);
}

int vb_xrc_rcv_join(struct vb_xrcd *xrcd, uint32_t qpn)
{
	struct vb_xrc *xrc = lock(xrcd);
	int err = vb_xrc_rcv_register(xrc->store, xrcd->id, qpn, xrc->slot);

	unlock(xrcd);
	return err;
}

int vb_xrc_rcv_leave(struct vb_xrcd *xrcd, uint32_t qpn)
{
	struct vb_xrc *xrc = lock(xrcd);
	int err = vb_xrc_rcv_unregister(xrc->store, xrcd->id, qpn, xrc->slot);

	unlock(xrcd);
	if (!err)
		vb_xrc_rcv_left(nic_of(xrcd), vb_xrc_rcv_of(xrc->store, qpn));
	return err;
}

/* A temporary QP for a call. Returns false if that domain has no such QP. */
static bool stand_in(struct vb_xrcd *xrcd, uint32_t qpn, struct vb_qp *qp, struct vb_xrc_qp *x)
{
	struct vb_nic *nic = nic_of(xrcd);
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(atomic_load(&nic->special.xrc)->store, qpn);

	if (!rcv || atomic_load(&rcv->domain) != xrcd->id)
		return false;
	*x = (struct vb_xrc_qp){ .rcv = rcv, .xrcd = xrcd };
	*qp = (struct vb_qp){ .nic = nic, .service = &vb_service_xrc_recv, .special.xrc = x };
	qp->ibv.qp.qp_num = qpn;
	qp->ibv.qp.qp_type = IBV_QPT_XRC_RECV;
	return true;
}

int vb_xrc_rcv_modify(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *attr, int mask)
{
	struct vb_xrc_qp x;
	struct vb_qp qp;

	return stand_in(xrcd, qpn, &qp, &x) ? vb_xrc_qp_modify(&qp, attr, mask) : EINVAL;
}

int vb_xrc_rcv_remember(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *attr,
			int mask)
{
	struct vb_xrc_rcv *rcv;
	struct vb_xrc_attr at;
	int err = vb_qp_values_check(vb_nic_of(xrcd->ibv.context), attr, mask);

	if (err)
		return err;
	rcv = vb_xrc_rcv_of(lock(xrcd)->store, qpn);
	if (rcv && atomic_load(&rcv->domain) == xrcd->id) {
		vb_xrc_rcv_get(rcv, &at);
		if (mask & IBV_QP_PATH_MIG_STATE)
			err = vb_migration_check(at.attr.path_mig_state, attr->path_mig_state,
						 at.has_alt);
		vb_qp_attr_keep(&at.attr, attr, mask);
		if (!err)
			vb_xrc_rcv_write(rcv, &at, false);
	} else {
		err = EINVAL;
	}
	unlock(xrcd);
	return err;
}

int vb_xrc_rcv_query(struct vb_xrcd *xrcd, uint32_t qpn, struct ibv_qp_attr *attr,
		     struct ibv_qp_init_attr *init)
{
	struct vb_xrc_qp x;
	struct vb_qp qp;

	return stand_in(xrcd, qpn, &qp, &x) ? vb_xrc_qp_query(&qp, attr, init) : EINVAL;
}
