/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_GATHER_H
#define VB_LINK_GATHER_H

/* Copies the frames of a burst, for the wrappers that need their octets. */

#include "link/link.h"

/* A position in a burst. All zero at the start. */
struct vb_gather {
	uint32_t piece; /* in burst->iov */
	size_t used;	/* octets of that piece copied so far */
	uint32_t frame;
};

/*
 * Copies the next frame, vb_gather_bytes() long, to data. Returns 0, or EFAULT if the application
 * has unmapped a piece. At most once per frame of the burst.
 */
int vb_gather_next(struct vb_gather *gather, const struct vb_burst *burst, uint8_t *data);

/* Octets of the next frame. */
uint32_t vb_gather_bytes(const struct vb_gather *gather, const struct vb_burst *burst);

#endif
