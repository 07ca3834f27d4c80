/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_NOBODY_H
#define VB_CM_NOBODY_H

/*
 * Messages by which nobody here is meant, and whose a message is. Without a state: the hub answers
 * with this where no process does.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/cm_msg.h"

/*
 * The answer to a message that is for nobody: a DREQ gets its DREP; REQ, REP, RTU and
 * SIDR_REQ are rejected; and a question whether we are one of ours is answered. False: none is due.
 */
bool vb_cm_nobody_answers(struct vb_cm_msg *answer, const struct vb_cm_msg *msg, bool is_marked);

/* The same, octets for octets; what answers goes by path_back. */
bool vb_cm_nobody_answers_mad(uint8_t answer[VB_MAD_BYTES], const uint8_t mad[VB_MAD_BYTES]);

/* The way back. */
void vb_cm_nobody_path_back(struct vb_path *back, const struct vb_path *path);

enum vb_cm_whose {
	VB_CM_WHOSE_SLOT,    /* that of the id that it names */
	VB_CM_WHOSE_SERVICE, /* who listens for its service id */
	VB_CM_WHOSE_ALL,     /* whoever has heard of that id of the peer's: all are asked */
	VB_CM_WHOSE_NOBODY,
};

/* Whose it is; and which slot, or the service id. */
struct vb_cm_target {
	enum vb_cm_whose whose;
	uint16_t slot;
	uint64_t service_id;
};

struct vb_cm_target vb_cm_nobody_target(const uint8_t mad[VB_MAD_BYTES]);

#endif
