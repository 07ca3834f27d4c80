/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "daemon/ports.h"
#include "group.h"

enum { TCP = 0x0106, UDP = 0x0111, REUSE = VB_HUB_BIND_REUSE, AFONLY = VB_HUB_BIND_AFONLY,
       LISTENS = VB_HUB_BIND_LISTENS };

static const uint8_t all[VB_HUB_GID_BYTES], all_ipv4[VB_HUB_GID_BYTES] = { [10] = 0xff, 0xff };
static const uint8_t one[VB_HUB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t two[VB_HUB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
static const uint8_t six[VB_HUB_GID_BYTES] = { 0xfd, [15] = 6 };

static struct vb_ports ports;
static uint32_t next_id;

static int end(void **state)
{
	vb_ports_free(&ports);
	memset(&ports, 0, sizeof(ports));
	return 0;
}

#define PORTS_TEST(name) TEST_BETWEEN(name, NULL, end)

static struct vb_hub_bind binding(const uint8_t *gid, uint32_t port, uint32_t flags)
{
	struct vb_hub_bind bind = { .slot = 1, .id = ++next_id, .space = TCP, .port = port,
				    .flags = flags };

	memcpy(bind.gid, gid, sizeof(bind.gid));
	return bind;
}

static int bind_at(const uint8_t *gid, uint32_t port, uint32_t flags)
{
	struct vb_hub_bind bind = binding(gid, port, flags);
	uint16_t got = 0;
	int rc = vb_ports_bind(&ports, &bind, false, &got);

	if (!rc)
		assert_int_equal(got, port);
	return rc;
}

/* Each row: what is bound first, what is bound then to the same port, and what comes of it. */
PORTS_TEST(two_may_have_a_port_where_they_do_not_meet)
{
	static const struct {
		const uint8_t *first;
		uint32_t first_flags;
		const uint8_t *then;
		uint32_t then_flags;
		int rc;
	} rows[] = {
		{ one, 0, one, 0, EADDRINUSE },
		{ one, 0, two, 0, 0 },
		{ one, 0, six, 0, 0 },
		{ all_ipv4, 0, one, 0, EADDRNOTAVAIL },
		{ one, 0, all_ipv4, 0, EADDRNOTAVAIL },
		{ all, 0, one, 0, EADDRNOTAVAIL },
		{ all, 0, all_ipv4, 0, EADDRNOTAVAIL },
		{ all, AFONLY, all_ipv4, 0, 0 },
		{ all, AFONLY, six, 0, EADDRNOTAVAIL },
		{ one, REUSE, one, REUSE, 0 },
		{ one, REUSE, one, 0, EADDRINUSE },
		{ one, 0, one, REUSE, EADDRINUSE },
		{ one, REUSE | LISTENS, one, REUSE, 0 },
		{ one, REUSE, one, REUSE | LISTENS, EADDRINUSE },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(bind_at(rows[i].first, 7, rows[i].first_flags), 0);
		assert_int_equal(bind_at(rows[i].then, 7, rows[i].then_flags), rows[i].rc);
		assert_int_equal(ports.count, rows[i].rc ? 1 : 2);
		end(state);
	}
}

PORTS_TEST(spaces_and_links_are_apart)
{
	static const uint8_t link_local[VB_HUB_GID_BYTES] = { 0xfe, 0x80, [15] = 1 };
	struct vb_hub_bind bind = binding(one, 7, 0);
	uint16_t port;

	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	bind.id++;
	bind.space = UDP;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	bind = binding(link_local, 7, 0);
	bind.scope = 2;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	bind.id++;
	bind.scope = 3;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	bind.id++;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), EADDRINUSE);
}

PORTS_TEST(any_port_is_one_that_nobody_has)
{
	struct vb_hub_bind bind = binding(one, 0, 0);
	uint16_t first, second;

	assert_int_equal(vb_ports_bind(&ports, &bind, false, &first), 0);
	assert_in_range(first, VB_PORTS_FIRST, VB_PORTS_LAST);
	ports.next = first - VB_PORTS_FIRST;
	bind.id++;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &second), 0);
	assert_in_range(second, VB_PORTS_FIRST, VB_PORTS_LAST);
	assert_int_not_equal(first, second);
}

PORTS_TEST(there_is_an_end_to_any)
{
	struct vb_hub_bind bind = binding(one, 0, 0);
	uint16_t port;

	for (unsigned i = VB_PORTS_FIRST; i <= VB_PORTS_LAST; i++, bind.id++)
		assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), EADDRNOTAVAIL);
	assert_int_equal(ports.count, VB_PORTS_LAST - VB_PORTS_FIRST + 1);
}

