/* SPDX-License-Identifier: BSD-2-Clause */

/* What is known of a file, and who may use it. */

#include <string.h>

#include "abi/view/next.h"
#include "abi/view/place.h"

/* Programs compiled for a C library before 2.33 call these for stat(2) and its kin. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);

static int __attribute__((noinline)) stat_near(int dirfd, const char *path, void *st, int flags)
{
	struct vb_view_place place;

	path = vb_view_place(&dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW), &place);
	return path ? vb_next()->fstatat(dirfd, path, st, flags) : -1;
}

int stat(const char *path, struct stat *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? stat_near(AT_FDCWD, path, st, 0)
					       : vb_next()->stat(path, st);
}

int stat64(const char *path, struct stat64 *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? stat_near(AT_FDCWD, path, st, 0)
					       : vb_next()->stat64(path, st);
}

int lstat(const char *path, struct stat *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? stat_near(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
					       : vb_next()->lstat(path, st);
}

int lstat64(const char *path, struct stat64 *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? stat_near(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
					       : vb_next()->lstat64(path, st);
}

int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return vb_view_is_near(dirfd, path) ? stat_near(dirfd, path, st, flags)
					    : vb_next()->fstatat(dirfd, path, st, flags);
}

int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags)
{
	return vb_view_is_near(dirfd, path) ? stat_near(dirfd, path, st, flags)
					    : vb_next()->fstatat64(dirfd, path, st, flags);
}

int __xstat(int version, const char *path, struct stat *st)
{
	return stat(path, st);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
	return stat64(path, st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
	return lstat(path, st);
}

int __lxstat64(int version, const char *path, struct stat64 *st)
{
	return lstat64(path, st);
}

int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
	return fstatat(dirfd, path, st, flags);
}

int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags)
{
	return fstatat64(dirfd, path, st, flags);
}

static int __attribute__((noinline))
statx_near(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct vb_view_place place;

	path = vb_view_place(&dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW), &place);
	return path ? vb_next()->statx(dirfd, path, flags, mask, st) : -1;
}

int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	return vb_view_is_near(dirfd, path) ? statx_near(dirfd, path, flags, mask, st)
					    : vb_next()->statx(dirfd, path, flags, mask, st);
}

/* --- who may --- */

static int __attribute__((noinline)) access_near(int dirfd, const char *path, int mode, int flags)
{
	struct vb_view_place place;

	path = vb_view_place(&dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW), &place);
	return path ? vb_next()->faccessat(dirfd, path, mode, flags) : -1;
}

int access(const char *path, int mode)
{
	return vb_view_is_near(AT_FDCWD, path) ? access_near(AT_FDCWD, path, mode, 0)
					       : vb_next()->access(path, mode);
}

int faccessat(int dirfd, const char *path, int mode, int flags)
{
	return vb_view_is_near(dirfd, path) ? access_near(dirfd, path, mode, flags)
					    : vb_next()->faccessat(dirfd, path, mode, flags);
}

int euidaccess(const char *path, int mode)
{
	return vb_view_is_near(AT_FDCWD, path) ? access_near(AT_FDCWD, path, mode, AT_EACCESS)
					       : vb_next()->euidaccess(path, mode);
}

int eaccess(const char *path, int mode)
{
	return vb_view_is_near(AT_FDCWD, path) ? access_near(AT_FDCWD, path, mode, AT_EACCESS)
					       : vb_next()->eaccess(path, mode);
}

/* --- the file system: that of the real tree, since programs ask whether it is sysfs --- */

static const char *mount_of(const char *path, struct vb_view_place *place)
{
	int dirfd = AT_FDCWD;
	const char *found = vb_view_place(&dirfd, path, true, place);

	if (!found || found == path || !vb_view_is_ours(place))
		return found;
	return strncmp(place->walk.path, "/dev", 4) ? "/sys" : "/dev";
}

static int __attribute__((noinline)) statfs_near(const char *path, void *st)
{
	struct vb_view_place place;

	path = mount_of(path, &place);
	return path ? vb_next()->statfs(path, st) : -1;
}

static int __attribute__((noinline)) statvfs_near(const char *path, void *st)
{
	struct vb_view_place place;

	path = mount_of(path, &place);
	return path ? vb_next()->statvfs(path, st) : -1;
}

int statfs(const char *path, struct statfs *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? statfs_near(path, st)
					       : vb_next()->statfs(path, st);
}

int statfs64(const char *path, struct statfs64 *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? statfs_near(path, st)
					       : vb_next()->statfs64(path, st);
}

int statvfs(const char *path, struct statvfs *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? statvfs_near(path, st)
					       : vb_next()->statvfs(path, st);
}

int statvfs64(const char *path, struct statvfs64 *st)
{
	return vb_view_is_near(AT_FDCWD, path) ? statvfs_near(path, st)
					       : vb_next()->statvfs64(path, st);
}
