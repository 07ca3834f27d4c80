/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/snapshot.h"

#include <stdlib.h>

#include "nic/data/qp.h"
#include "nic/mem/payload.h"

static void take(struct vb_qp *qp, uint32_t index)
{
	struct vb_wqe *wqe = vb_sq_at(&qp->req.sq, index);
	uint8_t *copy =
		qp->special.snapshots + (size_t)(index & qp->req.sq.mask) * VB_DATAGRAM_BYTES_MAX;
	const struct vb_segment all = { .bytes = wqe->bytes };

	if ((wqe->flags & IBV_SEND_INLINE) || wqe->fault || !wqe->bytes ||
	    wqe->bytes > VB_DATAGRAM_BYTES_MAX ||
	    !vb_payload_put(qp->nic, qp->ibv.qp.pd, wqe, &all, copy))
		return;
	wqe->apart = copy;
	wqe->flags |= IBV_SEND_INLINE | VB_WQE_APART;
}

void vb_snapshots_take(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	if (!qp->special.snapshots)
		qp->special.snapshots = malloc((req->sq.mask + (size_t)1) * VB_DATAGRAM_BYTES_MAX);
	/* From the last one back: those before one that was copied were copied with it. */
	for (uint32_t i = req->tail; qp->special.snapshots && i != req->pos.next; i--) {
		if (vb_sq_at(&req->sq, i - 1)->flags & VB_WQE_APART)
			break;
		take(qp, i - 1);
	}
}
