/* SPDX-License-Identifier: BSD-2-Clause */

/* Links, and paths without them. Nobody is told where ROOT is. */

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/view/next.h"
#include "abi/view/place.h"

/* What the C library's headers declare only for programs that are compiled with its checks. */
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t size_of_buf);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t size_of_buf);
char *__realpath_chk(const char *path, char *resolved, size_t size_of_resolved);

static ssize_t __attribute__((noinline))
readlink_near(int dirfd, const char *path, char *buf, size_t size)
{
	struct vb_view_place place;

	path = vb_view_place(&dirfd, path, false, &place);
	return path ? vb_next()->readlinkat(dirfd, path, buf, size) : -1;
}

/* The kernel's names of what a process has open. */
static ssize_t shown(const char *path, char *buf, ssize_t chars)
{
	const char *from;

	if (chars <= 0 || !path || strncmp(path, "/proc/", 6))
		return chars;
	from = vb_view_path_shown(buf, (unsigned)chars);
	chars -= from - buf;
	memmove(buf, from, (size_t)chars);
	return chars;
}

ssize_t readlink(const char *path, char *buf, size_t size)
{
	return vb_view_is_near(AT_FDCWD, path)
		       ? readlink_near(AT_FDCWD, path, buf, size)
		       : shown(path, buf, vb_next()->readlink(path, buf, size));
}

ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	return vb_view_is_near(dirfd, path)
		       ? readlink_near(dirfd, path, buf, size)
		       : shown(path, buf, vb_next()->readlinkat(dirfd, path, buf, size));
}

/* A program that says a wrong size is a broken one, which we must not make worse. */
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t size_of_buf)
{
	return readlink(path, buf, size < size_of_buf ? size : size_of_buf);
}

ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t size_of_buf)
{
	return readlinkat(dirfd, path, buf, size < size_of_buf ? size : size_of_buf);
}

static char *__attribute__((noinline)) realpath_near(const char *path, char *resolved)
{
	struct vb_view_place place;
	int dirfd = AT_FDCWD;
	const char *found = vb_view_place(&dirfd, path, true, &place);

	if (!found)
		return NULL;
	if (found == path || !vb_view_is_ours(&place))
		return vb_next()->realpath(found, resolved);
	if (!resolved)
		return strdup(place.walk.path);
	memcpy(resolved, place.walk.path, strlen(place.walk.path) + 1);
	return resolved;
}

char *realpath(const char *path, char *resolved)
{
	return vb_view_is_near(AT_FDCWD, path) ? realpath_near(path, resolved)
					       : vb_next()->realpath(path, resolved);
}

char *__realpath_chk(const char *path, char *resolved, size_t size_of_resolved)
{
	/* The C library's asks for as much. */
	if (size_of_resolved < PATH_MAX)
		__builtin_trap();
	return realpath(path, resolved);
}

char *canonicalize_file_name(const char *path)
{
	return vb_view_is_near(AT_FDCWD, path) ? realpath_near(path, NULL)
					       : vb_next()->canonicalize_file_name(path);
}
