/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_EXPLAIN_PRINT_H
#define VB_CLI_EXPLAIN_PRINT_H

/* A story that was judged, as text or JSON on stdout. */

#include "explain/story.h"

void vb_cli_story_text(const struct vb_story *story);
void vb_cli_story_json(const struct vb_story *story);

/* How many faults it has; notes are none. */
uint32_t vb_cli_story_faults(const struct vb_story *story);

#endif
