/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_VMA_H
#define VB_RUN_VMA_H

/*
 * What the kernel knows of a mapping: its range, and its file. Since Linux 6.11 an ioctl answers
 * for one address in less than a microsecond. Older kernels have only the text of /proc/self/maps,
 * which is long in a large process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VB_VMA_NAME_BYTES = 320 }; /* files with longer names do not matter to us */

struct vb_vma {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t device, inode; /* of the file, as in stat(2); inode 0: anonymous */
	bool readable, writable, shared;
	char name[VB_VMA_NAME_BYTES]; /* of the file, or "", or a word in brackets */
};

struct vb_vmas {
	int fd; /* /proc/self/maps, or -1 */
	bool is_fast;
};

/* Never fails: without /proc, vb_vma_find() finds nothing. Not for use in a forked child. */
void vb_vmas_open(struct vb_vmas *vmas);

/* The same for another process, by its directory in /proc. Without permission nothing is found. */
void vb_vmas_open_at(struct vb_vmas *vmas, int proc_fd);
void vb_vmas_close(struct vb_vmas *vmas);

/*
 * Finds the mapping that holds the address, or else the next one above. Returns false if there is
 * none or the kernel does not say. Any thread.
 */
bool vb_vma_find(const struct vb_vmas *vmas, const void *address, struct vb_vma *vma);

/*
 * Opens the file of a mapping (memfd, /dev/shm) by its name, to read and write. -1: it has no name,
 * or another file has that name now.
 */
int vb_vma_file_by_name(const struct vb_vma *vma);

/* Is fd a descriptor of that mapping's memory, open to read and write? */
bool vb_vma_is_file(const struct vb_vma *vma, int fd);

static inline bool vb_vma_holds(const struct vb_vma *vma, const void *address)
{
	return (uintptr_t)address >= vma->start && (uintptr_t)address < vma->end;
}

#endif
