/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_DV_H
#define VB_NIC_QP_DV_H

/*
 * What a QP can be created with beyond ibv_create_qp_ex(3): mlx5dv_create_qp(3), in words of our
 * own. abi/mlx5 translates.
 */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"

struct vb_nic;
struct vb_qp;

/* The flags; those named "builder" are operations that the builder gets (abi/verbs/wr.h). */
enum vb_qp_dv_flag {
	VB_QP_SCATTER_TO_CQE_OFF = 1 << 0,
	VB_QP_SCATTER_TO_CQE_ON = 1 << 1, /* the requester's too, if not all WRs are signaled */
	VB_QP_PACKET_CREDITS = 1 << 2,
	VB_QP_TUNNEL_OFFLOADS = 1 << 3,
	VB_QP_LOOPBACK_UC = 1 << 4,
	VB_QP_LOOPBACK_MC = 1 << 5,
	VB_QP_MR_INTERLEAVED = 1 << 6, /* builder */
	VB_QP_MR_LIST = 1 << 7,	       /* builder */
	VB_QP_MKEY_CONFIGURE = 1 << 8, /* builder */
	VB_QP_MEMCPY = 1 << 9,	       /* builder */
	VB_QP_RAW_WQE = 1 << 10,       /* builder */
};

#define VB_QP_DV_BUILDER                                                                          \
	(VB_QP_MR_INTERLEAVED | VB_QP_MR_LIST | VB_QP_MKEY_CONFIGURE | VB_QP_MEMCPY | VB_QP_RAW_WQE)

/* Those that lay out indirect keys (mkey.h). */
#define VB_QP_MKEYS (VB_QP_MR_INTERLEAVED | VB_QP_MR_LIST | VB_QP_MKEY_CONFIGURE)

/* An end of the dynamically connected transport: a target, or an initiator. */
struct vb_dc_attr {
	bool target;
	uint64_t access_key; /* of a target */
	bool streams;	     /* of an initiator; so many, as powers of two */
	uint8_t streams_log, errored_log;
};

/* Where a work request of an initiator goes; wr->tso.hdr of a struct ibv_send_wr points at it. */
struct vb_dc_address {
	struct ibv_ah *ah;
	uint32_t dctn;
	uint64_t key;
	uint16_t stream; /* 0: none */
};

struct vb_qp_dv_attr {
	uint32_t flags;		     /* enum vb_qp_dv_flag */
	const struct vb_dc_attr *dc; /* or NULL */
};

/*
 * vb_qp_create_ex(), and more. attr->qp_type is IBV_QPT_DRIVER exactly if there is dv->dc. Beside
 * what that refuses, EINVAL: a flag that the type of the QP cannot have, both of SCATTER_TO_CQE, a
 * target without SRQ or receive CQ or with operations for a builder, an initiator with a receive
 * queue; EOPNOTSUPP: a flag that we do not do.
 */
int vb_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
		    struct vb_qp **qp);

/*
 * Let datagrams of an RC or UC QP in RTS come from this UDP port, 0xc000 or more
 * (mlx5dv_modify_qp_udp_sport(3)), until it goes to RTR anew or takes its alternate path. A QP that
 * reaches its peer through shared memory sends none, so it is all the same to it. EOPNOTSUPP: type
 * or state; EINVAL: the port; or as vb_link_ops.sport_choose.
 */
VB_LENT int vb_qp_sport_choose(struct vb_qp *qp, uint16_t port);

/* What of all this there is. */
struct vb_dv_caps {
	uint32_t flags;	  /* enum vb_qp_dv_flag: those with an effect */
	uint32_t tunnels; /* enum mlx5dv_tunnel_offloads, of VB_QP_TUNNEL_OFFLOADS */
	bool dc;	  /* and of that: */
	uint32_t dc_odp;  /* enum ibv_odp_transport_cap_bits */
	uint8_t dc_streams_log_max, dc_errored_log_max;
	uint64_t memcpy_bytes_max; /* of VB_QP_MEMCPY */
};

VB_LENT void vb_qp_dv_query(struct vb_nic *nic, struct vb_dv_caps *caps);

#endif
