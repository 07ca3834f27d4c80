/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/view/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/view/next.h"

#define IN_ITS_PLACE "/dev/null"

/* Where the current folder is: then a relative path may be near. */
enum { UNKNOWN, FAR, TOP, NEAR };
static atomic_int cwd;
static atomic_bool folders_open; /* and then one by a folder's descriptor */

struct root {
	char path[VB_VIEW_ROOT_CHARS]; /* without links; "": there is none */
	unsigned chars;
};

static void root_take(struct root *root)
{
	const char *named = getenv("VERBATIM_VIEW_ROOT");
	char path[PATH_MAX];
	size_t chars;

	if (!named || named[0] != '/' || !vb_next()->realpath(named, path))
		return;
	chars = strlen(path);
	if (chars < 2 || chars >= sizeof(root->path))
		return;
	memcpy(root->path, path, chars + 1);
	root->chars = (unsigned)chars;
}

/* Taken once, since the program may change its environment; as vb_next() is. */
static const struct root *root_get(void)
{
	static struct root root;
	static atomic_bool is_ready;

	if (!atomic_load_explicit(&is_ready, memory_order_acquire)) {
		int before = errno;

		root_take(&root);
		errno = before;
		atomic_store_explicit(&is_ready, true, memory_order_release);
	}
	return &root;
}

static void __attribute__((constructor)) take_early(void)
{
	root_get();
}

static bool word_is(const char *path, const char *word, size_t chars)
{
	return !strncmp(path, word, chars) && (!path[chars] || path[chars] == '/');
}

/* Skips what leads to where we are: slashes, and "." as a name. */
static const char *still_skip(const char *path)
{
	for (;; path++) {
		if (path[0] == '.' && (path[1] == '/' || !path[1]))
			continue;
		if (path[0] != '/')
			return path;
	}
}

/*
 * A path from the top. Of /dev nothing is ours but one folder, and what is asked for in /dev most
 * often is not that.
 */
static bool top_is_near(const char *path)
{
	path = still_skip(path);
	if (!*path || word_is(path, "sys", 3))
		return true;
	if (!word_is(path, "dev", 3))
		return false;
	path = still_skip(path + 3);
	return !*path || word_is(path, "infiniband", 10);
}

/* It leaves folders, and comes to one of ours. */
static bool climbs(const char *path)
{
	for (path = strstr(path, "../"); path; path = strstr(path + 1, "../"))
		if (top_is_near(path + 2) && *still_skip(path + 2))
			return true;
	return false;
}

static bool text_is_ours(const char *text)
{
	return word_is(text, "/sys", 4) || word_is(text, "/dev", 4);
}

const char *vb_view_path_shown(const char *text, unsigned chars)
{
	const struct root *root = root_get();

	if (root->chars && chars > root->chars && !memcmp(text, root->path, root->chars) &&
	    text_is_ours(text + root->chars))
		return text + root->chars;
	return text;
}

bool vb_view_root_path(const char *path, char out[VB_VIEW_PLACE_CHARS])
{
	const struct root *root = root_get();
	size_t chars = strlen(path);

	if (!root->chars || root->chars + chars >= VB_VIEW_PLACE_CHARS)
		return false;
	memcpy(out, root->path, root->chars);
	memcpy(out + root->chars, path, chars + 1);
	return true;
}

/* --- what is asked of the kernel, by calls that nobody stands in front of --- */

static int link_read(const char *path, char *target, unsigned size, unsigned *chars)
{
	long n = syscall(SYS_readlinkat, AT_FDCWD, path, target, size);

	if (n < 0)
		return errno;
	if ((unsigned)n == size)
		return ENAMETOOLONG;
	target[n] = '\0';
	*chars = (unsigned)n;
	return 0;
}

static int cwd_read(char *path, unsigned size, unsigned *chars)
{
	long n = syscall(SYS_getcwd, path, size);

	if (n < 0)
		return errno;
	*chars = (unsigned)n - 1;
	return 0;
}

