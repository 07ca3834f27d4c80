/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MCAST_H
#define VB_NIC_MCAST_H

/*
 * Multicast groups of UD queue pairs (IBA 10.5). A group is an IP multicast address as a GID. A
 * packet to it comes once to this NIC, which gives each attached QP a copy. The host joins with the
 * first QP, at every interface with an address of the group's family in the GID table, and leaves
 * after the last.
 */

#include "nic/data/demux.h"

/*
 * ibv_attach_mcast(3); attaching again changes nothing. EINVAL: not UD, or not a group. EOPNOTSUPP:
 * a QP with another source QPN, or a host without multicast; ENETUNREACH: no wire, or no interface
 * with such an address; ENOMEM: too many; or the host's error when joining.
 */
int vb_group_attach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES]);

/* EINVAL: it is not attached. */
int vb_group_detach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES]);

/*
 * The GID table has changed: joins at new interfaces. Neither the rx right nor nic->lock is held.
 */
void vb_groups_rejoin(struct vb_nic *nic);

/* Handles a packet to VB_QPN_GROUP. Rx right held. */
void vb_group_packet(struct vb_batch *batch, const struct vb_frame *frame,
		     const struct vb_pkt *pkt, const struct vb_op_info *info);

/* Called with the NIC's creation and destruction. */
int vb_groups_init(struct vb_nic *nic);
void vb_groups_fini(struct vb_nic *nic);

#endif
