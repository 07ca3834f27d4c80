/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/verbs/abi.h"

/* Groups are for UD, and their GIDs begin with ff, or with an IPv4 group (ibv_attach_mcast(3)). */
static int check(const struct ibv_qp *qp, const union ibv_gid *gid)
{
	bool is_group = gid->raw[0] == 0xff ||
			(vb_gid_is_ipv4(gid->raw) && (gid->raw[12] & 0xf0) == 0xe0);

	return qp->qp_type == IBV_QPT_UD && is_group ? EOPNOTSUPP : EINVAL;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return check(qp, gid);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return check(qp, gid);
}
