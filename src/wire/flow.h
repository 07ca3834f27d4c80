/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_FLOW_H
#define VB_WIRE_FLOW_H

/*
 * A question and its answer between two NICs of this project: "have you taken in what I have sent
 * so far?" UC and UD have no acknowledgement, and a socket's receive buffer is small. Opcodes from
 * 0xc0 on are the manufacturer's own (IBTA 9.2.1); other NICs drop them silently. docs/wire.md has
 * the format.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VB_FLOW_FRAME_BYTES = 32 }; /* BTH, 16 octets, ICRC */

enum vb_flow_kind { VB_FLOW_ASK = 0xc0, VB_FLOW_TELL = 0xc1 };

struct vb_flow {
	enum vb_flow_kind kind;
	uint32_t dqpn;	/* only its slot matters */
	uint16_t slot;	/* of the sender, to which the answer goes */
	uint64_t bytes; /* the sender's count when it asked; returned unchanged in the answer */
};

/* Writes VB_FLOW_FRAME_BYTES - 4 octets; the caller adds the ICRC. */
void vb_flow_emit(uint8_t *out, const struct vb_flow *flow);

/* Returns false if the frame (with its ICRC) is not one of these. Reads at most `bytes`. */
bool vb_flow_parse(struct vb_flow *flow, const uint8_t *frame, size_t bytes);

#endif
