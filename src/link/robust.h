/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_ROBUST_H
#define VB_LINK_ROBUST_H

/*
 * A lock in memory that processes share, and the making of such memory. Whoever dies with the lock
 * leaves it to the next, who is told. For rare things: it may sleep.
 */

#include <stdbool.h>
#include <stddef.h>

enum { VB_ROBUST_LOCK_BYTES = 64 };

/* In zeros, before anybody else sees them. */
void vb_robust_init(void *lock);

enum vb_robust {
	VB_ROBUST_TAKEN,
	VB_ROBUST_INHERITED, /* taken, and its last holder died with it */
	VB_ROBUST_BUSY,	     /* vb_robust_try: somebody else has it */
};

enum vb_robust vb_robust_take(void *lock);
enum vb_robust vb_robust_try(void *lock);
void vb_robust_drop(void *lock);

/* So many octets that are zeros at first: a descriptor for others. 0 or a positive errno. */
int vb_robust_memory_make(const char *name, size_t bytes, int *fd);

/* Map it; NULL: it is not such memory, or shorter. */
void *vb_robust_memory_map(int fd, size_t bytes);
void vb_robust_memory_unmap(void *memory, size_t bytes);

#endif
