/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/memprobe.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

/* Linux 5.14; libc's headers may be older. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum { CHUNK_PAGES = 4096 };

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

/* Is it refused for lack of rights, or as not being memory (a device's pages cannot be pinned)? */
static bool is_refused(uintptr_t page, bool write)
{
	if (!can_populate)
		return false;
	return madvise((void *)page, page_bytes,
		       write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0 &&
	       (errno == EINVAL || errno == EFAULT);
}

/* Is one of the pages from first to last unmapped? */
static bool has_hole(uintptr_t first, uintptr_t last)
{
	size_t pages = (last - first) / page_bytes + 1;
	unsigned char unused[CHUNK_PAGES];

	while (pages > 0) {
		size_t chunk = vb_min_u64(pages, CHUNK_PAGES);

		if (mincore((void *)first, chunk * page_bytes, unused) != 0 && errno == ENOMEM)
			return true;
		first += chunk * page_bytes;
		pages -= chunk;
	}
	return false;
}

/* The first and last page of these octets. False if the range wraps around. bytes > 0. */
static bool pages_of(const void *addr, size_t bytes, uintptr_t *first, uintptr_t *last)
{
	uintptr_t end = (uintptr_t)addr + (bytes - 1);

	pthread_once(&once, look_at_kernel);
	*first = (uintptr_t)addr & -page_bytes;
	*last = end & -page_bytes;
	return end >= (uintptr_t)addr;
}

int vb_memprobe(const void *addr, size_t bytes, bool write)
{
	uintptr_t first, last;

	if (bytes == 0)
		return 0;
	if (!pages_of(addr, bytes, &first, &last))
		return EFAULT;
	if (has_hole(first, last) || is_refused(first, write) ||
	    (last != first && is_refused(last, write)))
		return EFAULT;
	return 0;
}

/* With an old kernel, mapped pages are brought in when they are touched. */
int vb_memfetch(void *addr, size_t bytes, enum vb_fetch how)
{
	uintptr_t first, last;

	if (bytes == 0)
		return 0;
	if (!pages_of(addr, bytes, &first, &last))
		return EFAULT;
	if (has_hole(first, last))
		return EFAULT;
	if (how == VB_FETCH_LOOK || !can_populate ||
	    madvise((void *)first, last - first + page_bytes,
		    how == VB_FETCH_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return 0;
	/* EAGAIN, EINTR and others do not fail it: this is advice. */
	return errno == EINVAL || errno == EFAULT || errno == EHWPOISON ? EFAULT
	       : errno == ENOMEM				        ? ENOMEM
								        : 0;
}
