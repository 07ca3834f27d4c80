/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "group.h"
#include "run/address/gids.h"
#include "run/address/guid.h"

enum { ADDRESSES_MAX = 300 };

/* What getifaddrs() would return, built by hand. */
static struct ifaddrs list[ADDRESSES_MAX];
static struct sockaddr_storage addresses[ADDRESSES_MAX];
static unsigned listed;

static int begin(void **state)
{
	memset(list, 0, sizeof(list));
	memset(addresses, 0, sizeof(addresses));
	listed = 0;
	return 0;
}

#define GIDS_TEST(name) TEST_AFTER(name, begin)

static struct sockaddr *add(const char *name, unsigned flags)
{
	struct ifaddrs *ifa = &list[listed];

	if (listed > 0)
		list[listed - 1].ifa_next = ifa;
	ifa->ifa_name = (char *)name;
	ifa->ifa_flags = flags;
	ifa->ifa_addr = (struct sockaddr *)&addresses[listed++];
	return ifa->ifa_addr;
}

static void add_text(const char *name, unsigned flags, const char *text)
{
	struct sockaddr *addr = add(name, flags);

	addr->sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (addr->sa_family == AF_INET6)
		inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)addr)->sin6_addr);
	else
		inet_pton(AF_INET, text, &((struct sockaddr_in *)addr)->sin_addr);
}

static void add_mac(const char *name, int ifindex, const uint8_t mac[6])
{
	struct sockaddr_ll *link = (struct sockaddr_ll *)add(name, IFF_UP);

	link->sll_family = AF_PACKET;
	link->sll_ifindex = ifindex;
	link->sll_halen = 6;
	memcpy(link->sll_addr, mac, 6);
}

static const char *text_of(const struct vb_gid_entry *entry)
{
	static char text[INET6_ADDRSTRLEN];

	if (vb_gid_is_ipv4(entry->gid))
		inet_ntop(AF_INET, entry->gid + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, entry->gid, text, sizeof(text));
	return text;
}

static void update(struct vb_gids *gids)
{
	static struct vb_gid_entry found[VB_GIDS_MAX];

	vb_gids_merge(gids, found, vb_gids_collect(found, VB_GIDS_MAX, listed ? list : NULL));
}

GIDS_TEST(reachable_addresses_come_first)
{
	struct vb_gids gids = { .count = 0 };

	add_text("lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1");
	add_text("lo", IFF_UP | IFF_LOOPBACK, "::1");
	add_text("x0", IFF_UP, "fe80::1");
	add_text("x0", IFF_UP, "2001:db8::1");
	add_text("x0", IFF_UP, "169.254.1.1");
	add_text("x0", IFF_UP, "192.0.2.1");
	add_text("x0", IFF_UP, "192.0.2.2");
	update(&gids);
	assert_int_equal(gids.count, 7);
	assert_string_equal(text_of(&gids.entry[0]), "192.0.2.1");
	assert_string_equal(text_of(&gids.entry[1]), "192.0.2.2");
	assert_string_equal(text_of(&gids.entry[2]), "2001:db8::1");
	assert_string_equal(text_of(&gids.entry[3]), "fe80::1");
	assert_string_equal(text_of(&gids.entry[4]), "169.254.1.1");
	assert_string_equal(text_of(&gids.entry[5]), "127.0.0.1");
	assert_string_equal(text_of(&gids.entry[6]), "::1");
	assert_false(gids.entry[0].loopback);
	assert_true(gids.entry[5].loopback);
}

GIDS_TEST(interfaces_that_are_down_have_no_gid)
{
	struct vb_gids gids = { .count = 0 };

	add_text("x0", 0, "192.0.2.1");
	add_text("x1", IFF_UP, "0.0.0.0");
	add("x2", IFF_UP)->sa_family = AF_UNIX;
	update(&gids);
	assert_int_equal(gids.count, 0);
}

GIDS_TEST(an_address_keeps_its_index)
{
	struct vb_gids gids = { .count = 0 };

	add_text("x0", IFF_UP, "192.0.2.1");
	add_text("x0", IFF_UP, "192.0.2.2");
	add_text("x0", IFF_UP, "192.0.2.3");
	update(&gids);
	/* The second goes, others come that would sort before all. */
	begin(NULL);
	add_text("x0", IFF_UP, "192.0.2.9");
	add_text("x0", IFF_UP, "192.0.2.8");
	add_text("x0", IFF_UP, "192.0.2.3");
	add_text("x0", IFF_UP, "192.0.2.1");
	update(&gids);
	assert_int_equal(gids.count, 4);
	assert_string_equal(text_of(&gids.entry[0]), "192.0.2.1");
	assert_string_equal(text_of(&gids.entry[1]), "192.0.2.9");
	assert_string_equal(text_of(&gids.entry[2]), "192.0.2.3");
	assert_string_equal(text_of(&gids.entry[3]), "192.0.2.8");
}

GIDS_TEST(a_vanished_address_leaves_zeros)
{
	static const struct vb_gid_entry none;
	struct vb_gids gids = { .count = 0 };

	add_text("x0", IFF_UP, "192.0.2.1");
	add_text("x0", IFF_UP, "192.0.2.2");
	add_text("x0", IFF_UP, "192.0.2.3");
	update(&gids);
	begin(NULL);
	add_text("x0", IFF_UP, "192.0.2.1");
	add_text("x0", IFF_UP, "192.0.2.3");
	update(&gids);
	assert_int_equal(gids.count, 3);
	assert_memory_equal(&gids.entry[1], &none, sizeof(none));
	begin(NULL);
	update(&gids);
	assert_int_equal(gids.count, 0);
	assert_memory_equal(&gids.entry[0], &none, sizeof(none));
}

