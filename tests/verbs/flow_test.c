/* SPDX-License-Identifier: BSD-2-Clause */
#include "flows.h"
#include "frames.h"
#include "raw.h"

/*
 * ibv_create_flow(3) and ibv_create_counters(3), sentence by sentence, by frames that go from one
 * context to others; between processes, see flow_peers_test.c. Every bit of every specification is
 * looked at in tests/unit/nic/flow_spec_test.c.
 */

enum { GOT = 100, FROM = 0, VLAN = 0x8100, IPV4 = 0x0800, IPV6 = 0x86dd, MPLS = 0x8847 };
enum { TCP = 6, UDP = 17, GRE = 47, ESP = 50 };

/* Who sends, and some who have rules. */
static struct {
	struct raw_end from, to[3];
} it;

static int flow_setup(void **state)
{
	if (vt_setup(state))
		return -1;
	if (vt_by_udp())
		return 0;
	raw_open(&it.from, NULL);
	for (unsigned i = 0; i < 3; i++) {
		raw_open(&it.to[i], NULL);
		for (unsigned k = 0; k < 16; k++)
			raw_recv(&it.to[i], GOT + k, RAW_SLOT_BYTES);
	}
	return 0;
}

static int flow_teardown(void **state)
{
	if (it.from.qp) {
		for (unsigned i = 0; i < 3; i++)
			raw_close(&it.to[i]);
		raw_close(&it.from);
	}
	memset(&it, 0, sizeof(it));
	return vt_teardown(state);
}

#define flow_test(f) vt_case(f, flow_setup, flow_teardown, NULL)

/* One that needs frames. */
#define segment_test(f)                                                                           \
	static void f##_on_it(void);                                                              \
	flow_test(f)                                                                              \
	{                                                                                         \
		raw_needed();                                                                     \
		f##_on_it();                                                                      \
	}                                                                                         \
	static void f##_on_it(void)

static void send_frame(struct frame *frame)
{
	frame_close(frame);
	memcpy(raw_at(&it.from, FROM), frame->octets, frame->bytes);
	raw_send(&it.from, FROM, frame->bytes);
}

/* A UDP packet to that address and port. */
static void send_udp(const uint8_t mac[6], uint16_t dport)
{
	struct frame frame = { .bytes = 0 };

	frame_eth(&frame, mac, IPV4);
	frame_ipv4(&frame, UDP, 0);
	frame_udp(&frame, dport);
	send_frame(&frame);
}

