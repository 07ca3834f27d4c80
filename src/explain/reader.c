/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/reader.h"

#include <string.h>

#include "base/check.h"
#include "wire/bytes.h"

enum {
	PCAP_HEAD_BYTES = 24,
	PCAP_RECORD_BYTES = 16,
	BLOCK_BYTES_MIN = 12, /* type, and the length at both ends */
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_SIMPLE = 3,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	OPTION_COMMENT = 1,
	OPTION_SECTION_PROGRAM = 4,
	OPTION_INTERFACE_NAME = 2,
	OPTION_INTERFACE_RESOLUTION = 9,
	OPTION_PACKET_FLAGS = 2,
	OPTION_STATISTICS_LOST = 5,
};

static const uint64_t ns_per_second = 1000000000;

/* --- numbers: the caller has checked that they are there --- */

static uint32_t get32(const struct vb_reader *reader, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return reader->swapped ? __builtin_bswap32(value) : value;
}

static uint16_t get16(const struct vb_reader *reader, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return reader->swapped ? __builtin_bswap16(value) : value;
}

static uint64_t get64(const struct vb_reader *reader, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return reader->swapped ? __builtin_bswap64(value) : value;
}

static uint64_t ns_of(uint64_t units, uint64_t per_second)
{
	return units / per_second * ns_per_second +
	       (uint64_t)((unsigned __int128)(units % per_second) * ns_per_second / per_second);
}

/* --- options --- */

struct option {
	uint16_t code, bytes;
	const uint8_t *value;
};

/* Takes the next one; false: there is none, or it does not fit. */
static bool option_next(const struct vb_reader *reader, const uint8_t **at, const uint8_t *end,
			struct option *option)
{
	size_t padded;

	if (end - *at < 4)
		return false;
	option->code = get16(reader, *at);
	option->bytes = get16(reader, *at + 2);
	option->value = *at + 4;
	padded = (option->bytes + 3u) / 4 * 4;
	if (!option->code || padded > (size_t)(end - option->value))
		return false;
	*at = option->value + padded;
	return true;
}

static bool option_says(const struct option *option, const char *text)
{
	return option->bytes == strlen(text) && !memcmp(option->value, text, option->bytes);
}

/* --- blocks of pcapng: `at` is behind type and length, `end` is before the second length --- */

static bool section_begin(struct vb_reader *reader, const uint8_t *at, const uint8_t *end)
{
	static const char ours[] = "verbatim, of ";
	const size_t prefix = sizeof(ours) - 1;
	struct option option;

	if (end - at < 16)
		return false;
	reader->interfaces = 0;
	reader->ours = reader->ended = false;
	at += 16;
	while (option_next(reader, &at, end, &option)) {
		size_t bytes = option.bytes;

		if (option.code != OPTION_SECTION_PROGRAM || bytes <= prefix ||
		    memcmp(option.value, ours, prefix))
			continue;
		bytes = vb_min_u64(bytes - prefix, sizeof(reader->program) - 1);
		memcpy(reader->program, option.value + prefix, bytes);
		reader->program[bytes] = 0;
		reader->ours = true;
	}
	return true;
}

/* if_tsresol: a power of ten, or of two if the highest bit is set. */
static uint64_t resolution(uint8_t code)
{
	uint64_t units = 1;

	if (code & 0x80)
		return 1ull << vb_min_u64(code & 0x7f, 63);
	for (unsigned i = 0; i < code && units < UINT64_MAX / 10; i++)
		units *= 10;
	return units;
}

static bool interface_add(struct vb_reader *reader, const uint8_t *at, const uint8_t *end)
{
	struct vb_reader_interface *interface = &reader->interface[reader->interfaces];
	struct option option;

	if (end - at < 8 || reader->interfaces == VB_READER_INTERFACES)
		return false;
	*interface = (struct vb_reader_interface){.linktype = get16(reader, at), .units = 1000000,
						  .snap_bytes = get32(reader, at + 4)};
	at += 8;
	while (option_next(reader, &at, end, &option)) {
		if (option.code == OPTION_INTERFACE_RESOLUTION && option.bytes)
			interface->units = resolution(option.value[0]);
		if (option.code == OPTION_INTERFACE_NAME)
			interface->shm = reader->ours && option_says(&option, "shm");
	}
	reader->interfaces++;
	return true;
}