/* clients.md: GID 0 non-zero; many programs take it without looking. */
GIDS_TEST(gid_0_is_never_empty_while_there_are_addresses)
{
	struct vb_gids gids = { .count = 0 };

	add_text("x0", IFF_UP, "192.0.2.1");
	add_text("x0", IFF_UP, "192.0.2.2");
	update(&gids);
	begin(NULL);
	add_text("x0", IFF_UP, "192.0.2.2");
	update(&gids);
	assert_string_equal(text_of(&gids.entry[0]), "192.0.2.2");
	assert_string_equal(text_of(&gids.entry[1]), "192.0.2.2");
	/* When the first comes back, it takes a new place, and nobody else moves. */
	add_text("x0", IFF_UP, "192.0.2.1");
	update(&gids);
	assert_string_equal(text_of(&gids.entry[0]), "192.0.2.2");
	assert_string_equal(text_of(&gids.entry[1]), "192.0.2.2");
	assert_string_equal(text_of(&gids.entry[2]), "192.0.2.1");
}

GIDS_TEST(the_table_is_bounded)
{
	struct vb_gids gids = { .count = 0 };
	char text[INET_ADDRSTRLEN];

	for (unsigned i = 0; i < ADDRESSES_MAX; i++) {
		snprintf(text, sizeof(text), "10.0.%u.%u", i >> 8, i & 255);
		add_text("x0", IFF_UP, text);
	}
	update(&gids);
	assert_int_equal(gids.count, VB_GIDS_MAX);
}

GIDS_TEST(the_guid_is_the_first_mac)
{
	static const uint8_t second[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
	static const uint8_t first[6] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x66 };
	static const uint8_t none[6];

	assert_int_equal(vb_guid_of(NULL), 0);
	add_mac("lo", 1, none);
	assert_int_equal(vb_guid_of(list), 0);
	add_mac("x1", 3, second);
	add_mac("x0", 2, first);
	assert_true(vb_guid_of(list) == htobe64(0x021122fffe334466u));
}

/* Two addresses as a device of this variety shows them: each row's last octet, v1 negative. */
static void shown_is(uint8_t variety, unsigned rows, const int row[])
{
	struct vb_gid_entry found[] = {
		{ .gid = { [15] = 1 }, .ifindex = 1, .mtu_bytes = 1500 },
		{ .gid = { [15] = 2 }, .ifindex = 1, .mtu_bytes = 1500 },
	}, shown[VB_GIDS_MAX];
	struct vb_gids gids = { .of.variety = variety };
	unsigned count;

	vb_gids_merge(&gids, found, 2);
	vb_gids_shown(&gids, shown, &count);
	assert_int_equal(count, rows);
	for (unsigned i = 0; i < rows; i++)
		assert_int_equal(shown[i].v1 ? -shown[i].gid[15] : shown[i].gid[15], row[i]);
}

TEST(a_table_has_varieties)
{
	shown_is(0, 2, (const int[]){ 1, 2 });
	shown_is(VB_GIDS_V1, 4, (const int[]){ -1, 1, -2, 2 });
	shown_is(VB_GIDS_HOLES, 3, (const int[]){ 1, 0, 2 });
	shown_is(VB_GIDS_V1 | VB_GIDS_HOLES, 6, (const int[]){ -1, 0, 1, -2, 0, 2 });
}

/* As a table that is opened then; otherwise an address keeps its row. */
TEST(rows_may_be_numbered_anew)
{
	const struct vb_gid_entry first = { .gid = { [15] = 1 }, .ifindex = 1, .mtu_bytes = 1500 };
	const struct vb_gid_entry both[] = {
		{ .gid = { [15] = 2 }, .ifindex = 1, .mtu_bytes = 1500 }, first,
	};

	for (int anew = 0; anew < 2; anew++) {
		struct vb_gids gids = { .of.anew = anew };

		vb_gids_merge(&gids, &first, 1);
		vb_gids_merge(&gids, both, 2);
		assert_int_equal(gids.count, 2);
		assert_int_equal(gids.entry[0].gid[15], anew ? 2 : 1);
	}
}

TEST(this_host_has_a_table)
{
	struct vb_gids gids;

	assert_true(vb_guid_get() != 0);
	assert_true(vb_guid_get() == vb_guid_get());
	assert_int_equal(vb_gids_open(&gids, &(struct vb_gids_of){ .variety = 0 }), 0);
	for (unsigned i = 0; i < gids.count; i++) {
		assert_true(gids.entry[i].ifindex != 0);
		assert_true(gids.entry[i].mtu_bytes >= 576);
	}
	/* Nothing has changed since, unless the host's addresses are in motion. */
	vb_gids_refresh(&gids, 0);
	assert_false(vb_gids_refresh(&gids, 0));
	vb_gids_close(&gids);
}

TEST(loopback_has_a_mac_of_zeros)
{
	static const uint8_t loopback[VB_GID_BYTES] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	static const uint8_t nowhere[VB_GID_BYTES] = { [10] = 0xff, 0xff, 192, 0, 2, 77 };
	uint8_t mac[6] = { 1, 2, 3, 4, 5, 6 }, zeros[6] = { 0 };

	assert_int_equal(vb_gids_mac(nowhere, mac), ENETUNREACH);
	if (vb_gids_mac(loopback, mac) != 0)
		SKIP("no 127.0.0.1 here");
	assert_memory_equal(mac, zeros, sizeof(mac));
}
