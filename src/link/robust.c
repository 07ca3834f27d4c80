/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/robust.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"

_Static_assert(sizeof(pthread_mutex_t) <= VB_ROBUST_LOCK_BYTES, "it has room");

void vb_robust_init(void *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static enum vb_robust taken(void *lock, int rc)
{
	if (rc == EBUSY)
		return VB_ROBUST_BUSY;
	vb_check(rc == 0 || rc == EOWNERDEAD);
	if (rc == 0)
		return VB_ROBUST_TAKEN;
	pthread_mutex_consistent(lock);
	return VB_ROBUST_INHERITED;
}

enum vb_robust vb_robust_take(void *lock)
{
	return taken(lock, pthread_mutex_lock(lock));
}

enum vb_robust vb_robust_try(void *lock)
{
	return taken(lock, pthread_mutex_trylock(lock));
}

void vb_robust_drop(void *lock)
{
	pthread_mutex_unlock(lock);
}

int vb_robust_memory_make(const char *name, size_t bytes, int *fd)
{
	int rc = 0;

	*fd = memfd_create(name, MFD_CLOEXEC);
	if (*fd < 0)
		return vb_failed(errno, "memfd_create");
	if (ftruncate(*fd, (off_t)bytes)) {
		rc = vb_failed(errno, "ftruncate");
		close(*fd);
	}
	return rc;
}

void *vb_robust_memory_map(int fd, size_t bytes)
{
	struct stat stat;
	void *memory;

	/* Beyond the end of a file every access would be fatal. */
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode) || (size_t)stat.st_size < bytes)
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void vb_robust_memory_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}
