/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_EXPLAIN_TRAIL_H
#define VB_CLI_EXPLAIN_TRAIL_H

/* Completions with errors, from the trail of a process (run/process/trail.h). */

#include "explain/story.h"

/*
 * Adds a trouble for each queue pair that had some. Before the story is judged, behind its last
 * capture. False: the octets are no trail.
 */
bool vb_cli_trail_add(struct vb_story *story, const uint8_t *octets, size_t bytes);

#endif
