/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

/*
 * Converts packets between octets and struct. A frame is the content of a datagram: BTH, extended
 * headers, payload, 0 to 3 octets of pad, 4 octets of ICRC (IBTA 5.2, Annex A17). These functions
 * ignore the ICRC: see icrc.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "wire/aeth.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

#define VB_ICRC_BYTES 4
#define VB_RETH_BYTES 16
#define VB_XRCETH_BYTES 4
#define VB_DCETH_BYTES 16
#define VB_SRDETH_BYTES 24
#define VB_FRAME_BYTES_MIN (VB_BTH_BYTES + VB_ICRC_BYTES)
#define VB_FRAME_BYTES_MAX 65507      /* the most that an IPv4 UDP datagram can carry */
#define VB_PKT_HEADER_BYTES_MAX 56    /* BTH, DCETH, AtomicETH */

struct vb_pkt_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t bytes;
};

struct vb_pkt_atomic {
	uint64_t swap_add;
	uint64_t compare;
	uint64_t orig; /* AtomicAckETH: the original value */
};

struct vb_pkt_aeth {
	uint8_t syndrome;
	uint32_t msn;
};

/* FETH */
struct vb_pkt_flush {
	uint8_t type;  /* 4 bits: placement type */
	uint8_t level; /* 2 bits: selectivity level */
};

/* DCETH, and the key of DCKEY */
struct vb_pkt_dceth {
	uint64_t connection; /* later ones of the same DCI have higher numbers */
	uint64_t key;
	uint32_t start_psn; /* the connection's first */
	uint8_t mtu_code;   /* 3 bits: the size of its sender's pieces (nic/service/dc/dc.h) */
};

/* SRDETH: who connects, and the Q_Key of whom it wants */
struct vb_pkt_srd {
	uint8_t gid[VB_GID_BYTES];
	uint32_t qpn, qkey;
};

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
	/* Extended headers. */
	struct vb_pkt_reth reth; /* va and rkey also of AtomicETH */
	union {
		struct vb_pkt_atomic atomic;
		struct vb_pkt_srd srd;
	};
	struct vb_pkt_aeth aeth;
	uint32_t imm_be; /* ImmDt: in network order, as in struct ibv_wc */
	uint32_t inv_rkey; /* IETH */
	uint32_t qkey;	   /* DETH */
	uint32_t sqpn;	   /* DETH; also of DCETH: the DCI */
	uint32_t srqn;	   /* XRCETH */
	struct vb_pkt_flush flush;
	struct vb_pkt_dceth dceth;
	/* After the headers: points into the parsed frame, without pad. */
	const uint8_t *payload;
	uint32_t payload_bytes;
};

enum vb_parse {
	VB_PARSE_OK,
	VB_PARSE_SHORT,   /* shorter than its headers and the ICRC */
	VB_PARSE_VERSION, /* transport version is not 0 */
	VB_PARSE_OPCODE,  /* reserved opcode */
	VB_PARSE_ALIGN,   /* not a multiple of 4 octets */
	VB_PARSE_LENGTH,  /* payload where none is allowed, or longer than any datagram */
	VB_PARSE_PAD,     /* more pad than octets behind the headers */
	VB_PARSE_COUNT,
};

/*
 * Parses a frame of `bytes` octets, BTH to ICRC inclusive, which may contain anything; reads
 * nothing beyond them. After VB_PARSE_OK every field is set: those of headers that the opcode lacks
 * are 0, and reserved bits are ignored. With any other verdict only the fields of the BTH are set,
 * if the frame has a whole BTH, so that the drop can be counted at the right QP; all else is 0.
 */
enum vb_parse vb_pkt_parse(struct vb_pkt *pkt, const uint8_t *frame, size_t bytes);

/*
 * Parses a packet's headers alone, as from a ring, which carries the payload beside them and no
 * ICRC. Returns the opcode's row, or NULL if it is not a packet. Fields of the payload, and of
 * headers that the opcode lacks, are left unchanged.
 */
const struct vb_op_info *vb_pkt_parse_head(struct vb_pkt *pkt, const uint8_t *head, size_t bytes);

/*
 * A packet that has only a BTH before its payload, with no flag but the request for an
 * acknowledgement, no pad, and the expected P_Key.
 */
struct vb_bare {
	uint8_t opcode;
	bool ackreq;
	uint32_t dqpn, psn;
};

