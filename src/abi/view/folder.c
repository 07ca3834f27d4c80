/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Folders listed. One that the real tree has is listed as it is, and then what only ROOT has in it,
 * which is read when it is opened. A program's DIR is always the C library's own.
 */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "abi/view/next.h"
#include "abi/view/place.h"

/* Far more than ROOT ever has in a folder. */
enum { NAMES_MAX = 4096 };

/* A DIR that needs more than the C library does. It is used again, never freed. */
struct listing {
	struct listing *next;
	_Atomic(DIR *) dir; /* NULL: of none */
	struct dirent *names;
	unsigned count, at;
	bool is_past;	 /* the real ones have been told */
	bool is_devices; /* of ROOT's, where files stand for devices */
};

static _Atomic(struct listing *) listings;
static atomic_uint used;

static struct listing *listing_of(DIR *dir)
{
	struct listing *listing;

	if (!atomic_load_explicit(&used, memory_order_relaxed))
		return NULL;
	for (listing = atomic_load(&listings); listing; listing = listing->next)
		if (atomic_load_explicit(&listing->dir, memory_order_relaxed) == dir)
			return listing;
	return NULL;
}

static struct listing *listing_new(DIR *dir)
{
	struct listing *listing;

	for (listing = atomic_load(&listings); listing; listing = listing->next) {
		DIR *none = NULL;

		if (atomic_compare_exchange_strong(&listing->dir, &none, dir))
			break;
	}
	if (!listing) {
		listing = calloc(1, sizeof(*listing));
		if (!listing)
			return NULL;
		atomic_init(&listing->dir, dir);
		listing->next = atomic_load(&listings);
		while (!atomic_compare_exchange_weak(&listings, &listing->next, listing))
			;
	}
	atomic_fetch_add(&used, 1);
	return listing;
}

static void listing_end(struct listing *listing)
{
	free(listing->names);
	listing->names = NULL;
	listing->count = listing->at = 0;
	listing->is_past = listing->is_devices = false;
	atomic_fetch_sub(&used, 1);
	atomic_store(&listing->dir, NULL);
}

static bool is_new(DIR *real, const char *name)
{
	struct stat st;

	return strcmp(name, ".") && strcmp(name, "..") &&
	       vb_next()->fstatat(dirfd(real), name, &st, AT_SYMLINK_NOFOLLOW);
}

/* A place in the second part, as telldir(3) says it; the real ones are not negative. */
static long second_part(unsigned at)
{
	return -(long)at - 1;
}

static bool name_add(struct listing *listing, const struct dirent *entry)
{
	unsigned n = listing->count;

	/* The room doubles when it is full. */
	if (!(n & (n - 1))) {
		size_t room = n ? 2 * n : 1;
		struct dirent *names = realloc(listing->names, room * sizeof(*names));

		if (!names)
			return false;
		listing->names = names;
	}
	memcpy(&listing->names[n], entry, entry->d_reclen);
	listing->names[n].d_off = second_part(n + 1);
	listing->count++;
	return true;
}

static bool names_add(struct listing *listing, DIR *ours, DIR *real)
{
	const struct dirent *entry;

	while (listing->count < NAMES_MAX) {
		entry = vb_next()->readdir(ours);
		if (!entry)
			break;
		if (is_new(real, entry->d_name) && !name_add(listing, entry))
			return false;
	}
	return true;
}

/* What in ROOT's /dev stands for a device is one. */
static void device_show(struct dirent *entry)
{
	if (entry->d_type == DT_REG || entry->d_type == DT_LNK)
		entry->d_type = DT_CHR;
}

/* Lists ROOT's names as well, if it has that folder. */
static bool merge(DIR *dir, const char *path)
{
	char in_root[VB_VIEW_PLACE_CHARS];
	bool is_whole, is_dev = !strncmp(path, "/dev", 4);
	struct listing *listing;
	DIR *ours;

	if (!vb_view_root_path(path, in_root))
		return true;
	ours = vb_next()->opendir(in_root);
	if (!ours)
		return true;
	listing = listing_new(dir);
	is_whole = listing && names_add(listing, ours, dir);
	vb_next()->closedir(ours);
	for (unsigned i = 0; is_whole && is_dev && i < listing->count; i++)
		device_show(&listing->names[i]);
	if (listing && (!is_whole || !listing->count))
		listing_end(listing);
	return is_whole;
}

