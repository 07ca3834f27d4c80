/* SPDX-License-Identifier: BSD-2-Clause */

/* Extended attributes, which ls -l asks for, and the watching of files. */

#include "abi/view/next.h"
#include "abi/view/place.h"

static const char *place_of(const char *path, bool follow, struct vb_view_place *place)
{
	int dirfd = AT_FDCWD;

	return vb_view_is_near(dirfd, path) ? vb_view_place(&dirfd, path, follow, place) : path;
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	struct vb_view_place place;

	path = place_of(path, true, &place);
	return path ? vb_next()->getxattr(path, name, value, size) : -1;
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	struct vb_view_place place;

	path = place_of(path, false, &place);
	return path ? vb_next()->lgetxattr(path, name, value, size) : -1;
}

ssize_t listxattr(const char *path, char *list, size_t size)
{
	struct vb_view_place place;

	path = place_of(path, true, &place);
	return path ? vb_next()->listxattr(path, list, size) : -1;
}

ssize_t llistxattr(const char *path, char *list, size_t size)
{
	struct vb_view_place place;

	path = place_of(path, false, &place);
	return path ? vb_next()->llistxattr(path, list, size) : -1;
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	struct vb_view_place place;

	path = place_of(path, !(mask & IN_DONT_FOLLOW), &place);
	return path ? vb_next()->inotify_add_watch(fd, path, mask) : -1;
}
