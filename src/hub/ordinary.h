/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_ORDINARY_H
#define VB_HUB_ORDINARY_H

/*
 * What a process inherits of whoever starts it, and a hub must not keep: it serves all others, and
 * whoever starts it may be a thread that holds one processor for itself and never lets go.
 *
 * Be scheduled as any process is: by the standard policy, on every processor that is allowed
 * here, with a nice value and a priority for input and output as near to the standard as we may
 * have; with the standard slack of timers, and memory from anywhere. What is not permitted stays
 * as it is. Of this thread; system calls only, so that a child may call it that shares its
 * parent's memory.
 */
void vb_hub_ordinary(void);

#endif
