/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_DV_H
#define VB_NIC_QP_DV_H

/*
 * Attributes of mlx5dv_create_qp(3) beyond ibv_create_qp_ex(3), in our own terms. abi/mlx5
 * translates.
 */

#include "base/lent.h"
#include "nic/data/qp_extra.h"
#include "nic/service/dc/dc_attr.h"

struct vb_nic;
struct vb_qp;
struct vb_service;

struct vb_qp_dv_attr {
	uint32_t flags;		     /* enum vb_qp_dv_flag */
	const struct vb_dc_attr *dc; /* or NULL */
};

/* May a QP of this service have these flags? 0, EINVAL or EOPNOTSUPP, as above. */
int vb_qp_dv_flags_check(uint32_t flags, const struct vb_service *service);

/*
 * Makes datagrams of an RC or UC QP in RTS come from this UDP port, 0xc000 or more
 * (mlx5dv_modify_qp_udp_sport(3)), until it goes to RTR again or takes its alternate path. Without
 * effect for a QP that reaches its peer through shared memory. EOPNOTSUPP: type or state; EINVAL:
 * the port; or as vb_link_ops.sport_choose.
 */
int vb_qp_sport_choose(struct vb_qp *qp, uint16_t port);

/* The features available. */
struct vb_dv_caps {
	uint32_t flags;	  /* enum vb_qp_dv_flag: those supported */
	uint32_t tunnels; /* enum mlx5dv_tunnel_offloads, for VB_QP_TUNNEL_OFFLOADS */
	bool dc;	  /* and of DC: */
	uint32_t dc_odp;  /* enum ibv_odp_transport_cap_bits */
	uint8_t dc_streams_log_max, dc_errored_log_max;
	uint64_t memcpy_bytes_max; /* for VB_QP_MEMCPY */
};

VB_LENT void vb_qp_dv_query(struct vb_nic *nic, struct vb_dv_caps *caps);

#endif
