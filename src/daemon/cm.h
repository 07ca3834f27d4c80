/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_CM_H
#define VB_DAEMON_CM_H

/* The hub's part of rdma_cm, for hub.c: ports and MADs, where they meet connections and sockets. */

#include "daemon/hub_internal.h"

void vb_hub_cm_begin(struct hub *hub);

/* Takes what came to the hub's own slot: MADs, and datagrams for nobody. */
void vb_hub_strays_take(struct hub *hub);

/* There is room again for what waits for a client. */
void vb_hub_mads_flush(struct conn *conn);

/* A connection is closed: its client connects anew, or has died. */
void vb_hub_cm_gone(struct hub *hub, struct conn *conn);

/* Says goodbye for the dead. Returns whether any are left to look at. */
bool vb_hub_cm_settle(struct hub *hub);

on_message vb_hub_answer_records;
on_message vb_hub_answer_bind;
on_message vb_hub_answer_unbind;
on_message vb_hub_answer_mad;

#endif
