/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_ORDINARY_H
#define VB_HUB_ORDINARY_H

/*
 * The scheduling state that a process inherits from its parent. A hub must not keep it: it serves
 * all programs, and its parent may be a real-time thread that occupies a CPU.
 *
 * Resets this thread to the defaults: standard scheduling policy, every CPU allowed here, nice
 * value and I/O priority as near to the default as permitted, default timer slack and memory
 * policy. What is not permitted stays. Uses system calls only, so a child that shares its parent's
 * memory may call it.
 */
void vb_hub_ordinary(void);

#endif
