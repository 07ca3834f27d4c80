/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_CAPTURES_H
#define VB_TESTS_CAPTURES_H

/*
 * Captures composed in memory, octet by octet: pcapng as ours are, with directions and comments, or
 * pcap as tcpdump's are, without. Hosts are 10.0.0.1 and so on, by their last octet.
 */

#include <string.h>

#include "base/check.h"
#include "wire/icrc.h"
#include "wire/packet.h"

enum {
	CAPTURE_BYTES_MAX = 1 << 16,
	CAPTURE_IN = 1,
	CAPTURE_OUT = 2,
	CAPTURE_STEP_NS = 1000000, /* from packet to packet */
	CAPTURE_HEADERS_BYTES = 28,
};

struct capture {
	uint8_t octets[CAPTURE_BYTES_MAX];
	uint32_t bytes;
	uint64_t ns;
	bool plain;	     /* pcap */
	uint32_t interface;  /* of pcapng, that the next packet is seen at */
	uint32_t snap_bytes; /* of a packet that are kept; 0: all */
};

static inline void capture_put(struct capture *c, const void *octets, uint32_t bytes)
{
	vb_check(bytes <= CAPTURE_BYTES_MAX - c->bytes);
	memcpy(c->octets + c->bytes, octets, bytes);
	c->bytes += bytes;
}

static inline void capture_put32(struct capture *c, uint32_t value)
{
	capture_put(c, &value, sizeof(value));
}

static inline void capture_pad(struct capture *c)
{
	static const uint8_t zeros[4];

	capture_put(c, zeros, -c->bytes & 3);
}

static inline void capture_option(struct capture *c, uint16_t code, const void *value,
				  size_t bytes)
{
	capture_put32(c, code | (uint32_t)bytes << 16);
	capture_put(c, value, (uint32_t)bytes);
	capture_pad(c);
}

/* The lengths of a block that began there. */
static inline void capture_close(struct capture *c, uint32_t from)
{
	uint32_t bytes = c->bytes + 4 - from;

	memcpy(c->octets + from + 4, &bytes, sizeof(bytes));
	capture_put32(c, bytes);
}

static inline uint32_t capture_open(struct capture *c, uint32_t type)
{
	uint32_t from = c->bytes;

	capture_put32(c, type);
	capture_put32(c, 0);
	return from;
}

static inline void capture_begin_plain(struct capture *c)
{
	static const uint32_t head[] = { 0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 101 };

	memset(c, 0, sizeof(*c));
	c->plain = true;
	capture_put(c, head, sizeof(head));
}

static inline void capture_interface(struct capture *c, const char *name)
{
	static const uint8_t resolution = 9;
	uint32_t from = capture_open(c, 1);

	capture_put32(c, 101);
	capture_put32(c, 0);
	capture_option(c, 2, name, strlen(name));
	capture_option(c, 9, &resolution, 1);
	capture_put32(c, 0);
	capture_close(c, from);
}

static inline void capture_begin(struct capture *c)
{
	static const char program[] = "verbatim, of server (pid 7)";
	uint32_t from;

	memset(c, 0, sizeof(*c));
	from = capture_open(c, 0x0a0d0d0a);
	capture_put32(c, 0x1a2b3c4d);
	capture_put32(c, 1);
	capture_put32(c, UINT32_MAX);
	capture_put32(c, UINT32_MAX);
	capture_option(c, 4, program, sizeof(program) - 1);
	capture_put32(c, 0);
	capture_close(c, from);
	capture_interface(c, "udp");
}

/* The statistics that an orderly end has. */
static inline void capture_end(struct capture *c)
{
	uint32_t from = capture_open(c, 5);

	capture_put32(c, 0);
	capture_put32(c, 0);
	capture_put32(c, 0);
	capture_put32(c, 0);
	capture_close(c, from);
}

/* An IP packet, as it lies there. */
static inline void capture_packet(struct capture *c, const uint8_t *ip, uint32_t bytes,
				  uint32_t direction, const char *comment)
{
	uint32_t from = 0, kept = c->snap_bytes && c->snap_bytes < bytes ? c->snap_bytes : bytes;

	c->ns += CAPTURE_STEP_NS;
	if (c->plain) {
		capture_put32(c, (uint32_t)(c->ns / 1000000000));
		capture_put32(c, (uint32_t)(c->ns % 1000000000));
	} else {
		from = capture_open(c, 6);
		capture_put32(c, c->interface);
		capture_put32(c, (uint32_t)(c->ns >> 32));
		capture_put32(c, (uint32_t)c->ns);
	}
	capture_put32(c, kept);
	capture_put32(c, bytes);
	capture_put(c, ip, kept);
	if (c->plain)
		return;
	capture_pad(c);
	if (direction)
		capture_option(c, 2, &direction, sizeof(direction));
	if (comment)
		capture_option(c, 1, comment, strlen(comment));
	capture_put32(c, 0);
	capture_close(c, from);
}

static inline uint32_t capture_frame(uint8_t *frame, const struct vb_pkt *pkt,
				     const struct vb_path *path, uint16_t ip_id)
{
	struct vb_pkt whole = *pkt;
	uint32_t bytes;

	whole.pad = vb_pkt_pad(pkt->payload_bytes);
	if (!whole.pkey)
		whole.pkey = 0xffff;
	bytes = (uint32_t)vb_pkt_emit(frame, &whole);
	memset(frame + bytes, 0, pkt->payload_bytes + whole.pad);
	if (pkt->payload)
		memcpy(frame + bytes, pkt->payload, pkt->payload_bytes);
	bytes += pkt->payload_bytes + whole.pad + VB_ICRC_BYTES;
	vb_icrc_put(frame + bytes - VB_ICRC_BYTES, vb_icrc_frame(path, frame, bytes, ip_id));
	return bytes;
}

/*
 * Packets in one piece, as UDP_SEGMENT leaves them. From host to host; payload NULL: zeros. tos: 3
 * is marked.
 */
static inline void capture_add_merged(struct capture *c, const struct vb_pkt *pkt, uint16_t count,
				      uint8_t from, uint8_t to, uint8_t tos, uint32_t direction,
				      const char *comment)
{
	uint8_t ip[CAPTURE_HEADERS_BYTES + 4096 + 128] = { 0x45, tos, 0, 0, 0, 0, 0x40, 0, 64, 17 };
	struct vb_path path = {
		.src = { [10] = 0xff, 0xff, 10, 0, 0, from },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, to },
		.sport = 49152,
	};
	uint32_t bytes = 0;

	for (uint16_t i = 0; i < count; i++)
		bytes += capture_frame(ip + CAPTURE_HEADERS_BYTES + bytes, &pkt[i], &path, i);
	vb_be16_put(ip + 2, (uint16_t)(CAPTURE_HEADERS_BYTES + bytes));
	memcpy(ip + 12, path.src + 12, 4);
	memcpy(ip + 16, path.dst + 12, 4);
	vb_be16_put(ip + 20, path.sport);
	vb_be16_put(ip + 22, VB_ROCE_PORT);
	vb_be16_put(ip + 24, (uint16_t)(8 + bytes));
	capture_packet(c, ip, CAPTURE_HEADERS_BYTES + bytes, direction, comment);
}

static inline void capture_add(struct capture *c, const struct vb_pkt *pkt, uint8_t from,
			       uint8_t to, uint8_t tos, uint32_t direction, const char *comment)
{
	capture_add_merged(c, pkt, 1, from, to, tos, direction, comment);
}

#endif
