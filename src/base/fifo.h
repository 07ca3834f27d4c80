/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FIFO_H
#define VB_BASE_FIFO_H

/* Pieces of octets that wait, the first one first. The caller holds a lock. All zeros: empty. */

#include <stdbool.h>
#include <stddef.h>

struct vb_fifo_piece;

struct vb_fifo {
	struct vb_fifo_piece *first, *last;
	unsigned count;
};

/* Copies it. False: that many wait, or there is no memory. */
bool vb_fifo_put(struct vb_fifo *fifo, unsigned max, const void *octets, size_t bytes);

/* Until it is dropped; NULL: none waits. */
const void *vb_fifo_first(const struct vb_fifo *fifo);

/* The first one, which there is. */
void vb_fifo_drop(struct vb_fifo *fifo);
void vb_fifo_clear(struct vb_fifo *fifo);

#endif
