/* SPDX-License-Identifier: BSD-2-Clause */
/* Syndromes, credit codes and RNR timers against the tables of IBTA 9.7.5 and 9.7.7. */
#include "group.h"
#include "wire/aeth.h"

TEST(test_syndromes)
{
	assert_int_equal(vb_aeth_ack(0), 0x00);
	assert_int_equal(vb_aeth_ack(31), 0x1f);
	assert_int_equal(vb_aeth_rnr(12), 0x2c);
	assert_int_equal(vb_aeth_nak(VB_NAK_PSN), 0x60);
	assert_int_equal(vb_aeth_nak(VB_NAK_INVALID_REQ), 0x61);
	assert_int_equal(vb_aeth_nak(VB_NAK_ACCESS), 0x62);
	assert_int_equal(vb_aeth_nak(VB_NAK_OP), 0x63);
	assert_int_equal(vb_aeth_nak(VB_NAK_RD), 0x64);
	for (unsigned syndrome = 0; syndrome < 256; syndrome++) {
		unsigned class = syndrome / 32 % 4;

		assert_int_equal(vb_aeth_class((uint8_t)syndrome), class);
		assert_int_equal(vb_aeth_value((uint8_t)syndrome), syndrome % 32);
	}
	assert_int_equal(vb_aeth_class(0x40), VB_AETH_RESERVED);
}

TEST(test_credits)
{
	/* From 2 on every second code doubles, and between two of them lies their mean. */
	for (unsigned code = 4; code <= 30; code++)
		assert_int_equal(vb_credit_decode(code), 2 * vb_credit_decode(code - 2));
	assert_int_equal(vb_credit_decode(0), 0);
	assert_int_equal(vb_credit_decode(1), 1);
	assert_int_equal(vb_credit_decode(2), 2);
	assert_int_equal(vb_credit_decode(3), 3);
	assert_int_equal(vb_credit_decode(5), 6);
	assert_int_equal(vb_credit_decode(30), 32768);
	assert_int_equal(vb_credit_decode(31), VB_CREDIT_UNLIMITED);

	for (unsigned code = 0; code < 32; code++)
		assert_int_equal(vb_credit_encode(vb_credit_decode(code)), code);
	for (uint32_t count = 0; count < 40000; count++) {
		unsigned code = vb_credit_encode(count);

		assert_true(vb_credit_decode(code) <= count);
		assert_true(code == 30 || vb_credit_decode(code + 1) > count);
	}
	assert_int_equal(vb_credit_encode(UINT32_MAX - 1), 30);
}

TEST(test_rnr_timers)
{
	/* In microseconds, as IBTA table "Encoding for RNR NAK Timer Field" lists them. */
	static const uint64_t us[32] = {
		655360, 10,    20,    30,    40,    60,    80,     120,
		160,    240,   320,   480,   640,   960,   1280,   1920,
		2560,   3840,  5120,  7680,  10240, 15360, 20480,  30720,
		40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};

	for (unsigned code = 0; code < 32; code++)
		assert_int_equal(vb_rnr_timer_ns(code), us[code] * 1000);
}
