/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"

/* Where a name's address goes. */
struct place {
	const char *name;
	size_t at;
};

#define AT(structure, name) offsetof(struct structure, name)

#define VB_BOTH(type, name, parameters) {#name, AT(vb_real, name)},
#define VB_REAL VB_BOTH
#define VB_RS(type, name, parameters)
static const struct place reals[] = {
#include "abi/rspreload/calls.def"
};
#undef VB_BOTH
#undef VB_REAL
#undef VB_RS

#define VB_BOTH(type, name, parameters) {"r" #name, AT(vb_rsockets, name)},
#define VB_REAL(type, name, parameters)
#define VB_RS(type, name, parameters) {#name, AT(vb_rsockets, name)},
static const struct place rsockets[] = {
#include "abi/rspreload/calls.def"
};
#undef VB_BOTH
#undef VB_REAL
#undef VB_RS

const struct vb_rsockets *vb_rsockets;

/* False: one was not found. */
static bool look_up(void *library, const struct place *places, size_t count, void *to)
{
	bool all = true;

	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(library, places[i].name);

		*(void **)((char *)to + places[i].at) = found;
		all = all && found;
	}
	return all;
}

/*
 * Others' constructors may call us before ours would have run, and nothing here may be waited for
 * in a signal handler: so whoever is first looks up, and several may.
 */
const struct vb_real *vb_real(void)
{
	static struct vb_real real;
	static atomic_bool is_ready;

	if (!atomic_load_explicit(&is_ready, memory_order_acquire)) {
		look_up(RTLD_NEXT, reals, VB_ARRAY_LEN(reals), &real);
		atomic_store_explicit(&is_ready, true, memory_order_release);
	}
	return &real;
}

/* --- librdmacm --- */

static const void *bases[2]; /* of librdmacm and libibverbs; NULL: not known */

static const void *base_of(const void *code)
{
	Dl_info info;

	return code && dladdr(code, &info) ? info.dli_fbase : NULL;
}

/* What is loaded already, such as the program's own, comes first; see RUNPATH in meson.build. */
static void load(void)
{
	static struct vb_rsockets found;
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);

	if (!library)
		return;
	look_up(library, rsockets, VB_ARRAY_LEN(rsockets), &found);
	if (!found.socket)
		return;
	bases[0] = base_of((const void *)found.socket);
	bases[1] = base_of(dlsym(library, "ibv_open_device"));
	vb_rsockets = &found;
}

const struct vb_rsockets *vb_rsockets_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return vb_rsockets;
}

bool vb_rsockets_is_at(const void *code)
{
	const void *base = base_of(code);

	return base && (base == bases[0] || base == bases[1]);
}
