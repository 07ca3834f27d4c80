/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RAW_H
#define VB_NIC_RAW_H

/*
 * Queue pairs of type RAW_PACKET: whole Ethernet frames, sent by the segment (segment.h), received
 * by flow rules (steer.h). They have no transport, peer or PSNs.
 */

#include "eth/parse.h"
#include "eth/tso.h"
#include "nic/data/qp.h"
#include "nic/service/eth/segment.h"

/* What only RAW_PACKET QPs have. */
struct vb_raw {
	uint64_t context;   /* its context's family */
	struct vb_segment_port *port;

	/* The frame at the current position, and its remaining destinations. */
	uint32_t bytes; /* 0: no frame yet */
	uint32_t targets, targets_done;
	bool cuts;		/* it is one of several that a work request is segmented into ... */
	struct vb_tso_cut cut;	/* ... with this part of its data */
	struct vb_tso *tso;	/* NULL: no TSO */
	uint32_t header_max;	/* of TSO ... */
	uint32_t header_at;	/* ... and its offset in a work request's data */
	uint16_t target[VB_SEGMENT_TARGETS_MAX];
	uint8_t frame[VB_ETH_FRAME_BYTES_MAX];
};

/* Where frames are received: a QP's own queue, or a work queue. Its lock is held to receive. */
struct vb_raw_sink {
	struct vb_nic *nic;
	struct ibv_pd *pd;
	struct vb_rq *rq;
	struct vb_cq *cq;
	uint32_t number; /* the QP's, for wc.qp_num */
	bool strips_cvlan, scatters_fcs, checks_inner;
};

extern const struct vb_service vb_service_raw;

/* Makes qp->raw for a QP with a context; extra->tso_header_max 0: no TSO. ENOMEM, EOPNOTSUPP. */
int vb_raw_make(struct vb_qp *qp, const struct vb_qp_extra *extra);
void vb_raw_unmake(struct vb_qp *qp);

/* The size of a work request's data, given its size without TSO. */
uint32_t vb_raw_wqe_room(struct vb_qp *qp, uint32_t bytes);

/* The QP is reset: drops the frame under way. */
void vb_raw_reset(struct vb_qp *qp);

/*
 * Decodes an IBV_WR_TSO (ibv_post_send(3)). EINVAL: the QP was not created for it, or not for a
 * header of this length; a header shorter than Ethernet's; no mss. EFAULT: the header cannot be
 * read.
 */
int vb_raw_tso_decode(const struct vb_qp *qp, const struct ibv_send_wr *wr, struct vb_wqe *wqe);

/* ibv_query_device_ex(3): attributes of these QPs. */
void vb_raw_query(struct ibv_device_attr_ex *attr);

/* vb_qp_transmit_locked() for these QPs. */
void vb_raw_transmit(struct vb_qp *qp, enum ibv_qp_state state);

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
