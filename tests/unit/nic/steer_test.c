/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom frames go to: rules of all types, many of them, and what they count and tell others. */
#include <stdlib.h>

#include "base/prng.h"
#include "flows.h"
#include "frames.h"
#include "nic/service/eth/flow_spec.h"
#include "nic/service/eth/segment.h"
#include "nic/service/eth/steer.h"
#include "nic_fixture.h"

enum { QPS = 4, HITS = 16 };

static struct {
	struct vb_cq *cq;
	struct vb_qp *qp[QPS];
} world;

static int start(void **state)
{
	begin(state);
	memset(&world, 0, sizeof(world));
	side_use_segment(&fix);
	world.cq = make_cq(8, NULL);
	for (unsigned i = 0; i < QPS; i++)
		world.qp[i] = make_qp(IBV_QPT_RAW_PACKET, world.cq, NULL);
	return 0;
}

static int stop(void **state)
{
	for (unsigned i = 0; i < QPS; i++)
		drop_qp(world.qp[i]);
	drop_cq(world.cq);
	return end(state);
}

#define STEER_TEST(name) TEST_BETWEEN(name, start, stop)

static struct vb_steer_flow *make_flow(unsigned qp, const struct flow *flow)
{
	struct vb_steer_flow *made;

	assert_int_equal(vb_flow_create(world.qp[qp], &flow->attr, &made), 0);
	assert_ptr_equal(made->ibv.context, &fix.ctx->ibv.context);
	return made;
}

static void drop_flow(struct vb_steer_flow *flow)
{
	assert_int_equal(vb_flow_destroy(flow), 0);
}

/* A rule for the address of all frames here, or with a type that needs none. */
static struct vb_steer_flow *simple(unsigned qp, enum ibv_flow_attr_type type, uint16_t priority,
				    uint32_t flags)
{
	struct flow flow;

	flow_begin(&flow, type);
	flow.attr.priority = priority;
	flow.attr.flags = flags;
	if (type == IBV_FLOW_ATTR_NORMAL)
		flow_mac(&flow, frame_dst_mac);
	return make_flow(qp, &flow);
}

static const uint8_t group_mac[6] = { 0x01, 0x00, 0x5e, 1, 2, 3 };
static const uint8_t other_mac[6] = { 0x02, 9, 9, 9, 9, 9 };

/* Whom a UDP frame goes to, as digits: each QP's number plus one. */
static unsigned long whom(const uint8_t mac[6], uint16_t dport)
{
	struct frame frame = { .bytes = 0 };
	struct vb_steer_hit hits[HITS];
	struct vb_eth_frame parsed;
	unsigned long digits = 0;
	unsigned count;

	frame_eth(&frame, mac, VB_ETHERTYPE_IPV4);
	frame_ipv4(&frame, VB_IPPROTO_UDP, 0);
	frame_udp(&frame, dport);
	frame_close(&frame);
	assert_true(vb_eth_parse(&parsed, frame.octets, frame.bytes));
	count = vb_steer_match(fix.nic, &parsed, hits, HITS);
	for (unsigned i = 0; i < count; i++) {
		unsigned qp = 0;

		while (world.qp[qp] != hits[i].qp)
			qp++;
		digits = 10 * digits + qp + 1;
	}
	return digits;
}

static uint64_t stat(enum vb_stat stat)
{
	return atomic_load(&vb_nic_stats(fix.nic)->count[stat]);
}

/* --- who gets what --- */

STEER_TEST(test_no_rule_no_frame)
{
	struct vb_steer_flow *flow;

	assert_int_equal(whom(frame_dst_mac, 1), 0);
	assert_int_equal(stat(VB_STAT_DROP_NO_FLOW), 1);
	flow = simple(0, IBV_FLOW_ATTR_NORMAL, 0, 0);
	assert_int_equal(whom(frame_dst_mac, 1), 1);
	assert_int_equal(whom(other_mac, 1), 0);
	assert_int_equal(stat(VB_STAT_DROP_NO_FLOW), 2);
	drop_flow(flow);
	assert_int_equal(whom(frame_dst_mac, 1), 0);
}

