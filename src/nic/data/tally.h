/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_TALLY_H
#define VB_NIC_TALLY_H

/*
 * What a QP has done, for who looks (control/sample.h). Nothing is added up when it is done: a look
 * finds where the queues have got to since the last one. QP locked.
 */

#include "nic/data/qp.h"

/* Brings qp->tally up to date. */
void vb_qp_tally_sum(struct vb_qp *qp);

/* The same, before its queues begin anew. */
void vb_qp_tally_reset(struct vb_qp *qp);

#endif
