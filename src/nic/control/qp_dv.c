/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/qp_dv.h"

#include <errno.h>

#include "base/refusal.h"
#include "nic/control/qp.h"
#include "nic/data/qp.h"
#include "nic/data/qp_extra.h"

/*
 * The flags that are supported, for services that list them in vb_service_create.
 * mlx5dv_create_qp(3) does not name the types; they follow from the purpose of a flag: credits are
 * in acknowledgements, so RC only; tunnels and loopback concern Ethernet frames; the builder's
 * operations are documented for RC, "the same" being available for a DCI (mlx5dv_wr_post(3)).
 */
#define DONE                                                                                      \
	(VB_QP_SCATTER_TO_CQE | VB_QP_PACKET_CREDITS | VB_QP_TUNNEL_OFFLOADS | VB_QP_LOOPBACK_UC | \
	 VB_QP_LOOPBACK_MC | VB_QP_MKEYS | VB_QP_MEMCPY | VB_QP_OOO_DP)
#define KNOWN (DONE | VB_QP_RAW_WQE)

int vb_qp_dv_flags_check(uint32_t flags, const struct vb_service *service)
{
	if ((flags & VB_QP_SCATTER_TO_CQE) == VB_QP_SCATTER_TO_CQE)
		return EINVAL;
	/* What mlx5 says of Ethernet frames, which have no messages to keep in order. */
	if (flags & VB_QP_OOO_DP & ~service->create.dv_flags)
		return vb_refuse(EOPNOTSUPP, "MLX5DV_QP_CREATE_OOO_DP is not for %s",
				 service->name);
	if (flags & KNOWN & ~service->create.dv_flags)
		return EINVAL;
	if (flags & KNOWN & ~DONE)
		return EOPNOTSUPP;
	return flags & ~KNOWN ? EINVAL : 0;
}

/* As with mlx5: RoCEv2 uses the dynamic ports (RFC 6335). */
#define SPORT_MIN 0xc000

int vb_qp_sport_choose(struct vb_qp *qp, uint16_t port)
{
	const struct vb_nic_host *host = &qp->nic->host;
	int err = 0;

	if (!vb_qp_is(qp, VB_CONNECTS))
		return EOPNOTSUPP;
	if (port < SPORT_MIN)
		return EINVAL;
	vb_lock_take(&qp->lock);
	if (vb_qp_state(qp) != IBV_QPS_RTS)
		err = EOPNOTSUPP;
	else if (!qp->to.peer)
		err = host->wire.sport_choose(host->arg,
					      (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS),
					      &qp->to.path,
					      (uint16_t)(qp->to.dqpn >> VB_INDEX_BITS), port);
	if (!err && !qp->to.peer)
		qp->to.path.sport = port;
	vb_lock_drop(&qp->lock);
	return err;
}

/* mlx5's bits for VXLAN, GRE, MPLS in GRE and in UDP, which eth/parse.h handles. */
#define TUNNELS (1u << 0 | 1u << 1 | 1u << 3 | 1u << 4)

void vb_qp_dv_query(struct vb_nic *nic, struct vb_dv_caps *caps)
{
	*caps = (struct vb_dv_caps){
		.flags = DONE,
		.tunnels = nic->host.segment ? TUNNELS : 0,
		.dc = true,
		/* Fetching a page does not depend on the transport. */
		.dc_odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			  IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,
		.dc_streams_log_max = VB_DCI_STREAMS_LOG_MAX,
		.dc_errored_log_max = VB_DCI_ERRORED_LOG_MAX,
		.memcpy_bytes_max = VB_MEMCPY_BYTES_MAX,
	};
}
