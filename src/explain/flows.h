/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_FLOWS_H
#define VB_EXPLAIN_FLOWS_H

/* What the packets of one half show by themselves, whatever its transport. Pure. */

#include "explain/story.h"

/*
 * Drops that comments name, damaged and marked packets, P_Keys and path MTUs that differ, gaps of
 * UC. failed: a NAK ended this half or its peer, and drops behind it are no news.
 */
void vb_flows_judge(struct vb_story *story, uint32_t half, bool failed);

#endif
