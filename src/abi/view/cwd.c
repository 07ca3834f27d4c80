/* SPDX-License-Identifier: BSD-2-Clause */

/* The current folder, which may be one of ROOT's. */

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/view/next.h"
#include "abi/view/place.h"

/* Only old programs call it, and the headers of later C libraries may lack it. */
char *getwd(char *buf);
/* What the C library's headers declare only for programs that are compiled with its checks. */
char *__getcwd_chk(char *buf, size_t size, size_t size_of_buf);
char *__getwd_chk(char *buf, size_t size_of_buf);

static int __attribute__((noinline)) chdir_near(const char *path)
{
	struct vb_view_place place;
	int dirfd = AT_FDCWD;

	path = vb_view_place(&dirfd, path, true, &place);
	return path ? vb_next()->chdir(path) : -1;
}

int chdir(const char *path)
{
	int rc = vb_view_is_near(AT_FDCWD, path) ? chdir_near(path) : vb_next()->chdir(path);

	vb_view_cwd_changed();
	return rc;
}

int fchdir(int fd)
{
	int rc = vb_next()->fchdir(fd);

	vb_view_cwd_changed();
	return rc;
}

/* Its name in the view is shorter. */
static char *shown(char *path)
{
	const char *from = vb_view_path_shown(path, (unsigned)strlen(path));

	memmove(path, from, strlen(from) + 1);
	return path;
}

/* The kernel's name was too long, and the one that it has in the view may not be. */
static char *__attribute__((noinline)) getcwd_short(char *buf, size_t size)
{
	char path[PATH_MAX];

	if (!vb_next()->getcwd(path, sizeof(path)))
		return NULL;
	if (strlen(shown(path)) < size)
		return memcpy(buf, path, strlen(path) + 1);
	errno = ERANGE;
	return NULL;
}

char *getcwd(char *buf, size_t size)
{
	char *path = vb_next()->getcwd(buf, size);

	if (path)
		return shown(path);
	return buf && errno == ERANGE ? getcwd_short(buf, size) : NULL;
}

/* PWD may have the name with links: the C library asks as we do, but the kernel. */
char *get_current_dir_name(void)
{
	const char *name = getenv("PWD");
	struct stat named, here;

	if (name && *name == '/' && !stat(".", &here) && !stat(name, &named) &&
	    here.st_dev == named.st_dev && here.st_ino == named.st_ino)
		return strdup(name);
	return getcwd(NULL, 0);
}

char *getwd(char *buf)
{
	return getcwd(buf, PATH_MAX);
}

char *__getcwd_chk(char *buf, size_t size, size_t size_of_buf)
{
	return getcwd(buf, size < size_of_buf ? size : size_of_buf);
}

char *__getwd_chk(char *buf, size_t size_of_buf)
{
	return getcwd(buf, size_of_buf < PATH_MAX ? size_of_buf : PATH_MAX);
}
