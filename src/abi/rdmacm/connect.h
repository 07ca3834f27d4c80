/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_CONNECT_H
#define VB_ABI_RDMACM_CONNECT_H

struct vb_cma_id;

/* The connection is there on this side, too. 0 or an errno. Not locked. */
int vb_cma_rtu_say(struct vb_cma_id *id);

#endif
