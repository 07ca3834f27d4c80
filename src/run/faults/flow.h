/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_FAULTS_FLOW_H
#define VB_RUN_FAULTS_FLOW_H

/* Packets on their way through a script. Rx right held unless it says something else. */

#include "run/faults/internal.h"

void vb_fault_queue_init(struct vb_fault_queue *queue);
void vb_fault_queue_put(struct vb_fault_queue *queue, struct vb_fault_item *item);
/* NULL: it is empty. */
struct vb_fault_item *vb_fault_queue_take(struct vb_fault_queue *queue);
void vb_fault_queue_free(struct vb_fault_queue *queue);

/* Room for so many octets; NULL: no memory. Any thread. */
struct vb_fault_item *vb_fault_item_make(struct vb_fault_flow *flow, uint32_t bytes);

/*
 * What becomes of a packet that came out of the flow: takes it over. settled: all before it has
 * reached its QP, or left. Returns false, and takes nothing, if that has to be so first.
 */
bool vb_fault_judge(struct vb_fault_item *item, bool settled);

/* Lets go what there is room for. */
void vb_fault_flow_flush(struct vb_fault_flow *flow);

/* Moves what was delayed long enough into its flow. Returns when the next is due. */
uint64_t vb_fault_late(struct vb_faults *faults, uint64_t now_ns);

#endif
