/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_QP_H
#define VB_ABI_RDMACM_QP_H

/* An id's QP. */

#include <rdma/rdma_cma.h>

#include "abi/rdmacm/id.h"

/* The QP to INIT; connected, to RTR and RTS; to the error state. 0 or an errno. */
int vb_cma_qp_to_rts(struct vb_cma_id *id);
int vb_cma_qp_to_err(struct vb_cma_id *id);
int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask);

#endif
