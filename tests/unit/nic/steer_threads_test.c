/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules come and go while frames pass: what stays is found, what goes is never half there. */
#include <pthread.h>

#include "flows.h"
#include "frames.h"
#include "nic/service/eth/segment.h"
#include "nic/service/eth/steer.h"
#include "nic_fixture.h"

enum { LOOKERS = 2, ROUNDS = 4000, RULES = 40, PORT = 7 };

/* What a looker may find for the frame. */
typedef bool is_right(const struct vb_steer_hit *hits, unsigned count);

static struct {
	struct vb_cq *cq;
	struct vb_qp *stays, *goes;
	pthread_t looker[LOOKERS];
	_Atomic bool done;
	_Atomic uint64_t looked, wrong;
} world;

static int start(void **state)
{
	begin(state);
	memset(&world, 0, sizeof(world));
	side_use_segment(&fix);
	world.cq = make_cq(8, NULL);
	world.stays = make_qp(IBV_QPT_RAW_PACKET, world.cq, NULL);
	world.goes = make_qp(IBV_QPT_RAW_PACKET, world.cq, NULL);
	return 0;
}

static int stop(void **state)
{
	drop_qp(world.stays);
	drop_qp(world.goes);
	drop_cq(world.cq);
	return end(state);
}

#define STEER_TEST(name) TEST_BETWEEN(name, start, stop)

static void frame_make(struct frame *frame, struct vb_eth_frame *parsed)
{
	frame_eth(frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	frame_ipv4(frame, VB_IPPROTO_UDP, 0);
	frame_udp(frame, PORT);
	frame_close(frame);
	vb_eth_parse(parsed, frame->octets, frame->bytes);
}

static void *look(void *arg)
{
	struct frame frame = { .bytes = 0 };
	struct vb_eth_frame parsed;
	struct vb_steer_hit hits[4];

	frame_make(&frame, &parsed);
	while (!atomic_load(&world.done)) {
		if (!((is_right *)arg)(hits, vb_steer_match(fix.nic, &parsed, hits, 4)))
			atomic_fetch_add(&world.wrong, 1);
		atomic_fetch_add(&world.looked, 1);
	}
	return NULL;
}

static void lookers_begin(is_right *right)
{
	for (unsigned i = 0; i < LOOKERS; i++)
		assert_int_equal(pthread_create(&world.looker[i], NULL, look, right), 0);
}

/* On one processor they may not have had a turn yet. */
static void lookers_turn(void)
{
	while (atomic_load(&world.looked) < 100)
		sched_yield();
}

static void lookers_end(void)
{
	atomic_store(&world.done, true);
	for (unsigned i = 0; i < LOOKERS; i++)
		pthread_join(world.looker[i], NULL);
	assert_int_equal(atomic_load(&world.wrong), 0);
}

static struct vb_steer_flow *make(struct vb_qp *qp, uint16_t priority, int port, uint32_t flags)
{
	struct vb_steer_flow *made;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow.attr.priority = priority;
	flow.attr.flags = flags;
	flow_mac(&flow, frame_dst_mac);
	if (port >= 0)
		flow_udp(&flow, (uint16_t)port);
	assert_int_equal(vb_flow_create(qp, &flow.attr, &made), 0);
	return made;
}

/*
 * A frame for the rule that stays; the others are for ports behind it, or drop, or only copy: a
 * copy for the one that does not trap, at times.
 */
static bool is_of_the_one_that_stays(const struct vb_steer_hit *hits, unsigned count)
{
	return count >= 1 && count <= 2 && hits[count - 1].qp == world.stays &&
	       (count == 1 || hits[0].qp == world.goes);
}

STEER_TEST(test_rules_come_and_go)
{
	struct vb_steer_flow *stays, *flow[RULES];

	stays = make(world.stays, 5, -1, 0);
	lookers_begin(is_of_the_one_that_stays);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < RULES; i++) {
			/* Copies, the same match with another place, other ports, behind it. */
			if (i == 0)
				flow[i] = make(world.goes, 1, -1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
			else if (i == 1)
				flow[i] = make(world.stays, 5, -1, 0);
			else
				flow[i] = make(world.goes, i & 1 ? 0 : 9, 100 + (int)i, 0);
		}
		for (unsigned i = 0; i < RULES; i++)
			assert_int_equal(vb_flow_destroy(flow[(i + round) % RULES]), 0);
	}
	lookers_turn();
	lookers_end();
	assert_int_equal(vb_flow_destroy(stays), 0);
}

/* A frame for the rule that stays, or for the one before it that comes and goes: always for one. */
static bool is_of_one(const struct vb_steer_hit *hits, unsigned count)
{
	return count == 1 && (hits[0].qp == world.stays || hits[0].qp == world.goes);
}

STEER_TEST(test_a_rule_before_another_comes_and_goes)
{
	struct vb_steer_flow *stays = make(world.stays, 5, -1, 0);

	lookers_begin(is_of_one);
	lookers_turn();
	for (unsigned round = 0; round < RULES * ROUNDS; round++)
		assert_int_equal(vb_flow_destroy(make(world.goes, 0, PORT, 0)), 0);
	lookers_end();
	assert_int_equal(vb_flow_destroy(stays), 0);
}
