/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

static const char *const places[] = { "/sys", "/dev" };

#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* --- laying ours over what is there --- */

enum kind { NOTHING, FOLDER, LINK, OTHER };

static enum kind kind_at(int fd, const char *name)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return NOTHING;
	return S_ISDIR(st.st_mode) ? FOLDER : S_ISLNK(st.st_mode) ? LINK : OTHER;
}

/* A folder's entries, one after the other; NULL at the end. */
static const char *next(DIR *dir)
{
	struct dirent *entry;

	do {
		entry = readdir(dir);
	} while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	return entry ? entry->d_name : NULL;
}

static DIR *folder_read(int fd)
{
	int again = openat(fd, ".", OPEN_FOLDER);
	DIR *dir = again < 0 ? NULL : fdopendir(again);

	if (!dir && again >= 0)
		close(again);
	return dir;
}

/*
 * Has `fd` each name that `other` has? folders: and may all of other's be looked into, since they
 * are folders in both?
 */
static bool has_all(int fd, int other, bool folders)
{
	DIR *dir = folder_read(other);
	const char *name;
	bool all = true;

	while (dir && all && (name = next(dir))) {
		if (folders)
			all = kind_at(fd, name) == FOLDER && kind_at(other, name) == FOLDER;
		else
			all = kind_at(fd, name) != NOTHING;
	}
	if (dir)
		closedir(dir);
	return dir && all;
}

/* What `name` is in the working directory, at `to`, which is made for it. */
static int bind_at(const char *name, const char *to, enum kind kind)
{
	int fd;

	if (kind == FOLDER) {
		if (mkdir(to, 0755))
			return errno;
	} else {
		fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return errno;
		close(fd);
	}
	return mount(name, to, NULL, MS_BIND | MS_REC, NULL) ? errno : 0;
}

/* The same of an entry of the folder `fd`: a link is copied; one that stands for a node is it. */
static int entry_show(int fd, const char *name, const char *to, bool ours)
{
	enum kind kind = kind_at(fd, name);
	char target[PATH_MAX];
	ssize_t n;

	if (kind != LINK)
		return fchdir(fd) ? errno : bind_at(name, to, kind);
	n = readlinkat(fd, name, target, sizeof(target) - 1);
	if (n < 0)
		return errno;
	target[n] = 0;
	if (ours && !strncmp(target, "/dev/", 5))
		return bind_at(target, to, OTHER);
	return symlink(target, to) ? errno : 0;
}

/* Ours of device files: what stands for each takes its place. */
static int nodes_show(int fd, const char *to)
{
	DIR *dir = folder_read(fd);
	char path[2 * PATH_MAX];
	const char *name;
	int rc = !dir || mkdir(to, 0755) ? errno : 0;

	while (!rc && (name = next(dir))) {
		snprintf(path, sizeof(path), "%s/%s", to, name);
		rc = entry_show(fd, name, path, true);
	}
	if (dir)
		closedir(dir);
	return rc;
}

static int lay(const char *path, int ours);

/* A name of ours, which may be a folder's that is also there. */
static int ours_show(int real, int ours, const char *name, const char *to)
{
	bool both = kind_at(real, name) == FOLDER, nodes = !strncmp(to, places[1], 4);
	int below, rc;

	if (!both && !nodes)
		return entry_show(ours, name, to, true);
	below = openat(ours, name, OPEN_FOLDER);
	if (below < 0)
		return entry_show(ours, name, to, true);
	rc = both ? lay(to, below) : nodes_show(below, to);
	close(below);
	return rc;
}

