/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FILES_H
#define VB_RUN_FILES_H

/*
 * The open descriptors of this process, some at a time, to find one of a mapped file; the kernel
 * offers no direct way. A process may have very many, so no thread that somebody waits for looks at
 * all of them. The caller serializes.
 */

#include <stdbool.h>

#include "run/memory/vma.h"

enum { VB_FILES_LOOKS = 64 }; /* descriptors that one call looks at */

struct vb_files {
	int next; /* where the search goes on: behind the last one found */
};

/*
 * Finds a descriptor of the mapped file, open to read and write, and returns a copy; -1: none was
 * found. First come the likeliest: the one behind the last found, and those opened last. thorough:
 * then the following ones, VB_FILES_LOOKS altogether. *all: every descriptor was looked at.
 */
int vb_files_find(struct vb_files *files, const struct vb_vma *vma, bool thorough, bool *all);

/*
 * One step of a walk through all descriptors, in ascending order: the next ones from *from on;
 * *from moves behind them. Returns their number, at most VB_FILES_LOOKS; 0: the walk is over.
 */
unsigned vb_files_list(int *from, int fds[VB_FILES_LOOKS]);

#endif
