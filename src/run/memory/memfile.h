/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_MEMFILE_H
#define VB_RUN_MEMFILE_H

/* Maps descriptors: memfds, dma-bufs, and memory that other processes share. */

#include <stdbool.h>
#include <stdint.h>

/*
 * As map_file of struct vb_host_memory, for a descriptor of the application's. Children do not
 * inherit the mapping. vb_direct_unmap() ends it.
 */
int vb_memfile_map(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova, bool write,
		   void **memory);

/*
 * Maps another process's file, to read and write, if it is memory (not a device or a file on a
 * disk). Returns NULL if not. vb_direct_unmap() ends it.
 */
void *vb_memfile_map_shared(int fd, uint64_t offset, uint64_t bytes);

#endif
