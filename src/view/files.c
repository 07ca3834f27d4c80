/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "view/sight.h"

/* What is being made, until it has its name. */
#define UNNAMED ".new"

#define REAL_NETS "/sys/class/net"

/* The names of roots begin so; with the uid. */
#define ROOT_NAME "verbatim-view-%u-"

enum { MODE_FOLDER = 0755, MODE_FILE = 0644, FOLDERS_OPEN = 8, TRIES = 8 };
enum { PATHS = 2 * PATH_MAX + 1024 };

/* --- the folder --- */

int vb_view_base(char path[PATH_MAX])
{
	const char *const places[] = { "/dev/shm", getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"),
				       "/tmp" };

	for (unsigned i = 0; i < VB_ARRAY_LEN(places); i++) {
		if (!places[i] || access(places[i], W_OK | X_OK))
			continue;
		snprintf(path, PATH_MAX, "%s", places[i]);
		return 0;
	}
	return ENOENT;
}

static int one_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	remove(path);
	return 0;
}

static void tree_remove(const char *path)
{
	nftw(path, one_remove, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/*
 * Removes what keepers have left that were killed: nobody has the folder's lock, and no process was
 * shown it.
 */
static void dead_remove(const char *base)
{
	char begin[64], path[PATHS];
	DIR *dir = opendir(base);
	struct dirent *entry;
	struct stat st;

	snprintf(begin, sizeof(begin), ROOT_NAME, geteuid());
	while (dir && (entry = readdir(dir))) {
		int fd;

		if (strncmp(entry->d_name, begin, strlen(begin)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", base, entry->d_name);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB) &&
		    !vb_view_sight_any(path))
			tree_remove(path);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Makes one, and locks it. EAGAIN: another keeper took it for a dead one's before that. */
static int locked_make(struct vb_view_root *root, const char *base)
{
	struct stat made, found;
	int chars;

	chars = snprintf(root->path, sizeof(root->path), "%s/" ROOT_NAME "XXXXXX", base, geteuid());
	if (chars >= (int)sizeof(root->path))
		return ENAMETOOLONG;
	if (!mkdtemp(root->path))
		return errno;
	root->fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root->fd < 0)
		return errno == ENOENT ? EAGAIN : errno;
	/* Programs that become another user read it, too. */
	if (!flock(root->fd, LOCK_EX) && !fstat(root->fd, &made) && !stat(root->path, &found) &&
	    made.st_ino == found.st_ino && !fchmod(root->fd, MODE_FOLDER))
		return 0;
	close(root->fd);
	return EAGAIN;
}

int vb_view_root_make(struct vb_view_root *root)
{
	char base[PATH_MAX];
	int rc = vb_view_base(base);

	if (rc)
		return rc;
	dead_remove(base);
	rc = EAGAIN;
	for (unsigned i = 0; i < TRIES && rc == EAGAIN; i++)
		rc = locked_make(root, base);
	return rc;
}

void vb_view_root_remove(struct vb_view_root *root)
{
	tree_remove(root->path);
	close(root->fd);
}

/* --- entries --- */

static int parents_make(int fd, const char *path)
{
	char part[VB_VIEW_PATH_BYTES];
	const char *slash = path;

	while ((slash = strchr(slash, '/'))) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash++ - path), path);
		if (mkdirat(fd, part, MODE_FOLDER) && errno != EEXIST)
			return errno;
	}
	return 0;
}

static int content_put(int fd, const char *content, size_t bytes)
{
	int rc = write(fd, content, bytes) == (ssize_t)bytes ? 0 : errno ? errno : EIO;

	close(fd);
	return rc;
}

/* Makes it where nothing is. EEXIST: something is. */
static int make(int root_fd, const char *path, const struct vb_view_entry *entry)
{
	int fd;

	if (entry->kind == VB_VIEW_LINK || entry->kind == VB_VIEW_NODE)
		return symlinkat(entry->content, root_fd, path) ? errno : 0;
	fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE_FILE);
	return fd < 0 ? errno : content_put(fd, entry->content, entry->bytes);
}

