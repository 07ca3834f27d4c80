/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "group.h"
#include "link/ethernet.h"

/* What needs no interface; with one, tests/clients/ethernet.sh looks at it. */

static uint32_t sum_of(const uint8_t *octets, uint32_t bytes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < bytes; i++)
		sum += i & 1 ? octets[i] : (uint32_t)octets[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* RFC 1071: what stood there counts; without that, all of it adds up to ffff then. */
TEST(a_checksum_begun_is_completed)
{
	enum { START = 34 };
	uint8_t frame[91];
	uint32_t before;

	for (uint32_t bytes = START + 20; bytes <= sizeof(frame); bytes++) {
		for (uint32_t i = 0; i < bytes; i++)
			frame[i] = (uint8_t)(i * 37 + bytes);
		before = (uint32_t)frame[START + 16] << 8 | frame[START + 17];
		vb_ethernet_checksum(frame, bytes, START, 16);
		assert_int_equal(sum_of(frame + START, bytes - START) % 0xffff,
				 (0xffff - before) % 0xffff);
	}
	memset(frame, 0, sizeof(frame));
	frame[START + 5] = 0x12; /* a pseudo header's sum stands where the checksum will */
	frame[START + 16] = 0x34;
	vb_ethernet_checksum(frame, 60, START, 16);
	assert_int_equal(frame[START + 16] << 8 | frame[START + 17], 0xffff - 0x3412);
}

/* RFC 768: 0 would say that there is none; TCP knows no such thing. */
TEST(a_checksum_of_zero_is_ffff_in_udp)
{
	uint8_t frame[64] = { 0 };

	frame[40] = frame[41] = 0xff;
	vb_ethernet_checksum(frame, sizeof(frame), 34, 6);
	assert_int_equal(frame[40] << 8 | frame[41], 0xffff);
	memset(frame, 0, sizeof(frame));
	frame[50] = frame[51] = 0xff;
	vb_ethernet_checksum(frame, sizeof(frame), 34, 16);
	assert_int_equal(frame[50] << 8 | frame[51], 0);
}

TEST(what_lies_outside_is_left_alone)
{
	static const uint32_t wrong[][2] = {
		{ 64, 0 }, { 0, 63 }, { 60, 3 }, { 0xffffffff, 0 }, { 0, 0xffffffff },
		{ 0xfffffff0, 16 }, { 63, 0 },
	};
	uint8_t frame[64], copy[64];

	memset(frame, 0x5a, sizeof(frame));
	memcpy(copy, frame, sizeof(frame));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		vb_ethernet_checksum(frame, sizeof(frame), wrong[i][0], wrong[i][1]);
	assert_memory_equal(frame, copy, sizeof(frame));
}

TEST(what_names_no_interface_is_refused)
{
	struct vb_ethernet *eth = NULL;
	const char *why;

	assert_int_equal(vb_ethernet_open(&eth, "tap:", &why), EINVAL);
	assert_null(why);
	assert_int_equal(vb_ethernet_open(&eth, "tap:a_name_longer_than_any", &why), EINVAL);
	assert_null(why);
	assert_int_equal(vb_ethernet_open(&eth, "no such one", &why), ENODEV);
	assert_non_null(why);
	assert_non_null(strstr(why, "no such interface"));
	assert_null(eth);
}