static bool devices_note(DIR *dir)
{
	struct listing *listing = listing_new(dir);

	if (listing)
		listing->is_devices = true;
	return listing;
}

static DIR *prepare(DIR *dir)
{
	char path[VB_OVERLAY_CHARS];
	int before = errno;
	bool in_root, is_ready = true;

	if (!dir)
		return NULL;
	vb_view_folder_opened(dirfd(dir));
	if (!vb_view_fd_path(dirfd(dir), path, &in_root)) {
		if (!in_root)
			is_ready = merge(dir, path);
		else if (!strncmp(path, "/dev/", 5))
			is_ready = devices_note(dir);
	}
	errno = before;
	if (is_ready)
		return dir;
	vb_next()->closedir(dir);
	errno = ENOMEM;
	return NULL;
}

static DIR *__attribute__((noinline)) opendir_near(const char *path)
{
	struct vb_view_place place;
	int dirfd = AT_FDCWD;

	path = vb_view_place(&dirfd, path, true, &place);
	return path ? prepare(vb_next()->opendir(path)) : NULL;
}

DIR *opendir(const char *path)
{
	return vb_view_is_near(AT_FDCWD, path) ? opendir_near(path) : vb_next()->opendir(path);
}

DIR *fdopendir(int fd)
{
	DIR *dir = vb_next()->fdopendir(fd);

	return vb_view_is_near(fd, ".") ? prepare(dir) : dir;
}

/* --- what is in it --- */

/* The real entry, or NULL at the end or with errno set. */
static struct dirent *real_next(struct listing *listing, DIR *dir)
{
	int before = errno;
	struct dirent *entry;

	errno = 0;
	entry = vb_next()->readdir(dir);
	if (entry && listing->is_devices)
		device_show(entry);
	if (!entry && !errno) {
		listing->is_past = true;
		listing->at = 0;
	}
	if (!errno)
		errno = before;
	return entry;
}

static struct dirent *entry_next(struct listing *listing, DIR *dir)
{
	struct dirent *entry;

	if (!listing->is_past) {
		entry = real_next(listing, dir);
		if (!listing->is_past)
			return entry;
	}
	return listing->at < listing->count ? &listing->names[listing->at++] : NULL;
}

struct dirent *readdir(DIR *dir)
{
	struct listing *listing = listing_of(dir);

	return listing ? entry_next(listing, dir) : vb_next()->readdir(dir);
}

struct dirent64 *readdir64(DIR *dir)
{
	struct listing *listing = listing_of(dir);

	return listing ? (struct dirent64 *)entry_next(listing, dir) : vb_next()->readdir64(dir);
}

