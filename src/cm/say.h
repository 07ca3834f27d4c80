/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_SAY_H
#define VB_CM_SAY_H

/*
 * What our user has us send. A message of his says what only he knows: ids, transactions, our GUID,
 * what is rejected, and the peer's QPN are filled in, whatever stands there. Private data and
 * additional information may be shorter than their room, and are copied.
 */

#include "base/lent.h"
#include "cm/id.h"
#include "cm/rules.h"

/* Whom to ask, and how patiently. */
struct vb_cm_ask {
	struct vb_path path;
	struct vb_path alternate; /* REQ: all zeros if there is none */
	uint64_t timeout_ns;	  /* until it is asked again, if it is not one of ours */
	unsigned retries;	  /* how often, then */
	bool ours;		  /* it is known to be one of ours, as under the same hub */
};

/*
 * Sends a REQ or SIDR_REQ. EINVAL: the id is not IDLE, or something does not fit into the message.
 * An id that is IDLE again may ask again.
 */
VB_LENT int vb_cm_say_ask(struct vb_cm_id *id, uint64_t now_ns, const struct vb_cm_msg *msg,
		  const struct vb_cm_ask *ask);

/*
 * Sends any other message: REP, REJ, MRA, RTU, DREQ, DREP, SIDR_REP, LAP, APR. The rows SAID of
 * rules.def have the states in which that is allowed; in others EINVAL. LAP: alternate is the path
 * that it offers, for others NULL.
 */
VB_LENT int vb_cm_say(struct vb_cm_id *id, uint64_t now_ns, const struct vb_cm_msg *msg,
	      const struct vb_path *alternate);

/*
 * Our user's QP has received something, so the peer must have had our REP (IBTA 12.9.7.2). EISCONN:
 * it is established already; EINVAL: no REP was sent.
 */
VB_LENT int vb_cm_say_established(struct vb_cm_id *id, uint64_t now_ns);

/* The connection has migrated to its alternate path. EINVAL: it has none, or asks for another. */
VB_LENT int vb_cm_say_migrated(struct vb_cm_id *id);

/* --- within this folder --- */

/* As a rule has it, by what has come, or NULL. The state is still the old one. */
void vb_cm_say_by_rule(struct vb_cm_id *id, const struct vb_cm_rule *rule,
		       const struct vb_cm_msg *msg);

/* Goodbye, and the state that follows. */
void vb_cm_say_farewell(struct vb_cm_id *id, const struct vb_cm_farewell *farewell);

/* The connection is over, though nobody has asked: DREQ. Nothing happens if it is in no state. */
void vb_cm_say_part(struct vb_cm_id *id);

void vb_cm_say_hello(struct vb_cm_id *id);

/* One that is made, to the peer; and one without an id. */
void vb_cm_say_send(struct vb_cm_id *id, uint8_t mad[VB_MAD_BYTES]);
void vb_cm_say_to(struct vb_cm *cm, const struct vb_path *path, const struct vb_cm_msg *msg);

#endif
