/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what each function that takes a path says of each path, for tests/clients/view_preload.sh,
 * which compares what it says with a view by preload and with the same files in their true places.
 * What cannot be the same in both (numbers of inodes and devices, sizes of folders) is left out.
 *
 *   view_calls PATHS PATTERNS    files of lines
 */

/* With it, headers make one of two names below. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LINES_MAX = 4096, LINE_BYTES = 1024 };

/* Lines that are sorted before they are printed: no order is promised of what is in a folder. */
static char lines[LINES_MAX][LINE_BYTES];
static unsigned count;

#define ADD(...) snprintf(lines[count < LINES_MAX ? count++ : 0], LINE_BYTES, __VA_ARGS__)

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void lines_print(void)
{
	qsort(lines, count, LINE_BYTES, compare);
	for (unsigned i = 0; i < count; i++)
		printf("\t%s\n", lines[i]);
	count = 0;
}

static void count_print(void)
{
	if (errno != ELOOP)
		printf("\t%u\n", count);
	count = 0;
}

static const char *now; /* the path that it is about */

static void say(const char *call, long rc)
{
	printf("%s %s: %s\n", call, now, rc < 0 ? strerrorname_np(errno) : "ok");
}

static void say_stat(const char *call, int rc, const struct stat *st)
{
	say(call, rc);
	if (!rc && S_ISDIR(st->st_mode))
		printf("\tfolder %o, %u\n", st->st_mode & 07777, st->st_uid);
	else if (!rc)
		printf("\t%o, %u, %lu links, %lu octets, rdev %lx, changed %ld\n", st->st_mode,
		       st->st_uid, (unsigned long)st->st_nlink, (unsigned long)st->st_size,
		       (unsigned long)st->st_rdev, S_ISCHR(st->st_mode) ? 0 : st->st_mtime);
}

static void say_content(const char *call, int fd)
{
	char text[256];
	ssize_t n;
	struct stat st;

	say(call, fd);
	if (fd < 0)
		return;
	say_stat(call, fstat(fd, &st), &st);
	n = S_ISDIR(st.st_mode) ? 0 : read(fd, text, sizeof(text));
	if (n > 0)
		printf("\t%.*s", (int)n, text);
	close(fd);
}

static void say_text(const char *call, char *text)
{
	say(call, text ? 0 : -1);
	if (text)
		printf("\t%s\n", text);
}

/* --- by path --- */

static void try_open(void)
{
	int (*open_2)(const char *, int) = dlsym(RTLD_DEFAULT, "__open_2");
	int (*openat_2)(int, const char *, int) = dlsym(RTLD_DEFAULT, "__openat_2");
	int fd;

	say_content("open", open(now, O_RDONLY));
	say_content("open64", open64(now, O_RDONLY));
	say_content("openat", openat(AT_FDCWD, now, O_RDONLY));
	say_content("openat64", openat64(AT_FDCWD, now, O_RDONLY | O_CLOEXEC));
	say_content("__open_2", open_2(now, O_RDONLY));
	say_content("__openat_2", openat_2(AT_FDCWD, now, O_RDONLY));
	say_content("open folder", open(now, O_RDONLY | O_DIRECTORY));
	say_content("open nofollow", open(now, O_RDONLY | O_NOFOLLOW));
	fd = open(now, O_PATH | O_NOFOLLOW);
	say("open path", fd);
	close(fd);
	fd = open(now, O_RDWR);
	say("open to write", fd);
	close(fd);
}

static void say_stream(const char *call, FILE *file)
{
	char text[256];

	say(call, file ? 0 : -1);
	if (file && fgets(text, sizeof(text), file))
		printf("\t%s", text);
	if (file)
		fclose(file);
}

static void try_stream(void)
{
	say_stream("fopen", fopen(now, "r"));
	say_stream("fopen64", fopen64(now, "r"));
	say_stream("freopen", freopen(now, "r", fopen("/etc/passwd", "r")));
	say_stream("freopen64", freopen64(now, "r", fopen("/etc/passwd", "r")));
}

static void try_old_stat(const char *name, struct stat *st)
{
	int (*function)(int, const char *, struct stat *) = dlsym(RTLD_DEFAULT, name);

	/* The C library's is for old programs only. */
	if (!function)
		function = dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5");
	if (function)
		say_stat(name, function(1, now, st), st);
}

static void try_stat(void)
{
	struct statx stx;
	struct stat st;
	int rc;

	say_stat("stat", stat(now, &st), &st);
	say_stat("stat64", stat64(now, (void *)&st), &st);
	say_stat("lstat", lstat(now, &st), &st);
	say_stat("lstat64", lstat64(now, (void *)&st), &st);
	say_stat("fstatat", fstatat(AT_FDCWD, now, &st, 0), &st);
	say_stat("fstatat64", fstatat64(AT_FDCWD, now, (void *)&st, AT_SYMLINK_NOFOLLOW), &st);
	try_old_stat("__xstat", &st);
	try_old_stat("__lxstat", &st);
	rc = statx(AT_FDCWD, now, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &stx);
	say("statx", rc);
	if (!rc)
		printf("\t%o %x:%x\n", stx.stx_mode, stx.stx_rdev_major, stx.stx_rdev_minor);
	say("statx, links followed", statx(AT_FDCWD, now, 0, STATX_BASIC_STATS, &stx));
}

