/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_TOP_H
#define VB_CLI_TOP_H

/* `verbatim top`: what processes and their queue pairs do at this moment. */

int vb_cli_top(int argc, char **argv);

#endif