/* ibv_create_flow(3): a lower numeric value takes precedence. */
STEER_TEST(test_priorities)
{
	struct vb_steer_flow *low = simple(0, IBV_FLOW_ATTR_NORMAL, 7, 0);
	struct vb_steer_flow *high = simple(1, IBV_FLOW_ATTR_NORMAL, 2, 0);
	struct vb_steer_flow *middle = simple(2, IBV_FLOW_ATTR_NORMAL, 5, 0);

	assert_int_equal(whom(frame_dst_mac, 1), 2);
	drop_flow(high);
	assert_int_equal(whom(frame_dst_mac, 1), 3);
	drop_flow(middle);
	assert_int_equal(whom(frame_dst_mac, 1), 1);
	drop_flow(low);
}

/* The priority counts for more than how much a rule asks for. */
STEER_TEST(test_masks_within_a_priority)
{
	struct vb_steer_flow *wide = simple(0, IBV_FLOW_ATTR_NORMAL, 1, 0), *narrow, *last;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow.attr.priority = 1;
	flow_mac(&flow, frame_dst_mac);
	flow_udp(&flow, 7);
	narrow = make_flow(1, &flow);
	assert_int_equal(whom(frame_dst_mac, 7), 2);
	assert_int_equal(whom(frame_dst_mac, 8), 1);
	flow.attr.priority = 2;
	last = make_flow(2, &flow);
	drop_flow(narrow);
	assert_int_equal(whom(frame_dst_mac, 7), 1);
	drop_flow(wide);
	assert_int_equal(whom(frame_dst_mac, 7), 3);
	drop_flow(last);
}

/* Rules of the same match share the frame: a copy for each QP, and one for each QP. */
STEER_TEST(test_same_match)
{
	struct vb_steer_flow *flow[5];

	for (unsigned i = 0; i < 3; i++)
		flow[i] = simple(i, IBV_FLOW_ATTR_NORMAL, 1, 0);
	flow[3] = simple(1, IBV_FLOW_ATTR_NORMAL, 1, 0);
	flow[4] = simple(3, IBV_FLOW_ATTR_NORMAL, 2, 0);
	assert_int_equal(whom(frame_dst_mac, 1), 123);
	drop_flow(flow[1]);
	assert_int_equal(whom(frame_dst_mac, 1), 123);
	drop_flow(flow[3]);
	assert_int_equal(whom(frame_dst_mac, 1), 13);
	drop_flow(flow[0]);
	drop_flow(flow[2]);
	assert_int_equal(whom(frame_dst_mac, 1), 4);
	drop_flow(flow[4]);
}

/* DONT_TRAP: a copy, and the frame goes on to rules of equal and lower priority. */
STEER_TEST(test_dont_trap)
{
	const uint32_t flag = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	struct vb_steer_flow *same = simple(0, IBV_FLOW_ATTR_NORMAL, 3, 0);
	struct vb_steer_flow *copy = simple(1, IBV_FLOW_ATTR_NORMAL, 3, flag);
	struct vb_steer_flow *behind = simple(2, IBV_FLOW_ATTR_NORMAL, 4, flag);
	struct vb_steer_flow *last = simple(3, IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0);

	assert_int_equal(whom(frame_dst_mac, 1), 21);
	drop_flow(same);
	assert_int_equal(whom(frame_dst_mac, 1), 234);
	drop_flow(copy);
	assert_int_equal(whom(frame_dst_mac, 1), 34);
	drop_flow(behind);
	drop_flow(last);
}

STEER_TEST(test_defaults)
{
	struct vb_steer_flow *all = simple(0, IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0);
	struct vb_steer_flow *groups = simple(1, IBV_FLOW_ATTR_MC_DEFAULT, 9, 0);
	struct vb_steer_flow *own = simple(2, IBV_FLOW_ATTR_NORMAL, 65535, 0);
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	assert_int_equal(whom(frame_dst_mac, 1), 3);
	assert_int_equal(whom(other_mac, 1), 1);
	assert_int_equal(whom(group_mac, 1), 21);
	assert_int_equal(whom(broadcast, 1), 21);
	drop_flow(all);
	assert_int_equal(whom(other_mac, 1), 0);
	assert_int_equal(whom(group_mac, 1), 2);
	drop_flow(groups);
	drop_flow(own);
}

