/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_RELIABLE_H
#define VB_EXPLAIN_RELIABLE_H

/*
 * What went wrong with the requests of RC and XRC that one half carries, as their answers in the
 * other half, and their repetitions, show. Pure.
 */

#include "explain/story.h"

/* Returns whether a NAK ended it: then what follows at the responder is only its consequence. */
bool vb_reliable_judge(struct vb_story *story, uint32_t half);

#endif