/* A folder of our own over this one, in which everything of both is. */
static int cover(const char *path, int real, int ours)
{
	DIR *dirs[2] = { folder_read(real), folder_read(ours) };
	char to[PATH_MAX];
	const char *name;
	int rc = 0;

	if (!dirs[0] || !dirs[1])
		rc = errno;
	else if (mount("verbatim", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755"))
		rc = errno;
	while (!rc && (name = next(dirs[0]))) {
		bool both = kind_at(real, name) == FOLDER && kind_at(ours, name) == FOLDER;

		snprintf(to, sizeof(to), "%s/%s", path, name);
		if (both || kind_at(ours, name) == NOTHING)
			/* What has gone in the meantime, or may not be seen, is not shown. */
			entry_show(real, name, to, false);
	}
	while (!rc && (name = next(dirs[1]))) {
		snprintf(to, sizeof(to), "%s/%s", path, name);
		rc = ours_show(real, ours, name, to);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (dirs[i])
			closedir(dirs[i]);
	}
	return rc;
}

/* The folders that ours has, at those of the same names. */
static int each_lay(const char *path, int ours)
{
	DIR *dir = folder_read(ours);
	char to[PATH_MAX];
	const char *name;
	int rc = dir ? 0 : errno;

	while (!rc && (name = next(dir))) {
		int below = openat(ours, name, OPEN_FOLDER);

		snprintf(to, sizeof(to), "%s/%s", path, name);
		rc = below < 0 ? errno : lay(to, below);
		vb_fd_close(&below);
	}
	if (dir)
		closedir(dir);
	return rc;
}

/*
 * Shows our folder at path, together with what is there. A folder that has all names of the other
 * is shown as it is, and so stays alive; else it is put together from both.
 */
static int lay(const char *path, int ours)
{
	int real = open(path, OPEN_FOLDER), rc;

	if (real < 0)
		return errno;
	if (has_all(real, ours, true))
		rc = each_lay(path, ours);
	else if (has_all(ours, real, false))
		rc = fchdir(ours) || mount(".", path, NULL, MS_BIND | MS_REC, NULL) ? errno : 0;
	else
		rc = cover(path, real, ours);
	close(real);
	return rc;
}

/* What is mounted below these must not be seen outside. */
static int alone_make(void)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(places); i++) {
		if (!mount(NULL, places[i], NULL, MS_REC | MS_PRIVATE, NULL))
			continue;
		/* It is no mount of its own, but a folder in another. */
		if (errno == EINVAL && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			continue;
		return errno;
	}
	return 0;
}

static int all_lay(int root)
{
	int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), rc = cwd < 0 ? errno : alone_make();

	for (unsigned i = 0; i < VB_ARRAY_LEN(places) && !rc; i++) {
		int ours = openat(root, places[i] + 1, OPEN_FOLDER);

		rc = ours < 0 ? errno : lay(places[i], ours);
		vb_fd_close(&ours);
	}
	if (cwd >= 0 && fchdir(cwd) && !rc)
		rc = errno;
	vb_fd_close(&cwd);
	return rc;
}

/* --- namespaces --- */

bool vb_view_mount_is_free(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &head, data) &&
	       (data[0].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

bool vb_view_mount_is_shown(const char *root)
{
	char path[PATH_MAX];
	struct stat ours, shown;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs/abi_version", root);
	return !stat(path, &ours) && !stat("/sys/class/infiniband_verbs/abi_version", &shown) &&
	       ours.st_ino == shown.st_ino && ours.st_dev == shown.st_dev;
}

int vb_view_mount(const char *root, int user_ns_fd, enum vb_view_step *step)
{
	int fd, rc;

	*step = VB_VIEW_STEP_USER;
	if (user_ns_fd >= 0 && setns(user_ns_fd, CLONE_NEWUSER))
		return errno;
	*step = VB_VIEW_STEP_NAMESPACE;
	if (unshare(CLONE_NEWNS))
		return errno;
	*step = VB_VIEW_STEP_MOUNT;
	fd = open(root, OPEN_FOLDER);
	rc = fd < 0 ? errno : all_lay(fd);
	vb_fd_close(&fd);
	return rc;
}

static int process_write(pid_t pid, const char *name, const char *format, unsigned id)
{
	char path[64], text[64];
	int chars, fd, rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	chars = snprintf(text, sizeof(text), format, id, id);
	if (write(fd, text, (size_t)chars) != chars)
		rc = errno;
	close(fd);
	return rc;
}

/* A child waits in it until it is kept otherwise. */
static pid_t in_it(int done[2])
{
	pid_t pid = fork();
	char word;

	if (pid)
		return pid;
	word = (char)(unshare(CLONE_NEWUSER) ? errno : 0);
	if (write(done[1], &word, 1) == 1)
		pause();
	_exit(0);
}

int vb_view_user_ns_make(int *fd)
{
	char path[64], word = EIO;
	int done[2], rc;
	pid_t pid;

	*fd = VB_FD_NONE;
	if (pipe2(done, O_CLOEXEC))
		return errno;
	pid = in_it(done);
	rc = pid < 0 ? errno : read(done[0], &word, 1) == 1 ? word : EIO;
	close(done[0]);
	close(done[1]);
	/* Groups cannot be mapped before it is certain that none can be dropped. */
	if (!rc)
		rc = process_write(pid, "setgroups", "deny", 0);
	if (!rc)
		rc = process_write(pid, "uid_map", "%u %u 1", geteuid());
	if (!rc)
		rc = process_write(pid, "gid_map", "%u %u 1", getegid());
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (!rc) {
		*fd = open(path, O_RDONLY | O_CLOEXEC);
		rc = *fd < 0 ? errno : 0;
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return rc;
}
