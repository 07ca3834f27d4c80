/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FOREIGN_H
#define VB_RUN_FOREIGN_H

/*
 * The card: the file behind ibv_context.cmd_fd, from which a context can be imported. It says which
 * process and which of its contexts. It is sealed, so a copy, or the descriptor sent to another
 * process, always says the same.
 *
 * The export of that process and the files behind its memory are opened through /proc (which
 * requires permission to trace it) and mapped. After that the process itself is not needed.
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
	int32_t export_fd; /* in that process; -1: it is not shared */
	uint32_t row;	   /* of the device in that process's table */
};

/* Makes a card for a context of ours. EMFILE, ENOMEM, EFBIG (RLIMIT_FSIZE) ... */
int vb_card_make(const struct vb_device *dev, uint64_t family, int *fd);

/* EBADF: not a descriptor; EINVAL: not a card. */
int vb_card_read(int fd, struct vb_card *card);

/* Is it the card of a context that this device has, or had? */
bool vb_card_is_own(const struct vb_device *dev, const struct vb_card *card);

/* The foreign process that the card names, with one reference. EOPNOTSUPP: out of reach; ENOMEM. */
int vb_foreign_meet(struct vb_device *dev, const struct vb_card *card,
		    struct vb_foreign **foreign);

/* What the NIC asks of its host; arg is the struct vb_device. */
extern const struct vb_host_foreign vb_foreign_host;
void *vb_foreign_map(void *arg, struct vb_foreign *foreign, uint64_t address, uint64_t bytes);
void vb_foreign_leave(void *arg, struct vb_foreign *foreign);

#endif