/* A sniffer gets its copy besides, of what is dropped as well. */
STEER_TEST(test_sniffer)
{
	struct vb_steer_flow *sniffer = simple(0, IBV_FLOW_ATTR_SNIFFER, 0, 0);
	struct vb_steer_flow *second = simple(1, IBV_FLOW_ATTR_SNIFFER, 5, 0), *own, *drop;
	struct flow flow;

	assert_int_equal(whom(other_mac, 1), 12);
	own = simple(2, IBV_FLOW_ATTR_NORMAL, 1, 0);
	assert_int_equal(whom(frame_dst_mac, 1), 123);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, frame_dst_mac);
	flow_drop(&flow);
	drop = make_flow(3, &flow);
	assert_int_equal(whom(frame_dst_mac, 1), 12);
	assert_int_equal(stat(VB_STAT_DROP_FLOW), 1);
	drop_flow(drop);
	drop_flow(own);
	drop_flow(second);
	drop_flow(sniffer);
}

STEER_TEST(test_drop)
{
	struct vb_steer_flow *all = simple(0, IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0), *drop;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, frame_dst_mac);
	flow_udp(&flow, 7);
	flow_drop(&flow);
	drop = make_flow(0, &flow);
	assert_int_equal(whom(frame_dst_mac, 7), 0);
	assert_int_equal(whom(frame_dst_mac, 8), 1);
	assert_int_equal(stat(VB_STAT_DROP_FLOW), 1);
	assert_int_equal(stat(VB_STAT_DROP_NO_FLOW), 0);
	drop_flow(drop);
	drop_flow(all);
}

/* What is sent has rules of its own, which want nothing of the segment. */
STEER_TEST(test_egress)
{
	struct vb_steer_flow *drop, *pass;
	struct frame frame = frame_of(0x0806);
	struct flow flow;

	assert_true(vb_steer_sends(fix.nic, frame.octets, frame.bytes));
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	flow_mac(&flow, frame_dst_mac);
	flow.attr.priority = 1;
	flow_drop(&flow);
	drop = make_flow(0, &flow);
	assert_false(vb_steer_sends(fix.nic, frame.octets, frame.bytes));
	assert_true(vb_steer_sends(fix.nic, frame.octets, 13)); /* no frame */
	assert_int_equal(whom(frame_dst_mac, 1), 0);
	assert_int_equal(stat(VB_STAT_DROP_FLOW), 1);
	assert_int_equal(stat(VB_STAT_DROP_NO_FLOW), 1);
	assert_int_equal(atomic_load(&fake_segment_table(NULL)->members[0]), 0);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	flow_mac(&flow, frame_dst_mac);
	pass = make_flow(1, &flow);
	assert_true(vb_steer_sends(fix.nic, frame.octets, frame.bytes));
	assert_int_equal(whom(frame_dst_mac, 1), 0);
	drop_flow(pass);
	assert_false(vb_steer_sends(fix.nic, frame.octets, frame.bytes));
	drop_flow(drop);
	assert_true(vb_steer_sends(fix.nic, frame.octets, frame.bytes));
}

STEER_TEST(test_tags)
{
	struct frame frame = { .bytes = 0 };
	struct vb_steer_flow *with, *without;
	struct vb_steer_hit hits[HITS];
	struct vb_eth_frame parsed;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, frame_dst_mac);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	flow_tag(&flow, 0xabcd1234);
	with = make_flow(0, &flow);
	without = simple(1, IBV_FLOW_ATTR_NORMAL, 0, 0);
	frame_eth(&frame, frame_dst_mac, 0x0806);
	assert_true(vb_eth_parse(&parsed, frame.octets, frame.bytes));
	assert_int_equal(vb_steer_match(fix.nic, &parsed, hits, HITS), 2);
	assert_true(hits[0].has_tag);
	assert_int_equal(hits[0].tag, 0xabcd1234);
	assert_false(hits[1].has_tag);
	drop_flow(with);
	drop_flow(without);
}

/* More than there is room for are lost, and that is counted. */
STEER_TEST(test_too_many)
{
	struct frame frame = { .bytes = 0 };
	struct vb_steer_flow *flow[QPS];
	struct vb_steer_hit hits[2];
	struct vb_eth_frame parsed;

	for (unsigned i = 0; i < QPS; i++)
		flow[i] = simple(i, IBV_FLOW_ATTR_NORMAL, 0, 0);
	frame_eth(&frame, frame_dst_mac, 0x0806);
	assert_true(vb_eth_parse(&parsed, frame.octets, frame.bytes));
	assert_int_equal(vb_steer_match(fix.nic, &parsed, hits, 2), 2);
	assert_ptr_equal(hits[1].qp, world.qp[1]);
	assert_int_equal(stat(VB_STAT_DROP_FLOW_HITS), 2);
	for (unsigned i = 0; i < QPS; i++)
		drop_flow(flow[i]);
}

