/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NIC_H
#define VB_NIC_NIC_H

/*
 * The NIC: objects, queues and memory of one process, deterministic. Frames come in by vb_nic_rx()
 * and leave by the host's wire; time is what its clock says (nic_host.h). There are locks here but
 * no system calls: the host does what needs the kernel (waking, descriptors, leases).
 *
 * Every object begins with the libibverbs structure of the same name, so the pointer that the
 * application holds is the object. `abi` fills in function tables, mutexes and condition variables
 * of that structure; the rest is set here.
 *
 * Functions return 0 or a positive errno unless stated otherwise; on failure nothing has changed.
 * Any thread may call any function on any object that is not being destroyed.
 *
 * base/lock_rank.def states the order of the locks.
 */

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/frame.h"
#include "base/lent.h"
#include "base/lock.h"
#include "base/path.h"
#include "nic/core/limits.h"
#include "nic/core/nic_host.h"
#include "nic/core/stats.h"
#include "topology/persona.h"

struct vb_nic;
struct vb_qp;

/* An entry of the GID table. All zero: empty. */
struct vb_gid_entry {
	uint8_t gid[VB_GID_BYTES];
	uint32_t ifindex;
	uint32_t mtu_bytes; /* of the interface */
	bool loopback;
	bool no_carrier; /* the interface is up, but cannot send */
	bool v1;	 /* a row of RoCE v1, which is shown and not spoken */
};

/* An address of this host that is another device's. */
struct vb_neighbour {
	uint8_t gid[VB_GID_BYTES];
	bool apart; /* in a fabric that this device does not reach */
};

/* Copies an entry; EINVAL if index >= VB_GIDS_MAX. An empty entry is all zero. */
int vb_nic_gid_get(struct vb_nic *nic, unsigned index, struct vb_gid_entry *entry);

#endif
