/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_MCAST_H
#define VB_ABI_RDMACM_MCAST_H

/* Multicast groups of which ids are members. */

#include "abi/rdmacm/id.h"

void vb_cma_groups_leave(struct vb_cma_id *id);

/* The application hears that it is a member: so is its QP. Not locked. */
void vb_cma_group_fetched(struct vb_cma_event *event);

#endif
