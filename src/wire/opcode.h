/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_OPCODE_H
#define VB_WIRE_OPCODE_H

/*
 * The opcodes of the Base Transport Header as data (IBTA 9.2.1, Annexes A14 and A17, release 1.6),
 * and those of DC, which are ours. opcode.def has one row per opcode; everything here is derived
 * from it at compile time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* The three high bits of an opcode. RD has no rows, since RDMA NICs do not support it. */
enum vb_transport {
	VB_RC = 0,
	VB_UC = 1,
	VB_RD = 2,
	VB_UD = 3,
	VB_CNP = 4,
	VB_XRC = 5,
	VB_DC = 7, /* ours: opcodes from 0xe0 on are the manufacturer's */
};

/* 6 is free. What is XRC or above is acknowledged, and aimed, by the functions below. */
enum { VB_TRANSPORTS = 8 };

/* Is the transport acknowledged: RC, XRC or DC? */
static inline bool vb_transport_acks(enum vb_transport transport)
{
	return transport == VB_RC || transport >= VB_XRC;
}

/* XRC and DC: each packet names its target within the destination, or its source. */
static inline bool vb_transport_aims(enum vb_transport transport)
{
	return transport >= VB_XRC;
}

/* What a packet is, independent of transport and position in the message. */
enum vb_kind {
	VB_K_SEND,
	VB_K_WRITE,
	VB_K_READ_REQ,
	VB_K_READ_RESP,
	VB_K_ACK,
	VB_K_ATOMIC_ACK,
	VB_K_CMP_SWP, /* from here to FLUSH: waits for an answer of its own (vb_wqe_is_fetch) */
	VB_K_FETCH_ADD,
	VB_K_ATOMIC_WRITE,
	VB_K_FLUSH,
	VB_K_CNP,
	VB_K_CONNECT,	 /* DC */
	VB_K_DISCONNECT, /* DC */
	VB_K_CONNECT_SRD, /* DC's, with SRD's header */
	VB_K_COUNT,
};

static inline bool vb_kind_is_answer(uint8_t kind)
{
	return kind == VB_K_ACK || kind == VB_K_READ_RESP || kind == VB_K_ATOMIC_ACK;
}

/* "RDMA WRITE": what people call such a request; NULL: it is none. */
const char *vb_kind_words(unsigned kind);

/* Position in a message or response. A kind that always has one packet is ONLY. */
enum vb_pos {
	VB_P_MIDDLE = 0,
	VB_P_FIRST = 1,
	VB_P_LAST = 2,
	VB_P_ONLY = VB_P_FIRST | VB_P_LAST,
};

/* Extended headers behind the BTH. IMM and IETH are the low bits: vb_op_find() indexes by them. */
enum vb_header {
	VB_H_NONE = 0,
	VB_H_IMM = 1 << 0,
	VB_H_IETH = 1 << 1,
	VB_H_RETH = 1 << 2,
	VB_H_AETH = 1 << 3,
	VB_H_ATOMIC = 1 << 4,
	VB_H_ATOMICACK = 1 << 5,
	VB_H_DETH = 1 << 6,
	VB_H_XRCETH = 1 << 7,
	VB_H_FETH = 1 << 8,
	VB_H_CNP = 1 << 9, /* the 16 reserved octets of a CNP */
	VB_H_DCETH = 1 << 10,
	VB_H_DCKEY = 1 << 11,
	VB_H_SRDETH = 1 << 12,
};

#define VB_BTH_BYTES 12
#define VB_BTH_DQPN_OFFSET 4 /* of the word whose low 24 bits are the destination QPN */
#define VB_BTH_PSN_OFFSET 8 /* of the word whose low 24 bits are the PSN */

/* VB_OP_RC_SEND_FIRST ... VB_OP_DC_CONNECT_SRD: the opcodes by name. */
enum vb_opcode {
#define VB_OP(name, opcode, transport, kind, pos, headers, payload) VB_OP_##name = opcode,
#include "wire/opcode.def"
#undef VB_OP
};

struct vb_op_info {
	uint8_t transport;    /* enum vb_transport */
	uint8_t kind;         /* enum vb_kind */
	uint8_t pos;          /* enum vb_pos */
	uint8_t header_bytes; /* BTH and extended headers */
	uint16_t headers;     /* enum vb_header bits */
	bool payload;         /* may carry payload */
	const char *name;     /* "RC_SEND_FIRST" ..., NULL: no such opcode */
};

#define VB_OP_FIND_SIZE (VB_TRANSPORTS * VB_K_COUNT * 4 * 4)

#define vb_op_find_index(transport, kind, pos, headers)                                           \
	((((unsigned)(transport) * VB_K_COUNT + (unsigned)(kind)) * 4 + (unsigned)(pos)) * 4 +     \
	 ((unsigned)(headers) & (VB_H_IMM | VB_H_IETH)))

extern const struct vb_op_info vb_op_infos[256];
extern const uint8_t vb_op_complements[VB_OP_FIND_SIZE];

/* The row of an opcode; NULL if it is reserved or of an unsupported transport. */
static inline const struct vb_op_info *vb_op_info(uint8_t opcode)
{
	const struct vb_op_info *info = &vb_op_infos[opcode];

	return info->name ? info : NULL;
}

/*
 * The opcode of a transport, kind and position, with VB_H_IMM, VB_H_IETH or neither from
 * extra_headers (other bits are ignored). The opcode must exist.
 */
static inline uint8_t vb_op_find(enum vb_transport transport, enum vb_kind kind, unsigned pos,
				 unsigned extra_headers)
{
	unsigned i = vb_op_find_index(transport, kind, pos, extra_headers);
	uint8_t complement;

	vb_check(i < VB_OP_FIND_SIZE);
	complement = vb_op_complements[i];
	vb_check(complement);
	return (uint8_t)~complement;
}

#endif
