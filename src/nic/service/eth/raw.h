/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RAW_H
#define VB_NIC_RAW_H

/*
 * Queue pairs of type RAW_PACKET: whole Ethernet frames, out by the segment (segment.h), in by the
 * flow rules (steer.h). They have no transport, no peer and no packet sequence.
 */

#include "eth/parse.h"
#include "eth/tso.h"
#include "nic/data/qp.h"
#include "nic/service/eth/segment.h"

/* What a RAW_PACKET QP has beside any other, in a part of its own. */
struct vb_raw {
	uint64_t context;   /* the number of its own */
	struct vb_segment_port *port;

	/* The frame that stands where sending is, and for whom it still is. */
	uint32_t bytes; /* 0: none is made */
	uint32_t targets, targets_done;
	bool cuts;		/* it is one of several that a work request is cut into ... */
	struct vb_tso_cut cut;	/* ... this part of its data */
	struct vb_tso *tso;	/* NULL: no TSO */
	uint32_t header_max;	/* of TSO ... */
	uint32_t header_at;	/* ... and where it is in a work request's data */
	uint16_t target[VB_SEGMENT_TARGETS_MAX];
	uint8_t frame[VB_ETH_FRAME_BYTES_MAX];
};

/* Where frames are received: a QP's own queue, or a work queue. Whoever takes has its lock. */
struct vb_raw_sink {
	struct vb_nic *nic;
	struct ibv_pd *pd;
	struct vb_rq *rq;
	struct vb_cq *cq;
	uint32_t number; /* the QP's, for wc.qp_num */
	bool strips_cvlan, scatters_fcs, checks_inner;
};

extern const struct vb_service vb_service_raw;

/* qp->raw, for a QP that has a context; extra->tso_header_max 0: no TSO. ENOMEM, EOPNOTSUPP. */
int vb_raw_make(struct vb_qp *qp, const struct vb_qp_extra *extra);
void vb_raw_unmake(struct vb_qp *qp);

/* How much room the data of a work request takes, which takes so much without TSO. */
uint32_t vb_raw_wqe_room(struct vb_qp *qp, uint32_t bytes);

/* The QP is reset: what was under way is forgotten. */
void vb_raw_reset(struct vb_qp *qp);

/*
 * Decode what only an IBV_WR_TSO has (ibv_post_send(3)). EINVAL: the QP was not made for it, or
 * not for so long a header; a header shorter than Ethernet's; no mss. EFAULT: the header cannot be
 * read.
 */
int vb_raw_tso_decode(const struct vb_qp *qp, const struct ibv_send_wr *wr, struct vb_wqe *wqe);

/* ibv_query_device_ex(3): what there is for these QPs, in addition. */
void vb_raw_query(struct ibv_device_attr_ex *attr);

/* vb_qp_transmit_locked() of such a QP. */
void vb_raw_transmit(struct vb_qp *qp, enum ibv_qp_state state);

/*
 * A frame for this NIC: give it to whomever its rules say. context: of this NIC that sent it, 0: it
 * comes from elsewhere. A lane's right, or the rx right, held.
 */
void vb_raw_rx(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, uint64_t context);

/*
 * Receive a frame: takes a request, scatters, completes. SUCCESS, also where there was no request
 * and it was dropped; else the status that the request was completed with, and the queue is to
 * fail. tag: of the rule, 0: none.
 */
enum ibv_wc_status vb_raw_receive(const struct vb_raw_sink *sink, const struct vb_eth_frame *frame,
				  uint32_t tag);

#endif
