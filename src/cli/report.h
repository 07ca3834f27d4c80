/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_REPORT_H
#define VB_CLI_REPORT_H

/* `verbatim status --json`: what `verbatim status` prints, and each QP's numbers, for programs. */

/* Returns the exit status. */
int vb_cli_status_json(void);

#endif
