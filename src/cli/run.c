/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "link/fault.h"

#define PATH_VARIABLE "LD_LIBRARY_PATH"

struct option {
	const char *name, *variable, *argument, *help;
};

/* clang-format off */
static const struct option options[] = {
	{ "--fault", "VERBATIM_FAULT", "TEXT",
	  "such as loss=1%,dup=1%,reorder=5%,corrupt=0.1%,delay=1ms,seed=7" },
	{ "--pcap",  "VERBATIM_PCAP",  "FILE",
	  "record every packet; %p stands for the process id" },
	{ "--log",   "VERBATIM_LOG",   "FILE",
	  "say what goes wrong; 'stderr' for the terminal" },
};
/* clang-format on */

static int usage(FILE *out, int status)
{
	fputs("usage: verbatim run [OPTIONS] [--] CMD [ARGS]\n\n", out);
	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++)
		fprintf(out, "  %-7s %s  %s\n", options[i].name, options[i].argument,
			options[i].help);
	return status;
}

static const struct option *option_find(const char *name)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(options); i++) {
		if (!strcmp(name, options[i].name))
			return &options[i];
	}
	return NULL;
}

/* Our folder first, then what was there: the program may need other libraries from it. */
static int library_path_set(void)
{
	const char *before = getenv(PATH_VARIABLE);
	char dir[PATH_MAX], *path;
	int rc = vb_cli_library_dir(dir);

	if (rc) {
		vb_cli_error("libibverbs.so.1 is neither in lib/ beside this command nor in "
			     "../lib/verbatim");
		return rc;
	}
	if (!before || !*before)
		return setenv(PATH_VARIABLE, dir, 1) ? errno : 0;
	if (asprintf(&path, "%s:%s", dir, before) < 0)
		return ENOMEM;
	rc = setenv(PATH_VARIABLE, path, 1) ? errno : 0;
	free(path);
	return rc;
}

/* The library has nobody to complain to, and would go on without a device. */
static bool fault_ok(void)
{
	const char *text = getenv("VERBATIM_FAULT");
	struct vb_fault fault;

	if (!text || !*text || !vb_fault_parse(&fault, text))
		return true;
	vb_cli_error("cannot read the faults '%s'", text);
	return false;
}

int vb_cli_run(int argc, char **argv)
{
	int i = 1, rc;

	for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i += 2) {
		const struct option *option = option_find(argv[i]);

		if (!strcmp(argv[i], "--help"))
			return usage(stdout, VB_CLI_OK);
		if (!option || i + 1 == argc) {
			vb_cli_error(option ? "%s needs an argument" : "run has no option '%s'",
				     argv[i]);
			return usage(stderr, VB_CLI_RUN_FAILED);
		}
		if (setenv(option->variable, argv[i + 1], 1))
			return VB_CLI_RUN_FAILED;
	}
	if (i < argc && !strcmp(argv[i], "--"))
		i++;
	if (i == argc)
		return usage(stderr, VB_CLI_RUN_FAILED);
	if (!fault_ok() || library_path_set())
		return VB_CLI_RUN_FAILED;
	execvp(argv[i], argv + i);
	rc = errno;
	vb_cli_error("%s: %s", argv[i], strerror(rc));
	return rc == ENOENT ? VB_CLI_NOT_FOUND : VB_CLI_CANNOT_EXECUTE;
}
