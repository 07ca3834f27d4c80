/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/segment.h"
#include "nic/steer.h"

__attribute__((weak)) unsigned vb_steer_match(struct vb_nic *nic, const struct vb_eth_frame *frame,
					      struct vb_steer_hit hits[], unsigned max)
{
	return 0;
}

__attribute__((weak)) void vb_steer_filter(struct vb_nic *nic, struct vb_segment_filter *filter)
{
}
