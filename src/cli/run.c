/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "link/fault.h"
#include "run/env.h"

#define DEV_LIBRARY "libverbatim_dev.so.1"

/* One without an argument is a word, which is there or not. */
struct option {
	const char *name, *variable, *argument, *help;
	const char *no_file; /* of FILEs: the value that names none */
};

/* clang-format off */
static const struct option options[] = {
	{ "--fault", "VERBATIM_FAULT", "TEXT",
	  "such as loss=1%,dup=1%,reorder=5%,corrupt=0.1%,delay=1ms,seed=7" },
	{ "--pcap",  "VERBATIM_PCAP",  "FILE",
	  "record every packet; %p stands for the process id", "" },
	{ "--log",   "VERBATIM_LOG",   "FILE",
	  "say what goes wrong; 'stderr' for the terminal", "stderr" },
	{ "--dev",   NULL,             NULL,
	  "show a device file to programs that look for one (UCX, Open MPI)" },
};
/* clang-format on */

static int usage(FILE *out, int status)
{
	fputs("usage: verbatim run [OPTIONS] [--] CMD [ARGS]\n\n", out);
	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++)
		fprintf(out, "  %-7s %-4s  %s\n", options[i].name,
			options[i].argument ? options[i].argument : "", options[i].help);
	return status;
}

/* By its name, to which "=VALUE" may be joined if it takes one. */
static const struct option *option_find(const char *word)
{
	size_t name_chars = strcspn(word, "=");

	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++) {
		const struct option *option = &options[i];

		if (strlen(option->name) == name_chars &&
		    !strncmp(word, option->name, name_chars) &&
		    (option->argument || !word[name_chars]))
			return option;
	}
	return NULL;
}

/* Adds to a variable that is a list of paths, in front of what was there or behind it. */
static int list_add(const char *variable, const char *path, bool in_front)
{
	const char *before = getenv(variable);
	char *list;
	int rc;

	if (!before || !*before)
		return setenv(variable, path, 1) ? errno : 0;
	if (asprintf(&list, "%s:%s", in_front ? path : before, in_front ? before : path) < 0)
		return ENOMEM;
	rc = setenv(variable, list, 1) ? errno : 0;
	free(list);
	return rc;
}

/*
 * Our folder first, then what was there: the program may need other libraries from it. Behind what
 * is preloaded already, since a sanitizer's library wants to be the first.
 */
static int libraries_set(bool dev)
{
	char dir[PATH_MAX], path[PATH_MAX + sizeof(DEV_LIBRARY)];
	int rc = vb_cli_library_dir(dir);

	if (rc) {
		vb_cli_error("libibverbs.so.1 is neither in lib/ beside this command nor in "
			     "../lib/verbatim");
		return rc;
	}
	snprintf(path, sizeof(path), "%s/" DEV_LIBRARY, dir);
	rc = list_add("LD_LIBRARY_PATH", dir, true);
	return rc || !dev ? rc : list_add("LD_PRELOAD", path, false);
}

/* Whether a file can be made there or written to; not by trying, it may be a pipe. 0 or errno. */
static int file_check(const char *path)
{
	const char *slash = strrchr(path, '/');
	int folder_chars = slash ? (int)(slash - path) + 1 : 0;
	char folder[PATH_MAX];
	struct stat found;

	if (!stat(path, &found))
		return S_ISDIR(found.st_mode) ? EISDIR : access(path, W_OK) ? errno : 0;
	/* Of "%p" each process makes its own number. */
	if (errno != ENOENT || (slash && memchr(path, '%', (size_t)folder_chars)))
		return errno == ENOENT ? 0 : errno;
	snprintf(folder, sizeof(folder), "%.*s", folder_chars, path);
	return access(*folder ? folder : ".", W_OK | X_OK) ? errno : 0;
}

static bool files_ok(void)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++) {
		const struct option *option = &options[i];
		const char *path = option->no_file ? getenv(option->variable) : NULL;
		int rc = path && *path && strcmp(path, option->no_file) ? file_check(path) : 0;

		if (rc) {
			vb_cli_error("%s: %s: %s", option->variable, path, strerror(rc));
			return false;
		}
	}
	return true;
}

/* The library has nobody to complain to: the program would find no device, and not know why. */
static bool settings_ok(void)
{
	struct vb_fault fault;
	struct vb_env env;
	const char *bad;

	if (vb_env_read(&env, getenv, &bad)) {
		vb_cli_error("%s cannot be '%s'", bad, getenv(bad));
		return false;
	}
	if (env.fault && vb_fault_parse(&fault, env.fault)) {
		vb_cli_error("cannot read the faults '%s'", env.fault);
		return false;
	}
	return files_ok();
}

/* Takes the word at *i, and the next one if that is its value. */
static int option_take(const struct option *option, int argc, char **argv, int *i)
{
	const char *value = strchr(argv[*i], '=');

	if (!value && *i + 1 == argc) {
		vb_cli_error("%s needs an argument", argv[*i]);
		return EINVAL;
	}
	return setenv(option->variable, value ? value + 1 : argv[++*i], 1) ? errno : 0;
}

int vb_cli_run(int argc, char **argv)
{
	bool dev = false;
	int i = 1, rc;

	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		const struct option *option = option_find(argv[i]);

		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return usage(stdout, VB_CLI_OK);
		if (!option)
			vb_cli_error("run has no option '%s'", argv[i]);
		if (option && !option->argument)
			dev = true;
		else if (!option || option_take(option, argc, argv, &i))
			return usage(stderr, VB_CLI_RUN_FAILED);
	}
	if (i < argc && !strcmp(argv[i], "--"))
		i++;
	if (i == argc)
		return usage(stderr, VB_CLI_RUN_FAILED);
	if (!settings_ok() || libraries_set(dev))
		return VB_CLI_RUN_FAILED;
	execvp(argv[i], argv + i);
	rc = errno;
	vb_cli_error("%s: %s", argv[i], strerror(rc));
	return rc == ENOENT ? VB_CLI_NOT_FOUND : VB_CLI_CANNOT_EXECUTE;
}
