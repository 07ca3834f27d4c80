/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_OWNER_H
#define VB_RUN_OWNER_H

/*
 * Which process made a file that says so much of itself (export.h, foreign.h). What is in it can be
 * copied, by anybody who sees it, and a number be given to another process. But such a file is
 * sealed when it leaves its maker: nobody can map it to write any more. So its maker is the one
 * that has.
 */

#include <stdbool.h>
#include <stdint.h>

/* What /proc tells of a process, of that one only, whoever has its number later. -1: it is none. */
int vb_owner_open(uint32_t pid);

/*
 * Has the process that very file at that address, to write? What was opened by way of the directory
 * before is of the same program then, since a program that is executed has nothing mapped of this.
 */
bool vb_owner_has(int proc_fd, uint64_t address, uint64_t device, uint64_t inode);

#endif
