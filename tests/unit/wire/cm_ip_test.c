/* SPDX-License-Identifier: BSD-2-Clause */
/* Service ids and the IP header in private data (IBTA Annex A11), octet by octet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "wire/cm_ip.h"

/* clang-format off */
static const struct sample {
	struct vb_cm_ip ip;
	uint8_t octets[VB_CM_IP_BYTES];
} samples[] = {
	{
		.ip = {
			.ipv4 = true,
			.sport = 0xc001,
			.src = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
			.dst = { [10] = 0xff, 0xff, 10, 4, 5, 6 },
		},
		.octets = { 0x00, 0x40, 0xc0, 0x01,
			    [16] = 10, 1, 2, 3,
			    [32] = 10, 4, 5, 6 },
	},
	{
		.ip = {
			.sport = 0x0102,
			.src = { 0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
			.dst = { 0xfe, 0x80, [15] = 1 },
		},
		.octets = { 0x00, 0x60, 0x01, 0x02,
			    0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
			    0xfe, 0x80, [35] = 1 },
	},
	/* A program that says IPv6 of an IPv4 address means it. */
	{
		.ip = {
			.sport = 7,
			.src = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
			.dst = { [10] = 0xff, 0xff, 10, 4, 5, 6 },
		},
		.octets = { 0x00, 0x60, 0x00, 0x07,
			    [14] = 0xff, 0xff, 10, 1, 2, 3,
			    [30] = 0xff, 0xff, 10, 4, 5, 6 },
	},
};
/* clang-format on */

static void assert_parses(const uint8_t *octets, const struct vb_cm_ip *expected)
{
	struct vb_cm_ip ip;

	assert_true(vb_cm_ip_parse(&ip, octets));
	assert_int_equal(ip.ipv4, expected->ipv4);
	assert_int_equal(ip.sport, expected->sport);
	assert_memory_equal(ip.src, expected->src, VB_GID_BYTES);
	assert_memory_equal(ip.dst, expected->dst, VB_GID_BYTES);
}

static void test_parse(void **state)
{
	for (size_t i = 0; i < VB_ARRAY_LEN(samples); i++)
		assert_parses(samples[i].octets, &samples[i].ip);
}

/* The lower half of the version's octet, and what stands before an IPv4 address. */
static void test_reserved_bits_do_not_matter(void **state)
{
	uint8_t octets[VB_CM_IP_BYTES];

	memcpy(octets, samples[0].octets, sizeof(octets));
	octets[1] |= 0x0f;
	memset(octets + 4, 0xff, 12);
	memset(octets + 20, 0xff, 12);
	assert_parses(octets, &samples[0].ip);
}

static void test_emit(void **state)
{
	for (size_t i = 0; i < VB_ARRAY_LEN(samples); i++) {
		uint8_t out[VB_CM_IP_BYTES + 1];

		memset(out, 0xa5, sizeof(out));
		vb_cm_ip_emit(&samples[i].ip, out);
		assert_memory_equal(out, samples[i].octets, VB_CM_IP_BYTES);
		assert_int_equal(out[VB_CM_IP_BYTES], 0xa5);
	}
}

static void test_other_versions(void **state)
{
	for (unsigned version = 0; version < 256; version++) {
		for (unsigned ip_version = 0; ip_version < 16; ip_version++) {
			uint8_t octets[VB_CM_IP_BYTES] = { (uint8_t)version,
							   (uint8_t)(ip_version << 4) };
			struct vb_cm_ip untouched, ip;
			bool known = !version && (ip_version == 4 || ip_version == 6);

			memset(&untouched, 0x5a, sizeof(untouched));
			ip = untouched;
			assert_int_equal(vb_cm_ip_parse(&ip, octets), known);
			if (!known)
				assert_memory_equal(&ip, &untouched, sizeof(ip));
		}
	}
}

static void test_service_ids(void **state)
{
	enum vb_cm_port_space port_space = VB_CM_PS_IB;

	assert_true(vb_cm_service_id(VB_CM_PS_TCP, 0xabcd) == 0x0106abcd);
	assert_int_equal(vb_cm_service_port(0x0106abcd), 0xabcd);
	assert_true(vb_cm_service_port_space(0x01110001, &port_space));
	assert_int_equal(port_space, VB_CM_PS_UDP);
	assert_string_equal(vb_cm_port_space_name(VB_CM_PS_TCP), "TCP");
	assert_string_equal(vb_cm_port_space_name(VB_CM_PS_UDP), "UDP");
	assert_string_equal(vb_cm_port_space_name(VB_CM_PS_IB), "IB");
	assert_string_equal(vb_cm_port_space_name(VB_CM_PS_IPOIB), "IPOIB");
	assert_string_equal(vb_cm_port_space_name(3), "?");
	assert_false(vb_cm_service_port_space(0x01070001, &port_space));
	assert_false(vb_cm_service_port_space(0x1000000001110001, &port_space));
	assert_int_equal(port_space, VB_CM_PS_UDP);
}

static void test_room(void **state)
{
	assert_int_equal(VB_CM_IP_REQ_PRIVATE_BYTES, 56);
	assert_int_equal(VB_CM_IP_SIDR_REQ_PRIVATE_BYTES, 180);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_reserved_bits_do_not_matter),
		cmocka_unit_test(test_emit),
		cmocka_unit_test(test_other_versions),
		cmocka_unit_test(test_service_ids),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests_name("wire/cm_ip", tests, NULL, NULL);
}
