/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/view/next.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

#define VB_NEXT(name) {#name, offsetof(struct vb_next, name)},
static const struct {
	const char *name;
	size_t at;
} names[] = {
#include "abi/view/next.def"
};
#undef VB_NEXT

/*
 * Others' constructors may call us before ours would have run, and nothing here may be waited for
 * in a signal handler: so whoever is first looks up, and several may.
 */
const struct vb_next *vb_next(void)
{
	static struct vb_next next;
	static atomic_bool is_ready;

	if (!atomic_load_explicit(&is_ready, memory_order_acquire)) {
		for (unsigned i = 0; i < VB_ARRAY_LEN(names); i++)
			*(void **)((char *)&next + names[i].at) = dlsym(RTLD_NEXT, names[i].name);
		atomic_store_explicit(&is_ready, true, memory_order_release);
	}
	return &next;
}

/* So that it has been done before a signal handler can be the first. */
static void __attribute__((constructor)) look_up(void)
{
	vb_next();
}
