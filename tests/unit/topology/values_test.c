/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "topology/values.h"

static struct vb_span piece(const char *text)
{
	return (struct vb_span){ text, strlen(text) };
}

TEST(numbers_are_decimal_or_hexadecimal)
{
	uint64_t n;

	assert_true(vb_value_number(piece("18446744073709551615"), &n) && n == UINT64_MAX);
	assert_true(vb_value_number(piece("0x1d0f"), &n) && n == 0x1d0f);
	assert_false(vb_value_number(piece("18446744073709551616"), &n));
	assert_false(vb_value_number(piece(""), &n) || vb_value_number(piece("-1"), &n) ||
		     vb_value_number(piece("1x"), &n) || vb_value_number(piece("0x"), &n));
}

TEST(names_have_letters_digits_and_a_few_signs)
{
	char name[8];

	assert_true(vb_value_name(piece("a-b_c.9"), name, sizeof(name)));
	assert_string_equal(name, "a-b_c.9");
	assert_false(vb_value_name(piece("a-b_c.90"), name, sizeof(name)) ||
		     vb_value_name(piece(".a"), name, sizeof(name)) ||
		     vb_value_name(piece("a b"), name, sizeof(name)) ||
		     vb_value_name(piece(""), name, sizeof(name)));
	assert_true(vb_value_text(piece("a b"), name, sizeof(name)));
	assert_false(vb_value_text(piece("a\tb"), name, sizeof(name)));
}

TEST(rates_are_those_of_ethernet)
{
	uint32_t mbps;

	assert_true(vb_value_rate(piece("400Gbit"), &mbps) && mbps == 400000);
	assert_false(vb_value_rate(piece("400"), &mbps) || vb_value_rate(piece("Gbit"), &mbps) ||
		     vb_value_rate(piece("0Gbit"), &mbps) || vb_value_rate(piece("3Gbit"), &mbps));
}

TEST(rates_have_codes)
{
	assert_int_equal(vb_rate_of(40000)->width, 2);
	assert_int_equal(vb_rate_of(40000)->speed, 8);
	assert_int_equal(vb_rate_of(0)->mbps, 100000);
}

TEST(addresses_are_read_as_gids)
{
	static const uint8_t ipv4[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 9 };
	uint8_t gid[VB_GID_BYTES];

	assert_true(vb_value_address(piece("10.0.0.9"), gid));
	assert_memory_equal(gid, ipv4, sizeof(gid));
	assert_true(vb_value_address(piece("fe80::1"), gid) && gid[0] == 0xfe);
	assert_false(vb_value_address(piece("eth0"), gid) || vb_value_address(piece(""), gid));
}

TEST(pci_addresses_are_written_in_one_way)
{
	char pci[VB_TOPOLOGY_PCI_BYTES];

	assert_true(vb_value_pci(piece("0001:AF:1f.7"), pci));
	assert_string_equal(pci, "0001:af:1f.7");
	assert_true(vb_value_pci(piece("17:00.0"), pci));
	assert_string_equal(pci, "0000:17:00.0");
	assert_true(vb_value_pci(piece("virtual"), pci));
	assert_string_equal(pci, "");
	assert_false(vb_value_pci(piece("17:20.0"), pci) || vb_value_pci(piece("17:00.8"), pci) ||
		     vb_value_pci(piece("17:00"), pci) || vb_value_pci(piece("x"), pci) ||
		     vb_value_pci(piece("0000:17:00.00"), pci));
}

TEST(switches_are_yes_or_no)
{
	bool on;

	assert_true(vb_value_switch(piece("yes"), &on) && on);
	assert_true(vb_value_switch(piece("no"), &on) && !on);
	assert_false(vb_value_switch(piece("1"), &on));
}
