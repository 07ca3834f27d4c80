/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Trees walked and patterns matched. Within the C library that is done by what we cannot stand
 * before: so a tree of ours is walked here, and patterns are matched by our functions.
 */

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/view/next.h"
#include "abi/view/place.h"

typedef int (*ftw_of)(const char *, const struct stat *, int);
typedef int (*nftw_of)(const char *, const struct stat *, int, struct FTW *);

/* One walk. What is open at a time is as many folders as lie in one another. */
struct trip {
	ftw_of ftw; /* NULL: nftw */
	nftw_of nftw;
	int flags; /* of nftw(3) */
	dev_t device;
	struct seen {
		dev_t device;
		ino_t inode;
	} *seen; /* folders, where links are followed */
	size_t count;
	char path[PATH_MAX];
};

/* Something on the way: its name in the folder `in` is the end of the trip's path. */
struct stop {
	int in;
	const char *name;
	struct FTW at;
	struct stat st;
};

static int tell(struct trip *trip, struct stop *stop, int type)
{
	/* ftw(3) knows fewer types. */
	static const int types[] = {
		[FTW_F] = FTW_F,  [FTW_D] = FTW_D,  [FTW_DNR] = FTW_DNR, [FTW_NS] = FTW_NS,
		[FTW_SL] = FTW_F, [FTW_DP] = FTW_D, [FTW_SLN] = FTW_NS};

	return trip->ftw ? trip->ftw(trip->path, &stop->st, types[type])
			 : trip->nftw(trip->path, &stop->st, type, &stop->at);
}

/* 1: it is new, 0: it is not, -1: errno says why that is not known */
static int seen_add(struct trip *trip, const struct stat *st)
{
	size_t n = trip->count;

	if (trip->flags & FTW_PHYS)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (trip->seen[i].inode == st->st_ino && trip->seen[i].device == st->st_dev)
			return 0;
	if (!(n & (n - 1))) {
		struct seen *seen = realloc(trip->seen, (n ? 2 * n : 1) * sizeof(*seen));

		if (!seen)
			return -1;
		trip->seen = seen;
	}
	trip->seen[trip->count++] = (struct seen){st->st_dev, st->st_ino};
	return 1;
}

static int stop_visit(struct trip *trip, struct stop *stop);

static int cwd_follow(const struct trip *trip, DIR *dir)
{
	return trip->flags & FTW_CHDIR ? fchdir(dirfd(dir)) : 0;
}

static int entries_visit(struct trip *trip, const struct stop *folder, DIR *dir)
{
	size_t chars = strlen(trip->path), name_chars;
	struct stop stop = {.in = dirfd(dir), .at = {.level = folder->at.level + 1}};
	struct dirent *entry;
	int rc = 0;

	if (chars && trip->path[chars - 1] != '/')
		trip->path[chars++] = '/';
	stop.at.base = (int)chars;
	while (!rc) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return errno ? -1 : 0;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		name_chars = strlen(entry->d_name);
		if (chars + name_chars >= sizeof(trip->path)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(trip->path + chars, entry->d_name, name_chars + 1);
		stop.name = trip->path + chars;
		rc = stop_visit(trip, &stop);
		if (rc == FTW_SKIP_SIBLINGS && (trip->flags & FTW_ACTIONRETVAL))
			return 0;
	}
	return rc;
}

static int folder_visit(struct trip *trip, struct stop *stop)
{
	int fd = openat(stop->in, stop->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	bool actions = trip->flags & FTW_ACTIONRETVAL;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t chars = strlen(trip->path);
	int rc = 0, why;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return errno == EACCES ? tell(trip, stop, FTW_DNR) : -1;
	}
	if (!(trip->flags & FTW_DEPTH))
		rc = tell(trip, stop, FTW_D);
	if (!rc) {
		rc = cwd_follow(trip, dir);
		if (!rc)
			rc = entries_visit(trip, stop, dir);
	} else if (rc == FTW_SKIP_SUBTREE && actions) {
		rc = 0;
	}
	trip->path[chars] = '\0';
	why = errno;
	closedir(dir);
	errno = why;
	if (trip->flags & FTW_CHDIR && stop->in != AT_FDCWD && fchdir(stop->in) && !rc)
		rc = -1;
	if (!rc && (trip->flags & FTW_DEPTH))
		rc = tell(trip, stop, FTW_DP);
	return rc;
}

