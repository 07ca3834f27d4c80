/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/memory/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The offset within its page. */
static uint64_t page_part(uint64_t offset)
{
	return offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static void *map_pages(int fd, uint64_t offset, uint64_t bytes, int protection)
{
	uint64_t part = page_part(offset);
	void *at = mmap(NULL, bytes + part, protection, MAP_SHARED, fd, (off_t)(offset - part));

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes + part, MADV_DONTFORK);
	return (uint8_t *)at + part;
}

/*
 * The size of a file. A regular file tells it by fstat(); a dma-buf only by lseek() to its end, and
 * it has no position that this would change.
 */
static int size_of(int fd, uint64_t *bytes)
{
	struct stat st;
	off_t end;

	if (fstat(fd, &st))
		return EBADF;
	end = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
	if (end < 0)
		return EINVAL;
	*bytes = (uint64_t)end;
	return 0;
}

int vb_memfile_map(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova, bool write,
		   void **memory)
{
	uint64_t size;
	int rc = size_of(fd, &size);

	if (rc != 0)
		return rc;
	if (page_part(offset) != page_part(iova) || offset > size || bytes > size - offset)
		return EINVAL;
	*memory = map_pages(fd, offset, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ);
	if (*memory)
		return 0;
	return errno == ENOMEM ? ENOMEM : EOPNOTSUPP;
}

/*
 * We write to memory only: not to files on a disk or to devices, which their owner could put there.
 */
static bool is_memory(int fd, uint64_t end)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size >= 0 && (uint64_t)st.st_size >= end;
}

void *vb_memfile_map_shared(int fd, uint64_t offset, uint64_t bytes)
{
	if (offset + bytes < bytes || !is_memory(fd, offset + bytes))
		return NULL;
	return map_pages(fd, offset, bytes, PROT_READ | PROT_WRITE);
}
