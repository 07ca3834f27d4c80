/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_GUARD_H
#define VB_BASE_GUARD_H

/*
 * Touching application memory that may have vanished.
 *
 * An application may unmap memory under a registered region. Hardware would go on with the pages
 * it had pinned; we read and write through the application's own mapping, so such an access
 * faults. Code that touches application memory runs inside a guard:
 *
 *	struct vb_guard guard;
 *	if (vb_guard_enter(&guard)) { touch; vb_guard_leave(); } else { it faulted; }
 *
 * After a fault, control comes back from vb_guard_enter() with false, the guard already left.
 * Between enter and leave: no locks taken, no memory allocated, no return. Guards do not nest.
 * Without an installed handler (the simulator) a fault kills the process as usual.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

struct vb_guard {
	jmp_buf back;
};

extern __thread struct vb_guard *volatile vb_guard_current
	__attribute__((tls_model("initial-exec")));

static inline void vb_guard_set(struct vb_guard *guard)
{
	/* The compiler must neither reorder the accesses nor reason about a pointer to a local. */
	__asm__ volatile("" : "+r"(guard)::"memory");
	vb_guard_current = guard;
}

#define vb_guard_enter(g)                                                                         \
	(_setjmp((g)->back) == 0 ? (vb_guard_set(g), true) : (vb_guard_set(NULL), false))

static inline void vb_guard_leave(void)
{
	vb_guard_set(NULL);
}

/* memcpy that reports a fault on either side: false, with an unspecified part copied. */
bool vb_guard_copy(void *dst, const void *src, size_t bytes);

/*
 * Called from the SIGSEGV/SIGBUS handler: jumps out if this thread is inside a guard, returns
 * otherwise, and then the handler passes the signal on to whoever had it before.
 */
void vb_guard_fault(void);

#endif
