/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_PROGRAM_H
#define VB_HUB_PROGRAM_H

/*
 * Which process it is, for people who may be in another PID namespace than it, or than the hub. A
 * number of a process says nothing without the namespace that it holds in.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hub/proto.h"

/* The inode number of our PID namespace, as lsns(8) shows it; 0 if /proc does not tell. */
uint64_t vb_hub_pid_ns(void);

/* This process, as it sees itself. */
void vb_hub_program_self(struct vb_hub_program *program);

enum { VB_HUB_NUMBER_BYTES = 40 };

/*
 * What people call it: "12" if its number is 12 here (pid); "12@4026532200" if it has none here,
 * for process 12 of that PID namespace. Returns text, with room for VB_HUB_NUMBER_BYTES.
 */
const char *vb_hub_program_number(char *text, uint32_t pid, const struct vb_hub_program *program);

#endif