/* One frame each for those in the list, and nothing more for anybody. */
static void expect_at(const char *who)
{
	struct ibv_wc wc;

	for (const char *at = who; *at; at++) {
		struct raw_end *to = &it.to[*at - 'a'];

		assert_true(vt_poll_ms(to->cq, &wc, VT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		raw_recv(to, (unsigned)wc.wr_id, RAW_SLOT_BYTES);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ibv_poll_cq(it.to[i].cq, 1, &wc), 0);
}

static struct ibv_flow *flow_to(char who, const struct flow *flow)
{
	return ibv_create_flow(it.to[who - 'a'].qp, (struct ibv_flow_attr *)&flow->attr);
}

/* A frame that everybody gets brings to light that somebody got one too many. */
static void expect(const char *who)
{
	static const uint8_t all[6] = { 0x01, 0x80, 0xc2, 0, 0, 0x55 };
	struct ibv_flow *flow[3];
	struct flow attr;

	flow_begin(&attr, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&attr, all);
	for (char i = 0; i < 3; i++) {
		flow[(int)i] = flow_to((char)('a' + i), &attr);
		assert_non_null(flow[(int)i]);
	}
	send_udp(all, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_wc wc;
		char name = (char)('a' + i);
		unsigned frames = 0;

		do {
			assert_true(vt_poll_ms(it.to[i].cq, &wc, VT_WAIT_MS));
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			raw_recv(&it.to[i], (unsigned)wc.wr_id, RAW_SLOT_BYTES);
			frames++;
		} while (memcmp(raw_at(&it.to[i], (unsigned)wc.wr_id), all, 6) != 0);
		for (const char *at = who; *at; at++)
			frames -= *at == name;
		assert_int_equal(frames, 1);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_flow(flow[i]), 0);
	expect_at("");
}

/* A rule for that address, if the type takes one. */
static struct ibv_flow *simple(char who, enum ibv_flow_attr_type type, uint16_t priority,
			       uint32_t flags)
{
	struct flow flow;

	flow_begin(&flow, type);
	flow.attr.priority = priority;
	flow.attr.flags = flags;
	if (type == IBV_FLOW_ATTR_NORMAL)
		flow_mac(&flow, raw_mac[1]);
	return vt_made(flow_to(who, &flow));
}

static void drop(struct ibv_flow *flow)
{
	assert_int_equal(ibv_destroy_flow(flow), 0);
}

static void refused(char who, const struct flow *flow, int err)
{
	vt_refused(err, flow_to(who, flow));
}

/* --- which frames --- */

/*
 * flow: "If a match is found, the associated flow actions are executed on the packet."
 * flow: "In ingress flows, the QP parameter is treated as another action of scattering the packet
 * to the respected QP."
 * flow: "destroys the flow flow_id"
 */
segment_test(what_matches_comes_and_nothing_else)
{
	struct ibv_flow *flow;

	send_udp(raw_mac[1], 1);
	expect("");
	flow = simple('a', IBV_FLOW_ATTR_NORMAL, 0, 0);
	assert_ptr_equal(flow->context, it.to[0].ctx);
	send_udp(raw_mac[1], 1);
	send_udp(raw_mac[2], 1);
	expect("a");
	drop(flow);
	send_udp(raw_mac[1], 1);
	expect("");
}

/* There is one port, and other devices take 0 for it as well. */
segment_test(a_rule_for_port_0_is_one_for_port_1)
{
	struct ibv_flow *made;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, raw_mac[1]);
	flow.attr.port = 0;
	made = vt_made(flow_to('a', &flow));
	send_udp(raw_mac[1], 1);
	expect("a");
	drop(made);
}

/* A tunnel with a TCP packet in it, and the same without the tunnel. */
static void tunnel_frame(struct frame *frame, unsigned kind)
{
	frame_eth(frame, raw_mac[1], kind == 3 ? MPLS : IPV4);
	if (kind == 3)
		frame_label(frame, 77, true);
	else
		frame_ipv4(frame, kind == 2 ? GRE : UDP, 0);
	if (kind == 1) {
		frame_udp(frame, 4789);
		frame_vxlan(frame);
		frame_eth(frame, raw_mac[2], IPV6);
	} else if (kind == 2) {
		frame_gre(frame, 0x2000, IPV6);
	}
	frame_ipv6(frame, TCP);
	frame_tcp(frame, 0);
}

/*
 * flow: "Flag making L2/L3/L4 specifications to be applied on the inner header"
 * flow: "The flow spec types which require this sort of ordering are"
 */
segment_test(tunnels_are_looked_into)
{
	struct ibv_flow_spec_tunnel vxlan = {
		.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(vxlan),
		.val = { htobe32(FRAME_VNI) }, .mask = { htobe32(0xffffff) },
	};
	struct ibv_flow_spec_gre gre = {
		.type = IBV_FLOW_SPEC_GRE, .size = sizeof(gre),
		.val = { .key = htobe32(FRAME_GRE_KEY) }, .mask = { .key = 0xffffffff },
	};
	struct ibv_flow_spec_mpls mpls = {
		.type = IBV_FLOW_SPEC_MPLS, .size = sizeof(mpls),
		.val = { htobe32(77 << 12) }, .mask = { htobe32(0xfffff000) },
	};
	struct ibv_flow_spec_tcp_udp tcp = {
		.type = IBV_FLOW_SPEC_TCP | IBV_FLOW_SPEC_INNER, .size = sizeof(tcp),
		.val = { .dst_port = htobe16(FRAME_DPORT) }, .mask = { .dst_port = 0xffff },
	};
	const void *spec[] = { NULL, &vxlan, &gre, &mpls };
	const uint16_t bytes[] = { 0, sizeof(vxlan), sizeof(gre), sizeof(mpls) };

	for (unsigned kind = 1; kind < 4; kind++) {
		struct ibv_flow *made[2];
		struct flow flow;

		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&flow, raw_mac[1]);
		flow_add(&flow, spec[kind], bytes[kind]);
		made[0] = vt_made(flow_to('a', &flow));
		flow.attr.priority = 1;
		tcp.val.dst_port = htobe16(FRAME_DPORT + 1);
		flow_add(&flow, &tcp, sizeof(tcp));
		made[1] = vt_made(flow_to('b', &flow));
		for (unsigned sent = 1; sent < 4; sent++) {
			struct frame frame = { .bytes = 0 };

			tunnel_frame(&frame, sent);
			send_frame(&frame);
		}
		expect("a");
		drop(made[0]);
		flow.attr.priority = 0;
		((struct ibv_flow_spec_tcp_udp *)((uint8_t *)&flow + flow.attr.size -
						  sizeof(tcp)))->val.dst_port =
			htobe16(FRAME_DPORT);
		made[0] = flow_to('c', &flow);
		for (unsigned sent = 1; sent < 4; sent++) {
			struct frame frame = { .bytes = 0 };

			tunnel_frame(&frame, sent);
			send_frame(&frame);
		}
		expect("c");
		drop(made[0]);
		drop(made[1]);
	}
}

