/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CONTROL_QP_H
#define VB_NIC_CONTROL_QP_H

/* Creates, queries and destroys queue pairs. */

#include "nic/control/qp_dv.h"
#include "nic/data/qp.h"

/*
 * attr->cap: requested in, actual out. RC, UC, UD, XRC_SEND (which ignores receive queue, receive
 * CQ and SRQ); other types EOPNOTSUPP. EINVAL: beyond the device's limits, no CQ, an SRQ with UC
 * (ibv_create_qp(3)), objects of another context.
 */
int vb_qp_create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **qp);

/*
 * ibv_create_qp_ex(3), except for the operations of the builder; attr->pd is the PD, or attr->xrcd
 * the domain of an XRC_RECV (xrc.h). Beside the above, EINVAL: no PD, an XRC domain, a flag that
 * the type does not have, a source QPN of more than 24 bits. EOPNOTSUPP: unknown attributes, or
 * those of unsupported types; a source QPN without a wire.
 */
int vb_qp_create_ex(struct ibv_qp_init_attr_ex *attr, struct vb_qp **qp);

/*
 * The same with the attributes of qp_dv.h. attr->qp_type is IBV_QPT_DRIVER exactly if dv->dc is
 * set. Beside the above, EINVAL: a flag that the QP's type cannot have, both of SCATTER_TO_CQE, a
 * target without SRQ or receive CQ or with operations for a builder, an initiator with a receive
 * queue; EOPNOTSUPP: an unsupported flag.
 */
int vb_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
		    struct vb_qp **qp);

/* ibv_query_qp(3): returns everything, whatever the mask. */
int vb_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/*
 * EBUSY while it is attached to a multicast group or a flow rule, or if the peer was stopped while
 * accessing our memory directly (vb_mr_dereg). Allowed in any state. Outstanding work vanishes
 * without completions, and existing completions leave the CQs. Afterwards it is dead but not freed:
 * the caller waits for acknowledgement of events.delivered, then calls vb_qp_free().
 */
int vb_qp_destroy(struct vb_qp *qp);

/* vb_qp_free() without free(qp). */
void vb_qp_fini(struct vb_qp *qp);

#endif
