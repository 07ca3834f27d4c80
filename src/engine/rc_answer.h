/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_RC_ANSWER_H
#define VB_ENGINE_RC_ANSWER_H

/*
 * The RC requester: what an answer completes, what is sent again, and when (req.h). The caller
 * holds the QP's lock.
 */

#include "engine/req.h"

/* Handles an RC ACK, NAK, READ response or atomic acknowledgement. */
enum vb_req_outcome vb_rc_answer(struct vb_req *req, const struct vb_pkt *pkt,
				 const struct vb_op_info *info, uint64_t now_ns);

/*
 * The fast path for the commonest answer: the next packet in the middle of a READ response. False:
 * it is another or invalid one; use vb_rc_answer(), as with vb_resp_middle().
 */
bool vb_rc_middle(struct vb_req *req, uint32_t psn, const uint8_t *payload, uint32_t bytes,
		  uint64_t now_ns);

/* Call when deadline_ns has passed. */
enum vb_req_outcome vb_rc_timeout(struct vb_req *req, uint64_t now_ns);
uint64_t vb_rc_deadline_ns(const struct vb_req *req);

/*
 * The clock of a requester on a reliable link, which runs only occasionally. Nothing is lost there,
 * but the other side may drop what it is not ready for. watch: something is outstanding from now
 * on; vb_rc_deadline_ns() says when to look. look: was there progress since, or is something that
 * either side sent still unread? If not, as vb_rc_timeout(); otherwise watches anew.
 */
void vb_rc_watch(struct vb_req *req, uint64_t now_ns);
enum vb_req_outcome vb_rc_look(struct vb_req *req, bool unread, uint64_t now_ns);

/*
 * Changes to another path, for whatever reason. It gets all retries anew, and nothing is known of
 * it yet.
 */
void vb_rc_new_path(struct vb_req *req, uint64_t now_ns);

/* --- between the engine's files --- */
uint64_t vb_req_ack_timeout_ns(const struct vb_req *req);

#endif