/*
 * flow: "If the bit is set in the mask, the corresponding bit in the value should be matched."
 * flow: "ether_type field in ibv_flow_eth_filter is the ethertype following the last VLAN tag of
 * the packet."
 * flow: "Network parameters in the relevant network structs should be given in network order (big
 * endian)."
 */
segment_test(masks_say_which_bits_count)
{
	struct ibv_flow_eth_filter val = { .ether_type = htobe16(0x0806),
					   .vlan_tag = htobe16(0xa005) };
	struct ibv_flow_eth_filter mask = { .ether_type = 0xffff, .vlan_tag = htobe16(0x0fff) };
	struct ibv_flow *made;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_eth(&flow, &val, &mask);
	made = vt_made(flow_to('a', &flow));
	for (unsigned i = 0; i < 5; i++) {
		struct frame frame = { .bytes = 0 };

		frame_eth(&frame, raw_mac[i % 4], i == 3 ? IPV4 : 0x0806);
		if (i != 2)
			frame_vlan(&frame, VLAN, i == 4 ? 0x6006 : 0x6005); /* another priority */
		if (i == 1)
			frame_vlan(&frame, VLAN, 9);
		frame_data(&frame, 46);
		send_frame(&frame);
	}
	expect("aa");
	drop(made);
}

/* flow: "An application can provide the ibv_flow_spec_xxx rules in an un-ordered scheme." */
segment_test(specifications_come_in_any_order)
{
	struct ibv_flow_spec_ipv4_ext ipv4 = {
		.type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(ipv4),
		.val = { .src_ip = htobe32(FRAME_SRC_IPV4), .proto = UDP },
		.mask = { .src_ip = 0xffffffff, .proto = 0xff },
	};
	struct ibv_flow *made;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_udp(&flow, 7);
	flow_tag(&flow, 5);
	flow_add(&flow, &ipv4, sizeof(ipv4));
	flow_mac(&flow, raw_mac[1]);
	made = vt_made(flow_to('a', &flow));
	send_udp(raw_mac[1], 8);
	send_udp(raw_mac[1], 7);
	expect("a");
	drop(made);
}

/* --- which rule --- */

/*
 * flow: "Flows with higher priorities will be tested before flows with lower priorities."
 * flow: "A lower priority numeric value (higher priority) takes precedence over matching rules with
 * higher numeric priority value (lower priority)."
 */
segment_test(the_lower_number_goes_first)
{
	struct ibv_flow *low, *high;

	low = simple('a', IBV_FLOW_ATTR_NORMAL, 65535, 0);
	high = simple('b', IBV_FLOW_ATTR_NORMAL, 0, 0);
	send_udp(raw_mac[1], 1);
	expect("b");
	drop(high);
	send_udp(raw_mac[1], 1);
	expect("a");
	drop(low);
}

/*
 * flow: "Rule doesn't trap received packets, allowing them to match lower prioritized rules"
 * flow: "Only rule type IBV_FLOW_ATTR_NORMAL supports IBV_FLOW_ATTR_FLAGS_DONT_TRAP flag."
 */
