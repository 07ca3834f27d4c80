/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_NEWER_BUF_H
#define VB_ABI_NEWER_BUF_H

/*
 * Buffers that the library allocates (ibv_alloc_buf(3)): ordinary memory here. A device may need
 * another kind; this one reads and writes what the process can.
 */

#include <infiniband/verbs.h>
#include <stddef.h>

/* A program sees nothing of it. */
struct vb_buf {
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *addr;
	size_t bytes;
};

#endif
