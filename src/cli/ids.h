/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_IDS_H
#define VB_CLI_IDS_H

/* What processes have of rdma_cm: who listens where, and their ids by what they are doing. */

/* Prints it, if there is any. Returns the exit status. */
int vb_cli_ids(void);

#endif
