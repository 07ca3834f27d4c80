/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/qp_parcels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/data/qp.h"
#include "nic/mem/mem.h"
#include "nic/mem/payload.h"
#include "nic/service/tm/tm.h"

/* --- QPs with parcels --- */

static uint32_t bytes_of(const struct ibv_cq *cq)
{
	return ((const struct vb_cq *)cq)->made.cqe_bytes / 2;
}

/* Prepares the CQs to hold parcels. */
static int cqs_prepare(const struct vb_qp *qp, const struct vb_parcels *parcels)
{
	int err = 0;

	if (parcels->recv_bytes)
		err = vb_cq_parcels_make((struct vb_cq *)qp->ibv.qp.recv_cq);
	if (!err && parcels->fetch_bytes)
		err = vb_cq_parcels_make((struct vb_cq *)qp->ibv.qp.send_cq);
	return err;
}

int vb_parcels_make(struct vb_qp *qp, bool always)
{
	const struct ibv_qp *ibv = &qp->ibv.qp;
	struct vb_parcels *parcels = calloc(1, sizeof(*parcels));
	int err;

	if (!parcels)
		return ENOMEM;
	if (vb_qp_is(qp, VB_PARCELS_RECV))
		parcels->recv_bytes = bytes_of(ibv->recv_cq);
	/*
	 * A sender may have to deliver, but only the polling thread may use a single-threaded CQ.
	 */
	if (vb_qp_is(qp, VB_PARCELS_FETCH) && (always || qp->made.sq_sig_all) &&
	    !((const struct vb_cq *)ibv->send_cq)->made.lone)
		parcels->fetch_bytes = bytes_of(ibv->send_cq);
	parcels->qpn = ibv->qp_num;
	err = cqs_prepare(qp, parcels);
	if (err || (!parcels->recv_bytes && !parcels->fetch_bytes)) {
		free(parcels);
		return err;
	}
	qp->user.parcels = parcels;
	qp->user.has_parcels = true;
	return 0;
}

void vb_parcels_free(struct vb_qp *qp)
{
	free(qp->user.parcels);
	qp->user.parcels = NULL;
	qp->user.has_parcels = false;
}

/* --- the current parcel --- */

/*
 * Addresses it to the first `bytes` octets of these SGEs. Returns false if they do not fit in a
 * parcel.
 */
static bool address(struct vb_nic *nic, struct vb_parcel *parcel, struct ibv_pd *pd,
		    const struct ibv_sge *sge, uint32_t count, uint32_t bytes)
{
	uint32_t left = bytes, used = 0;

	for (uint32_t i = 0; i < count && left; i++) {
		uint32_t n = sge[i].length < left ? sge[i].length : left;

		if (!n)
			continue;
		if (used == VB_PARCEL_SGES_MAX ||
		    !vb_mr_get(nic, pd, sge[i].lkey, sge[i].addr, n, IBV_ACCESS_LOCAL_WRITE))
			return false;
		parcel->sge[used++] = (struct ibv_sge){ sge[i].addr, n, sge[i].lkey };
		left -= n;
	}
	parcel->pd = pd;
	parcel->sge_count = used;
	parcel->bytes = bytes;
	return !left;
}

bool vb_parcel_take_recv(struct vb_qp *qp, uint32_t offset, const void *data, uint32_t bytes)
{
	struct vb_parcels *parcels = qp->user.parcels;
	struct ibv_pd *pd = qp->ibv.qp.srq ? qp->ibv.qp.srq->pd : qp->ibv.qp.pd;
	const struct vb_recv *recv = &qp->resp.recv;

	/* Smaller than any MTU, and at the beginning: it is the whole message. */
	if (offset || bytes > parcels->recv_bytes || qp->resp.mark ||
	    !address(qp->nic, &parcels->in_hand, pd, recv->sge, recv->sge_count, bytes))
		return false;
	memcpy(parcels->in_hand.data, data, bytes);
	parcels->full = true;
	return true;
}

static bool address_fetch(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_parcels *parcels = qp->user.parcels;

	return wqe->bytes && wqe->bytes <= parcels->fetch_bytes &&
	       (wqe->flags & IBV_SEND_SIGNALED) && !vb_tm_is_own(wqe) &&
	       address(qp->nic, &parcels->in_hand, qp->ibv.qp.pd, wqe->sge, wqe->sge_count,
		       wqe->bytes);
}

bool vb_parcel_take_fetch(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t offset,
			  const void *data, uint32_t bytes)
{
	if (offset || bytes != wqe->bytes || !address_fetch(qp, wqe))
		return false;
	memcpy(qp->user.parcels->in_hand.data, data, bytes);
	qp->user.parcels->full = true;
	return true;
}

bool vb_parcel_aim_fetch(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_payload *to)
{
	struct vb_parcels *parcels = qp->user.parcels;

	if (!vb_wqe_is_fetch(wqe) || !address_fetch(qp, wqe))
		return false;
	to->count = 1;
	to->iov[0] = (struct iovec){ parcels->in_hand.data, wqe->bytes };
	parcels->full = true;
	return true;
}

void vb_parcel_drop(struct vb_qp *qp)
{
	qp->user.parcels->full = false;
}

bool vb_parcel_goes(struct vb_qp *qp)
{
	bool goes = qp->user.parcels->full;

	qp->user.parcels->full = false;
	return goes;
}

/* --- in the CQ --- */

void vb_parcels_settle(struct vb_qp *qp)
{
	if (!qp->user.parcels->waiting)
		return;
	qp->user.parcels->waiting = false;
	vb_cq_parcels_settle((struct vb_cq *)qp->ibv.qp.send_cq, &qp->user);
}

void vb_parcels_fence(struct vb_qp *qp)
{
	qp->user.parcels->fenced = true;
	qp->user.parcels->fence_at = qp->req.tail;
	vb_parcels_settle(qp);
}

void vb_parcels_before_send(struct vb_qp *qp)
{
	const struct vb_parcels *parcels = qp->user.parcels;

	if (parcels->fenced && (int32_t)(parcels->fence_at - qp->req.pos.next) >= 0)
		vb_parcels_settle(qp);
}

void vb_parcels_reset(struct vb_qp *qp)
{
	struct vb_parcels *parcels = qp->user.parcels;

	parcels->full = parcels->waiting = parcels->fenced = false;
	atomic_store(&parcels->failed, false);
}

bool vb_parcels_failed(const struct vb_qp *qp)
{
	return qp->user.has_parcels && atomic_load(&qp->user.parcels->failed);
}