/* --- what is refused --- */

STEER_TEST(test_refused)
{
	struct vb_steer_flow *made = NULL;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		struct vb_qp *qp = make_qp(type, world.cq, NULL);

		assert_int_equal(vb_flow_create(qp, &flow.attr, &made),
				 type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL);
		drop_qp(qp);
	}
	flow.attr.port = 2;
	assert_int_equal(vb_flow_create(world.qp[0], &flow.attr, &made), EINVAL);
	assert_null(made);
	assert_int_equal(whom(frame_dst_mac, 1), 0);
}

/* The same frames cannot be dropped and not, or have two tags. */
STEER_TEST(test_conflicts)
{
	struct vb_steer_flow *first, *made = NULL;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, frame_dst_mac);
	flow_tag(&flow, 1);
	first = make_flow(0, &flow);
	for (unsigned i = 0; i < 3; i++) {
		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&flow, frame_dst_mac);
		if (i < 2)
			flow_tag(&flow, i ? 1 : 2);
		if (i == 1)
			flow_drop(&flow);
		assert_int_equal(vb_flow_create(world.qp[1], &flow.attr, &made), EEXIST);
		assert_int_equal(whom(frame_dst_mac, 1), 1);
		flow.attr.priority = 1;
		drop_flow(make_flow(1, &flow)); /* no conflict */
	}
	assert_null(made);
	drop_flow(first);
}

STEER_TEST(test_qp_is_busy)
{
	struct vb_steer_flow *first = simple(0, IBV_FLOW_ATTR_NORMAL, 0, 0);
	struct vb_steer_flow *second = simple(0, IBV_FLOW_ATTR_NORMAL, 0, 0);

	assert_int_equal(vb_qp_destroy(world.qp[0]), EBUSY);
	drop_flow(first);
	assert_int_equal(vb_qp_destroy(world.qp[0]), EBUSY);
	assert_int_equal(whom(frame_dst_mac, 1), 1);
	drop_flow(second);
}

/* So many kinds of rules there may be; one that was refused has left nothing. */
STEER_TEST(test_limits)
{
	static struct vb_steer_flow *flow[VB_FLOW_GROUPS_MAX];
	struct vb_steer_flow *made;
	struct flow attr;

	for (unsigned i = 0; i < VB_FLOW_GROUPS_MAX; i++)
		flow[i] = simple(0, IBV_FLOW_ATTR_NORMAL, (uint16_t)i, 0);
	flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
	assert_int_equal(vb_flow_create(world.qp[1], &attr.attr, &made), ENOMEM);
	drop_flow(simple(1, IBV_FLOW_ATTR_NORMAL, 0, 0)); /* of a kind that is there */
	drop_flow(flow[0]);
	drop_flow(make_flow(1, &attr));
	for (unsigned i = 1; i < VB_FLOW_GROUPS_MAX; i++)
		drop_flow(flow[i]);
	assert_int_equal(whom(frame_dst_mac, 1), 0);
}

/* --- counters --- */

static struct vb_counters *make_counters(void)
{
	struct ibv_counters_init_attr attr = { 0 };
	struct vb_counters *counters;

	assert_int_equal(vb_counters_create(fix.ctx, &attr, &counters), 0);
	return counters;
}

static int point(struct vb_counters *counters, enum ibv_counter_description what, uint32_t index)
{
	struct ibv_counter_attach_attr attr = { .counter_desc = what, .index = index };

	return vb_counters_attach(counters, &attr, NULL);
}

static void assert_counted(struct vb_counters *counters, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t values[4] = { 9, 9, 9, 9 };

	assert_int_equal(vb_counters_read(counters, values, 3, 0), 0);
	assert_int_equal(values[0], a);
	assert_int_equal(values[1], b);
	assert_int_equal(values[2], c);
	assert_int_equal(values[3], 9);
}

