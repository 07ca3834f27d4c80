/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_HEARD_H
#define VB_ABI_RDMACM_HEARD_H

struct vb_cma_event;
struct vb_cm_user;

/* The handler of src/cm's events, and whom a request fits. */
extern const struct vb_cm_user vb_cma_user;

/* When the application fetches an event: what it does to the QP. Not locked. */
void vb_cma_event_fetched(struct vb_cma_event *event);

#endif
