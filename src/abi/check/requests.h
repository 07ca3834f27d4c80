/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_REQUESTS_H
#define VB_ABI_CHECK_REQUESTS_H

/*
 * Requests in flight: those whose completion the application has not taken, nor one that comes
 * after it in its queue. Inside abi/check; locked.
 */

#include "abi/check/state.h"

/* Records a request that is about to be posted. site: of the post. NULL: no memory. */
struct vb_check_request *vb_check_send_add(struct vb_check_queue *queue,
					   const struct ibv_send_wr *wr, bool signaled,
					   const void *site);
struct vb_check_request *vb_check_recv_add(struct vb_check_queue *queue,
					   const struct ibv_recv_wr *wr, const void *site);

/* The last receives are in the NIC's queue, up to this position. */
void vb_check_recv_place(struct vb_check_queue *queue, uint32_t tail);

/* It is no longer in flight: compares (if it succeeded), and forgets it. */
void vb_check_request_end(struct vb_check_request *request, const struct ibv_wc *wc);

/* Forgets it without a look. */
void vb_check_request_drop(struct vb_check_request *request);

/* Looks at some receive buffers, and at all those of a queue. */
void vb_check_look_around(void);
void vb_check_look_at(struct vb_check_queue *queue);

/* Something was received: what was sent as a datagram may have had its answer. */
void vb_check_answered(void);

/* The region is about to be `how` ("deregistered") at this place. */
void vb_check_region_ends(const void *mr, const void *site, const char *how);

/* "SEND", for the words of a flaw. */
const char *vb_check_opcode(const struct vb_check_request *request);

#endif
