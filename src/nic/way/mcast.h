/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_MCAST_H
#define VB_NIC_MCAST_H

/*
 * Multicast groups of UD queue pairs (IBA 10.5). A group is an IP multicast address as a GID. What
 * is sent to it comes once to this NIC, which gives each QP that is attached a copy; the host joins
 * with the first QP, at every interface that has an address of the group's family in the GID table,
 * and leaves after the last.
 */

#include "nic/data/demux.h"

/*
 * ibv_attach_mcast(3); doing it again changes nothing. EINVAL: no UD, no group. EOPNOTSUPP: a QP
 * that sends as another, or a host without multicast; ENETUNREACH: no wire, or no interface with
 * such an address; ENOMEM: more than there may be; else what the host could not join for.
 */
int vb_group_attach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES]);

/* EINVAL: it is not attached. */
int vb_group_detach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES]);

/* The GID table has changed: join at what is new. Neither the rx right nor nic->lock is held. */
void vb_groups_rejoin(struct vb_nic *nic);

/* A packet to VB_QPN_GROUP. Rx right held. */
void vb_group_packet(struct vb_batch *batch, const struct vb_frame *frame,
		     const struct vb_pkt *pkt, const struct vb_op_info *info);

/* With the NIC. */
int vb_groups_init(struct vb_nic *nic);
void vb_groups_fini(struct vb_nic *nic);

#endif
