/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FOREIGN_H
#define VB_RUN_FOREIGN_H

/*
 * The descriptor behind ibv_context.cmd_fd, from which a context can be imported: a file that says
 * which process's, and which of its contexts. It cannot be changed, and whoever copies it or sends
 * it to another process sends that.
 *
 * Of another process, the export and the files that its memory is of are opened through /proc,
 * which lets us where we could trace it, and mapped: nothing of it is needed any more afterwards.
 */

#include <stdint.h>

#include "nic/mem/foreign.h"

struct vb_device;

struct vb_card {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint64_t nonce; /* of the device's export */
	uint64_t family;
	int32_t export_fd; /* there; -1: it is not shared */
	uint32_t reserved;
};

/* Make one for a context of ours. EMFILE, ENOMEM, EFBIG (RLIMIT_FSIZE) ... */
int vb_card_make(const struct vb_device *dev, uint64_t family, int *fd);

/* EBADF: no descriptor; EINVAL: something else. */
int vb_card_read(int fd, struct vb_card *card);

/* Is it the card of a context that this very device has, or had? */
bool vb_card_is_own(const struct vb_device *dev, const struct vb_card *card);

/* What the card stands for, with one reference. EOPNOTSUPP: it is out of our reach; ENOMEM. */
int vb_foreign_meet(struct vb_device *dev, const struct vb_card *card,
		    struct vb_foreign **foreign);

/* What the NIC asks of its host; arg is the struct vb_device. */
extern const struct vb_host_foreign vb_foreign_host;
void *vb_foreign_map(void *arg, struct vb_foreign *foreign, uint64_t address, uint64_t bytes);
void vb_foreign_leave(void *arg, struct vb_foreign *foreign);

#endif