segment_test(what_does_not_trap_gets_a_copy)
{
	static const enum ibv_flow_attr_type others[] = { IBV_FLOW_ATTR_ALL_DEFAULT,
							  IBV_FLOW_ATTR_MC_DEFAULT,
							  IBV_FLOW_ATTR_SNIFFER };
	struct ibv_flow *copy, *same, *low;

	copy = simple('a', IBV_FLOW_ATTR_NORMAL, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
	same = simple('b', IBV_FLOW_ATTR_NORMAL, 1, 0);
	low = simple('c', IBV_FLOW_ATTR_NORMAL, 2, 0);
	send_udp(raw_mac[1], 1);
	expect("ab");
	drop(same);
	send_udp(raw_mac[1], 1);
	expect("ac");
	drop(low);
	drop(copy);
	for (unsigned i = 0; i < 3; i++) {
		struct flow flow;

		flow_begin(&flow, others[i]);
		flow.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
		refused('a', &flow, EINVAL);
	}
}

/*
 * flow: "receive all Eth traffic which isn't steered to any QP"
 * flow: "receive all Eth multicast traffic which isn't steered to any QP"
 */
segment_test(default_rules_get_what_is_left)
{
	struct ibv_flow *own, *all, *groups;

	own = simple('a', IBV_FLOW_ATTR_NORMAL, 9, 0);
	all = simple('b', IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0);
	groups = simple('c', IBV_FLOW_ATTR_MC_DEFAULT, 0, 0);
	/* All contexts of a process are one NIC: what one has trapped is not left to another. */
	send_udp(raw_mac[1], 1);
	expect("a");
	send_udp(raw_mac[2], 1);
	expect("b");
	send_udp(raw_group, 1);
	expect("bc");
	send_udp(raw_broadcast, 1);
	expect("bc");
	drop(own);
	send_udp(raw_mac[1], 1);
	expect("b");
	drop(all);
	send_udp(raw_group, 1);
	send_udp(raw_mac[1], 1);
	expect("c");
	drop(groups);
}

/*
 * flow: "Sniffer rule - receive all port traffic"
 * flow: "No specifications are needed for IBV_FLOW_ATTR_SNIFFER rule type."
 */
segment_test(sniffers_see_everything)
{
	struct ibv_flow *own, *sniffer, *self, *drops;
	struct flow flow;
	struct ibv_wc wc;

	own = simple('a', IBV_FLOW_ATTR_NORMAL, 0, 0);
	sniffer = simple('b', IBV_FLOW_ATTR_SNIFFER, 0, 0);
	send_udp(raw_mac[1], 1);
	send_udp(raw_mac[2], 1);
	send_udp(raw_group, 1);
	expect_at("abbb");
	drop(own);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, raw_mac[1]);
	flow_drop(&flow);
	drops = flow_to('c', &flow);
	send_udp(raw_mac[1], 1);
	expect_at("b");
	drop(drops);
	drop(sniffer);

	/* What goes out by the sniffer's own context is traffic as well. */
	flow_begin(&flow, IBV_FLOW_ATTR_SNIFFER);
	self = vt_made(ibv_create_flow(it.from.qp, &flow.attr));
	raw_recv(&it.from, GOT, RAW_SLOT_BYTES);
	raw_frame(&it.from, FROM, raw_mac[1], raw_mac[0], 60, 1);
	assert_int_equal(raw_post(&it.from, FROM, 60, 0), 0);
	for (unsigned seen = 0; seen != 3;) {
		assert_true(vt_poll_ms(it.from.cq, &wc, VT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		seen |= wc.opcode == IBV_WC_RECV ? 2 : 1;
	}
	assert_memory_equal(raw_at(&it.from, GOT), raw_at(&it.from, FROM), 60);
	drop(self);
}

/* --- actions --- */

/* flow: "Action dropping matched packet" */
segment_test(dropped_frames_reach_nobody)
{
	struct ibv_flow *own, *made;
	struct flow flow;

	own = simple('a', IBV_FLOW_ATTR_NORMAL, 1, 0);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, raw_mac[1]);
	flow_udp(&flow, 7);
	flow_drop(&flow);
	made = vt_made(flow_to('a', &flow));
	send_udp(raw_mac[1], 7);
	send_udp(raw_mac[1], 8);
	expect("a");
	drop(made);
	send_udp(raw_mac[1], 7);
	expect("a");
	drop(own);
}

/* flow: "Action tagging matched packet" */
segment_test(tagged_frames_say_so)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 64,
					       .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };
	struct raw_options opt = { .cq_attr = &cq_attr };
	static const uint32_t tags[] = { 0x123456, 0, 0xffffffff };
	struct ibv_poll_cq_attr poll = { 0 };
	struct raw_end end;
	int rc;

	raw_open(&end, &opt);
	for (unsigned i = 0; i < 3; i++) {
		struct flow flow;

		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&flow, raw_mac[1]);
		flow_udp(&flow, (uint16_t)i);
		if (tags[i])
			flow_tag(&flow, tags[i]);
		end.flow[end.flows++] = ibv_create_flow(end.qp, &flow.attr);
		assert_non_null(end.flow[i]);
		raw_recv(&end, GOT + i, RAW_SLOT_BYTES);
		send_udp(raw_mac[1], (uint16_t)i);
	}
	for (unsigned i = 0; i < 3; i++) {
		uint64_t until = vt_now_ms() + VT_WAIT_MS;

		do
			rc = ibv_start_poll(end.cq_ex, &poll);
		while (rc == ENOENT && vt_now_ms() < until);
		assert_int_equal(rc, 0);
		assert_int_equal(end.cq_ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_flow_tag(end.cq_ex), tags[i]);
		ibv_end_poll(end.cq_ex);
	}
	raw_close(&end);
}

