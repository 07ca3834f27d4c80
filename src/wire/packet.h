/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

/*
 * A packet between octets and struct. A frame is what UDP carries: BTH, extended headers, payload,
 * 0 to 3 octets of pad, 4 octets of ICRC (IBTA 5.2, Annex A17). Neither function looks at the ICRC:
 * see icrc.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/opcode.h"

#define VB_ICRC_BYTES 4
#define VB_FRAME_BYTES_MIN (VB_BTH_BYTES + VB_ICRC_BYTES)
#define VB_FRAME_BYTES_MAX 65507      /* what one IPv4 UDP datagram can carry */
#define VB_PKT_HEADER_BYTES_MAX 44    /* BTH, XRCETH, AtomicETH */

struct vb_pkt {
	/* BTH (IBTA 9.2) */
	uint8_t opcode;
	bool se;      /* solicited event */
	bool migreq;
	bool ackreq;
	bool fecn;
	bool becn;
	uint8_t tver; /* 4 bits, 0 is the only version */
	uint8_t pad;  /* 0 to 3 octets between payload and ICRC */
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	/* RETH; va and rkey also of AtomicETH */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_bytes;
	/* AtomicETH */
	uint64_t swap_add;
	uint64_t compare;
	/* AtomicAckETH */
	uint64_t orig;
	/* AETH */
	uint8_t syndrome;
	uint32_t msn;
	/* ImmDt: in network order, as struct ibv_wc has it */
	uint32_t imm_be;
	/* IETH */
	uint32_t inv_rkey;
	/* DETH */
	uint32_t qkey;
	uint32_t sqpn;
	/* XRCETH */
	uint32_t srqn;
	/* FETH */
	uint8_t flush_type;  /* 4 bits: placement type */
	uint8_t flush_level; /* 2 bits: selectivity level */
	/* Behind the headers: within the frame that was parsed, without pad. */
	const uint8_t *payload;
	uint32_t payload_bytes;
};

enum vb_parse {
	VB_PARSE_OK,
	VB_PARSE_SHORT,   /* shorter than its headers and the ICRC */
	VB_PARSE_VERSION, /* transport version is not 0 */
	VB_PARSE_OPCODE,  /* reserved opcode */
	VB_PARSE_ALIGN,   /* no multiple of 4 octets */
	VB_PARSE_LENGTH,  /* payload where none may be, or longer than any datagram */
	VB_PARSE_PAD,     /* more pad than there are octets behind the headers */
	VB_PARSE_COUNT,
};

/*
 * Takes a frame of `bytes` octets, from the BTH to the ICRC inclusive, apart. Fields of headers that
 * the opcode does not have become 0. Whatever the verdict, the BTH fields are those of the frame,
 * if it holds a BTH at all and is not VB_PARSE_SHORT for want of one; all else is 0 then. Reserved
 * bits are ignored, as IBTA 9.2 asks. Reads nothing beyond bytes, for any input.
 */
enum vb_parse vb_pkt_parse(struct vb_pkt *pkt, const uint8_t *frame, size_t bytes);

/*
 * Writes the BTH and the extended headers that pkt->opcode asks for, at most VB_PKT_HEADER_BYTES_MAX
 * octets, and returns their number. Payload, pad and ICRC are the caller's to add; pkt->pad must say
 * how much pad that is. Fields wider than their place on the wire are cut to it. The opcode must
 * exist.
 */
size_t vb_pkt_emit(uint8_t *out, const struct vb_pkt *pkt);

/* A verdict in words: "short", "version", ... */
const char *vb_parse_str(enum vb_parse verdict);

/* The pad that makes a payload a multiple of 4 octets (IBTA 9.2). */
static inline uint8_t vb_pkt_pad(uint32_t payload_bytes)
{
	return (uint8_t)(-payload_bytes & 3);
}

/* --- AETH: two bits of class, five bits of value (IBTA 9.7.5) --- */

enum vb_aeth {
	VB_AETH_ACK = 0,      /* value: credit code */
	VB_AETH_RNR = 1,      /* value: timer code */
	VB_AETH_RESERVED = 2,
	VB_AETH_NAK = 3,      /* value: enum vb_nak, above VB_NAK_RD: reserved */
};

enum vb_nak {
	VB_NAK_PSN = 0,         /* PSN sequence error */
	VB_NAK_INVALID_REQ = 1, /* invalid request */
	VB_NAK_ACCESS = 2,      /* remote access error */
	VB_NAK_OP = 3,          /* remote operational error */
	VB_NAK_RD = 4,          /* invalid RD request */
};

#define VB_AETH_VALUE_MASK 31

static inline uint8_t vb_aeth_ack(unsigned credits5)
{
	return (uint8_t)(VB_AETH_ACK << 5 | (credits5 & VB_AETH_VALUE_MASK));
}

static inline uint8_t vb_aeth_rnr(unsigned timer5)
{
	return (uint8_t)(VB_AETH_RNR << 5 | (timer5 & VB_AETH_VALUE_MASK));
}

static inline uint8_t vb_aeth_nak(enum vb_nak code)
{
	return (uint8_t)(VB_AETH_NAK << 5 | ((unsigned)code & VB_AETH_VALUE_MASK));
}

static inline enum vb_aeth vb_aeth_class(uint8_t syndrome)
{
	return (enum vb_aeth)(syndrome >> 5 & 3);
}

static inline unsigned vb_aeth_value(uint8_t syndrome)
{
	return syndrome & VB_AETH_VALUE_MASK;
}

/* --- end-to-end credits (IBTA 9.7.7.2) --- */

#define VB_CREDIT_CODE_UNLIMITED 31 /* this responder counts no credits */
#define VB_CREDIT_UNLIMITED UINT32_MAX

/* Receive WRs that a credit code stands for: 0 ... 32768; VB_CREDIT_UNLIMITED for code 31. */
uint32_t vb_credit_decode(unsigned code5);

/* The largest code that promises no more than count; 31 only for VB_CREDIT_UNLIMITED itself. */
unsigned vb_credit_encode(uint32_t count);

/* The wait of an RNR NAK timer code in ns: 10 us to 655.36 ms (IBTA 9.7.5.2.8). */
uint64_t vb_rnr_timer_ns(unsigned code5);

#endif
