/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_HELP_HELP_H
#define VB_CLI_HELP_HELP_H

#include <stdio.h>

/*
 * What `verbatim COMMAND --help` prints after the usage: options and examples. The manual pages and
 * the completion have the same options (tests/clients/manuals.sh).
 */
void vb_cli_help_print(const char *command, FILE *out);

/* The examples alone, for a command that prints its options from a table of its own. */
void vb_cli_examples_print(const char *command, FILE *out);

#endif
