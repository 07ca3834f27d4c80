/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_CHECK_H
#define VB_ABI_RDMACM_CHECK_H

/* What `verbatim check` finds of rdma_cm: ids that are left, events not taken or acknowledged. */

#include "abi/rdmacm/id.h"

/* An id was made for the application, by the call that we are in. */
void vb_cma_check_made(struct vb_cma_id *id);

/* An event of the id is dropped that nobody took. */
void vb_cma_check_left(const struct vb_cma_id *id, const struct rdma_cm_event *event);

/* The application gets it. */
void vb_cma_check_fetched(struct vb_cma_event *event);

/* `call` is about to wait until this is acknowledged. */
void vb_cma_check_waits(const struct vb_cma_event *event, const char *call);

#endif
