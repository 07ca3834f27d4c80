/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_PROCS_H
#define VB_HUB_PROCS_H

/* What /proc tells of processes; without /proc, nothing. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hub/proto.h"

/* The name of its program; "?" if it cannot be read. */
void vb_procs_name(pid_t pid, char comm[VB_HUB_COMM_BYTES]);

/* Stopped by a signal, or held by a debugger. */
bool vb_procs_is_stopped(pid_t pid);

/* In how many PID namespaces, within each other, it has a number; 0: nobody says. */
unsigned vb_procs_depth(pid_t pid);

/*
 * Calls found for each process that has a socket with one of these inodes open, as far as we may
 * look into processes.
 */
void vb_procs_find(const uint64_t *inode, unsigned n, void (*found)(void *arg, pid_t pid),
		   void *arg);

#endif