PORTS_TEST(who_listens_hears)
{
	struct vb_hub_bind bind = binding(one, 7, 0);
	uint16_t port;

	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	assert_null(vb_ports_listener(&ports, TCP, 7, one));
	bind.flags = LISTENS;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	assert_int_equal(ports.count, 1);
	assert_int_equal(vb_ports_listener(&ports, TCP, 7, one)->id, bind.id);
	assert_null(vb_ports_listener(&ports, TCP, 7, two));
	assert_null(vb_ports_listener(&ports, TCP, 8, one));
	assert_null(vb_ports_listener(&ports, UDP, 7, one));
	assert_int_equal(bind_at(all_ipv4, 8, LISTENS), 0);
	assert_non_null(vb_ports_listener(&ports, TCP, 8, two));
	assert_null(vb_ports_listener(&ports, TCP, 8, six));
	assert_int_equal(bind_at(all, 9, LISTENS), 0);
	assert_non_null(vb_ports_listener(&ports, TCP, 9, six));
	assert_non_null(vb_ports_listener(&ports, TCP, 9, one));
	assert_int_equal(bind_at(all, 10, LISTENS | AFONLY), 0);
	assert_non_null(vb_ports_listener(&ports, TCP, 10, six));
	assert_null(vb_ports_listener(&ports, TCP, 10, one));
}

PORTS_TEST(what_is_given_up_is_free)
{
	struct vb_hub_bind bind = binding(one, 7, LISTENS);
	struct vb_hub_unbind unbind = { .slot = bind.slot, .id = bind.id, .space = TCP, .port = 7 };
	uint16_t port;

	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	unbind.id++;
	vb_ports_unbind(&ports, &unbind);
	assert_int_equal(ports.count, 1);
	unbind.id--;
	vb_ports_unbind(&ports, &unbind);
	assert_int_equal(ports.count, 0);
	assert_int_equal(bind_at(one, 7, 0), 0);
	assert_int_equal(bind_at(one, 8, 0), 0);
	bind.slot = 2;
	bind.port = 9;
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &port), 0);
	vb_ports_forget(&ports, 1);
	assert_int_equal(ports.count, 1);
	assert_non_null(vb_ports_listener(&ports, TCP, 9, one));
}

/* A hub that is new hears of each in any order, and believes what the last one allowed. */
PORTS_TEST(what_was_known_is_believed)
{
	struct vb_hub_bind bind = binding(one, 7, REUSE | LISTENS);
	uint16_t port;

	assert_int_equal(bind_at(one, 7, REUSE), 0);
	assert_int_equal(vb_ports_bind(&ports, &bind, true, &port), 0);
	assert_int_equal(ports.count, 2);
}

static uint32_t nearest_to(uint32_t space, uint16_t port)
{
	const struct vb_hub_bind *nearest = vb_ports_nearest(&ports, space, port);

	return nearest ? nearest->port : 0;
}

PORTS_TEST(the_nearest_that_listens_is_found)
{
	assert_int_equal(nearest_to(TCP, 7), 0);
	assert_int_equal(bind_at(one, 8, 0), 0);
	assert_int_equal(nearest_to(TCP, 7), 0);
	assert_int_equal(bind_at(one, 7000, LISTENS), 0);
	assert_int_equal(bind_at(all, 20, LISTENS), 0);
	assert_int_equal(nearest_to(TCP, 7), 20);
	assert_int_equal(nearest_to(TCP, 20), 20);
	assert_int_equal(nearest_to(TCP, 3509), 20);
	assert_int_equal(nearest_to(TCP, 3511), 7000);
	assert_int_equal(nearest_to(TCP, 65535), 7000);
	assert_int_equal(nearest_to(UDP, 7), 0);
}

static bool is_counted(void *arg, const struct vb_hub_bind *bind)
{
	unsigned *left = arg;

	assert_true(bind->flags & LISTENS);
	return --*left;
}

PORTS_TEST(all_that_listen_are_shown)
{
	unsigned left = 10;

	vb_ports_listeners(&ports, is_counted, &left);
	for (uint16_t port = 1; port <= 6; port++)
		assert_int_equal(bind_at(one, port, port % 2 ? LISTENS : 0), 0);
	vb_ports_listeners(&ports, is_counted, &left);
	assert_int_equal(left, 7);
	left = 2;
	vb_ports_listeners(&ports, is_counted, &left);
	assert_int_equal(left, 0);
}

/* It gets nothing that another hears who was asked about. */
PORTS_TEST(who_only_says_so_comes_last)
{
	struct vb_hub_bind bind = binding(one, 7, LISTENS);
	uint16_t port;

	assert_int_equal(bind_at(one, 7, LISTENS), 0);
	bind.slot = 2;
	assert_int_equal(vb_ports_bind(&ports, &bind, true, &port), 0);
	assert_int_equal(vb_ports_listener(&ports, TCP, 7, one)->slot, 1);
	vb_ports_forget(&ports, 1);
	assert_int_equal(vb_ports_listener(&ports, TCP, 7, one)->slot, 2);
}
