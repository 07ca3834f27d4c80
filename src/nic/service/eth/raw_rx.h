/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RAW_RX_H
#define VB_NIC_RAW_RX_H

/* How RAW_PACKET QPs and work queues receive (raw.h). */

#include "nic/service/eth/raw.h"

/* Where frames are received: a QP's own queue, or a work queue. Whoever takes has its lock. */
struct vb_raw_sink {
	struct vb_nic *nic;
	struct ibv_pd *pd;
	struct vb_rq *rq;
	struct vb_cq *cq;
	uint32_t number; /* the QP's, for wc.qp_num */
	bool strips_cvlan, scatters_fcs, checks_inner;
};

/* ibv_query_device_ex(3): attributes of these QPs. */
void vb_raw_query(struct ibv_device_attr_ex *attr);

/*
 * Gives a frame for this NIC to the destinations of its rules. context: the context of this NIC
 * that sent it, 0: none. A lane's right, or the rx right, held.
 */
void vb_raw_rx(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, uint64_t context);

/*
 * Receives a frame: takes a request, scatters, completes. Returns SUCCESS, also if it was dropped
 * for lack of a request; else the status that the request was completed with, and the queue has to
 * fail. tag: of the rule, 0: none.
 */
enum ibv_wc_status vb_raw_receive(const struct vb_raw_sink *sink, const struct vb_eth_frame *frame,
				  uint32_t tag);

#endif
