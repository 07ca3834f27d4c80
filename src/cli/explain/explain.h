/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_EXPLAIN_H
#define VB_CLI_EXPLAIN_H

/*
 * `verbatim explain` (cli.h): what went wrong in captures, in words. Exit status 0: nothing, 1:
 * something was found, 2: a file cannot be read.
 */

int vb_cli_explain(int argc, char **argv);

#endif
