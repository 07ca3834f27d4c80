/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_TAPE_H
#define VB_TAPE_TAPE_H

/*
 * The tape that this process writes, if VERBATIM_RECORD is set: the calls into its NIC and what the
 * NIC asked of its host, in order. One lock gives them an order; it is taken before all others of
 * the NIC, so a process that records has one call in its NIC at a time.
 *
 * The file is mapped, and what is written there is good at once: it survives a process that is
 * killed. While no tape is written nothing of this is reached on the hot paths, and elsewhere it is
 * one look at a variable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lent.h"
#include "tape/format.h"

#define VB_TAPE_BYTES_MAX (1ull << 30)

/*
 * Begins a tape in this folder, PROGRAM-PID.tape. said: told once that it is full. Before the NIC
 * is made. 0, or an errno of open(2) or mmap(2).
 */
int vb_tape_open(const char *folder, uint64_t bytes_max, void (*said)(const char *words));

/* After the NIC is destroyed. */
void vb_tape_close(void);

/* The process ends without closing the device. Never waits for a lock. */
void vb_tape_farewell(void);

/* In a forked child: the tape is its parent's. */
void vb_tape_forget(void);

VB_LENT bool vb_tape_is_on(void);

/*
 * A call begins, and ends. Whatever it does to the NIC is between the two. _enter returns true if
 * its arguments are wanted: vb_tape_put() adds them. A call within another one is a part of it, and
 * not on the tape. Results are in vb_tape_leave(): `made` is an object, or NULL.
 */
bool vb_tape_enter(enum vb_tape_kind kind);
void vb_tape_put(const void *data, size_t bytes);
void vb_tape_leave(int64_t rc, const void *made, const void *results, size_t bytes);

/* As if the call had not been: it found nothing, and changed nothing. */
void vb_tape_leave_unsaid(void);

/* Holds the lock over several calls. _try returns false if another thread has it. */
void vb_tape_hold(void);
bool vb_tape_hold_try(void);
void vb_tape_let_go(void);

/* The NIC asks something within a call: true if the answer is wanted, by vb_tape_put(). */
bool vb_tape_asked(enum vb_tape_kind kind);

#define vb_tape_put_value(value) vb_tape_put(&(value), sizeof(value))

#endif
