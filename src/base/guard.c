/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <string.h>

/* How far the stack may grow between a guard and the instruction that touches. */
enum { STACK_BYTES_MAX = 1024 };

__thread struct vb_guard *volatile vb_guard_current __attribute__((tls_model("initial-exec")));

/* Either address is the application's and may be anything; for memcpy NULL is an address, too. */
__attribute__((no_sanitize("undefined"))) bool vb_guard_copy_large(void *dst, const void *src,
								    size_t bytes)
{
	struct vb_guard guard;

	vb_guard_cover(&guard, dst, src, bytes);
	if (!vb_guard_enter(&guard))
		return false;
	memcpy(dst, src, bytes);
	vb_guard_leave();
	return true;
}

void vb_guard_fault(void)
{
	struct vb_guard *guard = vb_guard_current;

	if (guard)
		longjmp(guard->back, 1);
}

/*
 * The small copy. It is written in assembly because the fault handler relies on it: between
 * vb_guard_copy_small and vb_guard_small_end the stack is as the caller left it, so the
 * instructions at vb_guard_small_fault return to the caller from any place there.
 *
 * Copies sixteen octets at a time, then the rest by the bits of its length.
 */
#if VB_GUARD_ROUTINE && defined(__x86_64__)
__asm__(".pushsection .text\n"
	".p2align 5\n"
	".globl vb_guard_copy_small, vb_guard_small_end, vb_guard_small_fault\n"
	".hidden vb_guard_copy_small, vb_guard_small_end, vb_guard_small_fault\n"
	".type vb_guard_copy_small, @function\n"
	"vb_guard_copy_small:\n"
	"	.cfi_startproc\n"
	"	mov	%edx, %ecx\n"
	"	shr	$4, %ecx\n"
	"	jz	2f\n"
	"1:	movups	(%rsi), %xmm0\n"
	"	movups	%xmm0, (%rdi)\n"
	"	add	$16, %rsi\n"
	"	add	$16, %rdi\n"
	"	dec	%ecx\n"
	"	jnz	1b\n"
	"2:	test	$8, %dl\n"
	"	jz	3f\n"
	"	mov	(%rsi), %rax\n"
	"	mov	%rax, (%rdi)\n"
	"	add	$8, %rsi\n"
	"	add	$8, %rdi\n"
	"3:	test	$4, %dl\n"
	"	jz	4f\n"
	"	mov	(%rsi), %eax\n"
	"	mov	%eax, (%rdi)\n"
	"	add	$4, %rsi\n"
	"	add	$4, %rdi\n"
	"4:	test	$2, %dl\n"
	"	jz	5f\n"
	"	movzwl	(%rsi), %eax\n"
	"	mov	%ax, (%rdi)\n"
	"	add	$2, %rsi\n"
	"	add	$2, %rdi\n"
	"5:	test	$1, %dl\n"
	"	jz	6f\n"
	"	movzbl	(%rsi), %eax\n"
	"	mov	%al, (%rdi)\n"
	"6:	mov	$1, %eax\n"
	"	ret\n"
	"vb_guard_small_end:\n"
	"vb_guard_small_fault:\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size vb_guard_copy_small, . - vb_guard_copy_small\n"
	".popsection\n");
#elif VB_GUARD_ROUTINE && defined(__aarch64__)
__asm__(".pushsection .text\n"
	".p2align 5\n"
	".globl vb_guard_copy_small, vb_guard_small_end, vb_guard_small_fault\n"
	".hidden vb_guard_copy_small, vb_guard_small_end, vb_guard_small_fault\n"
	".type vb_guard_copy_small, %function\n"
	"vb_guard_copy_small:\n"
	"	.cfi_startproc\n"
	"	lsr	x3, x2, #4\n"
	"	cbz	x3, 2f\n"
	"1:	ldp	x4, x5, [x1], #16\n"
	"	stp	x4, x5, [x0], #16\n"
	"	sub	x3, x3, #1\n"
	"	cbnz	x3, 1b\n"
	"2:	tbz	x2, #3, 3f\n"
	"	ldr	x4, [x1], #8\n"
	"	str	x4, [x0], #8\n"
	"3:	tbz	x2, #2, 4f\n"
	"	ldr	w4, [x1], #4\n"
	"	str	w4, [x0], #4\n"
	"4:	tbz	x2, #1, 5f\n"
	"	ldrh	w4, [x1], #2\n"
	"	strh	w4, [x0], #2\n"
	"5:	tbz	x2, #0, 6f\n"
	"	ldrb	w4, [x1]\n"
	"	strb	w4, [x0]\n"
	"6:	mov	w0, #1\n"
	"	ret\n"
	"vb_guard_small_end:\n"
	"vb_guard_small_fault:\n"
	"	mov	w0, #0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size vb_guard_copy_small, . - vb_guard_copy_small\n"
	".popsection\n");
#endif

#if VB_GUARD_ROUTINE
extern const char vb_guard_small_end[], vb_guard_small_fault[];

static bool is_small(uintptr_t pc)
{
	return pc >= (uintptr_t)vb_guard_copy_small && pc < (uintptr_t)vb_guard_small_end;
}

static uintptr_t small_resume(void)
{
	return (uintptr_t)vb_guard_small_fault;
}
#else
bool vb_guard_copy_small(void *dst, const void *src, size_t bytes)
{
	return vb_guard_copy_large(dst, src, bytes);
}

static bool is_small(uintptr_t pc)
{
	return false;
}

static uintptr_t small_resume(void)
{
	return 0;
}
#endif

/* Processors may allow a tag in an address's upper octet, and omit it in the fault's address. */
static bool lies_within(uintptr_t at, uintptr_t start, size_t bytes)
{
	return (uint64_t)(at - start) << 8 >> 8 < bytes;
}

/*
 * Did the guard's function fault, or one called by it? These use a few hundred octets of stack at
 * most. A handler that interrupted them is further away, behind the kernel's record of all
 * registers, which is larger than that on every processor, or on another stack. Sanitizers have
 * frames of any size, and guards that are not on the stack.
 */
static bool is_its_own(const struct vb_guard *guard, uintptr_t sp)
{
	return !VB_GUARD_ROUTINE || !sp || (uintptr_t)guard - sp < STACK_BYTES_MAX;
}

enum vb_guarded vb_guard_find(const struct vb_memory_fault *fault, bool *write)
{
	const struct vb_guard *guard = vb_guard_current;

	/* The routine advances its pointers before it copies, by 16 octets at most. */
	*write = lies_within(fault->at, fault->to, 16);
	if (is_small(fault->pc))
		return VB_GUARDED_SMALL;
	if (!guard || !is_its_own(guard, fault->sp))
		return VB_GUARDED_NOT;
	*write = lies_within(fault->at, guard->to, guard->bytes);
	return !fault->at || *write || lies_within(fault->at, guard->from, guard->bytes)
		       ? VB_GUARDED_LARGE
		       : VB_GUARDED_NOT;
}

uintptr_t vb_guard_resume(enum vb_guarded guarded)
{
	return guarded == VB_GUARDED_SMALL ? small_resume() : (uintptr_t)vb_guard_fault;
}
