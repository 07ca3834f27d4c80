/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_UC_UD_H
#define VB_ENGINE_UC_UD_H

/*
 * The UC and UD responders, which answer nothing (resp.h). The caller holds the QP's lock.
 */

#include "engine/resp.h"

struct vb_resp_result vb_uc_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info);

/* grh: the VB_GRH_BYTES octets before the data. */
struct vb_resp_result vb_ud_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info, const uint8_t *grh);

#endif
