/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include "capture/headers.h"
#include "capture/pcapng.h"

/* Reads blocks as the draft of pcapng describes them, with nothing of ours. */

static uint8_t out[VB_PCAPNG_BYTES_MAX];

static uint32_t u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint16_t u16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The block at that place: its lengths at both ends agree. Returns its length. */
static uint32_t block(const uint8_t *at, uint32_t type)
{
	uint32_t bytes = u32(at + 4);

	assert_int_equal(u32(at), type);
	assert_int_equal(bytes % 4, 0);
	assert_int_equal(u32(at + bytes - 4), bytes);
	return bytes;
}

/* The option of that code among those from `at` to the block's end. Returns its length. */
static unsigned option(const uint8_t *at, const uint8_t *end, unsigned code, const uint8_t **value)
{
	while (u16(at)) {
		assert_true(at < end);
		if (u16(at) == code) {
			*value = at + 4;
			return u16(at + 2);
		}
		at += 4 + (u16(at + 2) + 3) / 4 * 4;
	}
	fail_msg("no option %u", code);
	return 0;
}

static void assert_text(const uint8_t *at, const uint8_t *end, unsigned code, const char *text)
{
	const uint8_t *value;
	unsigned bytes = option(at, end, code, &value);

	assert_int_equal(bytes, strlen(text));
	assert_memory_equal(value, text, bytes);
}

TEST(a_file_begins_with_its_section_and_the_links)
{
	static const char *const names[] = {"udp", "shm", "ethernet"};
	static const uint16_t types[] = {101, 101, 1};
	size_t bytes = vb_pcapng_begin(out, "server (pid 7)"), at;
	const uint8_t *value;

	assert_int_equal(u32(out + 8), 0x1a2b3c4d);
	assert_int_equal(u32(out + 12), 1);
	assert_int_equal(u32(out + 16) & u32(out + 20), UINT32_MAX);
	at = block(out, 0x0a0d0d0a);
	assert_text(out + 24, out + at, 4, "verbatim, of server (pid 7)");
	for (unsigned i = 0; i < 3; i++) {
		uint32_t length = block(out + at, 1);

		assert_int_equal(u16(out + at + 8), types[i]);
		assert_int_equal(u32(out + at + 12), 0);
		assert_text(out + at + 16, out + at + length, 2, names[i]);
		assert_int_equal(option(out + at + 16, out + at + length, 9, &value), 1);
		assert_int_equal(*value, 9);
		at += length;
	}
	assert_int_equal(at, bytes);
}

static struct vb_record record_of(enum vb_record_link link)
{
	static uint8_t frame[] = "header and payload and tail";

	return (struct vb_record){
		.link = link,
		.sent = true,
		.path = {.src = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
			 .dst = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}},
		.piece = {{frame, 6}, {frame + 6, 13}, {frame + 19, 8}},
	};
}

TEST(a_packet_has_its_headers_direction_and_comment)
{
	struct vb_record record = record_of(VB_RECORD_SHM);
	size_t bytes = vb_pcapng_packet(out, &record, 0x1122334455667788, "a comment");
	const uint8_t *value;

	assert_int_equal(block(out, 6), bytes);
	assert_int_equal(u32(out + 8), 1);
	assert_int_equal(u32(out + 12), 0x11223344);
	assert_int_equal(u32(out + 16), 0x55667788);
	assert_int_equal(u32(out + 20), 28 + 27);
	assert_int_equal(u32(out + 24), 28 + 27);
	assert_int_equal(out[28], 0x45);
	assert_int_equal(out[28 + 3], 28 + 27);
	assert_memory_equal(out + 28 + 28, "header and payload and tail", 27);
	assert_int_equal(option(out + 28 + 56, out + bytes, 2, &value), 4);
	assert_int_equal(u32(value), 2);
	assert_text(out + 28 + 56, out + bytes, 1, "a comment");
	record.sent = false;
	bytes = vb_pcapng_packet(out, &record, 0, "");
	assert_int_equal(option(out + 28 + 56, out + bytes, 2, &value), 4);
	assert_int_equal(u32(value), 1);
}

TEST(an_ethernet_frame_has_no_headers_but_its_own)
{
	struct vb_record record = record_of(VB_RECORD_ETHERNET);
	size_t bytes = vb_pcapng_packet(out, &record, 0, "");

	assert_int_equal(block(out, 6), bytes);
	assert_int_equal(u32(out + 8), 2);
	assert_int_equal(u32(out + 20), 27);
	assert_memory_equal(out + 28, "header and payload and tail", 27);
}

TEST(the_longest_packet_and_comment_fit_and_longer_ones_are_refused)
{
	static uint8_t large[70000];
	char comment[VB_PCAPNG_COMMENT_BYTES];
	struct vb_record record = record_of(VB_RECORD_SHM);

	memset(comment, 'x', sizeof(comment));
	comment[sizeof(comment) - 1] = '\0';
	record.piece[1] = (struct iovec){large, (65 << 10) - 14};
	assert_in_range(vb_pcapng_packet(out, &record, 0, comment), 65 << 10, sizeof(out));
	record.piece[1].iov_len++;
	assert_int_equal(vb_pcapng_packet(out, &record, 0, comment), 0);
}

TEST(the_end_says_what_was_lost)
{
	const struct vb_pcapng_counts counts[] = {{0, 0}, {5, 2}, {1, 0}};
	size_t bytes = vb_pcapng_end(out, counts, 1), at = 0;
	const uint8_t *value;

	for (unsigned i = 0; i < 3; i++) {
		uint32_t length = block(out + at, 5);

		assert_int_equal(u32(out + at + 8), i);
		assert_int_equal(option(out + at + 20, out + at + length, 4, &value), 8);
		assert_int_equal(u32(value), counts[i].taken + counts[i].lost);
		assert_int_equal(option(out + at + 20, out + at + length, 5, &value), 8);
		assert_int_equal(u32(value), counts[i].lost);
		at += length;
	}
	assert_int_equal(at, bytes);
}

static void assert_comment(const struct vb_record *record, const char *text)
{
	char comment[VB_PCAPNG_COMMENT_BYTES];

	vb_pcapng_comment(comment, record, "client (pid 7)");
	assert_string_equal(comment, text);
}

TEST(a_comment_says_what_is_known)
{
	struct vb_record record = {.sent = true};

	assert_comment(&record, "client (pid 7)");
	record.qpn = 0x4141;
	assert_comment(&record, "client (pid 7), QPN 0x4141");
	record.has_wr = true;
	record.wr_id = 0x1234567890;
	record.again = true;
	assert_comment(&record, "client (pid 7), QPN 0x4141, wr_id 0x1234567890, sent again");
	record = (struct vb_record){.qpn = 0x4141, .fate = "a repeated request"};
	assert_comment(&record, "client (pid 7), QPN 0x4141, a repeated request");
	record.dropped = true;
	record.fate = "drop_icrc";
	assert_comment(&record, "client (pid 7), QPN 0x4141, dropped: drop_icrc");
}
