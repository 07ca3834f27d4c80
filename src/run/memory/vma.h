/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_VMA_H
#define VB_RUN_VMA_H

/*
 * What the kernel knows of a mapping of this process: where it begins and ends, and what it is of.
 * Linux 6.11 answers that for one address, in less than a microsecond; before, there is only the
 * text of /proc/self/maps, which is long in a large process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VB_VMA_NAME_BYTES = 320 }; /* a longer name is of no file that interests us */

struct vb_vma {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t device, inode; /* of the file, as stat(2) has them; inode 0: anonymous */
	bool readable, writable, shared;
	char name[VB_VMA_NAME_BYTES]; /* of the file, or "", or a word in brackets */
};

struct vb_vmas {
	int fd; /* /proc/self/maps, or -1 */
	bool is_fast;
};

/* Never fails: without /proc nothing is found afterwards. Not for use in a forked child. */
void vb_vmas_open(struct vb_vmas *vmas);

/* The same of another process, by its directory in /proc. Where we may not look, all is empty. */
void vb_vmas_open_at(struct vb_vmas *vmas, int proc_fd);
void vb_vmas_close(struct vb_vmas *vmas);

/*
 * The mapping that holds the address, or if none does, the next one: false if there is none, or
 * nobody says. Any thread.
 */
bool vb_vma_find(const struct vb_vmas *vmas, const void *address, struct vb_vma *vma);

/*
 * A descriptor of our own for the memory that a mapping is of (memfd, /dev/shm), by its name; to
 * read and write. -1: it has none, or what has that name now is something else.
 */
int vb_vma_file_by_name(const struct vb_vma *vma);

/* Is that descriptor one of that memory, to read and write? */
bool vb_vma_is_file(const struct vb_vma *vma, int fd);

static inline bool vb_vma_holds(const struct vb_vma *vma, const void *address)
{
	return (uintptr_t)address >= vma->start && (uintptr_t)address < vma->end;
}

#endif
