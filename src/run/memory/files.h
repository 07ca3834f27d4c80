/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FILES_H
#define VB_RUN_FILES_H

/*
 * The descriptors that this process has open, some at a time: to find the one of a file that is
 * mapped somewhere, for which the kernel has no question. A process may have very many, so nobody
 * who waits looks at all of them. Whoever calls serializes.
 */

#include <stdbool.h>

#include "run/memory/vma.h"

enum { VB_FILES_LOOKS = 64 }; /* descriptors that one call looks at */

struct vb_files {
	int next; /* where a search goes on: behind what was found last */
};

/*
 * A descriptor of our own of the file that a mapping is of, to read and write; -1: none was found.
 * Looks where it is likely: behind the one that was found last, and at those opened last. thorough:
 * and then, VB_FILES_LOOKS altogether, at those that come next. *all: there are no others.
 */
int vb_files_find(struct vb_files *files, const struct vb_vma *vma, bool thorough, bool *all);

/*
 * One step of a walk through all descriptors: the next ones from *from on, in ascending order;
 * *from moves behind them. Their number, at most VB_FILES_LOOKS; 0: there are no more.
 */
unsigned vb_files_list(int *from, int fds[VB_FILES_LOOKS]);

#endif