static void try_access(void)
{
	static const int modes[] = { F_OK, R_OK, W_OK, X_OK, R_OK | W_OK };

	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		say("access", access(now, modes[i]));
		say("faccessat", faccessat(AT_FDCWD, now, modes[i], 0));
		say("faccessat eff", faccessat(AT_FDCWD, now, modes[i], AT_EACCESS));
		say("euidaccess", euidaccess(now, modes[i]));
		say("eaccess", eaccess(now, modes[i]));
	}
	say("faccessat nofollow", faccessat(AT_FDCWD, now, F_OK, AT_SYMLINK_NOFOLLOW));
}

static void try_link(void)
{
	ssize_t (*chk)(const char *, char *, size_t, size_t) =
		dlsym(RTLD_DEFAULT, "__readlink_chk");
	char *(*real_chk)(const char *, char *, size_t) = dlsym(RTLD_DEFAULT, "__realpath_chk");
	char text[PATH_MAX];
	ssize_t n = readlink(now, text, sizeof(text));

	say("readlink", n);
	if (n >= 0)
		printf("\t%.*s\n", (int)n, text);
	n = readlinkat(AT_FDCWD, now, text, 5);
	say("readlinkat, short", n);
	if (n >= 0)
		printf("\t%.*s\n", (int)n, text);
	say("__readlink_chk", chk(now, text, sizeof(text), sizeof(text)));
	say_text("realpath", realpath(now, text));
	say_text("realpath NULL", realpath(now, NULL));
	say_text("__realpath_chk", real_chk(now, text, sizeof(text)));
	say_text("canonicalize_file_name", canonicalize_file_name(now));
}

static void try_other(void)
{
	struct statvfs stv;
	struct statfs st;
	char text[64];
	int fd = inotify_init1(IN_CLOEXEC);

	say("statfs", statfs(now, &st));
	say("statfs64", statfs64(now, (void *)&st));
	say("statvfs", statvfs(now, &stv));
	say("statvfs64", statvfs64(now, (void *)&stv));
	say("inotify_add_watch", inotify_add_watch(fd, now, IN_MODIFY));
	say("getxattr", getxattr(now, "user.none", text, sizeof(text)));
	say("lgetxattr", lgetxattr(now, "security.none", text, sizeof(text)));
	say("listxattr", listxattr(now, NULL, 0) < 0 ? -1 : 0);
	say("llistxattr", llistxattr(now, NULL, 0) < 0 ? -1 : 0);
	close(fd);
}

/* --- folders --- */

/* A file system may not know types, and that of a device is said by a view by preload only. */
static void entry_add(const struct dirent *entry)
{
	int type = entry->d_type;

	ADD("%s %s", entry->d_name,
	    type == DT_DIR ? "folder" : type == DT_LNK ? "link" : "other");
}

static void say_folder(const char *call, DIR *dir)
{
	long half = -1;
	unsigned n = 0, again = 0;
	struct dirent *entry;

	say(call, dir ? 0 : -1);
	if (!dir)
		return;
	for (n = 0; (entry = readdir(dir)); n++)
		entry_add(entry);
	lines_print();
	rewinddir(dir);
	for (unsigned i = 0; readdir64(dir); i++)
		if (i == n / 2)
			half = telldir(dir);
	if (half != -1) {
		seekdir(dir, half);
		while (readdir(dir))
			again++;
		printf("\tof %u entries, %u are behind the one in the middle\n", n, again);
	}
	closedir(dir);
}