static int entry_copy(struct listing *listing, DIR *dir, void *to, void **result)
{
	int before = errno, rc;
	struct dirent *entry;

	errno = 0;
	entry = entry_next(listing, dir);
	rc = entry ? 0 : errno;
	errno = before;
	if (entry)
		memcpy(to, entry, entry->d_reclen);
	*result = entry ? to : NULL;
	return rc;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
int readdir_r(DIR *dir, struct dirent *to, struct dirent **result)
{
	struct listing *listing = listing_of(dir);

	return listing ? entry_copy(listing, dir, to, (void **)result)
		       : vb_next()->readdir_r(dir, to, result);
}

int readdir64_r(DIR *dir, struct dirent64 *to, struct dirent64 **result)
{
	struct listing *listing = listing_of(dir);

	return listing ? entry_copy(listing, dir, to, (void **)result)
		       : vb_next()->readdir64_r(dir, to, result);
}
#pragma GCC diagnostic pop

void rewinddir(DIR *dir)
{
	struct listing *listing = listing_of(dir);

	if (listing)
		listing->is_past = false;
	vb_next()->rewinddir(dir);
}

long telldir(DIR *dir)
{
	struct listing *listing = listing_of(dir);

	return listing && listing->is_past ? second_part(listing->at) : vb_next()->telldir(dir);
}

void seekdir(DIR *dir, long at)
{
	struct listing *listing = listing_of(dir);

	if (listing) {
		listing->is_past = at < 0;
		listing->at = at < 0 ? (unsigned)(-at - 1) : 0;
	}
	if (!listing || at >= 0)
		vb_next()->seekdir(dir, at);
}

int closedir(DIR *dir)
{
	struct listing *listing = listing_of(dir);

	if (listing)
		listing_end(listing);
	return vb_next()->closedir(dir);
}

/* --- all of it at once: within the C library, that is done by what we cannot stand before --- */

struct scan {
	struct dirent **entries;
	size_t count;
};

static void scan_free(struct scan *scan)
{
	while (scan->count)
		free(scan->entries[--scan->count]);
	free(scan->entries);
	scan->entries = NULL;
}

static bool scan_add(struct scan *scan, const struct dirent *entry)
{
	struct dirent **entries = scan->entries;
	size_t n = scan->count;

	if (!(n & (n - 1))) {
		entries = realloc(entries, (n ? 2 * n : 1) * sizeof(*entries));
		if (!entries)
			return false;
		scan->entries = entries;
	}
	entries[n] = malloc(entry->d_reclen);
	if (!entries[n])
		return false;
	memcpy(entries[n], entry, entry->d_reclen);
	scan->count++;
	return true;
}

/* Returns an errno value. */
static int scan_fill(struct scan *scan, DIR *dir, int (*filter)(const struct dirent *))
{
	struct dirent *entry;

	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return errno;
		if ((!filter || filter(entry)) && !scan_add(scan, entry))
			return ENOMEM;
	}
}

static int __attribute__((noinline))
scandir_near(int dirfd, const char *path, struct dirent ***entries,
	     int (*filter)(const struct dirent *),
	     int (*compare)(const struct dirent **, const struct dirent **))
{
	int before = errno,
	    fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK), rc;
	struct scan scan = {NULL, 0};
	DIR *dir;

	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	if (!dir) {
		rc = errno;
		close(fd);
		errno = rc;
		return -1;
	}
	rc = scan_fill(&scan, dir, filter);
	closedir(dir);
	if (rc) {
		scan_free(&scan);
		errno = rc;
		return -1;
	}
	errno = before;
	if (compare && scan.count)
		qsort(scan.entries, scan.count, sizeof(*scan.entries),
		      (int (*)(const void *, const void *))compare);
	*entries = scan.entries;
	return (int)scan.count;
}

int scandirat(int dirfd, const char *path, struct dirent ***entries,
	      int (*filter)(const struct dirent *),
	      int (*compare)(const struct dirent **, const struct dirent **))
{
	return vb_view_is_near(dirfd, path)
		       ? scandir_near(dirfd, path, entries, filter, compare)
		       : vb_next()->scandirat(dirfd, path, entries, filter, compare);
}

int scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
	    int (*compare)(const struct dirent **, const struct dirent **))
{
	return vb_view_is_near(AT_FDCWD, path)
		       ? scandir_near(AT_FDCWD, path, entries, filter, compare)
		       : vb_next()->scandir(path, entries, filter, compare);
}

typedef int (*filter_of)(const struct dirent *);
typedef int (*compare_of)(const struct dirent **, const struct dirent **);

int scandirat64(int dirfd, const char *path, struct dirent64 ***entries,
		int (*filter)(const struct dirent64 *),
		int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	return vb_view_is_near(dirfd, path)
		       ? scandir_near(dirfd, path, (struct dirent ***)entries, (filter_of)filter,
				      (compare_of)compare)
		       : vb_next()->scandirat64(dirfd, path, entries, filter, compare);
}

int scandir64(const char *path, struct dirent64 ***entries, int (*filter)(const struct dirent64 *),
	      int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	return vb_view_is_near(AT_FDCWD, path)
		       ? scandir_near(AT_FDCWD, path, (struct dirent ***)entries, (filter_of)filter,
				      (compare_of)compare)
		       : vb_next()->scandir64(path, entries, filter, compare);
}