STEER_TEST(test_counters)
{
	struct vb_counters *counters = make_counters();
	struct vb_steer_flow *flow[3];
	struct flow attr;

	assert_int_equal(point(counters, IBV_COUNTER_PACKETS, 2), 0);
	assert_int_equal(point(counters, IBV_COUNTER_BYTES, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&attr, i ? other_mac : frame_dst_mac);
		if (i)
			flow_drop(&attr);
		flow_count(&attr, &counters->ibv);
		flow[i] = make_flow(i, &attr);
	}
	/* 42 octets each: one rule, and two that are the same. */
	assert_int_equal(whom(frame_dst_mac, 1), 1);
	assert_counted(counters, 42, 0, 1);
	assert_int_equal(whom(other_mac, 1), 0);
	assert_counted(counters, 3 * 42, 0, 3);
	assert_int_equal(whom(group_mac, 1), 0);
	assert_counted(counters, 3 * 42, 0, 3);

	/* Bound: nothing can be attached, and it cannot go. */
	assert_int_equal(point(counters, IBV_COUNTER_PACKETS, 1), EBUSY);
	assert_int_equal(vb_counters_destroy(counters), EBUSY);
	for (unsigned i = 0; i < 3; i++)
		drop_flow(flow[i]);
	/* A point counts from when it was attached; those of an index add up. */
	assert_int_equal(point(counters, IBV_COUNTER_PACKETS, 1), 0);
	assert_int_equal(point(counters, IBV_COUNTER_PACKETS, 0), 0);
	assert_counted(counters, 3 * 42, 0, 3);
	flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
	flow_count(&attr, &counters->ibv);
	flow[0] = make_flow(0, &attr);
	assert_int_equal(whom(group_mac, 1), 1);
	assert_counted(counters, 4 * 42 + 1, 1, 4);
	drop_flow(flow[0]);
	assert_int_equal(vb_counters_destroy(counters), 0);
}

STEER_TEST(test_counters_refused)
{
	struct vb_counters *counters = make_counters();
	struct ibv_counter_attach_attr attr = { .comp_mask = 1 };
	struct ibv_flow flow;
	uint64_t values[1] = { 9 };

	assert_int_equal(vb_counters_attach(counters, &attr, NULL), EOPNOTSUPP);
	attr.comp_mask = 0;
	assert_int_equal(vb_counters_attach(counters, &attr, &flow), EOPNOTSUPP);
	assert_int_equal(point(counters, (enum ibv_counter_description)2, 0), EOPNOTSUPP);
	for (unsigned i = 0; i < VB_COUNTER_POINTS_MAX; i++)
		assert_int_equal(point(counters, IBV_COUNTER_PACKETS, UINT32_MAX - i), 0);
	assert_int_equal(point(counters, IBV_COUNTER_PACKETS, 0), ENOMEM);
	assert_int_equal(vb_counters_read(counters, values, 1, 2), EOPNOTSUPP);
	assert_int_equal(values[0], 9);
	assert_int_equal(vb_counters_read(counters, values, 1,
					  IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	assert_int_equal(values[0], 0);
	assert_int_equal(vb_counters_destroy(counters), 0);
}

/* A QP gets a frame once, though two rules that are the same count it in two places. */
STEER_TEST(test_counters_of_the_same)
{
	struct vb_counters *counters[2] = { make_counters(), make_counters() };
	struct vb_steer_flow *flow[2];
	struct flow attr;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(point(counters[i], IBV_COUNTER_PACKETS, 0), 0);
		flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
		flow_count(&attr, &counters[i]->ibv);
		flow[i] = make_flow(2, &attr);
	}
	assert_int_equal(whom(other_mac, 1), 3);
	assert_counted(counters[0], 1, 0, 0);
	assert_counted(counters[1], 1, 0, 0);
	drop_flow(flow[0]);
	assert_int_equal(whom(other_mac, 1), 3);
	assert_counted(counters[0], 1, 0, 0);
	assert_counted(counters[1], 2, 0, 0);
	drop_flow(flow[1]);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(vb_counters_destroy(counters[i]), 0);
}

/* --- what others are told --- */

static enum vb_segment_want wants(const uint8_t mac[6])
{
	return vb_segment_wants(fake_segment_table(NULL), 3, vb_segment_mac(mac));
}

STEER_TEST(test_filter)
{
	struct vb_steer_flow *flow[4];

	assert_int_equal(wants(frame_dst_mac), VB_SEGMENT_NOT);
	flow[0] = simple(0, IBV_FLOW_ATTR_NORMAL, 0, 0);
	flow[1] = simple(1, IBV_FLOW_ATTR_NORMAL, 1, 0);
	assert_int_equal(wants(frame_dst_mac), VB_SEGMENT_ADDRESSED);
	assert_int_equal(wants(other_mac), VB_SEGMENT_NOT);
	assert_int_equal(wants(group_mac), VB_SEGMENT_NOT);
	flow[2] = simple(0, IBV_FLOW_ATTR_MC_DEFAULT, 0, 0);
	assert_int_equal(wants(group_mac), VB_SEGMENT_LISTENS);
	assert_int_equal(wants(other_mac), VB_SEGMENT_NOT);
	flow[3] = simple(0, IBV_FLOW_ATTR_SNIFFER, 0, 0);
	assert_int_equal(wants(other_mac), VB_SEGMENT_LISTENS);
	drop_flow(flow[3]);
	assert_int_equal(wants(other_mac), VB_SEGMENT_NOT);
	drop_flow(flow[2]);
	assert_int_equal(wants(group_mac), VB_SEGMENT_NOT);
	drop_flow(flow[0]);
	assert_int_equal(wants(frame_dst_mac), VB_SEGMENT_ADDRESSED);
	drop_flow(flow[1]);
	assert_int_equal(wants(frame_dst_mac), VB_SEGMENT_NOT);
}

/* More addresses than fit: everything is wanted, until they fit again. */
STEER_TEST(test_filter_of_many)
{
	struct vb_steer_flow *flow[VB_SEGMENT_MACS_MAX + 1];
	uint8_t mac[6] = { 0x02, 7 };
	struct flow attr;

	for (unsigned i = 0; i <= VB_SEGMENT_MACS_MAX; i++) {
		assert_int_equal(wants(other_mac), VB_SEGMENT_NOT);
		mac[5] = (uint8_t)i;
		flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&attr, mac);
		flow[i] = make_flow(0, &attr);
	}
	assert_int_equal(wants(other_mac), VB_SEGMENT_LISTENS);
	drop_flow(flow[5]);
	assert_int_equal(wants(other_mac), VB_SEGMENT_NOT);
	for (unsigned i = 0; i <= VB_SEGMENT_MACS_MAX; i++) {
		mac[5] = (uint8_t)i;
		assert_int_equal(wants(mac), i == 5 ? VB_SEGMENT_NOT : VB_SEGMENT_ADDRESSED);
		if (i != 5)
			drop_flow(flow[i]);
	}
	assert_int_equal(atomic_load(&fake_segment_table(NULL)->members[0]), 0);
}

