/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_GUARD_H
#define VB_BASE_GUARD_H

/*
 * Access to application memory that may have been unmapped.
 *
 * An application may unmap memory under a registered region. Hardware would continue with the pages
 * that it pinned; we use the application's own mapping, so such an access faults. Code that touches
 * application memory runs inside a guard that covers the addresses:
 *
 *	struct vb_guard guard;
 *	vb_guard_cover(&guard, to, from, bytes);
 *	if (vb_guard_enter(&guard)) { touch; vb_guard_leave(); } else { it faulted; }
 *
 * After a fault, vb_guard_enter() returns a second time, with false and the guard left. Between
 * enter and leave: no locks, no allocation, no return, and little stack, so that the accesses can
 * be told from those of an application's handler that interrupts them (vb_guard_find). Guards do
 * not nest. Without an installed handler (the simulator) a fault kills the process as usual.
 *
 * Small copies need no guard: a routine of a few instructions does them, which the fault handler
 * recognizes by its addresses.
 */

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sanitizers see the accesses of compiled code only. So with them, and on processors without the
 * routine, all copies use a guard.
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

/* From this size on, entering a guard costs little compared with the copy, and memcpy is faster. */
enum { VB_GUARD_SMALL_BYTES_MAX = 256 };

struct vb_guard {
	jmp_buf back;
	uintptr_t to, from;
	size_t bytes;
};

extern __thread struct vb_guard *volatile vb_guard_current
	__attribute__((tls_model("initial-exec")));

/*
 * Says what will be touched: this many octets, read at `from` and written at `to`, which may be
 * equal. May be called again inside the guard.
 */
static inline void vb_guard_cover(struct vb_guard *guard, const void *to, const void *from,
				  size_t bytes)
{
	guard->to = (uintptr_t)to;
	guard->from = (uintptr_t)from;
	guard->bytes = bytes;
	/* Not moved by the compiler behind the access. */
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

/* The two implementations of vb_guard_copy(). */
bool vb_guard_copy_small(void *dst, const void *src, size_t bytes);
bool vb_guard_copy_large(void *dst, const void *src, size_t bytes);

/*
 * memcpy that reports a fault on either side: false, with an unspecified part copied. Small copies
 * go upwards and write each octet once: a reader that spins on the last octet finds the others
 * there, and the copy never overwrites what the reader then puts in their place.
 */
static inline bool vb_guard_copy(void *dst, const void *src, size_t bytes)
{
	if (VB_GUARD_ROUTINE && bytes <= VB_GUARD_SMALL_BYTES_MAX)
		return vb_guard_copy_small(dst, src, bytes);
	return vb_guard_copy_large(dst, src, bytes);
}

/* --- for the SIGSEGV/SIGBUS handler (run/memory/sigguard.c) --- */

/* What is known of a fault; 0 if unknown. */
struct vb_memory_fault {
	uintptr_t pc, sp;
	uintptr_t to; /* the register of a function's first argument */
	uintptr_t at; /* the address touched */
};

enum vb_guarded {
	VB_GUARDED_NOT,	  /* not a guard's fault */
	VB_GUARDED_SMALL, /* in a small copy, by its instruction address */
	VB_GUARDED_LARGE, /* inside a guard, at an address that it covers */
};

/*
 * Which kind of guard does this thread's fault belong to? A fault is a guard's own if its address
 * is covered and the guard's code caused it, not an application's handler that interrupted it: such
 * a handler may access the same memory in the same thread and deals with its own faults. *write:
 * the access was a write.
 */
enum vb_guarded vb_guard_find(const struct vb_memory_fault *fault, bool *write);

/*
 * Where to continue: in a small copy with all other registers unchanged, and the copy returns
 * false; in a guard as if that function were called.
 */
uintptr_t vb_guard_resume(enum vb_guarded guarded);

/* Leaves the guard that this thread is inside; returns if it is in none. */
void vb_guard_fault(void);

#endif
