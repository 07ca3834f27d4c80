/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DEVICES_H
#define VB_CLI_DEVICES_H

/* `verbatim devices` (cli.h). */

int vb_cli_devices(int argc, char **argv);

#endif
