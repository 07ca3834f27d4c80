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

extern const struct vb_service vb_service_raw;

#endif
