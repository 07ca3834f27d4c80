/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_TIMELINE_H
#define VB_CLI_TIMELINE_H

/*
 * Joins the trails of processes (run/process/trail.h) into one timeline, in the trace event format
 * that Perfetto and chrome://tracing read.
 */

/*
 * Reads all trails of a folder, and writes the timeline into the file. *events: how many it has;
 * *lost: how many found no room in a trail. 0 or an errno; ENODATA: there is no trail, and the file
 * is as it was.
 */
int vb_cli_timeline(const char *folder, const char *file, unsigned long *events,
		    unsigned long *lost);

#endif
