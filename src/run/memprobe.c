/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memprobe.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 5.14; libc's headers may be older. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uintptr_t page_bytes;
static bool can_populate;

static void look_at_kernel(void)
{
	static char here;

	page_bytes = sysconf(_SC_PAGESIZE);
	can_populate = madvise((void *)((uintptr_t)&here & -page_bytes), page_bytes,
			       MADV_POPULATE_READ) == 0;
}

/* Refused for lack of rights, or because it is no memory (a device's pages cannot be pinned). */
static bool is_refused(uintptr_t page, bool write)
{
	if (!can_populate)
		return false;
	return madvise((void *)page, page_bytes,
		       write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0 &&
	       (errno == EINVAL || errno == EFAULT);
}

int vb_memprobe(const void *addr, size_t bytes, bool write)
{
	uintptr_t first, last;

	if (bytes == 0)
		return 0;
	pthread_once(&once, look_at_kernel);
	if ((uintptr_t)addr + (bytes - 1) < (uintptr_t)addr)
		return EFAULT;
	first = (uintptr_t)addr & -page_bytes;
	last = ((uintptr_t)addr + (bytes - 1)) & -page_bytes;
	/* MS_ASYNC does nothing but walk the mappings, which costs nothing per page. */
	if (msync((void *)first, last - first + page_bytes, MS_ASYNC) != 0 && errno == ENOMEM)
		return EFAULT;
	if (is_refused(first, write) || (last != first && is_refused(last, write)))
		return EFAULT;
	return 0;
}
