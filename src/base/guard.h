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
 *
 * Small copies need no guard around them: they are done by a routine of a few instructions that
 * the fault handler knows, so that there is nothing to be said before and after.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sanitizers see the accesses of compiled code only, so they get that: all copies are guarded
 * then, as they are on processors that the routine was not written for.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VB_GUARD_ROUTINE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                        \
	__has_feature(memory_sanitizer)
#define VB_GUARD_ROUTINE 0
#endif
#endif
#ifndef VB_GUARD_ROUTINE
#if (defined(__x86_64__) && defined(__LP64__)) || (defined(__aarch64__) && defined(__LP64__))
#define VB_GUARD_ROUTINE 1
#else
#define VB_GUARD_ROUTINE 0
#endif
#endif

/* From here on, entering a guard costs little against the copy, and memcpy copies faster. */
enum { VB_GUARD_SMALL_BYTES_MAX = 256 };

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

/* The two ways to copy, for vb_guard_copy(). */
bool vb_guard_copy_small(void *dst, const void *src, size_t bytes);
bool vb_guard_copy_large(void *dst, const void *src, size_t bytes);

/*
 * memcpy that reports a fault on either side: false, with an unspecified part copied. Small
 * copies go upwards and write each octet once: whoever spins on the last one finds the others
 * there, and what it puts into their place stays.
 */
static inline bool vb_guard_copy(void *dst, const void *src, size_t bytes)
{
	if (VB_GUARD_ROUTINE && bytes <= VB_GUARD_SMALL_BYTES_MAX)
		return vb_guard_copy_small(dst, src, bytes);
	return vb_guard_copy_large(dst, src, bytes);
}

/*
 * The SIGSEGV/SIGBUS handler asks where to go on after a fault of the instruction at pc: in a
 * small copy, at the place that this returns, with all other registers as they are, and the copy
 * returns false. 0: it was none.
 */
uintptr_t vb_guard_resume(uintptr_t pc);

/*
 * Called from the SIGSEGV/SIGBUS handler: jumps out if this thread is inside a guard, returns
 * otherwise, and then the handler passes the signal on to whoever had it before.
 */
void vb_guard_fault(void);

#endif