static void statistics(struct vb_reader *reader, const uint8_t *at, const uint8_t *end)
{
	struct option option;

	reader->ended = true;
	if (end - at < 12)
		return;
	at += 12;
	while (option_next(reader, &at, end, &option))
		if (option.code == OPTION_STATISTICS_LOST && option.bytes == 8)
			reader->lost += get64(reader, option.value);
}

/* What the options of a packet say of it. */
static void packet_options(const struct vb_reader *reader, const uint8_t *at, const uint8_t *end,
			   struct vb_reader_packet *packet)
{
	struct option option;

	while (option_next(reader, &at, end, &option)) {
		if (option.code == OPTION_COMMENT) {
			packet->comment = (const char *)option.value;
			packet->comment_bytes = option.bytes;
		} else if (option.code == OPTION_PACKET_FLAGS && option.bytes == 4) {
			uint32_t flags = get32(reader, option.value) & 3;

			packet->direction = flags == 1   ? VB_DIRECTION_IN
					    : flags == 2 ? VB_DIRECTION_OUT
							 : VB_DIRECTION_UNKNOWN;
		}
	}
}

static bool packet_take(struct vb_reader *reader, const uint8_t *at, const uint8_t *end,
			struct vb_reader_packet *packet)
{
	const struct vb_reader_interface *interface;
	uint32_t index, bytes;

	if (end - at < 20)
		return false;
	index = get32(reader, at);
	bytes = get32(reader, at + 12);
	if (index >= reader->interfaces || bytes > (size_t)(end - at) - 20)
		return false;
	interface = &reader->interface[index];
	*packet = (struct vb_reader_packet){
		.ns = ns_of((uint64_t)get32(reader, at + 4) << 32 | get32(reader, at + 8),
			    interface->units),
		.octets = at + 20,
		.bytes = bytes,
		.whole = get32(reader, at + 16),
		.linktype = interface->linktype,
		.interface = index,
		.shm = interface->shm,
	};
	bytes = (uint32_t)vb_min_u64((bytes + 3ull) / 4 * 4, (uint64_t)(end - at) - 20);
	packet_options(reader, at + 20 + bytes, end, packet);
	return true;
}

/* A packet with neither time nor interface. */
static bool simple_take(struct vb_reader *reader, const uint8_t *at, const uint8_t *end,
			struct vb_reader_packet *packet)
{
	uint32_t snap_bytes = reader->interface[0].snap_bytes;

	if (end - at < 4 || !reader->interfaces)
		return false;
	*packet = (struct vb_reader_packet){
		.octets = at + 4,
		.whole = get32(reader, at),
		.linktype = reader->interface[0].linktype,
	};
	packet->bytes = (uint32_t)vb_min_u64(packet->whole, (uint64_t)(end - at) - 4);
	if (snap_bytes)
		packet->bytes = (uint32_t)vb_min_u64(packet->bytes, snap_bytes);
	return true;
}

/* The byte order is the section's: its magic number says so. */
static bool order_find(struct vb_reader *reader, const uint8_t *magic)
{
	static const uint8_t little[] = {0x4d, 0x3c, 0x2b, 0x1a}, big[] = {0x1a, 0x2b, 0x3c, 0x4d};
	uint16_t one = 1;
	bool is_little = !memcmp(magic, little, 4), host_is_little = *(uint8_t *)&one;

	if (!is_little && memcmp(magic, big, 4))
		return false;
	reader->swapped = is_little != host_is_little;
	return true;
}

/* The next block: its type, and its body from `from` to `end`. */
static bool block_next(struct vb_reader *reader, uint32_t *type, const uint8_t **from,
		       const uint8_t **end)
{
	const uint8_t *at = reader->octets + reader->at;
	size_t left = reader->bytes - reader->at;
	uint32_t bytes;

	if (!left)
		return false;
	reader->damaged = true;
	if (left < BLOCK_BYTES_MIN)
		return false;
	*type = get32(reader, at);
	if (*type == BLOCK_SECTION && !order_find(reader, at + 8))
		return false;
	bytes = get32(reader, at + 4);
	if (bytes < BLOCK_BYTES_MIN || bytes % 4 || bytes > left ||
	    get32(reader, at + bytes - 4) != bytes)
		return false;
	reader->damaged = false;
	reader->at += bytes;
	*from = at + 8;
	*end = at + bytes - 4;
	return true;
}