/* --- against a model --- */

enum { RULES = 200, ROUNDS = 20000 };

struct model {
	struct vb_steer_flow *flow;
	struct vb_flow_rule rule;
	unsigned qp;
	uint64_t made;
};

static bool matches(const struct vb_flow_rule *rule, const union vb_eth_key *key)
{
	for (unsigned i = 0; i < VB_KEY_WORDS; i++) {
		if ((key->word[i] & rule->mask.word[i]) != rule->value.word[i])
			return false;
	}
	return true;
}

static bool is_same(const struct vb_flow_rule *a, const struct vb_flow_rule *b)
{
	return a->order == b->order && memcmp(&a->mask, &b->mask, sizeof(a->mask)) == 0 &&
	       memcmp(&a->value, &b->value, sizeof(a->value)) == 0;
}

static unsigned bits_of(const struct vb_flow_rule *rule)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < VB_KEY_WORDS; i++)
		bits += (unsigned)__builtin_popcountll(rule->mask.word[i]);
	return bits;
}

/* How many copies each QP gets, rule by rule in order. */
static void expect(const struct model *model, const union vb_eth_key *key, unsigned copies[QPS])
{
	bool asked[RULES] = { false };

	memset(copies, 0, QPS * sizeof(*copies));
	for (;;) {
		const struct vb_flow_rule *first = NULL;
		bool gets[QPS] = { false };

		for (unsigned i = 0; i < RULES; i++) {
			const struct vb_flow_rule *rule = &model[i].rule;

			if (!model[i].flow || asked[i] || !matches(rule, key))
				continue;
			if (!first || rule->order < first->order ||
			    (rule->order == first->order && bits_of(rule) > bits_of(first)))
				first = rule;
		}
		if (!first)
			return;
		for (unsigned i = 0; i < RULES; i++) {
			if (!model[i].flow || !is_same(&model[i].rule, first))
				continue;
			asked[i] = true;
			gets[model[i].qp] = !first->drop;
		}
		for (unsigned i = 0; i < QPS; i++)
			copies[i] += gets[i];
		if (first->traps || first->drop)
			return;
	}
}

