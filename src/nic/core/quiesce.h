/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QUIESCE_H
#define VB_NIC_QUIESCE_H

/*
 * Waiting for those who are inside: in an object that is about to be destroyed, or in memory that
 * is about to be given back. Whoever came by a packet keeps a right while it is there; whoever
 * reaches in by itself says so in its ring (way/direct.h). Any thread, without locks.
 */

#include "nic/core/internal.h"

/* What only the ways know of that; they fill it in with the NIC's peers. */
struct vb_insiders {
	/* Take each lane's right for a moment. */
	void (*quiesce)(struct vb_nic *nic);
	/* vb_direct_settle() and vb_direct_revoked(). */
	bool (*settle)(struct vb_nic *nic, struct vb_lane *lane, uint32_t key);
	void (*revoked)(struct vb_nic *nic);
};

/*
 * After this nobody is inside what came by packets before; whoever reaches into our memory by
 * himself may still be (vb_nic_settle). Holds no lock meanwhile.
 */
void vb_nic_quiesce(struct vb_nic *nic);

/*
 * A key was revoked in the export, or with 0 whatever was: wait until nobody is at it any more who
 * found it there. False: one is still inside, stopped perhaps; then put back what was revoked.
 */
static inline bool vb_nic_settle(struct vb_nic *nic, uint32_t key)
{
	return nic->insiders->settle(nic, NULL, key);
}

/* Have peers unmap what was deregistered. */
static inline void vb_nic_revoked(struct vb_nic *nic)
{
	nic->insiders->revoked(nic);
}

#endif