static bool pcapng_next(struct vb_reader *reader, struct vb_reader_packet *packet)
{
	const uint8_t *from, *end;
	uint32_t type;

	while (block_next(reader, &type, &from, &end)) {
		bool fits = true;

		switch (type) {
		case BLOCK_SECTION:
			fits = section_begin(reader, from, end);
			break;
		case BLOCK_INTERFACE:
			fits = interface_add(reader, from, end);
			break;
		case BLOCK_STATISTICS:
			statistics(reader, from, end);
			break;
		case BLOCK_PACKET:
			fits = packet_take(reader, from, end, packet);
			break;
		case BLOCK_SIMPLE:
			fits = simple_take(reader, from, end, packet);
			break;
		default:
			break;
		}
		if (!fits) {
			reader->damaged = true;
			reader->at = reader->bytes;
			return false;
		}
		if (type == BLOCK_PACKET || type == BLOCK_SIMPLE)
			return true;
	}
	return false;
}

/* --- pcap --- */

static const struct {
	uint32_t magic;
	uint64_t units;
} pcap_magics[] = {
	{0xa1b2c3d4, 1000000}, /* microseconds */
	{0xa1b23c4d, 1000000000},
};

static bool pcap_open(struct vb_reader *reader)
{
	if (reader->bytes < PCAP_HEAD_BYTES)
		return false;
	for (unsigned i = 0; i < 2 * VB_ARRAY_LEN(pcap_magics); i++) {
		reader->swapped = i & 1;
		if (get32(reader, reader->octets) != pcap_magics[i / 2].magic)
			continue;
		reader->interfaces = 1;
		reader->interface[0].units = pcap_magics[i / 2].units;
		/* The upper bits say whether packets end with a checksum of Ethernet's. */
		reader->interface[0].linktype = get32(reader, reader->octets + 20) & 0xffff;
		reader->at = PCAP_HEAD_BYTES;
		return true;
	}
	return false;
}

static bool pcap_next(struct vb_reader *reader, struct vb_reader_packet *packet)
{
	const uint8_t *at = reader->octets + reader->at;
	size_t left = reader->bytes - reader->at;
	const struct vb_reader_interface *interface = &reader->interface[0];
	uint32_t bytes;

	if (!left)
		return false;
	bytes = left < PCAP_RECORD_BYTES ? 0 : get32(reader, at + 8);
	if (left < PCAP_RECORD_BYTES || bytes > left - PCAP_RECORD_BYTES) {
		reader->damaged = true;
		reader->at = reader->bytes;
		return false;
	}
	*packet = (struct vb_reader_packet){
		.ns = get32(reader, at) * ns_per_second + ns_of(get32(reader, at + 4),
								interface->units),
		.octets = at + PCAP_RECORD_BYTES,
		.bytes = bytes,
		.whole = get32(reader, at + 12),
		.linktype = interface->linktype,
	};
	reader->at += PCAP_RECORD_BYTES + bytes;
	return true;
}

/* --- either --- */

/* Of "any" of Linux, whose newer headers say it. */
static uint32_t interface_of(const struct vb_reader_packet *packet)
{
	enum { COOKED_2 = 276, INDEX_AT = 4 };
	uint32_t index = packet->interface;

	if (packet->linktype == COOKED_2 && packet->bytes >= INDEX_AT + 4)
		index += vb_be32_get(packet->octets + INDEX_AT) << 8;
	return index;
}

bool vb_reader_open(struct vb_reader *reader, const uint8_t *octets, size_t bytes)
{
	static const uint8_t section[] = {0x0a, 0x0d, 0x0d, 0x0a};

	*reader = (struct vb_reader){.octets = octets, .bytes = bytes};
	if (bytes < BLOCK_BYTES_MIN || memcmp(octets, section, sizeof(section)))
		return pcap_open(reader);
	reader->form = VB_READER_PCAPNG;
	return order_find(reader, octets + 8);
}

bool vb_reader_next(struct vb_reader *reader, struct vb_reader_packet *packet)
{
	if (!(reader->form == VB_READER_PCAPNG ? pcapng_next : pcap_next)(reader, packet))
		return false;
	packet->number = ++reader->packets;
	packet->interface = interface_of(packet);
	return true;
}
