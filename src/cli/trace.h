/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_TRACE_H
#define VB_CLI_TRACE_H

/* `verbatim trace`: runs a program, and makes a timeline of what it and its children did. */

int vb_cli_trace(int argc, char **argv);

#endif
