/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_CHANNEL_H
#define VB_ABI_RDMACM_CHANNEL_H

/* Events: made, queued and dropped; channels, by which they are told. */

#include "abi/rdmacm/id.h"

/* NULL with errno. */
struct rdma_event_channel *vb_cma_channel_make(void);

/* As rdma_destroy_event_channel; no id has it any more. Locked or not. */
void vb_cma_channel_free(struct rdma_event_channel *pub);

/* An event that is not queued yet; NULL: no memory. */
struct vb_cma_event *vb_cma_event_make(struct vb_cma_id *id, enum rdma_cm_event_type type,
				       int status);

/* Locked. */
void vb_cma_event_queue(struct vb_cma_event *event);

/* Both at once. False: no memory. Locked. */
bool vb_cma_tell(struct vb_cma_id *id, enum rdma_cm_event_type type, int status);

/* All that is queued for the id: not told any more. Locked. Requests are let go of. */
void vb_cma_events_drop(struct vb_cma_id *id);

/* Not if its channel has been destroyed, and it has got no other one since. Locked. */
bool vb_cma_has_channel(const struct vb_cma_id *id);

/* No queued event leads to that group any more. Locked. */
void vb_cma_group_forget(struct vb_cma_id *id, const struct vb_cma_group *group);

/* What the queued ones of an id do when it gets another channel. Locked. */
void vb_cma_events_move(struct vb_cma_id *id, struct vb_cma_channel *from,
			struct vb_cma_channel *to);

/* Waits until all that the id was told has been acknowledged. call: which waits. Not locked. */
void vb_cma_acks_wait(struct vb_cma_id *id, const char *call);

/* Synchronous mode: waits for the id's next event. 0, or -1 with errno. */
int vb_cma_complete(struct vb_cma_id *id);

#endif
