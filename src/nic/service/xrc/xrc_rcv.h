/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_RCV_H
#define VB_NIC_XRC_RCV_H

/*
 * OFED's calls: receive QPs of XRC that the application knows by their numbers only. EINVAL: that
 * domain has no such QP; otherwise as vb_qp_modify() and vb_qp_query().
 */

#include "nic/service/xrc/xrc.h"

/*
 * OFED's calls, for receive QPs that the application knows only by number. new: registers this
 * process with it; keep: it lives as long as its domain, whatever processes are registered. EINVAL:
 * that domain has no such QP; otherwise as vb_qp_modify() and vb_qp_query().
 */
int vb_xrc_rcv_new(struct vb_xrcd *xrcd, uint32_t *qpn);
void vb_xrc_rcv_keep(struct vb_xrcd *xrcd, uint32_t qpn);
int vb_xrc_rcv_join(struct vb_xrcd *xrcd, uint32_t qpn);
int vb_xrc_rcv_leave(struct vb_xrcd *xrcd, uint32_t qpn); /* EINVAL also: not registered */
int vb_xrc_rcv_modify(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *attr,
		      int mask);
/*
 * Stores attributes that have no effect on a QP that only receives, for queries; and its initial
 * migration state. EINVAL.
 */
int vb_xrc_rcv_remember(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *attr,
			int mask);
int vb_xrc_rcv_query(struct vb_xrcd *xrcd, uint32_t qpn, struct ibv_qp_attr *attr,
		     struct ibv_qp_init_attr *init);

#endif
