/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_KNOWN_H
#define VB_CM_KNOWN_H

/*
 * Who of our peers is a connection manager of this project. All that ours sends has a mark in the
 * reserved half-word of the MAD's header, which others ignore (IBTA 13.4.3). Whom we know we ask
 * again after milliseconds, all others when their timers say so: repeated requests make Linux
 * answer with an MRA of 65 s.
 *
 * Whom we do not know yet we ask: a question that others drop. It is an MRA for no message and no
 * id, marked, and so is its answer.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/cm_msg.h"

enum { VB_CM_KNOWN_MAX = 256 };

enum vb_cm_peer { VB_CM_PEER_UNKNOWN, VB_CM_PEER_OURS, VB_CM_PEER_OTHER };

/* Addresses by hash; one drives out another. */
struct vb_cm_known {
	uint8_t gid[VB_CM_KNOWN_MAX][VB_GID_BYTES];
};

void vb_cm_mark(uint8_t mad[VB_MAD_BYTES]);
bool vb_cm_is_marked(const uint8_t mad[VB_MAD_BYTES]);

/* Something came from there, with a mark or without. */
void vb_cm_known_note(struct vb_cm_known *known, const uint64_t secret[2],
		      const uint8_t gid[VB_GID_BYTES], bool ours);
bool vb_cm_known_has(const struct vb_cm_known *known, const uint64_t secret[2],
		     const uint8_t gid[VB_GID_BYTES]);

/* The question, from the id that asks; and what answers it. Both are still to be marked. */
void vb_cm_hello(struct vb_cm_msg *msg, uint32_t local_id, uint64_t tid);
void vb_cm_hello_answer(struct vb_cm_msg *answer, const struct vb_cm_msg *hello);

/* Is a marked message one of the two? The question has no remote_comm_id, the answer has. */
bool vb_cm_is_hello(const struct vb_cm_msg *msg);

#endif
