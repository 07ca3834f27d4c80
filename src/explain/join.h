/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_JOIN_H
#define VB_EXPLAIN_JOIN_H

/* Finds the halves of a story that are the two directions of one connection. Pure. */

#include "explain/story.h"

/* The half from that address to that QP; sqpn: of UD and DC, else 0. VB_NONE: there is none. */
uint32_t vb_join_find(const struct vb_story *story, const uint8_t src[VB_GID_BYTES],
		      const uint8_t dst[VB_GID_BYTES], uint32_t dqpn, uint32_t sqpn);

/* After vb_story_sort(). */
void vb_join(struct vb_story *story);

#endif
