/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbatim_dev.so.1, which `verbatim run --dev` preloads. Programs such as UCX ask the file
 * system, and not only libibverbs, whether a device is there: whether its device file can be read
 * and written. We have no device file, and without root one cannot be made. So these functions
 * answer for that path what holds for /dev/null, which can be read and written everywhere. Only
 * libibverbs has a reason to open the file.
 *
 * Called by the program in any thread, even before main(). Each behaves as the C library's function
 * of that name (stat(2), access(2)) except for that path, and calls a more general function of the
 * C library, so that nothing has to be looked up first.
 */

/* With it, headers make one of two names below. */
#undef _FILE_OFFSET_BITS

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_ITS_PLACE "/dev/null"

/* Programs compiled for a C library before 2.33 call these for stat(2). */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

/* Called after a call failed with ENOENT: then the kernel could read the path, and so can we. */
static bool is_device(const char *path)
{
	return errno == ENOENT && !strcmp(path, "/dev/infiniband/uverbs0");
}

int stat(const char *path, struct stat *st)
{
	int rc = fstatat(AT_FDCWD, path, st, 0);

	return rc && is_device(path) ? fstatat(AT_FDCWD, IN_ITS_PLACE, st, 0) : rc;
}

int stat64(const char *path, struct stat64 *st)
{
	int rc = fstatat64(AT_FDCWD, path, st, 0);

	return rc && is_device(path) ? fstatat64(AT_FDCWD, IN_ITS_PLACE, st, 0) : rc;
}

int __xstat(int version, const char *path, struct stat *st)
{
	return stat(path, st);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
	return stat64(path, st);
}

int access(const char *path, int mode)
{
	int rc = faccessat(AT_FDCWD, path, mode, 0);

	return rc && is_device(path) ? faccessat(AT_FDCWD, IN_ITS_PLACE, mode, 0) : rc;
}
