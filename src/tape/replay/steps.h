/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_STEPS_H
#define VB_TAPE_STEPS_H

/* The calls of a tape, made again. */

#include "tape/replay/player.h"

/* Makes the call. False: there is no such call. */
bool vb_step_make(struct vb_step *step, enum vb_tape_kind kind);

#endif
