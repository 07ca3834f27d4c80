/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <pthread.h>

#include "netns.h"

/*
 * ibv_get_async_event(3): events of the port, which follows the interfaces of the namespace. There
 * is one here, lo: while it is down, nothing is left up.
 */

#define ADDRESS "10.77.1.1"

static int teardown(void **state)
{
	netns_interface_down("lo:1");
	assert_true(netns_interface_up("lo", 0));
	return vt_teardown(state);
}

#define port_test(f) vt_case(f, vt_setup, teardown, NULL)

static enum ibv_port_state port_state(void)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(vt.ctx, 1, &port), 0);
	return port.state;
}

/* The next event of the port, in any of these contexts. */
static enum ibv_event_type port_event(struct ibv_context *context)
{
	struct ibv_async_event event;

	if (!vt_readable(context->async_fd, VT_WAIT_MS))
		fail_msg("no event");
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	return event.event_type;
}

/* Events until this one comes; addresses come and go one by one with their interface. */
static void expect_port_event(struct ibv_context *context, enum ibv_event_type type)
{
	enum ibv_event_type got;

	do {
		got = port_event(context);
		if (got != type)
			assert_int_equal(got, IBV_EVENT_GID_CHANGE);
	} while (got != type);
}

static void let_pass_gid_changes(void)
{
	while (vt_readable(vt.ctx->async_fd, VT_QUIET_MS))
		assert_int_equal(port_event(vt.ctx), IBV_EVENT_GID_CHANGE);
}

/* Nobody calls anything meanwhile: the NIC's own thread hears of it. */
port_test(the_port_follows_the_interface)
{
	assert_int_equal(port_state(), IBV_PORT_ACTIVE);
	vt_no_event();
	for (unsigned i = 0; i < 3; i++) {
		assert_true(netns_interface_down("lo"));
		expect_port_event(vt.ctx, IBV_EVENT_PORT_ERR);
		assert_int_equal(port_state(), IBV_PORT_DOWN);
		let_pass_gid_changes();
		assert_true(netns_interface_up("lo", 0));
		expect_port_event(vt.ctx, IBV_EVENT_PORT_ACTIVE);
		assert_int_equal(port_state(), IBV_PORT_ACTIVE);
		let_pass_gid_changes();
	}
}

/* Whoever looks first finds it changed already, and is told of that by an event all the same. */
port_test(a_query_needs_no_event)
{
	assert_true(netns_interface_down("lo"));
	assert_int_equal(port_state(), IBV_PORT_DOWN);
	expect_port_event(vt.ctx, IBV_EVENT_PORT_ERR);
	assert_true(netns_interface_up("lo", 0));
	assert_int_equal(port_state(), IBV_PORT_ACTIVE);
	expect_port_event(vt.ctx, IBV_EVENT_PORT_ACTIVE);
	let_pass_gid_changes();
}

static int gid_index(const char *ipv4)
{
	uint8_t wanted[16] = { [10] = 0xff, [11] = 0xff };
	union ibv_gid gid;

	assert_int_equal(inet_pton(AF_INET, ipv4, wanted + 12), 1);
	for (int i = 0; i < 256; i++) {
		assert_int_equal(ibv_query_gid(vt.ctx, 1, i, &gid), 0);
		if (!memcmp(gid.raw, wanted, sizeof(wanted)))
			return i;
	}
	return -1;
}

port_test(an_address_that_comes_or_goes_changes_the_gids)
{
	int loopback = gid_index("127.0.0.1");

	assert_int_equal(gid_index(ADDRESS), -1);
	assert_true(netns_address_add("lo:1", ADDRESS));
	assert_int_equal(port_event(vt.ctx), IBV_EVENT_GID_CHANGE);
	assert_true(gid_index(ADDRESS) >= 0);
	assert_int_equal(gid_index("127.0.0.1"), loopback);
	let_pass_gid_changes();
	assert_true(netns_interface_down("lo:1"));
	assert_int_equal(port_event(vt.ctx), IBV_EVENT_GID_CHANGE);
	assert_int_equal(gid_index(ADDRESS), -1);
	assert_int_equal(port_state(), IBV_PORT_ACTIVE);
	let_pass_gid_changes();
}

/* An event of the port is every context's. */
port_test(every_context_hears_of_it)
{
	struct ibv_context *other = vt_made(ibv_open_device(vt.ctx->device));

	assert_true(netns_interface_down("lo"));
	expect_port_event(vt.ctx, IBV_EVENT_PORT_ERR);
	expect_port_event(other, IBV_EVENT_PORT_ERR);
	assert_true(netns_interface_up("lo", 0));
	expect_port_event(other, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(ibv_close_device(other), 0);
	expect_port_event(vt.ctx, IBV_EVENT_PORT_ACTIVE);
	let_pass_gid_changes();
}

/* Nobody has to read them: of what was not read there is one of each kind, the newest last. */
port_test(those_that_nobody_reads_do_not_pile_up)
{
	enum ibv_event_type last = IBV_EVENT_GID_CHANGE;
	unsigned count = 0;

	for (unsigned i = 0; i < 20; i++) {
		assert_true(netns_interface_down("lo"));
		assert_int_equal(port_state(), IBV_PORT_DOWN);
		assert_true(netns_interface_up("lo", 0));
		assert_int_equal(port_state(), IBV_PORT_ACTIVE);
	}
	while (vt_readable(vt.ctx->async_fd, VT_QUIET_MS)) {
		enum ibv_event_type type = port_event(vt.ctx);

		if (type != IBV_EVENT_GID_CHANGE)
			last = type;
		count++;
	}
	assert_int_equal(last, IBV_EVENT_PORT_ACTIVE);
	assert_true(count <= 6); /* three kinds, and what came while they were read */
}

static void *wait_for_one(void *arg)
{
	enum ibv_event_type *type = arg;

	*type = port_event(vt.ctx);
	return NULL;
}

/* ibv_get_async_event(3): it blocks, and an event wakes it. */
port_test(who_waits_is_woken)
{
	enum ibv_event_type type;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &type), 0);
	vt_sleep_ms(20);
	assert_true(netns_address_add("lo:1", ADDRESS));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(type, IBV_EVENT_GID_CHANGE);
	netns_interface_down("lo:1");
	let_pass_gid_changes();
}

/* A QP whose address went and came again goes on. */
port_test(connections_outlive_it)
{
	struct vt_pair p;

	vt_pair_open(&p, NULL);
	assert_true(netns_interface_down("lo"));
	expect_port_event(vt.ctx, IBV_EVENT_PORT_ERR);
	vt_recv(&p.b, 1);
	vt_send(&p.a, &p.b, 2);
	assert_true(netns_interface_up("lo", 0));
	vt_expect(p.b.cq, 1, IBV_WC_SUCCESS);
	vt_expect(p.a.cq, 2, IBV_WC_SUCCESS);
	expect_port_event(vt.ctx, IBV_EVENT_PORT_ACTIVE);
	let_pass_gid_changes();
	vt_pair_close(&p);
}
