/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_CHECK_H
#define VB_CLI_CHECK_H

/* `verbatim check` (cli.h). */

int vb_cli_check(int argc, char **argv);

#endif
