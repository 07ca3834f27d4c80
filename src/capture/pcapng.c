/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/pcapng.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "capture/headers.h"

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	SECTION_MAGIC = 0x1a2b3c4d,
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_SECTION_PROGRAM = 4,
	OPTION_INTERFACE_NAME = 2,
	OPTION_INTERFACE_TEXT = 3,
	OPTION_INTERFACE_RESOLUTION = 9,
	OPTION_PACKET_FLAGS = 2,
	OPTION_STATISTICS_TAKEN = 4,
	OPTION_STATISTICS_LOST = 5,
	RESOLUTION_NS = 9, /* 10 to the power of -9 s */
	FLAG_IN = 1,
	FLAG_OUT = 2,
	LINKTYPE_ETHERNET = 1,
	LINKTYPE_RAW = 101, /* packets begin with their IP header */
	FRAME_BYTES_MAX = 65 << 10, /* of a ring's payload and its headers */
};

static const struct {
	const char *name, *text;
	uint32_t linktype;
} links[VB_RECORD_LINKS] = {
	[VB_RECORD_UDP] = { "udp", "verbatim: RoCEv2 datagrams", LINKTYPE_RAW },
	[VB_RECORD_SHM] = { "shm", "verbatim: shared memory, as it would be on a wire",
			    LINKTYPE_RAW },
	[VB_RECORD_ETHERNET] = { "ethernet", "verbatim: the Ethernet segment", LINKTYPE_ETHERNET },
};

/* --- blocks: `at` is where the next octet goes --- */

static uint8_t *put(uint8_t *at, const void *from, size_t bytes)
{
	memcpy(at, from, bytes);
	return at + bytes;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	return put(at, &value, sizeof(value));
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	return put(at, &value, sizeof(value));
}

/* The higher half of a time comes first, whatever the byte order. */
static uint8_t *put_time(uint8_t *at, uint64_t ns)
{
	return put32(put32(at, (uint32_t)(ns >> 32)), (uint32_t)ns);
}

/* Fills up to a multiple of four octets since `from`. */
static uint8_t *pad(uint8_t *at, const uint8_t *from)
{
	while ((at - from) % 4)
		*at++ = 0;
	return at;
}

static uint8_t *put_option(uint8_t *at, uint16_t code, const void *value, size_t bytes)
{
	uint8_t *from = at;

	at = put16(put16(at, code), (uint16_t)bytes);
	return pad(put(at, value, bytes), from);
}

static uint8_t *put_text(uint8_t *at, uint16_t code, const char *text)
{
	return put_option(at, code, text, strlen(text));
}

/* The lengths, which a block has at both of its ends. */
static uint8_t *block_end(uint8_t *block, uint8_t *at)
{
	uint32_t bytes;

	at = put_option(at, OPTION_END, "", 0);
	bytes = (uint32_t)(at - block) + 4;
	put32(block + 4, bytes);
	return put32(at, bytes);
}

static uint8_t *block_begin(uint8_t *at, uint32_t type)
{
	return put32(put32(at, type), 0);
}

/* --- the file's beginning and end --- */

static uint8_t *put_interface(uint8_t *block, enum vb_record_link link)
{
	const uint8_t resolution = RESOLUTION_NS;
	uint8_t *at = block_begin(block, BLOCK_INTERFACE);

	at = put32(at, links[link].linktype); /* 16 bits, and 16 that are reserved */
	at = put32(at, 0);		      /* packets are never cut */
	at = put_text(at, OPTION_INTERFACE_NAME, links[link].name);
	at = put_text(at, OPTION_INTERFACE_TEXT, links[link].text);
	at = put_option(at, OPTION_INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	return block_end(block, at);
}

size_t vb_pcapng_begin(uint8_t out[VB_PCAPNG_BYTES_MAX], const char *program)
{
	char text[VB_PCAPNG_COMMENT_BYTES];
	uint8_t *at = block_begin(out, BLOCK_SECTION);

	at = put32(at, SECTION_MAGIC);
	at = put16(put16(at, 1), 0); /* version 1.0 */
	at = put32(put32(at, UINT32_MAX), UINT32_MAX); /* the section's length is not known */
	snprintf(text, sizeof(text), "verbatim, of %s", program);
	at = put_text(at, OPTION_SECTION_PROGRAM, text);
	at = block_end(out, at);
	for (unsigned i = 0; i < VB_RECORD_LINKS; i++)
		at = put_interface(at, (enum vb_record_link)i);
	return (size_t)(at - out);
}

size_t vb_pcapng_end(uint8_t out[VB_PCAPNG_BYTES_MAX],
		     const struct vb_pcapng_counts counts[VB_RECORD_LINKS], uint64_t ns)
{
	uint8_t *at = out;

	for (unsigned i = 0; i < VB_RECORD_LINKS; i++) {
		uint64_t seen = counts[i].taken + counts[i].lost, lost = counts[i].lost;
		uint8_t *block = at;

		at = put32(block_begin(at, BLOCK_STATISTICS), i);
		at = put_time(at, ns);
		at = put_option(at, OPTION_STATISTICS_TAKEN, &seen, sizeof(seen));
		at = put_option(at, OPTION_STATISTICS_LOST, &lost, sizeof(lost));
		at = block_end(block, at);
	}
	return (size_t)(at - out);
}

/* --- packets --- */

size_t vb_pcapng_packet(uint8_t out[VB_PCAPNG_BYTES_MAX], const struct vb_record *record,
			uint64_t ns, const char *comment)
{
	uint32_t frame = vb_record_bytes(record), flags = record->sent ? FLAG_OUT : FLAG_IN;
	uint32_t headers = record->link == VB_RECORD_ETHERNET ? 0 : vb_headers_bytes(&record->path);
	uint8_t *at = block_begin(out, BLOCK_PACKET), *packet;

	if (frame > FRAME_BYTES_MAX)
		return 0;
	at = put_time(put32(at, record->link), ns);
	at = put32(put32(at, headers + frame), headers + frame);
	packet = at;
	at += headers;
	for (unsigned i = 0; i < VB_RECORD_PIECES && record->piece[i].iov_len; i++)
		at = put(at, record->piece[i].iov_base, record->piece[i].iov_len);
	if (headers)
		vb_headers_put(packet, &record->path, record->id, frame);
	at = pad(at, packet);
	at = put_option(at, OPTION_PACKET_FLAGS, &flags, sizeof(flags));
	if (*comment)
		at = put_text(at, OPTION_COMMENT, comment);
	at = block_end(out, at);
	return (size_t)(at - out);
}

void vb_pcapng_comment(char out[VB_PCAPNG_COMMENT_BYTES], const struct vb_record *record,
		       const char *program)
{
	char qp[24] = "", wr[32] = "";

	if (record->qpn)
		snprintf(qp, sizeof(qp), ", QPN 0x%x", record->qpn);
	if (record->has_wr)
		snprintf(wr, sizeof(wr), ", wr_id 0x%" PRIx64, record->wr_id);
	snprintf(out, VB_PCAPNG_COMMENT_BYTES, "%s%s%s%s%s%s", program, qp, wr,
		 record->again ? ", sent again" : "",
		 !record->fate ? "" : record->dropped ? ", dropped: " : ", ",
		 record->fate ? record->fate : "");
}
