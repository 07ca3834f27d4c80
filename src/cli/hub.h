/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_HUB_H
#define VB_CLI_HUB_H

/* `verbatim status`, `hub` and `fail`, which talk to the hub (cli.h). */

int vb_cli_status(int argc, char **argv);
int vb_cli_hub(int argc, char **argv);
int vb_cli_fail(int argc, char **argv);

#endif
