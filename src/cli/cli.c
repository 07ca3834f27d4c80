/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/words.h"

void vb_cli_error(const char *format, ...)
{
	va_list args;

	fputs("verbatim: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void vb_cli_unknown(const struct vb_words *words, const char *kind, const char *typed, size_t chars)
{
	char line[256];
	struct vb_text text = vb_text_in(line, sizeof(line));

	vb_words_add_unknown(&text, words, kind, NULL, typed, chars);
	vb_cli_error("%s", line);
}

/* Relative to the command: in the build tree; installed under the same prefix. */
static const char *const library_dirs[] = {"lib", "../lib/verbatim"};

/* The file of this command. If /proc is not mounted, the name that it was executed by. */
static int self_find(char self[PATH_MAX])
{
	const char *name = (const char *)getauxval(AT_EXECFN);
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

	if (n < 0)
		return name && realpath(name, self) ? 0 : ENOENT;
	self[n] = 0;
	return 0;
}

int vb_cli_library_dir(char dir[PATH_MAX])
{
	char self[PATH_MAX], path[2 * PATH_MAX];
	char *end;

	if (self_find(self))
		return ENOENT;
	end = strrchr(self, '/');
	if (!end)
		return ENOENT;
	*end = 0;
	for (unsigned i = 0; i < VB_ARRAY_LEN(library_dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s/libibverbs.so.1", self, library_dirs[i]);
		if (access(path, R_OK))
			continue;
		*strrchr(path, '/') = 0;
		return realpath(path, dir) ? 0 : ENOENT;
	}
	return ENOENT;
}

int vb_cli_file_probe(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	struct stat it;

	if (fd >= 0) {
		close(fd);
		unlink(name);
		return 0;
	}
	if (errno != EEXIST)
		return errno;
	if (stat(name, &it) == 0 && S_ISDIR(it.st_mode))
		return EISDIR;
	return access(name, W_OK) ? errno : 0;
}
