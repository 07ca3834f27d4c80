/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_ROBUST_H
#define VB_LINK_ROBUST_H

/*
 * A lock that processes share, for memory that they share. If a process dies with the lock, the
 * next one gets it and is told. For rare operations: it makes system calls, and may sleep.
 *
 * The kernel keeps the lock on the memory's file, for the holder's own open file description
 * (F_OFD_SETLK, fcntl(2)). It ends when that is closed, also by death. So it depends neither on
 * PIDs, which differ between namespaces, nor on the memory's content, which any process may have
 * written. Without /proc a process cannot open a description of its own, and the lock is the
 * process's (F_SETLK): then it ends too early if the process closes another descriptor of that
 * file.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

struct vb_robust_lock {
	vb_lock here; /* for the threads of this process */
	int fd;
	bool own_file;
	/* in the memory: if it is set when the lock is taken, the last holder died */
	_Atomic uint32_t *held;
};

enum vb_robust {
	VB_ROBUST_TAKEN,
	VB_ROBUST_INHERITED, /* taken, and its last holder died with it */
	VB_ROBUST_BUSY,	     /* vb_robust_try: another holder has it */
};

/*
 * Opens the lock of that memory, whose descriptor stays the caller's. Returns 0 or a positive
 * errno.
 */
int vb_robust_open(struct vb_robust_lock *lock, int memory_fd, _Atomic uint32_t *held);
void vb_robust_close(struct vb_robust_lock *lock);

/* Closes it in a forked child, where another thread of the parent may have had the lock. */
void vb_robust_forget(struct vb_robust_lock *lock);

enum vb_robust vb_robust_take(struct vb_robust_lock *lock);
enum vb_robust vb_robust_try(struct vb_robust_lock *lock);
void vb_robust_drop(struct vb_robust_lock *lock);

/*
 * Makes a file of zeros whose size cannot change and which every process can write. Returns 0 with
 * a descriptor, or a positive errno.
 */
int vb_robust_memory_make(const char *name, size_t bytes, int *fd);

/* Maps it. NULL: not such memory, or too small. Its content may be anything. */
void *vb_robust_memory_map(int fd, size_t bytes);
void vb_robust_memory_unmap(void *memory, size_t bytes);

#endif