/*
 * flow: "Action count matched packet with a ibv_counters handle"
 * counters: "Counters are cleared upon creation and values will be monotonically increasing."
 * counters: "attach an ibv_counters statically to a Flow (struct ibv_flow) during creation of a new
 * Flow"
 * counters: "this counters object will only start collecting values after it is bound to the verbs
 * resource"
 * counters: "Once an ibv_counters is bound statically to a verbs resource, no additional attach is
 * allowed till the counter object is not bound to any verb object."
 * counters: "Attaching a counters handle to multiple objects of the same type will accumulate the
 * values into a single index."
 * counters: "setting the index more than once with different or same counter_desc will aggregate
 * the values from all relevant counters into the relevant index location"
 */
segment_test(counters_count_frames_and_octets)
{
	static const struct {
		enum ibv_counter_description what;
		uint32_t index;
	} points[] = { { IBV_COUNTER_PACKETS, 0 }, { IBV_COUNTER_BYTES, 1 },
		       { IBV_COUNTER_PACKETS, 2 }, { IBV_COUNTER_BYTES, 2 } };
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr attach = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counters *counters;
	struct ibv_flow *made[2];
	uint64_t values[4] = { 9, 9, 9, 9 };

	counters = vt_made(ibv_create_counters(it.to[0].ctx, &init));
	for (unsigned i = 0; i < 4; i++) {
		attach.counter_desc = points[i].what;
		attach.index = points[i].index;
		assert_int_equal(ibv_attach_counters_point_flow(counters, &attach, NULL), 0);
	}
	send_udp(raw_mac[1], 0);
	for (unsigned i = 0; i < 2; i++) {
		struct flow flow;

		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&flow, raw_mac[1 + i]);
		flow_count(&flow, counters);
		made[i] = vt_made(flow_to('a', &flow));
	}
	assert_int_equal(ibv_read_counters(counters, values, 4, 0), 0);
	assert_true(values[0] == 0 && values[1] == 0 && values[2] == 0 && values[3] == 0);
	for (unsigned i = 0; i < 3; i++)
		send_udp(raw_mac[1 + i], 0); /* 42 octets; the last is for nobody */
	expect_at("aa");
	assert_int_equal(ibv_read_counters(counters, values, 3,
					   IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	assert_int_equal(values[0], 2);
	assert_int_equal(values[1], 84);
	assert_int_equal(values[2], 86);
	assert_int_equal(values[3], 0);

	assert_int_equal(ibv_attach_counters_point_flow(counters, &attach, NULL), EBUSY);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &attach, made[0]), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_counters(counters), EBUSY);
	drop(made[0]);
	drop(made[1]);
	assert_int_equal(ibv_read_counters(counters, values, 3, 0), 0);
	assert_int_equal(values[2], 86);
	assert_int_equal(ibv_attach_counters_point_flow(counters, &attach, NULL), 0);
	assert_int_equal(ibv_destroy_counters(counters), 0);
}

/*
 * flow: "Match sent packets against EGRESS rules and carry associated actions if required"
 * flow: "When IBV_FLOW_ATTR_FLAGS_EGRESS flag is set, the qp parameter is used only as a mean to
 * get the device."
 */
