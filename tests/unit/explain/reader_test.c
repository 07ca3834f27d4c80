/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures of either form and byte order, and what ends them. */
#include <stdlib.h>

#include "captures.h"
#include "explain/reader.h"
#include "group.h"

static struct capture capture;
static const uint8_t packet[6] = "octets";

static uint32_t count(struct vb_reader *reader)
{
	struct vb_reader_packet got;
	uint32_t packets = 0;

	while (vb_reader_next(reader, &got))
		packets++;
	return packets;
}

TEST(a_packet_has_its_time_direction_and_comment)
{
	struct vb_reader reader;
	struct vb_reader_packet got;

	capture_begin(&capture);
	capture_packet(&capture, packet, sizeof(packet), CAPTURE_OUT, "why");
	capture_packet(&capture, packet, 5, CAPTURE_IN, NULL);
	assert_true(vb_reader_open(&reader, capture.octets, capture.bytes));
	assert_true(vb_reader_next(&reader, &got));
	assert_int_equal(got.ns, CAPTURE_STEP_NS);
	assert_int_equal(got.bytes, sizeof(packet));
	assert_memory_equal(got.octets, packet, sizeof(packet));
	assert_int_equal(got.direction, VB_DIRECTION_OUT);
	assert_int_equal(got.comment_bytes, 3);
	assert_memory_equal(got.comment, "why", 3);
	assert_int_equal(got.linktype, 101);
	assert_int_equal(got.number, 1);
	assert_true(vb_reader_next(&reader, &got));
	assert_int_equal(got.bytes, 5);
	assert_int_equal(got.direction, VB_DIRECTION_IN);
	assert_null(got.comment);
	assert_false(vb_reader_next(&reader, &got));
	assert_false(reader.damaged);
	assert_true(reader.ours);
	assert_false(reader.ended);
	assert_string_equal(reader.program, "server (pid 7)");
}

TEST(statistics_end_a_capture)
{
	struct vb_reader reader;

	capture_begin(&capture);
	capture_end(&capture);
	assert_true(vb_reader_open(&reader, capture.octets, capture.bytes));
	assert_int_equal(count(&reader), 0);
	assert_true(reader.ended);
}

static void swap_words(uint8_t *octets, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++) {
		uint32_t word;

		memcpy(&word, octets + 4 * i, 4);
		word = __builtin_bswap32(word);
		memcpy(octets + 4 * i, &word, 4);
	}
}

TEST(a_pcap_of_the_other_byte_order_is_read)
{
	struct vb_reader reader;
	struct vb_reader_packet got;

	capture_begin_plain(&capture);
	capture.ns = 5000000000;
	capture_packet(&capture, packet, sizeof(packet), 0, NULL);
	swap_words(capture.octets, 10); /* the head and the record's */
	assert_true(vb_reader_open(&reader, capture.octets, capture.bytes));
	assert_true(vb_reader_next(&reader, &got));
	assert_int_equal(got.ns, 5000000000 + CAPTURE_STEP_NS);
	assert_int_equal(got.bytes, sizeof(packet));
	assert_int_equal(got.linktype, 101);
	assert_int_equal(got.direction, VB_DIRECTION_UNKNOWN);
}

TEST(microseconds_are_a_thousand_times_as_long)
{
	static const uint32_t magic = 0xa1b2c3d4;
	struct vb_reader reader;
	struct vb_reader_packet got;

	capture_begin_plain(&capture);
	memcpy(capture.octets, &magic, sizeof(magic));
	capture_packet(&capture, packet, sizeof(packet), 0, NULL);
	assert_true(vb_reader_open(&reader, capture.octets, capture.bytes));
	assert_true(vb_reader_next(&reader, &got));
	assert_int_equal(got.ns, CAPTURE_STEP_NS * 1000ull);
}

/* In memory of exactly that size, so that a sanitizer sees a read beyond it. */
static void cut_everywhere(void)
{
	for (uint32_t bytes = 0; bytes <= capture.bytes; bytes++) {
		uint8_t *copy = malloc(bytes + !bytes);
		struct vb_reader reader;

		memcpy(copy, capture.octets, bytes);
		if (vb_reader_open(&reader, copy, bytes))
			assert_true(count(&reader) <= 2);
		free(copy);
	}
}

TEST(a_file_may_end_anywhere)
{
	capture_begin(&capture);
	capture_packet(&capture, packet, sizeof(packet), CAPTURE_OUT, "why");
	capture_packet(&capture, packet, sizeof(packet), CAPTURE_OUT, "why");
	cut_everywhere();
	capture_begin_plain(&capture);
	capture_packet(&capture, packet, sizeof(packet), 0, NULL);
	capture_packet(&capture, packet, sizeof(packet), 0, NULL);
	cut_everywhere();
}

TEST(what_ends_within_a_packet_is_damaged)
{
	struct vb_reader reader;

	capture_begin(&capture);
	capture_packet(&capture, packet, sizeof(packet), 0, NULL);
	capture_packet(&capture, packet, sizeof(packet), 0, NULL);
	assert_true(vb_reader_open(&reader, capture.octets, capture.bytes - 1));
	assert_int_equal(count(&reader), 1);
	assert_true(reader.damaged);
}

TEST(what_is_no_capture_is_refused)
{
	static const uint8_t request[] = "GET / HTTP/1.1\r\n\r\nand more";
	struct vb_reader reader;

	assert_false(vb_reader_open(&reader, request, sizeof(request)));
	assert_false(vb_reader_open(&reader, packet, 0));
}
