/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_RUN_H
#define VB_CLI_RUN_H

/* `verbatim run` (cli.h). */

int vb_cli_run(int argc, char **argv);

#endif
