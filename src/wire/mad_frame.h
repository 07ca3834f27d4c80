/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_MAD_FRAME_H
#define VB_WIRE_MAD_FRAME_H

/* The frame that a MAD travels in: SEND_ONLY of UD from QP 1 to QP 1 (IBTA 13.4, Annex A17). */

#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/mad.h"

enum {
	VB_MAD_HEADERS_BYTES = 20, /* BTH, DETH */
	VB_MAD_FRAME_BYTES = VB_MAD_HEADERS_BYTES + VB_MAD_BYTES + 4,
};

/* All of it, with the ICRC for that path and IPv4 identification 0. psn: 24 bits. */
void vb_mad_frame_emit(uint8_t out[VB_MAD_FRAME_BYTES], const struct vb_path *path,
		       const uint8_t mad[VB_MAD_BYTES], uint32_t psn);

/* The MAD within a frame, or NULL if the frame carries none. The ICRC is not looked at. */
const uint8_t *vb_mad_frame_parse(const uint8_t *frame, size_t bytes);

#endif
