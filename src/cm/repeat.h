/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_REPEAT_H
#define VB_CM_REPEAT_H

/*
 * What is sent again while there is no answer, and when to give up. Others get a request as often
 * as they say, from as far apart as they say. One of ours gets it after 8 ms, and after twice as
 * long each time up to half a second; but as long as others. One that we do not know is asked
 * meanwhile whether it is one of ours (known.h).
 */

#include "cm/id.h"

/* The clock of an id that has just come to a state. */
void vb_cm_repeat_start(struct vb_cm_id *id, enum vb_cm_clock_kind kind);

/* The peer's answer will take that much longer. */
void vb_cm_repeat_later(struct vb_cm_id *id, uint64_t extra_ns);

/* It has come out that the peer is one of ours: what is waiting for an answer is sent again now. */
void vb_cm_repeat_faster(struct vb_cm_id *id);

/* Its clock rings. The id may be gone behind this. */
void vb_cm_repeat_ring(struct vb_cm_id *id);

#endif
