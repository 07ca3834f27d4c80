/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_CLI_H
#define VB_CLI_CLI_H

/*
 * verbatim, the command: one file per subcommand, each with a function that gets its own name as
 * argv[0] and returns the exit status.
 */

#include <limits.h>

extern const char vb_cli_version[];

enum {
	VB_CLI_OK = 0,
	VB_CLI_FAILED = 1,
	VB_CLI_USAGE = 2,
	/* As env(1) has them: */
	VB_CLI_RUN_FAILED = 125,
	VB_CLI_CANNOT_EXECUTE = 126,
	VB_CLI_NOT_FOUND = 127,
};

int vb_cli_run(int argc, char **argv);
int vb_cli_devices(int argc, char **argv);
int vb_cli_status(int argc, char **argv);
int vb_cli_hub(int argc, char **argv);
int vb_cli_fail(int argc, char **argv);

struct vb_hub_row;

/* Parts of `hub`: what there is of XRC, given the slots that are leased; and its log. */
int vb_cli_domains(const struct vb_hub_row *rows, unsigned count);
int vb_cli_log(void);

/* The folder of our libraries. 0, or ENOENT if they are not where they should be. */
int vb_cli_library_dir(char dir[PATH_MAX]);

/* "verbatim: ..." to stderr, with a newline. */
void vb_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
