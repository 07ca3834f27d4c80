/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QUIESCE_H
#define VB_NIC_QUIESCE_H

/*
 * Waits for threads and processes that still use an object to be destroyed, or memory to be given
 * back. A thread that uses it for a packet holds a right; a peer marks its direct accesses in its
 * ring (way/direct.h). Any thread, without locks.
 */

#include "nic/core/internal.h"

/* What only the ways know; they fill it in with the NIC's peers. */
struct vb_insiders {
	/* Takes each lane's right for a moment. */
	void (*quiesce)(struct vb_nic *nic);
	/* vb_direct_settle() and vb_direct_revoked(). */
	bool (*settle)(struct vb_nic *nic, struct vb_lane *lane, uint32_t key);
	void (*revoked)(struct vb_nic *nic);
};

/*
 * Afterwards no thread is still handling packets that came before. Peers may still access our
 * memory directly (vb_nic_settle). Holds no lock meanwhile.
 */
void vb_nic_quiesce(struct vb_nic *nic);

/*
 * A key was revoked in the export (0: any number of entries): waits until no peer that found it
 * uses it. Returns false if one still does, perhaps because it is stopped: then restore the entry.
 */
static inline bool vb_nic_settle(struct vb_nic *nic, uint32_t key)
{
	return nic->insiders->settle(nic, NULL, key);
}

/* Makes peers unmap what was deregistered. */
static inline void vb_nic_revoked(struct vb_nic *nic)
{
	nic->insiders->revoked(nic);
}

#endif
