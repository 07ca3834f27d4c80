/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_PROGRAM_H
#define VB_HUB_PROGRAM_H

/*
 * Names a process for users who may be in another PID namespace than it, or than the hub. A PID has
 * a meaning only together with its namespace.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lent.h"
#include "hub/proto.h"

/* The inode number of our PID namespace, as lsns(8) shows it; 0 if /proc does not tell. */
uint64_t vb_hub_pid_ns(void);

/* Describes this process, as it sees itself. */
void vb_hub_program_self(struct vb_hub_program *program);

enum { VB_HUB_NUMBER_BYTES = 40 };

/*
 * "12" if the process has the number 12 here (pid); else "12@4026532200", process 12 of that PID
 * namespace. Returns text, with room for VB_HUB_NUMBER_BYTES.
 */
VB_LENT const char *vb_hub_program_number(char *text, uint32_t pid,
					  const struct vb_hub_program *program);

#endif
