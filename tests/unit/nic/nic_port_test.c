/* SPDX-License-Identifier: BSD-2-Clause */
/* The port and its events: what a table of GIDs says of them, and who hears of it. */
#include "nic_fixture.h"

static struct vb_gid_entry entry(uint8_t last, bool carrier)
{
	struct vb_gid_entry e = { .ifindex = 1, .mtu_bytes = 1500, .no_carrier = !carrier };

	memcpy(e.gid, own_gid, VB_GID_BYTES);
	e.gid[15] = last;
	return e;
}

static enum ibv_port_state state_of_port(void)
{
	struct ibv_port_attr port;

	assert_int_equal(vb_nic_query_port(fix.nic, 1, &port), 0);
	return port.state;
}

static void set(const struct vb_gid_entry *entries, unsigned count)
{
	static const struct vb_gid_entry none;

	vb_nic_gids_set(fix.nic, entries ? entries : &none, count);
}

NIC_TEST(a_table_that_is_the_same_is_no_news)
{
	struct vb_gid_entry e = entry(1, true);

	set(&e, 1);
	e.mtu_bytes = 9000; /* an attribute of the port, of which no event tells */
	set(&e, 1);
	assert_no_event();
}

NIC_TEST(the_port_is_down_when_nothing_is_left)
{
	struct vb_gid_entry e = entry(1, true);

	set(NULL, 0);
	assert_int_equal(state_of_port(), IBV_PORT_DOWN);
	assert_event(IBV_EVENT_PORT_ERR);
	assert_event(IBV_EVENT_GID_CHANGE);
	set(&e, 1);
	assert_int_equal(state_of_port(), IBV_PORT_ACTIVE);
	assert_event(IBV_EVENT_PORT_ACTIVE);
	assert_event(IBV_EVENT_GID_CHANGE);
	assert_no_event();
}

/* A cable that is pulled out: the addresses stay. */
NIC_TEST(a_carrier_that_is_lost_takes_the_port_down)
{
	struct vb_gid_entry both[2] = { entry(1, true), entry(2, false) };

	set(both, 2);
	assert_event(IBV_EVENT_GID_CHANGE);
	assert_int_equal(state_of_port(), IBV_PORT_ACTIVE);
	both[0].no_carrier = true;
	set(both, 2);
	assert_int_equal(state_of_port(), IBV_PORT_DOWN);
	assert_event(IBV_EVENT_PORT_ERR);
	both[1].no_carrier = false;
	set(both, 2);
	assert_int_equal(state_of_port(), IBV_PORT_ACTIVE);
	assert_event(IBV_EVENT_PORT_ACTIVE);
	assert_no_event();
}

/* An entry that moved, came, went, or belongs to another interface. */
NIC_TEST(every_change_of_the_table_is_told)
{
	struct vb_gid_entry e[3] = { entry(1, true), entry(2, true), entry(3, true) };
	static const struct vb_gid_entry none;

	set(e, 3);
	assert_event(IBV_EVENT_GID_CHANGE);
	e[1] = none;
	set(e, 3);
	assert_event(IBV_EVENT_GID_CHANGE);
	e[0].ifindex = 7;
	set(e, 3);
	assert_event(IBV_EVENT_GID_CHANGE);
	set(e, 2);
	assert_event(IBV_EVENT_GID_CHANGE);
	assert_no_event();
}

/* Of each kind the newest, behind what is older; what belongs to an object is left alone. */
NIC_TEST(one_of_each_kind_waits)
{
	struct vb_cq *cq = make_cq(4, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, NULL);
	struct vb_gid_entry e = entry(1, true);

	set(NULL, 0);
	vb_qp_event(qp, IBV_EVENT_COMM_EST);
	vb_qp_event(qp, IBV_EVENT_COMM_EST);
	set(&e, 1);
	set(NULL, 0);
	for (unsigned i = 0; i < 100; i++) {
		set(&e, 1);
		set(NULL, 0);
	}
	assert_int_equal(fix.signals[FD_ASYNC], 5);
	assert_event(IBV_EVENT_COMM_EST);
	assert_event(IBV_EVENT_COMM_EST);
	assert_event(IBV_EVENT_PORT_ACTIVE);
	assert_event(IBV_EVENT_PORT_ERR);
	assert_event(IBV_EVENT_GID_CHANGE);
	assert_no_event();
	set(&e, 1);
	assert_event(IBV_EVENT_PORT_ACTIVE);
	assert_event(IBV_EVENT_GID_CHANGE);
	drop_qp(qp);
	drop_cq(cq);
}

NIC_TEST(an_event_names_the_port)
{
	struct ibv_async_event event;

	set(NULL, 0);
	assert_true(vb_ctx_event_pop(fix.ctx, &event));
	assert_int_equal(event.element.port_num, 1);
	assert_true(vb_ctx_event_pop(fix.ctx, &event));
	assert_int_equal(event.element.port_num, 1);
	fix.signals[FD_ASYNC] = 0;
}

NIC_TEST(all_contexts_hear_and_none_that_is_closed)
{
	struct vb_ctx *ctx[3];
	struct ibv_async_event event;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vb_ctx_create(fix.nic, FD_CHANNEL, &ctx[i]), 0);
	vb_ctx_destroy(ctx[1]);
	set(NULL, 0);
	assert_int_equal(fix.signals[FD_CHANNEL], 4);
	assert_true(vb_ctx_event_pop(ctx[0], &event));
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	vb_ctx_destroy(ctx[0]);
	vb_ctx_destroy(ctx[2]);
	assert_event(IBV_EVENT_PORT_ERR);
	assert_event(IBV_EVENT_GID_CHANGE);
	assert_no_event();
}