static bool is_device(const char *path)
{
	return !strncmp(path, "/dev/", 5);
}

static int look(void *host, bool is_upper, const char *path, char *target)
{
	char in_root[VB_VIEW_PLACE_CHARS];
	unsigned chars = 0;
	int rc;

	if (is_upper) {
		if (!vb_view_root_path(path, in_root))
			return ENOENT;
		path = in_root;
	}
	rc = link_read(path, target, VB_OVERLAY_CHARS, &chars);
	/* It is there, and no link. In ROOT's /dev, a link to a device stands for one. */
	if (rc == EINVAL || (is_upper && !rc && is_device(target)))
		target[0] = '\0';
	return rc == EINVAL ? 0 : rc;
}

/* Writes "/proc/self/fd/N" without help, for signal handlers. */
static void fd_name(int fd, char name[32])
{
	static const char folder[] = "/proc/self/fd/";
	char digits[12];
	unsigned n = 0, at = sizeof(folder) - 1;

	memcpy(name, folder, at);
	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		name[at++] = digits[--n];
	name[at] = '\0';
}

/* A path that the kernel says, as it is in the view. */
static int path_take(const char *text, unsigned chars, char path[VB_OVERLAY_CHARS], bool *in_root)
{
	const char *shown = vb_view_path_shown(text, chars);

	*in_root = shown != text;
	chars -= (unsigned)(shown - text);
	if (shown[0] != '/')
		return ENOENT;
	if (chars >= VB_OVERLAY_CHARS)
		return ENAMETOOLONG;
	memcpy(path, shown, chars + 1);
	return 0;
}

int vb_view_fd_path(int fd, char path[VB_OVERLAY_CHARS], bool *in_root)
{
	char name[32], text[VB_VIEW_PLACE_CHARS];
	unsigned chars = 0;
	int rc;

	if (fd < 0)
		return EBADF;
	fd_name(fd, name);
	rc = link_read(name, text, sizeof(text), &chars);
	return rc ? rc : path_take(text, chars, path, in_root);
}

static int cwd_path(char path[VB_OVERLAY_CHARS], bool *in_root)
{
	char text[VB_VIEW_PLACE_CHARS];
	unsigned chars = 0;
	int rc = cwd_read(text, sizeof(text), &chars);

	return rc ? rc : path_take(text, chars, path, in_root);
}

/* --- near --- */

static int __attribute__((noinline)) cwd_find(void)
{
	char path[VB_OVERLAY_CHARS];
	int before = errno, found = FAR;
	bool in_root;

	if (!cwd_path(path, &in_root)) {
		if (in_root || text_is_ours(path))
			found = NEAR;
		else if (!path[1])
			found = TOP;
	}
	atomic_store_explicit(&cwd, found, memory_order_relaxed);
	errno = before;
	return found;
}

bool vb_view_is_near(int dirfd, const char *path)
{
	int at;

	if (!path || !*path)
		return false;
	if (*path == '/')
		return top_is_near(path) || climbs(path);
	if (dirfd != AT_FDCWD)
		return atomic_load_explicit(&folders_open, memory_order_relaxed) || climbs(path);
	at = atomic_load_explicit(&cwd, memory_order_relaxed);
	if (at == UNKNOWN)
		at = cwd_find();
	return at == NEAR || (at == TOP && top_is_near(path)) || climbs(path);
}

void vb_view_folder_opened(int fd)
{
	int before = errno;
	struct stat st;

	if (!atomic_load_explicit(&folders_open, memory_order_relaxed) && !fstat(fd, &st) &&
	    S_ISDIR(st.st_mode))
		atomic_store_explicit(&folders_open, true, memory_order_relaxed);
	errno = before;
}

void vb_view_cwd_changed(void)
{
	atomic_store_explicit(&cwd, UNKNOWN, memory_order_relaxed);
}

/* --- the place --- */

