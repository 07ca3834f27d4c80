/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_ROBUST_H
#define VB_LINK_ROBUST_H

/*
 * A lock that processes share, and memory that they share. Whoever dies with the lock leaves it to
 * the next, who is told. For rare things: it asks the kernel, and may sleep.
 *
 * The kernel keeps the lock, on the memory's file, as one of an open file description of the
 * holder's own (F_OFD_SETLK, fcntl(2)): it falls when that is closed, by death as well, and no
 * number of a process or thread has a part in it, which may be another's elsewhere. Nor does what
 * stands in the memory, where anybody may have written. Without /proc nobody gets a description of
 * his own, and the lock is the process's (F_SETLK): there it falls too soon if the process closes
 * another descriptor of that file meanwhile.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

struct vb_robust_lock {
	vb_lock here; /* among the threads of this process */
	int fd;
	bool own_file;
	_Atomic uint32_t *held; /* in the memory: whoever finds it set inherits */
};

enum vb_robust {
	VB_ROBUST_TAKEN,
	VB_ROBUST_INHERITED, /* taken, and its last holder died with it */
	VB_ROBUST_BUSY,	     /* vb_robust_try: somebody else has it */
};

/* Of that memory, whose descriptor is the caller's. 0 or a positive errno. */
int vb_robust_open(struct vb_robust_lock *lock, int memory_fd, _Atomic uint32_t *held);
void vb_robust_close(struct vb_robust_lock *lock);

/* The same in the child of a fork, where another thread of the parent may have the lock. */
void vb_robust_forget(struct vb_robust_lock *lock);

enum vb_robust vb_robust_take(struct vb_robust_lock *lock);
enum vb_robust vb_robust_try(struct vb_robust_lock *lock);
void vb_robust_drop(struct vb_robust_lock *lock);

/*
 * So many octets that are zeros at first, and a file that nobody can make shorter or longer, nor
 * keep others from writing to: a descriptor for others. 0 or a positive errno.
 */
int vb_robust_memory_make(const char *name, size_t bytes, int *fd);

/* Map it; NULL: it is not such memory, or shorter. What stands in it may be anything. */
void *vb_robust_memory_map(int fd, size_t bytes);
void vb_robust_memory_unmap(void *memory, size_t bytes);

#endif
