/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_DIRECT_H
#define VB_RUN_DIRECT_H

/*
 * Reaching into the memory of another process, for nic/way/direct.h.
 *
 * Small accesses go through /proc/PID/mem: opened once, the descriptor stands for that address
 * space, so permission is checked then and not at each call (which makes it the fastest way up to
 * some pages), and whatever becomes of the PID, it never leads into another program's memory. Large
 * ones go by process_vm_writev and process_vm_readv, which copy once instead of twice, and so do
 * all where the protection of pages counts: the file knows none.
 *
 * Whether any of that is permitted (Yama, seccomp, PID namespaces, PR_SET_DUMPABLE) is found out
 * when it is wanted first: who we find must own the peer's export (owner.h). To map a file that it
 * has open takes less permission (Yama does not mind).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/lock.h"

struct vb_export;
struct vb_peer;

/* What a peer has for it. */
struct vb_direct_peer {
	vb_lock lock; /* finding out */
	_Atomic int state; /* enum vb_direct_state */
	_Atomic bool no_calls; /* process_vm_* are refused */
	uint32_t pid;
	uint64_t device, inode; /* of the export */
	int mem_fd;
	_Atomic bool told; /* that we wait for it */
};

enum vb_direct_state { VB_DIRECT_UNKNOWN, VB_DIRECT_OPEN, VB_DIRECT_REFUSED };

/*
 * For a peer object that is new; pid: who the kernel says that it is, 0 for nobody; and the file
 * that is its export.
 */
void vb_direct_meet(struct vb_direct_peer *direct, uint32_t pid, uint64_t device, uint64_t inode);

/* Nobody uses it any more, or we are a forked child: close what is open. */
void vb_direct_part(struct vb_direct_peer *direct);

/*
 * What the NIC asks of its host; arg is the struct vb_device.
 * may_reach: might the kernel let this peer into our process? Only one of our PID namespace, and
 * only if we may be traced. What it says of itself does not count.
 * tarry: after a second it says in the log for whom we wait.
 */
extern const struct vb_host_direct vb_direct_host;
bool vb_direct_may_reach(void *arg, struct vb_peer *peer);

/* Pause a little, the longer the longer it took already. arg: anything. */
void vb_direct_pause(void *arg, uint64_t waited_ns);
bool vb_direct_tarry(void *arg, struct vb_peer *peer, uint64_t waited_ns);
bool vb_direct_write(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		     unsigned count, bool paged);
bool vb_direct_read(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		    unsigned count, bool paged);
void *vb_direct_map(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes);
void vb_direct_unmap(void *arg, void *memory, uint64_t bytes);

#endif
