/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SHUFFLE_H
#define VB_NIC_SHUFFLE_H

/* Another order of completions (core/order.h). */

#include "nic/queue/cq.h"

/*
 * Puts the completions that wait in the CQ in another order: those of different queues, since only
 * within a send queue or a receive queue an order is promised; and flushes follow the error that
 * they come from. Any thread that may poll it.
 */
void vb_cq_shuffle(struct vb_cq *cq);

#endif
