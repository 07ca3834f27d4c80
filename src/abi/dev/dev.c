/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libverbatim_dev.so.1, which `verbatim run --dev` preloads. Programs such as UCX ask the file
 * system, beside libibverbs, whether a device is there: whether its device file can be read and
 * written. Ours has none, and who is not root can make none; so who asks by these functions, and
 * would be told that there is none, is told of /dev/null, which is such a file everywhere. Nobody
 * has a reason to open it: that is libibverbs's to do.
 *
 * Called by anybody, in any thread, before main() even. Each is the C library's function of that
 * name (stat(2), access(2)) but for that one path, by way of a more general one of the C library's,
 * so that nothing has to be looked up first.
 */

/* With it, headers make two of the names below one. */
#undef _FILE_OFFSET_BITS

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_ITS_PLACE "/dev/null"

/* What programs call for stat(2) that were compiled for a C library before 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

/* After a call failed. The kernel has read a path of which it says ENOENT, so we may as well. */
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
