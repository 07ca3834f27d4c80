/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_HUB_H
#define VB_CLI_HUB_H

/* `verbatim status`, `hub` and `fail`, which talk to the hub (cli.h). */

#include <stdbool.h>

#include "hub/proto.h"

int vb_cli_status(int argc, char **argv);
int vb_cli_hub(int argc, char **argv);
int vb_cli_fail(int argc, char **argv);

/* Reads "12", or "12@4026532200" as status shows processes that have no number here. */
bool vb_cli_process_parse(const char *word, struct vb_hub_program *program);

/*
 * Finds that process's number as it sees it itself, and its program's name. 0, or an errno of
 * hub/query.h. Unknown ones stay as they were parsed.
 */
int vb_cli_process_find(const char *word, struct vb_hub_program *program);

#endif
