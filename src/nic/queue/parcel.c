/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/parcel.h"

#include "nic/mem/payload.h"

bool vb_parcel_deliver(struct vb_parcels *parcels, const struct vb_parcel *parcel)
{
	struct vb_nic *nic = vb_nic_of(parcel->pd->context);

	if (vb_mr_scatter(nic, parcel->pd, parcel->sge, parcel->sge_count, 0, parcel->data,
			  parcel->bytes))
		return true;
	/* The QP's lock comes before the CQ's, so the thread that turns the NIC handles this. */
	atomic_store(&parcels->failed, true);
	vb_nic_qp_look(nic, parcels->qpn);
	return false;
}
