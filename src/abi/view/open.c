/* SPDX-License-Identifier: BSD-2-Clause */

/* Files opened. */

#include <errno.h>
#include <stdarg.h>

#include "abi/view/next.h"
#include "abi/view/place.h"

/* What the C library's headers declare only for programs that are compiled with its checks. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

/* The optional parameter. */
#define MODE_OF(flags)                                     \
	({                                                 \
		mode_t vb_mode = 0;                        \
		va_list vb_list;                           \
		va_start(vb_list, flags);                  \
		if (__OPEN_NEEDS_MODE(flags))              \
			vb_mode = va_arg(vb_list, mode_t); \
		va_end(vb_list);                           \
		vb_mode;                                   \
	})

static int __attribute__((noinline)) open_near(int dirfd, const char *path, int flags, mode_t mode)
{
	bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	struct vb_view_place place;
	int fd;

	path = vb_view_place(&dirfd, path, follow, &place);
	if (!path)
		return -1;
	fd = vb_next()->openat(dirfd, path, flags, mode);
	if (fd >= 0)
		vb_view_folder_opened(fd);
	return fd;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	return vb_view_is_near(AT_FDCWD, path) ? open_near(AT_FDCWD, path, flags, mode)
					       : vb_next()->open(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	return vb_view_is_near(AT_FDCWD, path) ? open_near(AT_FDCWD, path, flags, mode)
					       : vb_next()->open64(path, flags, mode);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	return vb_view_is_near(dirfd, path) ? open_near(dirfd, path, flags, mode)
					    : vb_next()->openat(dirfd, path, flags, mode);
}

int openat64(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	return vb_view_is_near(dirfd, path) ? open_near(dirfd, path, flags, mode)
					    : vb_next()->openat64(dirfd, path, flags, mode);
}

/* These have no mode: a program that needs one there is broken, and the C library ends it, too. */
static int modeless(int flags)
{
	if (__OPEN_NEEDS_MODE(flags))
		__builtin_trap();
	return flags;
}

int __open_2(const char *path, int flags)
{
	return open(path, modeless(flags));
}

int __open64_2(const char *path, int flags)
{
	return open64(path, modeless(flags));
}

int __openat_2(int dirfd, const char *path, int flags)
{
	return openat(dirfd, path, modeless(flags));
}

int __openat64_2(int dirfd, const char *path, int flags)
{
	return openat64(dirfd, path, modeless(flags));
}

int creat(const char *path, mode_t mode)
{
	return vb_view_is_near(AT_FDCWD, path)
		       ? open_near(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode)
		       : vb_next()->creat(path, mode);
}

int creat64(const char *path, mode_t mode)
{
	return vb_view_is_near(AT_FDCWD, path)
		       ? open_near(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode)
		       : vb_next()->creat64(path, mode);
}

/* --- streams --- */

static FILE *__attribute__((noinline)) fopen_near(const char *path, const char *mode, FILE *stream)
{
	struct vb_view_place place;
	int dirfd = AT_FDCWD;

	path = vb_view_place(&dirfd, path, true, &place);
	if (path)
		return stream ? vb_next()->freopen(path, mode, stream)
			      : vb_next()->fopen(path, mode);
	/* As freopen(3) has it: the stream is closed in any case. */
	if (stream) {
		int why = errno;

		fclose(stream);
		errno = why;
	}
	return NULL;
}

FILE *fopen(const char *path, const char *mode)
{
	return vb_view_is_near(AT_FDCWD, path) ? fopen_near(path, mode, NULL)
					       : vb_next()->fopen(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return vb_view_is_near(AT_FDCWD, path) ? fopen_near(path, mode, NULL)
					       : vb_next()->fopen64(path, mode);
}

FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	return vb_view_is_near(AT_FDCWD, path) ? fopen_near(path, mode, stream)
					       : vb_next()->freopen(path, mode, stream);
}

FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	return vb_view_is_near(AT_FDCWD, path) ? fopen_near(path, mode, stream)
					       : vb_next()->freopen64(path, mode, stream);
}
