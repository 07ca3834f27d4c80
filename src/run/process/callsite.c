/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/callsite.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/loose.h"

enum { DEPTH_MAX = 32 };

/*
 * libdw is loaded when it is first needed: most programs never need it, and where it is missing
 * names of functions have to do.
 */
static struct {
	__typeof__(dwfl_begin) *begin;
	__typeof__(dwfl_linux_proc_report) *report;
	__typeof__(dwfl_report_end) *report_end;
	__typeof__(dwfl_addrmodule) *module;
	__typeof__(dwfl_module_addrname) *name;
	__typeof__(dwfl_module_getsrc) *line;
	__typeof__(dwfl_lineinfo) *info;
	__typeof__(dwfl_module_addrdie) *unit;
	__typeof__(dwarf_getscopes) *scopes;
	__typeof__(dwarf_tag) *tag;
	__typeof__(dwarf_attr) *attr;
	__typeof__(dwarf_formudata) *number;
	__typeof__(dwarf_getsrcfiles) *files;
	__typeof__(dwarf_filesrc) *file;
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl; /* what is mapped, as far as known; NULL: libdw is not there */
} dw;
static pthread_mutex_t dw_lock = PTHREAD_MUTEX_INITIALIZER;
static bool dw_tried;
static bool dw_busy; /* somebody holds dw_lock: what a forked child may not touch */

static const struct {
	const char *name;
	void *function;
} dw_functions[] = {
	{ "dwfl_begin", &dw.begin },
	{ "dwfl_linux_proc_report", &dw.report },
	{ "dwfl_report_end", &dw.report_end },
	{ "dwfl_addrmodule", &dw.module },
	{ "dwfl_module_addrname", &dw.name },
	{ "dwfl_module_getsrc", &dw.line },
	{ "dwfl_lineinfo", &dw.info },
	{ "dwfl_module_addrdie", &dw.unit },
	{ "dwarf_getscopes", &dw.scopes },
	{ "dwarf_tag", &dw.tag },
	{ "dwarf_attr", &dw.attr },
	{ "dwarf_formudata", &dw.number },
	{ "dwarf_getsrcfiles", &dw.files },
	{ "dwarf_filesrc", &dw.file },
	{ "dwfl_linux_proc_find_elf", &dw.callbacks.find_elf },
	/* Debug information that is on this machine; the standard one would ask servers. */
	{ "dwfl_build_id_find_debuginfo", &dw.callbacks.find_debuginfo },
};

/* dw_lock held. */
static void dw_open(void)
{
	void *library;

	dw_tried = true;
	/* A child that was forked in the midst of it could open no library any more. */
	vb_loose_begin();
	library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	vb_loose_end();
	if (!library)
		return;
	for (size_t i = 0; i < VB_ARRAY_LEN(dw_functions); i++) {
		void *function = dlsym(library, dw_functions[i].name);

		if (!function)
			return;
		memcpy(dw_functions[i].function, &function, sizeof(function));
	}
	dw.dwfl = dw.begin(&dw.callbacks);
}

/* The module of an address, after looking again at what is mapped if need be. dw_lock held. */
static Dwfl_Module *dw_module(Dwarf_Addr address)
{
	Dwfl_Module *module;

	if (!dw_tried)
		dw_open();
	if (!dw.dwfl)
		return NULL;
	module = dw.module(dw.dwfl, address);
	if (module || dw.report(dw.dwfl, getpid()) || dw.report_end(dw.dwfl, NULL, NULL))
		return module;
	return dw.module(dw.dwfl, address);
}

static bool is_header_of_verbs(const char *file)
{
	const char *name = basename(file);

	return !strcmp(name, "verbs.h") || !strcmp(name, "rdma_verbs.h") ||
	       !strcmp(name, "mlx5dv.h");
}

static bool number_of(Dwarf_Die *die, unsigned attribute, Dwarf_Word *number)
{
	Dwarf_Attribute attr;

	return dw.attr(die, attribute, &attr) && !dw.number(&attr, number);
}

/*
 * Many verbs are inline functions of a header: the application's line is where the header's
 * function was inlined. Sets file and line to that of the innermost call outside of such headers.
 */
static void leave_headers(Dwfl_Module *module, Dwarf_Addr address, const char **file, int *line)
{
	Dwarf_Die *scopes = NULL, *unit;
	Dwarf_Files *files;
	Dwarf_Addr bias;
	size_t count;
	int depth;

	unit = dw.unit(module, address, &bias);
	if (!unit || dw.files(unit, &files, &count))
		return;
	depth = dw.scopes(unit, address - bias, &scopes);
	for (int i = 0; i < depth && is_header_of_verbs(*file); i++) {
		Dwarf_Word at_file, at_line;
		const char *name;

		if (dw.tag(&scopes[i]) != DW_TAG_inlined_subroutine ||
		    !number_of(&scopes[i], DW_AT_call_file, &at_file) ||
		    !number_of(&scopes[i], DW_AT_call_line, &at_line))
			continue;
		name = dw.file(files, at_file, NULL, NULL);
		if (!name)
			continue;
		*file = name;
		*line = (int)at_line;
	}
	free(scopes);
}

