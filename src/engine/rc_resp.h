/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_RC_RESP_H
#define VB_ENGINE_RC_RESP_H

/*
 * The RC responder: takes in requests and makes the answers (resp.h). The caller holds the QP's
 * lock.
 */

#include "engine/resp.h"

/*
 * Replaces the ring by one of max places. Returns the old one, which the caller then owns.
 * Resources kept for duplicates move along, newest first; those still owed must fit
 * (vb_resp_ring_fits()).
 */
struct vb_resource *vb_resp_ring_replace(struct vb_resp *resp, struct vb_resource *ring,
					 uint32_t max);

struct vb_resp_result vb_rc_request(struct vb_resp *resp, const struct vb_pkt *pkt,
				    const struct vb_op_info *info);

/*
 * The same for a request that only the host knows to be invalid: in its turn it is refused with
 * that verdict; otherwise it is treated like any other.
 */
struct vb_resp_result vb_rc_refuse(struct vb_resp *resp, const struct vb_pkt *pkt,
				   const struct vb_op_info *info, enum vb_verdict verdict);

/*
 * Something arrived that cannot be accepted, by a link that loses nothing: owe a NAK for everything
 * from epsn on, even if one was sent before.
 */
void vb_rc_ask_again(struct vb_resp *resp);

struct vb_resp_pos vb_resp_pos_get(const struct vb_resp *resp);
void vb_resp_pos_put(struct vb_resp *resp, const struct vb_resp_pos *pos);

/*
 * The next packet owed; false if none. Fills in pkt's headers. Data of a READ response is
 * pkt->dma_bytes octets at (rkey, va), which the caller checks and fetches. Advances; a caller that
 * cannot send restores the previous struct vb_resp_pos.
 */
bool vb_rc_response(struct vb_resp *resp, struct vb_pkt *pkt, bool *data);

/*
 * How many of the next packets owed are in the middle of a READ response: like the first of them
 * except for PSN and data, of one MTU each. The resource has at least one more packet then. skip:
 * these were sent.
 */
uint32_t vb_resp_run(const struct vb_resp *resp);
void vb_resp_skip(struct vb_resp *resp, uint32_t packets);

/* The fast path if vb_resp_owes_ack_only(): the AETH as a word, and its PSN. */
uint32_t vb_rc_ack(struct vb_resp *resp, uint32_t *psn);

/*
 * The data of the current response cannot be read: a NAK is sent instead, and the QP fails. A
 * response that was given before is just not repeated (false): the requester may have released the
 * memory since, and a late request must not end the QP. before: the position before
 * vb_rc_response().
 */
bool vb_rc_response_fault(struct vb_resp *resp, const struct vb_resp_pos *before,
			  const struct vb_pkt *pkt);

#endif
