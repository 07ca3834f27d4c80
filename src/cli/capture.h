/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_CAPTURE_H
#define VB_CLI_CAPTURE_H

/* verbatim capture: the packets of a running process, as pcapng. */

int vb_cli_capture(int argc, char **argv);

#endif
