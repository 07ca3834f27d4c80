/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_MEMORY_H
#define VB_TAPE_MEMORY_H

/*
 * The memory of regions in a replay: zeros, at the addresses that it had in the program, where the
 * debugger finds what came. One thread.
 */

#include <stdint.h>

struct vb_tape_memory {
	struct vb_tape_range *first;
};

/* Has these octets mapped, to read and write. 0; EEXIST: something else is there; ENOMEM. */
int vb_tape_memory_at(struct vb_tape_memory *memory, uint64_t address, uint64_t bytes);

/* The same elsewhere, at the same place of its page. NULL: no memory. */
void *vb_tape_memory_elsewhere(struct vb_tape_memory *memory, uint64_t address, uint64_t bytes);

/* Unmaps all. */
void vb_tape_memory_free(struct vb_tape_memory *memory);

#endif