/*
 * Reads such a packet's BTH of VB_BTH_BYTES octets; false: it is another kind of packet. For rings,
 * which carry the payload beside the headers.
 */
static inline bool vb_pkt_head_is_plain(struct vb_bare *bare, const uint8_t *head, uint16_t pkey,
					unsigned headers)
{
	const struct vb_op_info *op = &vb_op_infos[head[0]];

	/* Octet 1 has SE, MigReq (only needed for path migration), pad, version. */
	if (!op->name || op->headers != headers || !op->payload || (head[1] & 0xbf) ||
	    vb_be16_get(head + 2) != pkey || head[4])
		return false;
	bare->opcode = head[0];
	bare->dqpn = vb_be32_get(head + 4);
	bare->ackreq = head[8] & 0x80;
	bare->psn = vb_be32_get(head + 8) & 0xffffff;
	return true;
}

static inline bool vb_pkt_head_is_bare(struct vb_bare *bare, const uint8_t *head, uint16_t pkey)
{
	return vb_pkt_head_is_plain(bare, head, pkey, VB_H_NONE);
}

static inline bool vb_pkt_is_bare(struct vb_bare *bare, const uint8_t *frame, size_t bytes,
				  uint16_t pkey)
{
	return bytes >= VB_FRAME_BYTES_MIN && bytes <= VB_FRAME_BYTES_MAX && bytes % 4 == 0 &&
	       vb_pkt_head_is_bare(bare, frame, pkey);
}

/*
 * Writes the BTH and the extended headers of pkt->opcode, and returns their size, at most
 * VB_PKT_HEADER_BYTES_MAX. The caller adds payload, pkt->pad octets of pad, and ICRC. Values too
 * wide for their field are truncated. The opcode must exist.
 */
size_t vb_pkt_emit(uint8_t *out, const struct vb_pkt *pkt);

/* Begins a packet to that QP without any of the BTH's flags; the caller sets opcode and PSN. */
static inline void vb_pkt_begin(struct vb_pkt *pkt, uint32_t dqpn, uint16_t pkey)
{
	pkt->se = pkt->migreq = pkt->ackreq = pkt->fecn = pkt->becn = false;
	pkt->tver = pkt->pad = 0;
	pkt->pkey = pkey;
	pkt->dqpn = dqpn;
}

/* Writes a BTH whose only flags are SE, MigReq and the request for an acknowledgement. */
static inline void vb_bth_put(uint8_t *out, uint8_t opcode, bool se, bool migreq, uint16_t pkey,
			      uint32_t dqpn, bool ackreq, uint32_t psn)
{
	vb_be32_put(out, (uint32_t)opcode << 24 | (uint32_t)se << 23 | (uint32_t)migreq << 22 |
				 pkey);
	vb_be32_put(out + 4, dqpn & 0xffffff);
	vb_be32_put(out + 8, (uint32_t)ackreq << 31 | (psn & 0xffffff));
}

/*
 * Reads such a BTH back. Returns false if it has anything more, or another P_Key. Sets only the
 * BTH's fields of *pkt.
 */
static inline bool vb_bth_get(struct vb_pkt *pkt, const uint8_t *head, uint16_t pkey)
{
	const uint32_t se = 1u << 23, migreq = 1u << 22;
	uint32_t word = vb_be32_get(head), dqpn = vb_be32_get(head + 4);

	if ((word & 0xffffff & ~(se | migreq)) != pkey || dqpn > 0xffffff)
		return false;
	vb_pkt_begin(pkt, dqpn, pkey);
	pkt->opcode = (uint8_t)(word >> 24);
	pkt->se = word & se;
	pkt->migreq = word & migreq;
	word = vb_be32_get(head + 8);
	pkt->ackreq = word >> 31;
	pkt->psn = word & 0xffffff;
	return true;
}

static inline void vb_reth_put(uint8_t *out, uint64_t va, uint32_t rkey, uint32_t dma_bytes)
{
	vb_be64_put(out, va);
	vb_be32_put(out + 8, rkey);
	vb_be32_put(out + 12, dma_bytes);
}

/* A verdict in words: "short", "version", ... */
const char *vb_parse_str(enum vb_parse verdict);

/* The pad that makes a payload a multiple of 4 octets (IBTA 9.2). */
static inline uint8_t vb_pkt_pad(uint32_t payload_bytes)
{
	return (uint8_t)(-payload_bytes & 3);
}

#endif
