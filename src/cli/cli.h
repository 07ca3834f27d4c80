/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_CLI_H
#define VB_CLI_CLI_H

/*
 * verbatim, the command: one file per subcommand, each with a function that gets its own name as
 * argv[0] and returns the exit status.
 */

#include <limits.h>
#include <stddef.h>

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

/*
 * The settings of the environment, as the library will find them. 0; or EINVAL, or what is wrong
 * with a file that a setting names, which has been told. The library itself has nobody to complain
 * to: programs would find no device, and not know why.
 */
int vb_cli_settings_check(void);

struct vb_words;

/* There is no such command, option or the like; so many characters of it. */
void vb_cli_unknown(const struct vb_words *words, const char *kind, const char *typed,
		    size_t chars);

/* "verbatim: ..." to stderr, with a newline. */
void vb_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
