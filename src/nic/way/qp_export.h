/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_EXPORT_H
#define VB_NIC_QP_EXPORT_H

/* What peers are told of a QP (core/export.h). */

#include "nic/data/qp.h"

/*
 * For callers that promise the application that the peer has no access through the QP: until
 * restored, the QP grants nothing, and no access is under way. Returns false, with nothing changed,
 * if a peer does not finish (vb_nic_settle). QP not locked.
 */
bool vb_export_qp_withdraw(struct vb_qp *qp);
void vb_export_qp_restore(struct vb_qp *qp);

/* The QP is destroyed: removes its entry. QP not locked. */
void vb_export_qp_hide(struct vb_qp *qp);

#endif