static bool is_so(int root_fd, const struct vb_view_entry *entry)
{
	char now[VB_VIEW_TEXT_BYTES];
	ssize_t n;
	int fd;

	if (entry->kind == VB_VIEW_LINK || entry->kind == VB_VIEW_NODE) {
		n = readlinkat(root_fd, entry->path, now, sizeof(now));
	} else {
		fd = openat(root_fd, entry->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return false;
		n = read(fd, now, sizeof(now));
		close(fd);
	}
	return n == (ssize_t)entry->bytes && memcmp(now, entry->content, entry->bytes) == 0;
}

int vb_view_file_write(void *arg, const struct vb_view_entry *entry)
{
	const struct vb_view_root *root = arg;
	int rc = make(root->fd, entry->path, entry);

	if (rc == ENOENT) {
		rc = parents_make(root->fd, entry->path);
		return rc ? rc : make(root->fd, entry->path, entry);
	}
	if (rc != EEXIST || is_so(root->fd, entry))
		return rc == EEXIST ? 0 : rc;
	unlinkat(root->fd, UNNAMED, 0);
	rc = make(root->fd, UNNAMED, entry);
	if (rc)
		return rc;
	return renameat(root->fd, UNNAMED, root->fd, entry->path) ? errno : 0;
}

/* --- interfaces, which the kernel shows as well --- */

static const struct vb_view_device *behind(const struct vb_view_device *devices, unsigned count,
					   const char *interface)
{
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < devices[i].nets; k++) {
			if (!strcmp(devices[i].net[k].name, interface))
				return &devices[i];
		}
	}
	return NULL;
}

static int link_write(const struct vb_view_root *root, const char *path, const char *target)
{
	struct vb_view_entry entry = { VB_VIEW_LINK, path, target, strlen(target) };

	return vb_view_file_write((void *)root, &entry);
}

/* What the kernel has for an interface, all but its device, beside that. */
static int mirror(const struct vb_view_root *root, const char *interface, const char *real)
{
	char path[PATHS], target[PATHS];
	DIR *dir = opendir(real);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "sys/class/net/%s/%s", interface, entry->d_name);
		snprintf(target, sizeof(target), "%s/%s", real, entry->d_name);
		if (faccessat(root->fd, path, F_OK, AT_SYMLINK_NOFOLLOW))
			link_write(root, path, target);
	}
	if (dir)
		closedir(dir);
	return 0;
}

/* Removes from the device's own folder the interfaces that it does not have any more. */
static void prune_behind(const struct vb_view_root *root, const struct vb_view_device *device)
{
	char path[PATHS], folder[PATH_MAX + VB_VIEW_PATH_BYTES];
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices/%s/net", root->path, device->pci);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || behind(device, 1, entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		tree_remove(path);
	}
	if (dir)
		closedir(dir);
}

/* Removes the interfaces that are not there any more. */
static void prune(const struct vb_view_root *root, const struct vb_view_device *devices,
		  unsigned count)
{
	char path[PATHS], real[VB_VIEW_PATH_BYTES * 2];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/class/net", root->path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(real, sizeof(real), REAL_NETS "/%s", entry->d_name);
		snprintf(path, sizeof(path), "%s/sys/class/net/%s", root->path, entry->d_name);
		if (*entry->d_name == '.' || behind(devices, count, entry->d_name))
			continue;
		if (access(real, F_OK))
			unlink(path);
	}
	if (dir)
		closedir(dir);
	for (unsigned i = 0; i < count; i++)
		prune_behind(root, &devices[i]);
}

static int nets_write(const struct vb_view_root *root, const struct vb_view_device *devices,
		      unsigned count)
{
	char path[VB_VIEW_PATH_BYTES * 2], real[PATH_MAX];
	DIR *dir = opendir(REAL_NETS);
	struct dirent *entry;
	int rc = 0;

	while (!rc && dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), REAL_NETS "/%s", entry->d_name);
		if (*entry->d_name == '.' || entry->d_type != DT_LNK || !realpath(path, real))
			continue;
		if (behind(devices, count, entry->d_name))
			rc = mirror(root, entry->d_name, real);
		else
			rc = link_write(root, path + 1, real);
	}
	if (dir)
		closedir(dir);
	prune(root, devices, count);
	return rc;
}

int vb_view_files_write(const struct vb_view_root *root, const struct vb_view_device *devices,
			unsigned count)
{
	int rc = vb_view_tree(devices, count, vb_view_file_write, (void *)root);

	return rc ? rc : nets_write(root, devices, count);
}
