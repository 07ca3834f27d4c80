/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_CLI_H
#define VB_CLI_CLI_H

/*
 * verbatim, the command: what its files share. Each subcommand has a function that gets its own
 * name as argv[0] and returns the exit status.
 */

#include <limits.h>
#include <stddef.h>

extern const char vb_cli_version[];

enum {
	VB_CLI_OK = 0,
	VB_CLI_FAILED = 1,
	VB_CLI_USAGE = 2,
	/* As in env(1): */
	VB_CLI_RUN_FAILED = 125,
	VB_CLI_CANNOT_EXECUTE = 126,
	VB_CLI_NOT_FOUND = 127,
};

/* The folder of our libraries. Returns 0, or ENOENT if they are not found. */
int vb_cli_library_dir(char dir[PATH_MAX]);

struct vb_words;

/* Reports that there is no such command, option or the like; typed has so many characters. */
void vb_cli_unknown(const struct vb_words *words, const char *kind, const char *typed,
		    size_t chars);

/*
 * Can that file be written? 0 or an errno; nothing is changed. Asked before a program runs, perhaps
 * for long.
 */
int vb_cli_file_probe(const char *name);

/* "verbatim: ..." to stderr, with a newline. */
void vb_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
