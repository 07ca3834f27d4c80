/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_OWNER_H
#define VB_RUN_OWNER_H

/*
 * Which process made a file that says who made it (export.h, foreign.h). Its content proves
 * nothing: any process that sees the file can copy it, and PIDs are reused. But the maker maps such
 * a file for writing and then seals it, so no other process can map it for writing. The process
 * that has it so mapped is its maker.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Opens the /proc directory of a process. The descriptor stays with this process, even if its PID
 * is reused. -1: no such process.
 */
int vb_owner_open(uint32_t pid);

/*
 * Does the process have this file mapped there for writing? If so, whatever was opened through
 * proc_fd before belongs to the same program: exec drops such mappings.
 */
bool vb_owner_has(int proc_fd, uint64_t address, uint64_t device, uint64_t inode);

#endif
