/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_FRAMES_H
#define VB_TESTS_FRAMES_H

/*
 * Ethernet frames, put together header by header; frame_close() fills in the lengths of IP. What
 * the headers say beside that is always the same: source and destination can be told apart.
 */

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FRAME_BYTES_MAX 2048
#define FRAME_IPS_MAX 4

struct frame {
	uint8_t octets[FRAME_BYTES_MAX];
	uint32_t bytes;
	uint32_t ip_at[FRAME_IPS_MAX], ips;
};

static const uint8_t frame_dst_mac[6] = { 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0x01 };
static const uint8_t frame_src_mac[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x02 };
#define FRAME_SRC_IPV4 0x0a010203u
#define FRAME_DST_IPV4 0xc0a80509u
#define FRAME_TOS 0x48
#define FRAME_TTL 61
#define FRAME_FLOW_LABEL 0x54321u
#define FRAME_SPORT 1234
#define FRAME_DPORT 443
#define FRAME_VNI 0x123456u
#define FRAME_GRE_KEY 0xdeadbeefu
#define FRAME_SPI 0x01020304u
#define FRAME_ESP_SEQ 7u

static inline void frame_put16(uint8_t *at, uint16_t v)
{
	v = htobe16(v);
	memcpy(at, &v, sizeof(v));
}

static inline void frame_put32(uint8_t *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, sizeof(v));
}

/* Zeros; where they are. */
static inline uint8_t *frame_room(struct frame *frame, uint32_t bytes)
{
	uint8_t *at = frame->octets + frame->bytes;

	memset(at, 0, bytes);
	frame->bytes += bytes;
	return at;
}

static inline void frame_eth(struct frame *frame, const uint8_t dst[6], uint16_t ethertype)
{
	uint8_t *at = frame_room(frame, 14);

	memcpy(at, dst, 6);
	memcpy(at + 6, frame_src_mac, 6);
	frame_put16(at + 12, ethertype);
}

/* Behind an Ethernet header, whose type becomes `tag`. */
static inline void frame_vlan(struct frame *frame, uint16_t tag, uint16_t tci)
{
	uint8_t *at = frame_room(frame, 4);

	memcpy(at + 2, at - 2, 2);
	frame_put16(at - 2, tag);
	frame_put16(at, tci);
}

static inline void frame_ipv4(struct frame *frame, uint8_t proto, uint16_t fragment)
{
	uint8_t *at;

	frame->ip_at[frame->ips++] = frame->bytes;
	at = frame_room(frame, 20);
	at[0] = 0x45;
	at[1] = FRAME_TOS;
	frame_put16(at + 6, fragment);
	at[8] = FRAME_TTL;
	at[9] = proto;
	frame_put32(at + 12, FRAME_SRC_IPV4);
	frame_put32(at + 16, FRAME_DST_IPV4);
}

static inline void frame_ipv6(struct frame *frame, uint8_t next)
{
	uint8_t *at;

	frame->ip_at[frame->ips++] = frame->bytes;
	at = frame_room(frame, 40);
	frame_put32(at, 6u << 28 | (uint32_t)FRAME_TOS << 20 | FRAME_FLOW_LABEL);
	at[6] = next;
	at[7] = FRAME_TTL;
	for (unsigned i = 0; i < 16; i++) {
		at[8 + i] = (uint8_t)(0x20 + i);
		at[24 + i] = (uint8_t)(0x40 + i);
	}
}

/* What most frames begin with, for an `ethertype`, IPv4 or IPv6. */
static inline struct frame frame_of(uint16_t ethertype)
{
	struct frame frame = { .bytes = 0 };

	frame_eth(&frame, frame_dst_mac, ethertype);
	return frame;
}

static inline struct frame frame_of_ipv4(uint8_t proto, uint16_t fragment)
{
	struct frame frame = frame_of(0x0800);

	frame_ipv4(&frame, proto, fragment);
	return frame;
}

static inline struct frame frame_of_ipv6(uint8_t next)
{
	struct frame frame = frame_of(0x86dd);

	frame_ipv6(&frame, next);
	return frame;
}

/* An extension header of 8 octets and so many times 8 more. */
static inline void frame_extension(struct frame *frame, uint8_t next, uint8_t more)
{
	uint8_t *at = frame_room(frame, 8 + 8u * more);

	at[0] = next;
	at[1] = more;
}

/* offset: in octets, a multiple of 8. */
static inline void frame_ipv6_fragment(struct frame *frame, uint8_t next, uint16_t offset,
				       bool more)
{
	uint8_t *at = frame_room(frame, 8);

	at[0] = next;
	frame_put16(at + 2, (uint16_t)(offset | more));
}

static inline void frame_udp(struct frame *frame, uint16_t dport)
{
	uint8_t *at = frame_room(frame, 8);

	frame_put16(at, FRAME_SPORT);
	frame_put16(at + 2, dport);
}

static inline void frame_tcp(struct frame *frame, uint32_t option_words)
{
	uint8_t *at = frame_room(frame, 20 + 4 * option_words);

	frame_put16(at, FRAME_SPORT);
	frame_put16(at + 2, FRAME_DPORT);
	at[12] = (uint8_t)((5 + option_words) << 4);
}

static inline void frame_vxlan(struct frame *frame)
{
	uint8_t *at = frame_room(frame, 8);

	at[0] = 8;
	frame_put32(at + 4, FRAME_VNI << 8);
}

/* flags: C 0x8000, K 0x2000, S 0x1000. */
static inline void frame_gre(struct frame *frame, uint16_t flags, uint16_t ethertype)
{
	frame_put16(frame_room(frame, 4), flags);
	frame_put16(frame->octets + frame->bytes - 2, ethertype);
	if (flags & 0x8000)
		frame_room(frame, 4);
	if (flags & 0x2000)
		frame_put32(frame_room(frame, 4), FRAME_GRE_KEY);
	if (flags & 0x1000)
		frame_room(frame, 4);
}

static inline void frame_label(struct frame *frame, uint32_t label, bool bottom)
{
	frame_put32(frame_room(frame, 4), label << 12 | (uint32_t)bottom << 8 | 64);
}

static inline void frame_esp(struct frame *frame)
{
	frame_put32(frame_room(frame, 4), FRAME_SPI);
	frame_put32(frame_room(frame, 4), FRAME_ESP_SEQ);
}

static inline void frame_data(struct frame *frame, uint32_t bytes)
{
	memset(frame_room(frame, bytes), 0x5a, bytes);
}

/* Every IP packet that was begun reaches to here. */
static inline void frame_close(struct frame *frame)
{
	for (uint32_t i = 0; i < frame->ips; i++) {
		uint8_t *ip = frame->octets + frame->ip_at[i];
		uint16_t bytes = (uint16_t)(frame->bytes - frame->ip_at[i]);

		if (ip[0] >> 4 == 4)
			frame_put16(ip + 2, bytes);
		else
			frame_put16(ip + 4, (uint16_t)(bytes - 40));
	}
}

#endif
