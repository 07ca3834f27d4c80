/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_STEER_H
#define VB_NIC_STEER_H

/* Which QPs a frame goes to. */

#include "eth/parse.h"
#include "nic/qp.h"

struct vb_segment_filter;

struct vb_steer_hit {
	struct vb_qp *qp;
	uint32_t tag;
	bool has_tag;
};

unsigned vb_steer_match(struct vb_nic *nic, const struct vb_eth_frame *frame,
			struct vb_steer_hit hits[], unsigned max);

void vb_steer_filter(struct vb_nic *nic, struct vb_segment_filter *filter);

#endif
