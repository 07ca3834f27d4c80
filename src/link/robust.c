/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/robust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/fd.h"
#include "link/shm.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int vb_robust_open(struct vb_robust_lock *lock, int memory_fd, _Atomic uint32_t *held)
{
	struct flock octet = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_fd);
	lock->fd = open(path, O_RDWR | O_CLOEXEC);
	/* An emulated kernel may lack these locks. */
	lock->own_file = lock->fd >= 0 && !fcntl(lock->fd, F_OFD_GETLK, &octet);
	if (lock->fd < 0)
		lock->fd = fcntl(memory_fd, F_DUPFD_CLOEXEC, 0);
	if (lock->fd < 0)
		return vb_failed(errno, "fcntl");
	vb_lock_init(&lock->here, VB_RANK_STORE);
	lock->held = held;
	return 0;
}

void vb_robust_close(struct vb_robust_lock *lock)
{
	vb_lock_fini(&lock->here);
	vb_fd_close(&lock->fd);
}

void vb_robust_forget(struct vb_robust_lock *lock)
{
	vb_fd_close(&lock->fd);
}

/* Locks the first octet, for all of them. Returns false if another holder has it. */
static bool file_lock(const struct vb_robust_lock *lock, short type, bool wait)
{
	static const int commands[2][2] = {{F_SETLK, F_SETLKW}, {F_OFD_SETLK, F_OFD_SETLKW}};
	struct flock octet = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
	int rc;

	do {
		rc = fcntl(lock->fd, commands[lock->own_file][wait], &octet);
	} while (rc && errno == EINTR);
	/*
	 * Other errors mean that the kernel has no memory, or that the program closed our
	 * descriptor. Then changes may collide and spoil the memory, as any process with access
	 * could.
	 */
	return !rc || (errno != EAGAIN && errno != EACCES);
}

static enum vb_robust taken(struct vb_robust_lock *lock)
{
	return atomic_exchange(lock->held, 1) ? VB_ROBUST_INHERITED : VB_ROBUST_TAKEN;
}

enum vb_robust vb_robust_take(struct vb_robust_lock *lock)
{
	vb_lock_order_wait("another process, which has the store");
	vb_lock_take(&lock->here);
	file_lock(lock, F_WRLCK, true);
	return taken(lock);
}

enum vb_robust vb_robust_try(struct vb_robust_lock *lock)
{
	if (!vb_lock_try(&lock->here))
		return VB_ROBUST_BUSY;
	if (file_lock(lock, F_WRLCK, false))
		return taken(lock);
	vb_lock_drop(&lock->here);
	return VB_ROBUST_BUSY;
}

void vb_robust_drop(struct vb_robust_lock *lock)
{
	atomic_store(lock->held, 0);
	file_lock(lock, F_UNLCK, false);
	vb_lock_drop(&lock->here);
}

int vb_robust_memory_make(const char *name, size_t bytes, int *fd)
{
	int rc = 0;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return vb_failed(errno, "memfd_create");
	if (ftruncate(*fd, (off_t)bytes))
		rc = vb_failed(errno, "ftruncate");
	else if (fcntl(*fd, F_ADD_SEALS, SEALS))
		rc = vb_failed(errno, "fcntl(F_ADD_SEALS)");
	if (rc)
		close(*fd);
	return rc;
}

void *vb_robust_memory_map(int fd, size_t bytes)
{
	struct stat stat;
	void *memory;

	/* An access beyond the end of the file would be fatal. */
	if (!vb_shm_is_sealed(fd, SEALS) || fstat(fd, &stat) || (size_t)stat.st_size < bytes)
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void vb_robust_memory_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}