static int stop_visit(struct trip *trip, struct stop *stop)
{
	int rc = fstatat(stop->in, stop->name, &stop->st,
			 trip->flags & FTW_PHYS ? AT_SYMLINK_NOFOLLOW : 0);
	int is_new, actions = trip->flags & FTW_ACTIONRETVAL;

	if (rc) {
		if (errno != EACCES && errno != ENOENT)
			return -1;
		rc = fstatat(stop->in, stop->name, &stop->st, AT_SYMLINK_NOFOLLOW);
		rc = tell(trip, stop, rc || !S_ISLNK(stop->st.st_mode) ? FTW_NS : FTW_SLN);
	} else if (trip->flags & FTW_MOUNT && stop->st.st_dev != trip->device) {
		return 0;
	} else if (S_ISDIR(stop->st.st_mode)) {
		is_new = seen_add(trip, &stop->st);
		rc = is_new > 0 ? folder_visit(trip, stop) : is_new;
	} else {
		rc = tell(trip, stop, S_ISLNK(stop->st.st_mode) ? FTW_SL : FTW_F);
	}
	return actions && rc == FTW_SKIP_SUBTREE ? 0 : rc;
}

/* The walk begins at path; with FTW_CHDIR, in the folder that it is in. */
static int start(struct trip *trip, const char *path)
{
	size_t chars = strlen(path);
	struct stop stop = {.in = AT_FDCWD, .name = trip->path};
	char *slash;

	if (chars >= sizeof(trip->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(trip->path, path, chars + 1);
	while (chars > 1 && trip->path[chars - 1] == '/')
		trip->path[--chars] = '\0';
	slash = strrchr(trip->path, '/');
	stop.at.base = slash && slash[1] ? (int)(slash + 1 - trip->path) : 0;
	if (stat(trip->path, &stop.st) && lstat(trip->path, &stop.st))
		return -1;
	trip->device = stop.st.st_dev;
	if (trip->flags & FTW_CHDIR && stop.at.base) {
		char folder[PATH_MAX];

		memcpy(folder, trip->path, (size_t)stop.at.base);
		folder[stop.at.base] = '\0';
		if (chdir(folder))
			return -1;
		stop.name = trip->path + stop.at.base;
	}
	return stop_visit(trip, &stop);
}

static int __attribute__((noinline))
trip_make(const char *path, ftw_of ftw_told, nftw_of nftw_told, int flags)
{
	struct trip *trip = calloc(1, sizeof(*trip));
	int cwd = -1, rc = -1, why;

	if (!trip)
		return -1;
	trip->ftw = ftw_told;
	trip->nftw = nftw_told;
	trip->flags = flags;
	if (flags & FTW_CHDIR)
		cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cwd >= 0 || !(flags & FTW_CHDIR))
		rc = start(trip, path);
	why = errno;
	if (cwd >= 0) {
		if (fchdir(cwd) && !rc) {
			rc = -1;
			why = errno;
		}
		close(cwd);
	}
	free(trip->seen);
	free(trip);
	errno = why;
	return rc;
}

int nftw(const char *path, nftw_of told, int fds, int flags)
{
	return vb_view_is_near(AT_FDCWD, path) ? trip_make(path, NULL, told, flags)
					       : vb_next()->nftw(path, told, fds, flags);
}

int nftw64(const char *path, __nftw64_func_t told, int fds, int flags)
{
	return vb_view_is_near(AT_FDCWD, path) ? trip_make(path, NULL, (nftw_of)told, flags)
					       : vb_next()->nftw64(path, told, fds, flags);
}

int ftw(const char *path, ftw_of told, int fds)
{
	return vb_view_is_near(AT_FDCWD, path) ? trip_make(path, told, NULL, 0)
					       : vb_next()->ftw(path, told, fds);
}

int ftw64(const char *path, __ftw64_func_t told, int fds)
{
	return vb_view_is_near(AT_FDCWD, path) ? trip_make(path, (ftw_of)told, NULL, 0)
					       : vb_next()->ftw64(path, told, fds);
}

/* --- patterns --- */

static void glob_close(void *dir)
{
	closedir(dir);
}

static struct dirent *glob_read(void *dir)
{
	return readdir(dir);
}

static void *glob_open(const char *path)
{
	return opendir(path);
}

static int glob_stat(const char *path, struct stat *st)
{
	return stat(path, st);
}

static int glob_lstat(const char *path, struct stat *st)
{
	return lstat(path, st);
}

/* A pattern may lead to us whatever it begins with. */
int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *found)
{
	int rc;

	if (flags & GLOB_ALTDIRFUNC)
		return vb_next()->glob(pattern, flags, on_error, found);
	found->gl_closedir = glob_close;
	found->gl_readdir = glob_read;
	found->gl_opendir = glob_open;
	found->gl_stat = glob_stat;
	found->gl_lstat = glob_lstat;
	rc = vb_next()->glob(pattern, flags | GLOB_ALTDIRFUNC, on_error, found);
	found->gl_flags &= ~GLOB_ALTDIRFUNC;
	return rc;
}

int glob64(const char *pattern, int flags, int (*on_error)(const char *, int), glob64_t *found)
{
	return glob(pattern, flags, on_error, (glob_t *)found);
}
