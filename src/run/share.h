/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_SHARE_H
#define VB_RUN_SHARE_H

/*
 * Regions that peers can map (nic/way/direct.h): then a WRITE is a copy, a few octets per store,
 * and an atomic is an instruction.
 *
 * Device memory is a file of ours.
 *
 * Memory that already belongs to a file, a memfd or one of /dev/shm, is recognized where the kernel
 * answers cheaply (run/memory/vma.h). The application must have a descriptor of the file open, or
 * the file must have a name. A registration looks at a few descriptors; the progress thread looks
 * at the others, and peers learn later what it finds. So the cost of a registration does not grow
 * with the number of open descriptors or regions.
 *
 * With VERBATIM_SHARED_MR=1, private memory moves to a file, too: the whole pages of a region are
 * copied into our memfd, which is mapped in their place. They become private again with the last
 * region that covers them. This is not the default because it can be noticed: what another thread
 * writes to these pages during the move is lost; a forked child does not have them; pages that were
 * locked, huge or bound to a node become ordinary ones.
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

/* Called when the file of a region is found. */
typedef void vb_share_found_fn(struct vb_shared *shared, int32_t file);

/* The search through all descriptors for files that were not found at registration. */
struct vb_share_search {
	_Atomic bool wanted; /* a walk under way may have missed some items */
	bool walks;
	int next;
};

struct vb_share {
	vb_lock lock;
	bool moves; /* VERBATIM_SHARED_MR */
	struct vb_vmas vmas;
	int fd; /* our memfd, or -1 */
	uint64_t device, inode; /* of fd */
	uint64_t next_offset;	/* each offset is used once */
	uint32_t next_id;
	struct vb_share_item *items;
	void *by_file, *by_place; /* the same, indexed by tsearch(3) */
	vb_share_found_fn *found;
	struct vb_files files;
	struct vb_share_search search;
	struct vb_share_item *own; /* device memory (nic/mem/dm.h); NULL until it is used */
};

void vb_share_open(struct vb_share *share, bool moves, vb_share_found_fn *found);

/* All regions must be deregistered, or never be. */
void vb_share_close(struct vb_share *share);

/* In a forked child: close the descriptors. */
void vb_share_forget(struct vb_share *share);

/*
 * What the NIC asks of its host; arg is the struct vb_device. Device memory is private if a file
 * may not be that large.
 */
extern const struct vb_host_sharing vb_share_host;
void *vb_share_device_memory(void *arg, size_t bytes);
bool vb_share_region(void *arg, void *addr, size_t bytes, struct vb_shared *shared);
bool vb_share_end(void *arg, const struct vb_shared *shared);

/*
 * One step of the search, at each turn of the progress thread. Returns true if there is more to do.
 */
bool vb_share_turn(struct vb_device *dev);

#endif