/* Writes the path from the top; from *in_root on, the kernel would walk it within ROOT. */
static int path_join(int dirfd, const char *path, char joined[VB_OVERLAY_CHARS], bool *in_root)
{
	size_t at = 0, chars = strnlen(path, VB_OVERLAY_CHARS);
	int rc;

	*in_root = false;
	if (*path != '/') {
		rc = dirfd == AT_FDCWD ? cwd_path(joined, in_root)
				       : vb_view_fd_path(dirfd, joined, in_root);
		if (rc)
			return rc;
		at = strlen(joined);
		joined[at++] = '/';
	}
	if (at + chars >= VB_OVERLAY_CHARS)
		return ENAMETOOLONG;
	memcpy(joined + at, path, chars + 1);
	return 0;
}

static const char *fail(int rc)
{
	errno = rc;
	return NULL;
}

/* A path that is not in ROOT, or a folder that the real tree has as well. */
static const char *place_real(struct vb_view_place *place)
{
	const struct vb_overlay_walk *walk = &place->walk;
	size_t chars = strlen(walk->path);

	memcpy(place->path, walk->path, chars);
	if (walk->is_slashed && chars > 1)
		place->path[chars++] = '/';
	place->path[chars] = '\0';
	return place->path;
}

/* What stands for a device: ROOT may say which other one does. */
static void device_place(struct vb_view_place *place)
{
	char target[VB_OVERLAY_CHARS];
	unsigned chars = 0;

	if (link_read(place->path, target, sizeof(target), &chars) || !is_device(target))
		memcpy(place->path, IN_ITS_PLACE, sizeof(IN_ITS_PLACE));
	else
		memcpy(place->path, target, chars + 1);
}

static const char *place_ours(struct vb_view_place *place)
{
	const struct vb_overlay_walk *walk = &place->walk;

	if (walk->is_slashed && !walk->is_folder && !walk->is_link)
		return fail(ENOTDIR);
	if (!vb_view_root_path(walk->path, place->path))
		return fail(ENAMETOOLONG);
	if (is_device(walk->path) && !walk->is_folder && !walk->is_link)
		device_place(place);
	return place->path;
}

static const char *place_find(int *dirfd, const char *path, bool follow,
			      struct vb_view_place *place)
{
	static const struct vb_overlay overlay = {look, NULL};
	struct vb_overlay_walk *walk = &place->walk;
	char joined[VB_OVERLAY_CHARS];
	bool in_root, is_plain;
	int rc;

	if (path_join(*dirfd, path, joined, &in_root))
		return path;
	/* A folder's descriptor may be of any. */
	if (!in_root && !top_is_near(joined) && !climbs(joined))
		return path;
	rc = vb_overlay_walk(&overlay, joined, follow, walk);
	if (rc == ENAMETOOLONG)
		return path;
	/* The kernel alone comes to the same, with words of its own. */
	is_plain = !walk->is_detour && !in_root;
	if (rc)
		return rc == ENOENT && is_plain ? path : fail(rc);
	if (walk->has == VB_OVERLAY_NOTHING && walk->error != ENOENT)
		return fail(walk->error);
	if (walk->has != VB_OVERLAY_UPPER && is_plain)
		return path;
	*dirfd = AT_FDCWD;
	return walk->has == VB_OVERLAY_UPPER ? place_ours(place) : place_real(place);
}

/* With no ROOT there is no tree, and nothing to list. */
static const char *place_alone(const char *path, struct vb_view_place *place)
{
	static const char ours[] = "/dev/infiniband/uverbs0";

	if (strcmp(path, ours))
		return path;
	place->walk.has = VB_OVERLAY_UPPER;
	memcpy(place->walk.path, ours, sizeof(ours));
	return IN_ITS_PLACE;
}

const char *vb_view_place(int *dirfd, const char *path, bool follow, struct vb_view_place *place)
{
	int before = errno;
	const char *found;

	if (!root_get()->chars)
		return place_alone(path, place);
	found = place_find(dirfd, path, follow, place);
	if (found)
		errno = before;
	return found;
}
