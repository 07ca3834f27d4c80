/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_GUARD_H
#define VB_BASE_GUARD_H

/*
 * Touching application memory that may have vanished.
 *
 * An application may unmap memory under a registered region. Hardware would go on with the pages
 * it had pinned; we read and write through the application's own mapping, so such an access
 * faults. Code that touches application memory runs inside a guard, which is told where:
 *
 *	struct vb_guard guard;
 *	vb_guard_cover(&guard, to, from, bytes);
 *	if (vb_guard_enter(&guard)) { touch; vb_guard_leave(); } else { it faulted; }
 *
 * After a fault, control comes back from vb_guard_enter() with false, the guard already left.
 * Between enter and leave: no locks taken, no memory allocated, no return, and so little on the
 * stack that a handler of the application's, which may interrupt it, is told from it
 * (vb_guard_find). Guards do not nest. Without an installed handler (the simulator) a fault kills
 * the process as usual.
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
	uintptr_t to, from;
	size_t bytes;
};

extern __thread struct vb_guard *volatile vb_guard_current
	__attribute__((tls_model("initial-exec")));

/*
 * What is touched: so many octets are read at `from` and written at `to`, which may be the same.
 * It may be said anew inside the guard.
 */
static inline void vb_guard_cover(struct vb_guard *guard, const void *to, const void *from,
				  size_t bytes)
{
	guard->to = (uintptr_t)to;
	guard->from = (uintptr_t)from;
	guard->bytes = bytes;
	/* Said before it is touched. */
	__asm__ volatile("" ::: "memory");
}

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

/* --- for the SIGSEGV/SIGBUS handler (run/memory/sigguard.c) --- */

/* What is known of a fault; 0 where it is not. */
struct vb_memory_fault {
	uintptr_t pc, sp;
	uintptr_t to; /* the register that a function's first argument is passed in */
	uintptr_t at; /* the address that was touched */
};

enum vb_guarded {
	VB_GUARDED_NOT,	  /* somebody else's */
	VB_GUARDED_SMALL, /* of a small copy: known by its instructions */
	VB_GUARDED_LARGE, /* inside a guard, at what that covers */
};

/*
 * Whose fault is it, of this thread? A guard's own are those at an address that it covers while
 * nothing runs above it: a handler of the application's, interrupting it, may look at the same
 * memory, on the same thread, and has its own way to deal with what it meets. *write: it was about
 * to be written.
 */
enum vb_guarded vb_guard_find(const struct vb_memory_fault *fault, bool *write);

/*
 * Where to go on: in a small copy with all other registers as they are, and the copy returns
 * false; in a guard as if that function had been called.
 */
uintptr_t vb_guard_resume(enum vb_guarded guarded);

/* Leaves the guard that this thread is inside of; returns if it is in none. */
void vb_guard_fault(void);

#endif