static void say_folder_r(void)
{
	struct dirent room, *entry = NULL;
	DIR *dir = opendir(now);

	if (!dir)
		return;
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	while (!readdir_r(dir, &room, &entry) && entry)
		entry_add(entry);
	say("readdir_r", 0);
	lines_print();
	closedir(dir);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void try_scan(void)
{
	struct dirent **entries;
	struct dirent64 **entries64;
	int n = scandir(now, &entries, not_hidden, alphasort);

	say("scandir", n);
	for (int i = 0; i < n; i++)
		printf("\t%s\n", entries[i]->d_name);
	n = scandir64(now, &entries64, NULL, alphasort64);
	say("scandir64", n);
	for (int i = 0; i < n; i++)
		printf("\t%s\n", entries64[i]->d_name);
	n = scandirat(AT_FDCWD, now, &entries, NULL, alphasort);
	say("scandirat", n);
	for (int i = 0; i < n; i++)
		printf("\t%s\n", entries[i]->d_name);
}

/* Calls by a descriptor of the folder, by its name, and by what leads out of it. */
static void try_at(void)
{
	int fd = open(now, O_RDONLY | O_DIRECTORY), dup_fd;
	char text[PATH_MAX];
	DIR *dir = opendir(now);
	struct dirent *entry;
	struct stat st;

	if (fd < 0 || !dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		int rc = fstatat(dirfd(dir), entry->d_name, &st, 0);
		ssize_t n = readlinkat(fd, entry->d_name, text, sizeof(text));

		ADD("%s: stat %o, link %.*s", entry->d_name, rc ? errno : st.st_mode & S_IFMT,
		    n < 0 ? 0 : (int)n, text);
	}
	closedir(dir);
	lines_print();
	dup_fd = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	say_content("openat ..", openat(dup_fd, "..", O_RDONLY));
	say_folder("fdopendir ..", fdopendir(openat(dup_fd, "..", O_RDONLY | O_DIRECTORY)));
	say_folder("fdopendir", fdopendir(dup_fd));
	close(fd);
}

static void try_cwd(const char *home)
{
	char path[PATH_MAX];
	int fd, rc = chdir(now);
	FILE *file;

	say("chdir", rc);
	if (rc)
		return;
	say_text("getcwd", getcwd(path, sizeof(path)));
	say_text("getcwd, just enough", getcwd(path, strlen(path) + 1));
	say_text("getcwd, too short", getcwd(path, strlen(path)));
	say_text("getcwd NULL", getcwd(NULL, 0));
	say_text("get_current_dir_name", get_current_dir_name());
	say_text("realpath .", realpath(".", NULL));
	say_text("realpath ..", realpath("..", NULL));
	say_folder("opendir .", opendir("."));
	file = fopen("guid", "r");
	say_stream("fopen guid", file);
	say("access ../../class", access("../../class", F_OK));
	say("chdir ..", chdir(".."));
	say_text("getcwd ..", getcwd(path, sizeof(path)));
	if (chdir(home))
		return;
	fd = open(now, O_RDONLY | O_DIRECTORY);
	say("fchdir", fchdir(fd));
	close(fd);
	say_text("getcwd by fchdir", getcwd(path, sizeof(path)));
	say("back", chdir(home));
}

/* --- trees --- */

static int told(const char *path, const struct stat *st, int type, struct FTW *at)
{
	ADD("%s %d %d %d %o", path, type, at->base, at->level, st->st_mode & S_IFMT);
	return 0;
}

static int told_short(const char *path, const struct stat *st, int type)
{
	ADD("%s %d", path, type);
	return 0;
}

static int in_folder(const char *path, const struct stat *st, int type, struct FTW *at)
{
	struct stat again;

	ADD("%s %d %s", path, type, lstat(path + at->base, &again) ? "not here" : "here");
	return 0;
}

static void try_tree(void)
{
	struct stat st;

	/* All of a large tree is of no use here. */
	if (!strcmp(now, "/") || !strcmp(now, "/dev") ||
	    (!lstat(now, &st) && S_ISLNK(st.st_mode)))
		return;
	say("nftw", nftw(now, told, 5, FTW_PHYS));
	lines_print();
	say("nftw64, folders last", nftw64(now, (__nftw64_func_t)told, 5, FTW_PHYS | FTW_DEPTH));
	lines_print();
	say("nftw, in folders", nftw(now, in_folder, 5, FTW_PHYS | FTW_CHDIR));
	lines_print();
	/* By which way a folder is met first, and what is before a link in a circle, is chance. */
	errno = 0;
	say("nftw, links followed", nftw(now, told, 5, 0));
	count_print();
	errno = 0;
	say("ftw", ftw(now, told_short, 5));
	count_print();
}

static void try_glob(const char *pattern)
{
	glob_t found = { 0 };
	int rc = glob(pattern, GLOB_MARK, NULL, &found);

	printf("glob %s: %d\n", pattern, rc);
	for (size_t i = 0; !rc && i < found.gl_pathc; i++)
		printf("\t%s\n", found.gl_pathv[i]);
	globfree(&found);
}

static void try(const char *home)
{
	try_open();
	try_stream();
	try_stat();
	try_access();
	try_link();
	try_other();
	say_folder("opendir", opendir(now));
	say_folder_r();
	try_scan();
	try_at();
	try_cwd(home);
	try_tree();
}

static void each(const char *name, void (*use)(const char *line))
{
	char line[PATH_MAX];
	FILE *file = fopen(name, "r");

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		use(line);
	}
	if (file)
		fclose(file);
}

static char home[PATH_MAX];

static void use_path(const char *line)
{
	now = line;
	try(home);
}

/* As a constructor of a library's would, before others have run. */
static void __attribute__((constructor)) early(void)
{
	printf("early: %d\n", access("/sys/class/infiniband/v0/guid", R_OK));
}

int main(int argc, char **argv)
{
	if (argc != 3 || !getcwd(home, sizeof(home)))
		return 2;
	each(argv[1], use_path);
	each(argv[2], try_glob);
	return 0;
}
