/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CONTROL_QP_H
#define VB_NIC_CONTROL_QP_H

/* Birth and death of a queue pair, and what can be asked about it. */

#include "nic/control/qp_dv.h"
#include "nic/data/qp.h"

/*
 * attr->cap: wanted in, actual out. RC, UC, UD, XRC_SEND (which has no use for a receive queue, its
 * CQ or an SRQ); other types EOPNOTSUPP. EINVAL: beyond the
 * device's limits, no CQ, an SRQ with UC (ibv_create_qp(3)), objects of another context.
 */
int vb_qp_create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **qp);

/*
 * ibv_create_qp_ex(3), but for the operations of the builder; attr->pd is the PD, or attr->xrcd the
 * domain of an XRC_RECV (xrc.h). Beside the above,
 * EINVAL: no PD, an XRC domain, a flag that the type does not have, a source QPN of more than 24
 * bits. EOPNOTSUPP: what is unknown, or goes with types that we do not have; a source QPN without a
 * wire.
 */
int vb_qp_create_ex(struct ibv_qp_init_attr_ex *attr, struct vb_qp **qp);

/*
 * The same, and more (qp_dv.h). attr->qp_type is IBV_QPT_DRIVER exactly if there is dv->dc. Beside
 * what that refuses, EINVAL: a flag that the type of the QP cannot have, both of SCATTER_TO_CQE, a
 * target without SRQ or receive CQ or with operations for a builder, an initiator with a receive
 * queue; EOPNOTSUPP: a flag that we do not do.
 */
int vb_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
		    struct vb_qp **qp);

/* ibv_query_qp(3): everything, whatever the mask asks for. */
int vb_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/*
 * EBUSY while it is attached to a multicast group or a flow rule, or the peer was stopped while it
 * reached into our memory by itself (vb_mr_dereg). Any state. Outstanding work
 * vanishes without completions, its completions leave the CQs. Dead but not freed: the caller waits
 * for acks of events.delivered, then calls vb_qp_free().
 */
int vb_qp_destroy(struct vb_qp *qp);

#endif
