/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_RECORD_H
#define VB_CLI_RECORD_H

/* verbatim record, and replay: see cli.h and docs/replay.md. */

int vb_cli_record(int argc, char **argv);
int vb_cli_replay(int argc, char **argv);

#endif