segment_test(egress_rules_are_about_what_is_sent)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr attach = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counters *counters;
	struct ibv_flow *own, *drops, *counts;
	struct flow flow;
	uint64_t sent = 9;

	own = simple('a', IBV_FLOW_ATTR_NORMAL, 0, 0);
	counters = vt_made(ibv_create_counters(it.to[1].ctx, &init));
	assert_int_equal(ibv_attach_counters_point_flow(counters, &attach, NULL), 0);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	flow_mac(&flow, raw_mac[1]);
	flow_count(&flow, counters);
	counts = flow_to('b', &flow); /* which gets nothing by it */
	assert_non_null(counts);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	flow.attr.priority = 1;
	flow_udp(&flow, 7);
	flow_drop(&flow);
	drops = vt_made(flow_to('c', &flow));
	send_udp(raw_mac[1], 7); /* the rule before it lets this pass */
	send_udp(raw_mac[1], 8);
	expect("aa");
	drop(counts);
	send_udp(raw_mac[1], 7);
	send_udp(raw_mac[1], 8);
	expect("a");
	assert_int_equal(ibv_read_counters(counters, &sent, 1, 0), 0);
	assert_int_equal(sent, 2);
	drop(drops);
	send_udp(raw_mac[1], 7);
	expect("a");
	flow_tag(&flow, 1);
	refused('a', &flow, EINVAL);
	assert_int_equal(ibv_destroy_counters(counters), 0);
	drop(own);
}

/* --- what is refused --- */

/*
 * flow: "flow specification, QP or priority are invalid"
 * flow: "returns a pointer to the flow, or NULL if the request fails. In case of an error, errno is
 * updated."
 * flow: "only for QPs of Transport Service Type IBV_QPT_UD or IBV_QPT_RAW_PACKET"
 */
segment_test(what_is_wrong_is_refused)
{
	struct ibv_flow_spec_action_handle handle = {
		.type = IBV_FLOW_SPEC_ACTION_HANDLE, .size = sizeof(handle),
	};
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	for (unsigned i = 0; i < 3; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		struct vt_end end;

		vt_end_open(&end, &opt);
		errno = 0;
		assert_null(ibv_create_flow(end.qp, &flow.attr));
		/* The man page knows UD, whose datagrams are no frames here. */
		assert_int_equal(errno, vt_types[i] == IBV_QPT_UD ? EOPNOTSUPP : EINVAL);
		vt_end_close(&end);
	}
	flow.attr.port = 2;
	refused('a', &flow, EINVAL);
	flow.attr.port = 255;
	refused('a', &flow, EINVAL);
	flow_begin(&flow, (enum ibv_flow_attr_type)4);
	refused('a', &flow, EINVAL);
	flow_begin(&flow, IBV_FLOW_ATTR_ALL_DEFAULT);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	refused('a', &flow, EINVAL);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_add(&flow, &handle, sizeof(handle));
	refused('a', &flow, EOPNOTSUPP);
	/* UDP in one place and TCP in the same. */
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_udp(&flow, 1);
	flow_udp(&flow, 2);
	refused('a', &flow, EINVAL);
	send_udp(raw_mac[1], 1);
	expect("");
}

segment_test(what_contradicts_another_rule_is_refused)
{
	struct ibv_flow *own;
	struct flow flow;

	own = simple('a', IBV_FLOW_ATTR_NORMAL, 0, 0);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_mac(&flow, raw_mac[1]);
	flow_drop(&flow);
	refused('b', &flow, EEXIST);
	send_udp(raw_mac[1], 1);
	expect("a");
	drop(own);
}

segment_test(a_queue_pair_with_rules_stays)
{
	struct ibv_flow *own;

	own = simple('a', IBV_FLOW_ATTR_NORMAL, 0, 0);
	assert_int_equal(ibv_destroy_qp(it.to[0].qp), EBUSY);
	send_udp(raw_mac[1], 1);
	expect("a");
	drop(own);
}

/* Ten thousand rules of one destination, of which each gets its own frames. */
segment_test(many_rules_are_no_burden)
{
	enum { MANY = 10000 };
	static struct ibv_flow *made[MANY];
	struct flow flow;

	for (unsigned i = 0; i < MANY; i++) {
		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		flow_mac(&flow, raw_mac[1]);
		flow_udp(&flow, (uint16_t)i);
		made[i] = vt_made(flow_to((char)('a' + i % 3), &flow));
	}
	for (unsigned i = 0; i < 12; i++)
		send_udp(raw_mac[1], (uint16_t)(i * 833));
	expect_at("aaaabbbbcccc");
	for (unsigned i = 0; i < MANY; i++)
		drop(made[i]);
	send_udp(raw_mac[1], 0);
	expect("");
}
