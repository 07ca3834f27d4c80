/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/mcast.h"

#include "abi/verbs/abi.h"
#include "tape/calls.h"

/* A multicast LID concerns InfiniBand switches only. */
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int rc = vb_abi_check(QP, qp);

	if (rc != 0)
		return vb_abi_result(rc);
	/* The group is joined at the interfaces that exist now. */
	vb_device_gids_refresh(vb_device_of(qp->context));
	return vb_abi_result(vb_taped_group_attach((struct vb_qp *)qp, gid->raw));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	int rc = vb_known(VB_KNOWN_QP, qp);

	if (rc == 0 && vb_abi_is_gone(qp->context))
		rc = EIO;
	if (rc != 0)
		return vb_abi_result(rc);
	return vb_abi_result(vb_taped_group_detach((struct vb_qp *)qp, gid->raw));
}
