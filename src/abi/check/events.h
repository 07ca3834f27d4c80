/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_EVENTS_H
#define VB_ABI_CHECK_EVENTS_H

/* Events: not taken, not acknowledged, waited for too early. Inside abi/check; locked. */

#include "abi/check/state.h"

/* The object is about to be destroyed at this place. */
void vb_check_events_end(struct vb_check_object *object, const void *site);

/* ibv_req_notify_cq(3) is about to be called, and the CQ was polled. */
void vb_check_armed(struct vb_check_object *cq, const void *site);
void vb_check_polled(struct vb_check_object *cq);

/* A request was posted whose completion comes into this CQ: the program waits for that. */
void vb_check_armed_for(const struct ibv_cq *cq);

/* Around what waits for an event; cq: what it gave, or NULL. Not locked, as are the next two. */
void vb_check_channel_enter(struct ibv_comp_channel *channel);
void vb_check_channel_leave(struct ibv_comp_channel *channel, struct ibv_cq *cq);

/* After ibv_get_async_event(3). */
void vb_check_async_taken(const struct ibv_async_event *event);

/* After ibv_ack_cq_events(3). */
void vb_check_acked(struct ibv_cq *cq);

/* At the end of the program. */
void vb_check_events_left(void);

#endif