/* Few different values, so that rules meet. No two masks have the same number of bits. */
static void random_flow(struct flow *flow, uint64_t *seed)
{
	uint64_t r = vb_prng_next(seed);
	uint8_t mac[6] = { (uint8_t)(r & 1 ? 0x03 : 0x02), [5] = (uint8_t)(r >> 1 & 1) };

	flow_begin(flow, (enum ibv_flow_attr_type)(r >> 2 & 15 ? 0 : r >> 6 & 3));
	flow->attr.priority = r >> 8 & 3;
	if (flow->attr.type == IBV_FLOW_ATTR_NORMAL && (r >> 12 & 3) == 0)
		flow->attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	if (r >> 16 & 3 && flow->attr.type != IBV_FLOW_ATTR_MC_DEFAULT)
		flow_mac(flow, mac);
	if (r >> 20 & 1)
		flow_udp(flow, r >> 24 & 3);
	if ((r >> 28 & 7) == 0 && !flow->attr.flags)
		flow_drop(flow);
}

static void model_step(struct model *m, uint64_t *seed)
{
	struct flow flow;
	int err;

	if (m->flow) {
		drop_flow(m->flow);
		m->flow = NULL;
		return;
	}
	random_flow(&flow, seed);
	m->qp = vb_prng_next(seed) % QPS;
	assert_int_equal(vb_flow_decode(&flow.attr, &m->rule), 0);
	err = vb_flow_create(world.qp[m->qp], &flow.attr, &m->flow);
	assert_true(err == 0 || err == EEXIST);
	if (err)
		m->flow = NULL;
}

STEER_TEST(test_against_a_model)
{
	static struct model model[RULES];
	uint64_t seed = 7, frames = 0, copies_all = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame frame = { .bytes = 0 };
		unsigned expected[QPS], copies[QPS] = { 0 }, count;
		struct vb_steer_hit hits[RULES];
		struct vb_eth_frame parsed;
		union vb_eth_key key = { .word = { 0 } };
		uint64_t r = vb_prng_next(&seed);
		uint8_t mac[6] = { (uint8_t)(r & 1 ? 0x03 : 0x02), [5] = (uint8_t)(r >> 1 & 1) };

		/* Sometimes many rules, sometimes few. */
		model_step(&model[(r >> 32) % (round / 1000 % 2 ? 12 : RULES)], &seed);
		frame_eth(&frame, mac, VB_ETHERTYPE_IPV4);
		frame_ipv4(&frame, VB_IPPROTO_UDP, 0);
		frame_udp(&frame, r >> 2 & 3);
		frame_close(&frame);
		assert_true(vb_eth_parse(&parsed, frame.octets, frame.bytes));
		vb_eth_key_outer(&key.outer, &parsed);
		expect(model, &key, expected);
		count = vb_steer_match(fix.nic, &parsed, hits, RULES);
		for (unsigned i = 0; i < count; i++) {
			for (unsigned q = 0; q < QPS; q++)
				copies[q] += world.qp[q] == hits[i].qp;
		}
		assert_memory_equal(copies, expected, sizeof(copies));
		frames += count > 0;
		copies_all += count;
	}
	assert_true(frames > ROUNDS / 4 && copies_all > frames);
	for (unsigned i = 0; i < RULES; i++) {
		if (model[i].flow)
			drop_flow(model[i].flow);
	}
	assert_int_equal(whom(frame_dst_mac, 1), 0);
}

/* Many rules of one mask: each is found. */
STEER_TEST(test_many_rules)
{
	enum { MANY = 20000 };
	static struct vb_steer_flow *flow[MANY];
	struct flow attr;

	for (unsigned i = 0; i < MANY; i++) {
		flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&attr, frame_dst_mac);
		flow_udp(&attr, (uint16_t)i);
		flow[i] = make_flow(i % QPS, &attr);
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(whom(frame_dst_mac, (uint16_t)i), 1 + i % QPS);
	assert_int_equal(whom(frame_dst_mac, MANY), 0);
	for (unsigned i = 0; i < MANY; i += 2)
		drop_flow(flow[i]);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(whom(frame_dst_mac, (uint16_t)i), i & 1 ? 1 + i % QPS : 0);
	for (unsigned i = 1; i < MANY; i += 2)
		drop_flow(flow[i]);
}
