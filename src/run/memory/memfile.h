/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_MEMFILE_H
#define VB_RUN_MEMFILE_H

/* Mapping what descriptors stand for: memfds, dma-bufs, and memory that other processes share. */

#include <stdbool.h>
#include <stdint.h>

/*
 * As map_file of struct vb_host_memory: of a descriptor of the application's. What is mapped is not
 * inherited by children. vb_direct_unmap() ends it.
 */
int vb_memfile_map(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova, bool write,
		   void **memory);

/*
 * Of a file that another process has: only if it is memory, whose end nobody takes for a device or
 * a disk's file; to read and write. NULL: not so. vb_direct_unmap() ends it.
 */
void *vb_memfile_map_shared(int fd, uint64_t offset, uint64_t bytes);

#endif
