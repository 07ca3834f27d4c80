/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DIRECT_H
#define VB_NIC_DIRECT_H

/*
 * One-sided operations without the target's help: a WRITE, a READ or an atomic on the memory of
 * another process of this host, carried out by the thread that posts it, whatever that process is
 * doing meanwhile. Three ways, by what the memory is:
 *
 *	ours		both QPs live in this process: a copy
 *	shared		a file that the target names and we map: a copy, or an atomic instruction
 *	another's	the host reaches into the process by system calls (vm_write, vm_read)
 *
 * All checks are the owner's: it says in its export what each of its QPs and keys grants (export.h,
 * export.c), and we look there anew for each operation. What does not fit is not refused here but
 * sent through the ring as any other request, so that the owner's own engine gives the verdict.
 *
 * An owner that revokes something waits until nobody is at it. For that, whoever reaches into
 * another's memory says so before it looks at the export (`direct` in base/ring.h is odd), and the
 * owner, having changed its export, waits for those that it finds there (vb_direct_settle). One
 * that was stopped in the midst of it keeps what it is at: then nothing is revoked, and the owner
 * says EBUSY. So whatever an owner says has been taken away is out of everybody's reach.
 *
 * Only those are waited for whom the kernel would let in (may_reach): others could claim to
 * be inside for ever. They are told not to try.
 *
 * Only what has nothing before it in its send queue goes this way, since the order of a QP's work
 * requests is that of its ring.
 */

#include "base/lock.h"
#include "base/ring.h"
#include "nic/core/limits.h"

struct vb_lane;
struct vb_nic;
struct vb_peer;
struct vb_qp;
struct vb_wqe;

/* A region of a peer's that we have mapped, or tried to. */
struct vb_direct_map {
	uint32_t key, id; /* which region: 0, 0 for none */
	uint8_t *memory;  /* of the octets that the file has; NULL: it could not be mapped */
	uint64_t bytes;
};

/* What a lane has for it. The lock is inside a QP's lock, and held during an access. */
struct vb_direct {
	vb_lock lock;
	uint32_t count; /* as published in `direct` */
	bool heeded;	/* the owner is known to look at it */
	uint64_t done;	/* operations that are not yet in the NIC's statistics */
	struct vb_direct_map map[VB_DIRECT_MAPS];
};

/*
 * Carry out the work request that stands at the queue's tail, if this is the way for it; `more`:
 * another one was posted with it. False: nothing has happened that matters, send it. QP locked.
 */
bool vb_direct_try(struct vb_qp *qp, const struct vb_wqe *wqe, bool more);

/* Bring the NIC's statistics up to date. */
void vb_direct_count(struct vb_lane *lane);

/*
 * Something was revoked in the export: wait until nobody is at it any more who found it there.
 * lane: only its producer, NULL: all; key: only by this one, 0: by any. Not for ever: false if one
 * is still inside, stopped perhaps. Then put back what was revoked. Any thread, without locks.
 */
bool vb_direct_settle(struct vb_nic *nic, struct vb_lane *lane, uint32_t key);

/* The lane's ring is another one now. */
void vb_direct_reset(struct vb_lane *lane);

/*
 * Unmap what its owners have deregistered; and as the owner: have peers do that. Memory is not
 * free before they have. Any thread.
 */
void vb_direct_sweep(struct vb_nic *nic);
void vb_direct_revoked(struct vb_nic *nic);

/* Nobody uses the peer any more: unmap what is mapped of it. */
void vb_direct_forget(struct vb_peer *peer);

#endif
