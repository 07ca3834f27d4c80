/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_DIRECT_H
#define VB_RUN_DIRECT_H

/*
 * Access to the memory of another process, for nic/way/direct.h.
 *
 * Small accesses go through /proc/PID/mem. It is opened once and then stands for that address
 * space: permission is checked at open, not at each call (which makes it the fastest way up to some
 * pages), and a reused PID never leads into another program's memory. Large accesses use
 * process_vm_writev and process_vm_readv, which copy once instead of twice. So do all accesses that
 * must respect page protection, since /proc/PID/mem ignores it.
 *
 * Whether this is permitted (Yama, seccomp, PID namespaces, PR_SET_DUMPABLE) is found out at the
 * first access: the process with that PID must own the peer's export (owner.h). Mapping a file that
 * the peer has open needs less permission (Yama does not restrict it).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/lock.h"

struct vb_export;
struct vb_peer;

/* What is known about reaching one peer's memory. */
struct vb_direct_peer {
	vb_lock lock; /* held while finding out */
	_Atomic int state; /* enum vb_direct_state */
	_Atomic bool no_calls; /* process_vm_* are refused */
	uint32_t pid;
	uint64_t device, inode; /* of the peer's export */
	int mem_fd;
	_Atomic bool told; /* logged that we wait for it */
};

enum vb_direct_state { VB_DIRECT_UNKNOWN, VB_DIRECT_OPEN, VB_DIRECT_REFUSED };

/*
 * Initializes for a new peer object. pid: the peer's PID as the kernel says, 0 if unknown. device
 * and inode: the file of the peer's export.
 */
void vb_direct_meet(struct vb_direct_peer *direct, uint32_t pid, uint64_t device, uint64_t inode);

/* Closes what is open: the peer is no longer used, or this is a forked child. */
void vb_direct_part(struct vb_direct_peer *direct);

/*
 * What the NIC asks of its host; arg is the struct vb_device.
 * may_reach: might the kernel give this peer access to our process? Only if the peer is in our PID
 * namespace and we may be traced. The peer's own claims do not count.
 * tarry: after a second, logs which peer is being waited for.
 */
extern const struct vb_host_direct vb_direct_host;
bool vb_direct_may_reach(void *arg, struct vb_peer *peer);

/* Pauses a little, longer the longer the wait has lasted. arg is not used. */
void vb_direct_pause(void *arg, uint64_t waited_ns);
bool vb_direct_tarry(void *arg, struct vb_peer *peer, uint64_t waited_ns);
bool vb_direct_write(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		     unsigned count, bool paged);
bool vb_direct_read(void *arg, struct vb_peer *peer, uint64_t address, const struct iovec *iov,
		    unsigned count, bool paged);
void *vb_direct_map(void *arg, struct vb_peer *peer, int file, uint64_t offset, uint64_t bytes);
void vb_direct_unmap(void *arg, void *memory, uint64_t bytes);

#endif
