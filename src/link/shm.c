/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/failure.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* Beyond this limit one does not get an error alone, but a signal that kills. */
static bool size_is_allowed(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

static int file_make(int *fd, size_t bytes)
{
	int rc;

	if (!size_is_allowed(bytes))
		return vb_failed(EFBIG, "shared memory");
	*fd = memfd_create("verbatim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return vb_failed(errno, "memfd_create");
	if (ftruncate(*fd, (off_t)bytes))
		rc = vb_failed(errno, "ftruncate");
	else
		rc = fcntl(*fd, F_ADD_SEALS, SIZE_SEALS) ? vb_failed(errno, "fcntl(F_ADD_SEALS)")
							 : 0;
	if (rc)
		close(*fd);
	return rc;
}

int vb_shm_create(int *fd, size_t bytes)
{
	return file_make(fd, bytes);
}

int vb_shm_export(int *fd, void **memory, size_t bytes)
{
	int rc = vb_shm_reserve(memory, bytes);

	if (rc != 0)
		return rc;
	rc = file_make(fd, bytes);
	if (rc != 0) {
		vb_shm_unmap(*memory, bytes);
		return rc;
	}
	rc = vb_shm_map(*memory, *fd, bytes, true);
	if (rc != 0) {
		close(*fd);
		vb_shm_unmap(*memory, bytes);
		return rc;
	}
	/* An older kernel does without: peers are of the same user, and map it read-only. */
	fcntl(*fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	return 0;
}

int vb_shm_reserve(void **memory, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return vb_failed(errno, "mmap");
	madvise(at, bytes, MADV_DONTFORK);
	*memory = at;
	return 0;
}

bool vb_shm_is_sealed(int fd, int seals)
{
	int has = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	return has >= 0 && (has & seals) == seals && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}

int vb_shm_map(void *memory, int fd, size_t bytes, bool write)
{
	struct stat st;
	void *at;

	if (!vb_shm_is_sealed(fd, SIZE_SEALS) || fstat(fd, &st) || st.st_size != (off_t)bytes)
		return vb_failed(EPROTO, "shared memory of another");
	at = mmap(memory, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ,
		  MAP_SHARED | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED)
		return vb_failed(errno, "mmap");
	madvise(at, bytes, MADV_DONTFORK);
	return 0;
}

void vb_shm_blank(void *memory, size_t bytes)
{
	void *at = mmap(memory, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (at != MAP_FAILED)
		madvise(at, bytes, MADV_DONTFORK);
}

void vb_shm_forget(void *memory, size_t bytes)
{
	mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
	     0);
}

void vb_shm_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

int vb_bell_create(int *inner_fd, int *outer_fd)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return vb_failed(errno, "socketpair");
	*inner_fd = fds[0];
	*outer_fd = fds[1];
	return 0;
}

void vb_bell_ring(int outer_fd)
{
	/* A full buffer rings as well; an owner that is gone is told by POLLHUP. */
	send(outer_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void vb_bell_hush(int inner_fd)
{
	uint8_t octets[256];

	/* Whoever rings without end is heard again. */
	for (unsigned i = 0; i < 64; i++) {
		if (recv(inner_fd, octets, sizeof(octets), MSG_DONTWAIT) != sizeof(octets))
			break;
	}
}

bool vb_bell_is_dead(int outer_fd)
{
	struct pollfd fd = { .fd = outer_fd };

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP);
}
