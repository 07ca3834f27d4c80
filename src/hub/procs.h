/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_PROCS_H
#define VB_HUB_PROCS_H

/* What /proc tells of processes. Without /proc these find nothing. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hub/proto.h"

/* The name of its program; "?" if it cannot be read. */
void vb_procs_name(pid_t pid, char comm[VB_HUB_COMM_BYTES]);

/* Is it stopped by a signal, or by a debugger? */
bool vb_procs_is_stopped(pid_t pid);

/* How many nested PID namespaces it has a number in; 0: unknown. */
unsigned vb_procs_depth(pid_t pid);

/*
 * Calls found for each process that has a socket with one of these inodes open, as far as we may
 * inspect processes.
 */
void vb_procs_find(const uint64_t *inode, unsigned n, void (*found)(void *arg, pid_t pid),
		   void *arg);

#endif
