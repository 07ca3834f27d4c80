/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_EXPLAIN_SEEN_H
#define VB_EXPLAIN_SEEN_H

/*
 * A packet of a capture as RoCEv2: what stands before its BTH, what the BTH says, and what the
 * comment of one of our captures says (docs/capture.md). Pure; any thread.
 */

#include "base/path.h"
#include "explain/reader.h"
#include "wire/packet.h"

enum { VB_COMMENT_PROGRAM_BYTES = 32, VB_COMMENT_FATE_BYTES = 64 };

/* "server (pid 7), QPN 0x4141, wr_id 0x1, sent again, dropped: drop_icrc" */
struct vb_comment {
	char program[VB_COMMENT_PROGRAM_BYTES]; /* "": the comment is none of ours */
	uint32_t pid, qpn;
	uint64_t wr_id;
	bool has_wr, again, dropped;
	char fate[VB_COMMENT_FATE_BYTES]; /* "": nothing special */
};

/* False: it is none of ours, and *comment is empty. */
bool vb_comment_parse(struct vb_comment *comment, const char *text, size_t bytes);

/* Where the datagram begins that a packet is of, in the capture. */
struct vb_seen_datagram {
	const uint8_t *ip;
	uint32_t ip_bytes, left; /* of IP's header; of the capture's octets, from there on */
	uint32_t segment_bytes;	 /* 0: it is one packet */
	uint16_t segment;	 /* which one it is */
};

struct vb_seen {
	struct vb_path path;
	struct vb_seen_datagram datagram;
	const uint8_t *frame; /* BTH to ICRC, in the capture */
	uint32_t bytes;	      /* of it, as it was on the wire */
	uint32_t wire_bytes;  /* with the headers of IP and UDP */
	bool cut;	      /* the capture does not have all of it */
	uint8_t head_bytes;   /* of its headers: fewer than they are, if it was cut there */
	bool merged;	      /* several packets yet, which cannot be told apart */
	bool marked;	      /* on its way: congestion experienced (RFC 3168) */
	bool icrc_wrong;
	enum vb_parse verdict;
	struct vb_pkt pkt;
	struct vb_comment comment;
};

enum vb_sight {
	VB_SIGHT_ROCE,
	VB_SIGHT_OTHER,	   /* not a datagram to port 4791 */
	VB_SIGHT_FRAGMENT, /* of one, perhaps: pieces are not joined */
	VB_SIGHT_CUT,	   /* before its BTH ends */
	VB_SIGHT_FOREIGN,  /* the headers before IP's are not known */
};

/*
 * Reads it. Points into the packet's octets. What a machine sends in one piece, to be cut later
 * (UDP_SEGMENT, see udp(7)), is captured in one piece: this is its first packet.
 */
enum vb_sight vb_seen_read(struct vb_seen *seen, const struct vb_reader_packet *packet);

/* The next packet of the same piece; false: there is none. */
bool vb_seen_next(struct vb_seen *seen);

/* Reads headers of which that many octets are there; the others count as zeros. False: none. */
bool vb_seen_head(struct vb_pkt *pkt, const uint8_t *frame, uint8_t head_bytes);

#endif
