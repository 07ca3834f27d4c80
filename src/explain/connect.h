/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_CONNECT_H
#define VB_EXPLAIN_CONNECT_H

/* The messages of communication management in a story: who belongs together, who refused. Pure. */

#include "explain/story.h"

/* Tells halves which QPNs are connected with each other. Before vb_join(). */
void vb_connect_pairs(struct vb_story *story);

void vb_connect_judge(struct vb_story *story);

#endif
