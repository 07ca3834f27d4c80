/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DIRECT_H
#define VB_NIC_DIRECT_H

/*
 * One-sided operations without the target's help: a WRITE, a READ or an atomic on the memory of
 * another process of this host, carried out by the posting thread, whatever that process is doing.
 * There are three methods, by kind of memory:
 *
 *	ours		both QPs are in this process: a copy
 *	shared		a file that the target names and we map: a copy, or an atomic instruction
 *	another's	the host accesses the process by system calls (vm_write, vm_read)
 *
 * The owner decides on access: its export says what each of its QPs and keys grants (export.h,
 * export.c), and we check that for each operation. What does not fit is not refused here but sent
 * through the ring as any other request, so that the owner's engine gives the verdict.
 *
 * An owner that revokes something waits until no peer uses it. For that, a peer marks its access
 * before it reads the export (`direct` in base/ring.h is odd). The owner first changes its export
 * and then waits for peers with a mark (vb_direct_settle). A peer that was stopped during its
 * access still has the memory: then nothing is revoked, and the owner returns EBUSY. So whatever an
 * owner has revoked is out of reach.
 *
 * The owner waits only for peers that the kernel would give access (may_reach), since others could
 * claim an access for ever. It tells the others not to try.
 *
 * Only a work request with none before it in its send queue is carried out this way, since work
 * requests of a QP stay in order.
 */

#include "base/lock.h"
#include "base/ring.h"
#include "nic/core/limits.h"
#include "nic/core/stats.h"

struct vb_lane;
struct vb_nic;
struct vb_peer;
struct vb_qp;
struct vb_wqe;

/* A region of a peer that we have mapped, or tried to. */
struct vb_direct_map {
	uint32_t key, id; /* identify the region: 0, 0 for none */
	uint8_t *memory;  /* the octets that the file has; NULL: it could not be mapped */
	uint64_t bytes;
};

/* A lane's part. The lock is taken inside a QP's lock, and held during an access. */
struct vb_direct {
	vb_lock lock;
	uint32_t count; /* as published in `direct` */
	bool heeded;	/* the owner is known to check the mark */
	struct vb_held_sum done, octets; /* operations, which the NIC's statistics do not have */
	struct vb_direct_map map[VB_DIRECT_MAPS];
};

/*
 * Carries out the work request at the queue's tail if possible; `more`: another one was posted with
 * it. Returns false if it has to be sent; nothing relevant has happened then. QP locked.
 */
bool vb_direct_try(struct vb_qp *qp, const struct vb_wqe *wqe, bool more);

/* Updates the NIC's statistics. */
void vb_direct_count(struct vb_lane *lane);

/*
 * Something was revoked in the export: waits until no peer that found it uses it. lane: only its
 * producer, NULL: all; key: only accesses by it, 0: by any. Bounded: returns false if a peer still
 * uses it, perhaps because it is stopped. Then restore the entry. Any thread, without locks.
 */
bool vb_direct_settle(struct vb_nic *nic, struct vb_lane *lane, uint32_t key);

/* The lane has a new ring. */
void vb_direct_reset(struct vb_lane *lane);

/*
 * Unmaps what owners have deregistered; and as the owner: makes peers do so. Memory is not free
 * before they have. Any thread.
 */
void vb_direct_sweep(struct vb_nic *nic);
void vb_direct_revoked(struct vb_nic *nic);

/* The peer is no longer used: unmaps its regions. */
void vb_direct_forget(struct vb_peer *peer);

#endif