struct place {
	const char *file, *function; /* file NULL: not known */
	int line;
};

static void dw_take(void)
{
	pthread_mutex_lock(&dw_lock);
	dw_busy = true;
}

static void dw_drop(void)
{
	dw_busy = false;
	pthread_mutex_unlock(&dw_lock);
}

/* The first backtrace of a process opens a library, too. */
static void first_backtrace(void)
{
	void *frame;

	vb_loose_begin();
	backtrace(&frame, 1);
	vb_loose_end();
}

static int frames_find(void **frames, int most)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, first_backtrace);
	return backtrace(frames, most);
}

void vb_callsite_forget(void)
{
	dw_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (!dw_busy)
		return;
	dw_busy = false;
	dw_tried = true;
	dw.dwfl = NULL;
}

/* By debug information. The address is inside the call, not behind it. dw_lock held. */
static struct place place_of(uintptr_t address)
{
	Dwfl_Module *module = dw_module(address);
	Dwfl_Line *line = module ? dw.line(module, address) : NULL;
	struct place place = {.file = NULL};

	if (line)
		place.file = dw.info(line, NULL, &place.line, NULL, NULL, NULL);
	if (!place.file)
		return place;
	leave_headers(module, address, &place.file, &place.line);
	place.function = dw.name(module, address);
	return place;
}

static bool say_line(char text[VB_CALLSITE_BYTES], uintptr_t address)
{
	struct place place;

	dw_take();
	place = place_of(address);
	if (place.file)
		snprintf(text, VB_CALLSITE_BYTES, "%s:%d%s%s", basename(place.file), place.line,
			 place.function ? " in " : "", place.function ? place.function : "");
	dw_drop();
	return place.file;
}

/*
 * Compilers that do not optimise make functions of their own of a header's inline verbs. What such
 * a function calls returns to the header; the application's line is one frame further out.
 */
static bool is_in_header(const void *address)
{
	struct place place;

	dw_take();
	place = place_of((uintptr_t)address - 1);
	dw_drop();
	return place.file && is_header_of_verbs(place.file);
}

const char *vb_callsite_of(char text[VB_CALLSITE_BYTES], const void *address)
{
	uintptr_t at = (uintptr_t)address - 1; /* of what returns to `address` */
	int saved = errno;
	Dl_info info;

	text[0] = 0;
	if (!address || say_line(text, at) || !dladdr((void *)at, &info) || !info.dli_fname) {
		errno = saved;
		return text;
	}
	if (info.dli_sname)
		snprintf(text, VB_CALLSITE_BYTES, "%s+0x%lx in %s", info.dli_sname,
			 (unsigned long)(at - (uintptr_t)info.dli_saddr), info.dli_fname);
	else
		snprintf(text, VB_CALLSITE_BYTES, "0x%lx in %s",
			 (unsigned long)(at - (uintptr_t)info.dli_fbase), info.dli_fname);
	errno = saved;
	return text;
}

/* Is this address in a library of ours? They lie beside each other, or call each other. */
static bool is_ours(const void *address)
{
	static const char *const names[] = { "libibverbs.so", "librdmacm.so", "libmlx5.so",
					     "librspreload.so", "libefa.so" };
	const char *file;
	Dl_info info;

	if (!dladdr(address, &info) || !info.dli_fname)
		return false;
	file = basename(info.dli_fname);
	for (size_t i = 0; i < VB_ARRAY_LEN(names); i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			return true;
	return false;
}

const void *vb_caller(void)
{
	void *frames[DEPTH_MAX];
	int depth = frames_find(frames, DEPTH_MAX), first = 0, i, saved = errno;

	/* A sanitizer's backtrace() begins with its own frames. */
	while (first < depth && !is_ours(frames[first]))
		first++;
	/* Linked into the program itself, nothing is ours. */
	if (first == depth)
		first = 0;
	while (first < depth && is_ours(frames[first]))
		first++;
	for (i = first; i < depth && is_in_header(frames[i]);)
		i++;
	errno = saved;
	if (i < depth)
		return frames[i];
	return first < depth ? frames[first] : NULL;
}

const void *vb_caller_by(const void *address)
{
	/* Twice the addresses that were looked at, plus 1 for those in a header. */
	static _Atomic(uintptr_t) known[64];
	_Atomic(uintptr_t) *at = &known[((uintptr_t)address >> 2) % VB_ARRAY_LEN(known)];
	uintptr_t entry = atomic_load_explicit(at, memory_order_relaxed);

	if (entry >> 1 != (uintptr_t)address) {
		int saved = errno;

		entry = (uintptr_t)address << 1 | (is_in_header(address) || is_ours(address));
		atomic_store_explicit(at, entry, memory_order_relaxed);
		errno = saved;
	}
	return entry & 1 ? vb_caller() : address;
}

const char *vb_callsite(char text[VB_CALLSITE_BYTES])
{
	return vb_callsite_of(text, vb_caller());
}
