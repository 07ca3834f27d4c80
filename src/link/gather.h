/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_GATHER_H
#define VB_LINK_GATHER_H

/* Frames of a burst as plain octets, for the wrappers that must look at them. */

#include "link/link.h"

/* A place in a burst's pieces. Start with all zero. */
struct vb_gather {
	uint32_t piece; /* in burst->iov */
	size_t used;	/* octets of that piece that were copied */
	uint32_t frame;
};

/*
 * Copy the next frame, vb_gather_bytes() long, to data. 0, or EFAULT if the application has
 * unmapped a piece. To be called once per frame of the burst.
 */
int vb_gather_next(struct vb_gather *gather, const struct vb_burst *burst, uint8_t *data);

/* Octets of the frame that comes next. */
uint32_t vb_gather_bytes(const struct vb_gather *gather, const struct vb_burst *burst);

#endif
