/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_WHY_H
#define VB_ABI_RDMACM_WHY_H

/* Why something did not come about, in words for the log (VERBATIM_LOG); without one nothing. */

struct vb_cma_event;
struct vb_cma_id;
struct vb_path;

/* What the application fetches, if it says that something failed. May ask the hub. Not locked. */
void vb_cma_why(const struct vb_cma_event *event);

/* A call waits for acknowledgements. Those are locked. */
void vb_cma_why_waits(const struct vb_cma_id *id, const char *call);

/* A request is refused, since it is for another kind of QP than the listener's. Locked. */
void vb_cma_why_type(const struct vb_cma_id *listener, const struct vb_path *path);

#endif
