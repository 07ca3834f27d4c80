/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_CONNECT_H
#define VB_ABI_RDMACM_CONNECT_H

#include <stdint.h>

struct vb_cma_id;

/* The PSN that the peer is to begin with. */
uint32_t vb_cma_psn_random(void);

/* The connection is there on this side, too. 0 or an errno. Not locked. */
int vb_cma_rtu_say(struct vb_cma_id *id);

#endif
