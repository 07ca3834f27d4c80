/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SHARE_H
#define VB_RUN_SHARE_H

/*
 * Regions that peers can map (nic/way/direct.h): then a WRITE is a copy, of a few octets a store,
 * and an atomic an instruction.
 *
 * Device memory is a file of ours.
 *
 * Memory that is a file's already, a memfd or one of /dev/shm, is found to be so where the kernel
 * answers cheaply (run/memory/vma.h). The application's descriptor of it must be open, or its name
 * exist. Who registers looks at a few descriptors; if there are others, the progress thread looks
 * at them, and peers hear later of what it finds. So that a registration costs the same however
 * many descriptors are open and regions registered.
 *
 * With VERBATIM_SHARED_MR=1, private memory becomes a file's too: the whole pages of a region are
 * copied into a memfd of ours, which is mapped in their place, and with the last region that they
 * are in, they become private again. It is not done unasked, because it can be noticed: what
 * another thread writes to these pages just then is lost; a forked child does not have them; pages
 * that were locked, huge or bound to a node are ordinary ones afterwards.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "nic/mem/mem.h"
#include "run/memory/files.h"
#include "run/memory/vma.h"

struct vb_device;
struct vb_share_item;

/* The file of a region has turned up. */
typedef void vb_share_found_fn(struct vb_shared *shared, int32_t file);

/* Looking through all descriptors for the files that were not found at once. */
struct vb_share_search {
	_Atomic bool wanted; /* by some that a walk under way may have missed */
	bool walks;
	int next;
};

struct vb_share {
	vb_lock lock;
	bool moves; /* VERBATIM_SHARED_MR */
	struct vb_vmas vmas;
	int fd; /* our memfd, or -1 */
	uint64_t device, inode; /* its */
	uint64_t next_offset;	/* never used again */
	uint32_t next_id;
	struct vb_share_item *items;
	void *by_file, *by_place; /* the same, to be found: tsearch(3) */
	vb_share_found_fn *found;
	struct vb_files files;
	struct vb_share_search search;
	struct vb_share_item *own; /* device memory (nic/mem/dm.h); NULL: nobody has asked for it */
};

void vb_share_open(struct vb_share *share, bool moves, vb_share_found_fn *found);

/* All regions are deregistered, or will never be. */
void vb_share_close(struct vb_share *share);

/* In a forked child: close the descriptors. */
void vb_share_forget(struct vb_share *share);

/*
 * What the NIC asks of its host; arg is the struct vb_device. Device memory is private where no
 * file may be that large.
 */
extern const struct vb_host_sharing vb_share_host;
void *vb_share_device_memory(void *arg, size_t bytes);
bool vb_share_region(void *arg, void *addr, size_t bytes, struct vb_shared *shared);
bool vb_share_end(void *arg, const struct vb_shared *shared);

/*
 * For the progress thread, at each of its turns: one step of what there is to look for. True: there
 * is more.
 */
bool vb_share_turn(struct vb_device *dev);

#endif
