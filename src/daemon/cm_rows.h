/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_CM_ROWS_H
#define VB_DAEMON_CM_ROWS_H

/* What processes have of rdma_cm, for `verbatim status` and for a log. */

#include "daemon/hub_internal.h"

enum {
	VB_CM_ROWS_LISTENERS = 256, /* in one answer; of more it says how many there are */
	VB_CM_ROWS_PEERS = 16,      /* of one process, by state and peer; and so of more */
};

on_message vb_hub_answer_cm;

#endif
