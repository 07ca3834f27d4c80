/* SPDX-License-Identifier: BSD-2-Clause */
/* What specifications of flow rules mean, bit by bit, and which are refused. */
#include <endian.h>
#include <errno.h>

#include "flows.h"
#include "frames.h"
#include "group.h"
#include "nic/core/limits.h"
#include "nic/service/eth/flow_spec.h"

/* Frames of which the samples below tell the fields. */
enum what { TCP4, UDP6, ESP4, GRE4, MPLS, VXLAN, WHATS };

static void level_make(struct frame *frame, enum what what)
{
	bool ipv6 = what == UDP6;

	frame_eth(frame, frame_dst_mac,
		  what == MPLS ? VB_ETHERTYPE_MPLS
			       : ipv6 ? VB_ETHERTYPE_IPV6 : VB_ETHERTYPE_IPV4);
	frame_vlan(frame, VB_ETHERTYPE_VLAN, 0x6123);
	if (what == MPLS)
		frame_label(frame, 0x98765, true);
	if (ipv6)
		frame_ipv6(frame, VB_IPPROTO_UDP);
	else
		frame_ipv4(frame, what == ESP4 ? VB_IPPROTO_ESP : what == GRE4 ? VB_IPPROTO_GRE
				   : what == VXLAN ? VB_IPPROTO_UDP : VB_IPPROTO_TCP, 0x4000);
	if (what == TCP4 || what == MPLS)
		frame_tcp(frame, 0);
	else if (what == UDP6)
		frame_udp(frame, FRAME_DPORT);
	else if (what == ESP4)
		frame_esp(frame);
	else if (what == GRE4)
		frame_gre(frame, 0xa000, 0x88b5);
	else
		frame_udp(frame, VB_UDP_VXLAN);
}

static void key_make(union vb_eth_key *key, enum what what, bool inner)
{
	struct frame frame = { .bytes = 0 };
	struct vb_eth_frame parsed;

	if (inner || what == VXLAN) {
		level_make(&frame, VXLAN);
		frame_vxlan(&frame);
	}
	if (what != VXLAN)
		level_make(&frame, what);
	frame_close(&frame);
	assert_true(vb_eth_parse(&parsed, frame.octets, frame.bytes));
	vb_eth_key_outer(&key->outer, &parsed);
	vb_eth_key_inner(&key->inner, &parsed);
}

/* --- every bit of every field --- */

/* A specification that such a frame matches in all of its fields. */
struct sample {
	enum what what;
	bool outer_only;
	uint16_t bytes, val_at, mask_at, filter_bytes; /* filter_bytes: to the last field's end */
	union {
		struct ibv_flow_spec any;
		uint8_t octets[sizeof(struct ibv_flow_spec)];
	} spec;
};

#define END(filter, f) (offsetof(struct filter, f) + sizeof(((struct filter *)0)->f))
#define SAMPLE(w, t, s, filter, last, ...)                                                        \
	{                                                                                         \
		.what = w, .bytes = sizeof(struct s), .val_at = offsetof(struct s, val),          \
		.mask_at = offsetof(struct s, mask), .filter_bytes = END(filter, last),           \
		.spec.any.hdr = { t, sizeof(struct s) }, __VA_ARGS__                              \
	}

static struct sample samples[] = {
	SAMPLE(TCP4, IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth, ibv_flow_eth_filter, vlan_tag),
	SAMPLE(TCP4, IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4, ibv_flow_ipv4_filter, dst_ip),
	SAMPLE(TCP4, IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext, ibv_flow_ipv4_ext_filter,
	       flags),
	SAMPLE(UDP6, IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6, ibv_flow_ipv6_filter, hop_limit),
	SAMPLE(TCP4, IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp, ibv_flow_tcp_udp_filter, src_port),
	SAMPLE(UDP6, IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp, ibv_flow_tcp_udp_filter, src_port),
	SAMPLE(ESP4, IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp, ibv_flow_esp_filter, seq),
	SAMPLE(GRE4, IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre, ibv_flow_gre_filter, key),
	SAMPLE(MPLS, IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls, ibv_flow_mpls_filter, label),
	SAMPLE(VXLAN, IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel, ibv_flow_tunnel_filter,
	       tunnel_id, .outer_only = true),
};

enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static int fill_samples(void **state)
{
	struct ibv_flow_spec_eth *eth = &samples[0].spec.any.eth;
	struct ibv_flow_spec_ipv4_ext *ext = &samples[2].spec.any.ipv4_ext;
	struct ibv_flow_spec_ipv6 *ipv6 = &samples[3].spec.any.ipv6;

	memcpy(eth->val.dst_mac, frame_dst_mac, 6);
	memcpy(eth->val.src_mac, frame_src_mac, 6);
	eth->val.ether_type = htobe16(VB_ETHERTYPE_IPV4);
	eth->val.vlan_tag = htobe16(0x6123);
	samples[1].spec.any.ipv4.val.src_ip = ext->val.src_ip = htobe32(FRAME_SRC_IPV4);
	samples[1].spec.any.ipv4.val.dst_ip = ext->val.dst_ip = htobe32(FRAME_DST_IPV4);
	ext->val.proto = VB_IPPROTO_TCP;
	ext->val.tos = ipv6->val.traffic_class = FRAME_TOS;
	ext->val.ttl = ipv6->val.hop_limit = FRAME_TTL;
	ext->val.flags = 2; /* DF, as the kernel counts its flags */
	for (unsigned i = 0; i < 16; i++) {
		ipv6->val.src_ip[i] = (uint8_t)(0x20 + i);
		ipv6->val.dst_ip[i] = (uint8_t)(0x40 + i);
	}
	ipv6->val.flow_label = htobe32(FRAME_FLOW_LABEL);
	ipv6->val.next_hdr = VB_IPPROTO_UDP;
	for (unsigned i = 4; i < 6; i++) {
		samples[i].spec.any.tcp_udp.val.src_port = htobe16(FRAME_SPORT);
		samples[i].spec.any.tcp_udp.val.dst_port = htobe16(FRAME_DPORT);
	}
	samples[6].spec.any.esp.val.spi = htobe32(FRAME_SPI);
	samples[6].spec.any.esp.val.seq = htobe32(FRAME_ESP_SEQ);
	samples[7].spec.any.gre.val.c_ks_res0_ver = htobe16(0xa000);
	samples[7].spec.any.gre.val.protocol = htobe16(0x88b5);
	samples[7].spec.any.gre.val.key = htobe32(FRAME_GRE_KEY);
	samples[8].spec.any.mpls.val.label = htobe32(0x98765u << 12 | 1 << 8 | 64);
	samples[9].spec.any.tunnel.val.tunnel_id = htobe32(FRAME_VNI);
	return 0;
}

static bool matches(const struct vb_flow_rule *rule, const union vb_eth_key *key)
{
	for (unsigned i = 0; i < VB_KEY_WORDS; i++) {
		assert_int_equal(rule->value.word[i] & ~rule->mask.word[i], 0);
		if ((key->word[i] & rule->mask.word[i]) != rule->value.word[i])
			return false;
	}
	return true;
}

/* Bits that a header does not have room for. */
static bool is_too_wide(const struct sample *sample, unsigned octet, unsigned bit)
{
	switch (sample->spec.any.hdr.type) {
	case IBV_FLOW_SPEC_IPV6:
		return octet == offsetof(struct ibv_flow_ipv6_filter, flow_label) ||
		       (octet == offsetof(struct ibv_flow_ipv6_filter, flow_label) + 1 && bit > 3);
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
		return octet == 0;
	default:
		return false;
	}
}

/* The sample by itself, with one bit of the mask set, or many. */
static int decode(const struct sample *sample, bool inner, const uint8_t *mask, uint8_t flip_octet,
		  uint8_t flip, struct vb_flow_rule *rule)
{
	struct sample copy = *sample;
	struct flow flow;

	copy.spec.any.hdr.type |= inner ? IBV_FLOW_SPEC_INNER : 0;
	memcpy(copy.spec.octets + copy.mask_at, mask, copy.filter_bytes);
	copy.spec.octets[copy.val_at + flip_octet] ^= flip;
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_add(&flow, copy.spec.octets, copy.bytes);
	return vb_flow_decode(&flow.attr, rule);
}

/* A protocol that the specification itself requires, or Ethernet's type of what IP is. */
TEST(test_each_bit)
{
	for (unsigned s = 0; s < SAMPLES; s++) {
		const struct sample *sample = &samples[s];

		for (unsigned i = 0; i < 8u * sample->filter_bytes * (sample->outer_only ? 1 : 2);
		     i++) {
			bool inner = i >= 8u * sample->filter_bytes;
			unsigned octet = i / 8 % sample->filter_bytes, bit = i % 8;
			uint8_t mask[sizeof(struct ibv_flow_spec)] = { 0 };
			struct vb_flow_rule rule;
			union vb_eth_key key;

			key_make(&key, sample->what, inner);
			mask[octet] = (uint8_t)(1 << bit);
			if (is_too_wide(sample, octet, bit)) {
				assert_int_equal(decode(sample, inner, mask, 0, 0, &rule), EINVAL);
				continue;
			}
			/* It is asked for: right, then wrong. */
			assert_int_equal(decode(sample, inner, mask, 0, 0, &rule), 0);
			assert_true(matches(&rule, &key));
			assert_int_equal(decode(sample, inner, mask, (uint8_t)octet,
						(uint8_t)(1 << bit), &rule), 0);
			assert_false(matches(&rule, &key));
			/* It is not asked for, and is wrong. */
			mask[octet] = 0;
			assert_int_equal(decode(sample, inner, mask, (uint8_t)octet,
						(uint8_t)(1 << bit), &rule), 0);
			assert_true(matches(&rule, &key));
		}
	}
}

/* All fields at once; and no field at all, which asks for the header. */
TEST(test_whole_and_empty_masks)
{
	for (unsigned i = 0; i < 2 * SAMPLES; i++) {
		const struct sample *sample = &samples[i / 2];
		uint8_t none[sizeof(struct ibv_flow_spec)] = { 0 };
		uint8_t whole[sizeof(struct ibv_flow_spec)];
		bool inner = i & 1;

		if (inner && sample->outer_only)
			continue;
		memset(whole, 0xff, sizeof(whole));
		if (sample->spec.any.hdr.type == IBV_FLOW_SPEC_IPV6)
			memcpy(whole + offsetof(struct ibv_flow_ipv6_filter, flow_label),
			       "\x00\x0f\xff\xff", 4);
		if (sample->spec.any.hdr.type == IBV_FLOW_SPEC_VXLAN_TUNNEL)
			whole[0] = 0;
		for (enum what what = 0; what < WHATS; what++) {
			struct vb_flow_rule rule;
			union vb_eth_key key;
			bool ip4 = what != UDP6;
			bool has[] = { true, ip4, ip4, what == UDP6, what == TCP4 || what == MPLS,
				       what == UDP6 || what == VXLAN, what == ESP4, what == GRE4,
				       what == MPLS, what == VXLAN || inner };

			if (inner && what == VXLAN)
				continue;
			/* Within a tunnel, nothing is looked for under labels. */
			if (inner && what == MPLS)
				has[1] = has[2] = has[4] = false;
			key_make(&key, what, inner);
			assert_int_equal(decode(sample, inner, none, 0, 0, &rule), 0);
			assert_int_equal(matches(&rule, &key), has[i / 2]);
			assert_int_equal(decode(sample, inner, whole, 0, 0, &rule), 0);
			assert_int_equal(matches(&rule, &key),
					 what == sample->what ||
						 (has[i / 2] && i / 2 != 0 && i / 2 < 3 &&
						  what == MPLS) ||
						 (i / 2 == 0 && what != MPLS && what != UDP6) ||
						 (i / 2 == 1 && ip4 && has[1]) ||
						 (i / 2 == 4 && has[4]) ||
						 (i / 2 == 9 && has[9]));
		}
	}
}

/* What asks for something within a tunnel does not look outside, and the other way round. */
TEST(test_levels)
{
	uint8_t none[sizeof(struct ibv_flow_spec)] = { 0 };
	struct vb_flow_rule rule;
	union vb_eth_key key;

	key_make(&key, UDP6, false);
	assert_int_equal(decode(&samples[3], true, none, 0, 0, &rule), 0);
	assert_false(matches(&rule, &key));
	key_make(&key, UDP6, true);
	assert_true(matches(&rule, &key));
	assert_int_equal(decode(&samples[3], false, none, 0, 0, &rule), 0);
	assert_false(matches(&rule, &key));
}

/* ibv_create_flow(3), note 1 of the rule's example: specifications in any order mean the same. */
TEST(test_order_means_nothing)
{
	static const unsigned with[] = { 0, 2, 4 };
	struct vb_flow_rule first;

	for (unsigned turn = 0; turn < 3; turn++) {
		struct vb_flow_rule rule;
		struct flow flow;

		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		for (unsigned i = 0; i < 3; i++) {
			struct sample copy = samples[with[(turn + i) % 3]];

			memset(copy.spec.octets + copy.mask_at, 0xff, copy.filter_bytes);
			flow_add(&flow, copy.spec.octets, copy.bytes);
		}
		assert_int_equal(vb_flow_decode(&flow.attr, &rule), 0);
		if (!turn)
			first = rule;
		assert_memory_equal(&rule, &first, sizeof(rule));
	}
}

/* --- where MPLS is --- */

static int decode_mpls(unsigned before, unsigned inner, struct vb_flow_rule *rule)
{
	struct ibv_flow_spec_mpls mpls = {
		.type = IBV_FLOW_SPEC_MPLS | inner, .size = sizeof(mpls),
	};
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	for (unsigned i = 0; before && i < SAMPLES; i++) {
		struct sample copy = samples[i];

		if (copy.spec.any.hdr.type != (before & ~(unsigned)IBV_FLOW_SPEC_INNER))
			continue;
		copy.spec.any.hdr.type = before;
		flow_add(&flow, copy.spec.octets, copy.bytes);
	}
	flow_add(&flow, &mpls, sizeof(mpls));
	return vb_flow_decode(&flow.attr, rule);
}

static int decode_mpls_before_eth(unsigned inner)
{
	struct ibv_flow_spec_mpls mpls = {
		.type = IBV_FLOW_SPEC_MPLS | inner, .size = sizeof(mpls),
	};
	struct ibv_flow_spec_eth eth = {
		.type = IBV_FLOW_SPEC_ETH | inner, .size = sizeof(eth),
	};
	struct vb_flow_rule rule;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_add(&flow, &mpls, sizeof(mpls));
	flow_add(&flow, &eth, sizeof(eth));
	return vb_flow_decode(&flow.attr, &rule);
}

TEST(test_mpls_stands_behind_what_stands_before)
{
	static const struct {
		unsigned before;
		unsigned place;
	} rows[] = {
		{ 0, VB_KEY_LABEL_ETH },
		{ IBV_FLOW_SPEC_ETH, VB_KEY_LABEL_ETH },
		{ IBV_FLOW_SPEC_UDP, VB_KEY_LABEL_UDP },
		{ IBV_FLOW_SPEC_GRE, VB_KEY_LABEL_GRE },
	};
	struct vb_flow_rule rule;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned before = rows[i].before, inner = IBV_FLOW_SPEC_INNER;

		assert_int_equal(decode_mpls(before, 0, &rule), 0);
		assert_int_equal(rule.value.outer.label_in, rows[i].place);
		assert_int_equal(rule.mask.outer.label_in, 0xff);
		assert_int_equal(rule.mask.inner.label_in, 0);
		assert_int_equal(decode_mpls(before ? before | inner : 0, inner, &rule), 0);
		assert_int_equal(rule.value.inner.label_in, rows[i].place);
		assert_int_equal(rule.mask.outer.label_in, 0);
		/* The first of the inner level, whatever stands outside. */
		assert_int_equal(decode_mpls(before, inner, &rule), 0);
		assert_int_equal(rule.value.inner.label_in, VB_KEY_LABEL_ETH);
	}
	/* Nothing stands before Ethernet. */
	for (unsigned inner = 0; inner <= IBV_FLOW_SPEC_INNER; inner += IBV_FLOW_SPEC_INNER)
		assert_int_equal(decode_mpls_before_eth(inner), EINVAL);
	/* Labels directly in IP (RFC 4023) are not looked for. */
	assert_int_equal(decode_mpls(IBV_FLOW_SPEC_IPV4, 0, &rule), EOPNOTSUPP);
	assert_int_equal(decode_mpls(IBV_FLOW_SPEC_IPV4_EXT, 0, &rule), EOPNOTSUPP);
	assert_int_equal(decode_mpls(IBV_FLOW_SPEC_IPV6, 0, &rule), EOPNOTSUPP);
}

/* --- order, flags, actions --- */

static uint32_t order_of(enum ibv_flow_attr_type type, uint16_t priority, uint32_t flags,
			 bool *traps)
{
	struct vb_flow_rule rule;
	struct flow flow;

	flow_begin(&flow, type);
	flow.attr.priority = priority;
	flow.attr.flags = flags;
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), 0);
	*traps = rule.traps;
	return rule.order;
}

TEST(test_order)
{
	static const struct {
		enum ibv_flow_attr_type type;
		uint16_t priority;
		uint32_t flags;
		bool traps;
	} rows[] = {
		{ IBV_FLOW_ATTR_SNIFFER, 65535, 0, false },
		{ IBV_FLOW_ATTR_NORMAL, 0, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, false },
		{ IBV_FLOW_ATTR_NORMAL, 0, 0, true },
		{ IBV_FLOW_ATTR_NORMAL, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, false },
		{ IBV_FLOW_ATTR_NORMAL, 1, 0, true },
		{ IBV_FLOW_ATTR_NORMAL, 65535, 0, true },
		{ IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0, false },
	};
	uint32_t last = 0;
	bool traps;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t order = order_of(rows[i].type, rows[i].priority, rows[i].flags, &traps);

		assert_true(i == 0 || order > last);
		assert_int_equal(traps, rows[i].traps);
		last = order;
	}
	assert_int_equal(order_of(IBV_FLOW_ATTR_MC_DEFAULT, 3, 0, &traps), last);
	assert_false(traps);
}

TEST(test_multicast_default)
{
	struct vb_flow_rule rule;
	struct flow flow;
	union vb_eth_key key;

	flow_begin(&flow, IBV_FLOW_ATTR_MC_DEFAULT);
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), 0);
	key_make(&key, TCP4, false);
	assert_false(matches(&rule, &key));
	key.outer.dst_mac[0] = 0x01;
	assert_true(matches(&rule, &key));
	memset(key.outer.dst_mac, 0xff, 6);
	assert_true(matches(&rule, &key));
	/* That one address is no group's. */
	flow_mac(&flow, frame_dst_mac);
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), EINVAL);
}

TEST(test_actions)
{
	struct ibv_counters counters;
	struct vb_flow_rule rule;
	struct flow flow;

	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), 0);
	assert_false(rule.drop || rule.has_tag || rule.counters);
	flow_tag(&flow, 0xfffffffe);
	flow_drop(&flow);
	flow_count(&flow, &counters);
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), 0);
	assert_true(rule.drop && rule.has_tag);
	assert_int_equal(rule.tag, 0xfffffffe);
	assert_ptr_equal(rule.counters, &counters);
	assert_false(rule.egress);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), EINVAL);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), EINVAL); /* with a tag */
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_drop(&flow);
	flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), 0);
	assert_true(rule.egress && rule.drop);
}

TEST(test_actions_refused)
{
	struct ibv_flow_spec_action_handle handle = {
		.type = IBV_FLOW_SPEC_ACTION_HANDLE, .size = sizeof(handle),
	};
	struct ibv_counters counters;
	struct vb_flow_rule rule;
	struct flow flow;

	for (unsigned twice = 0; twice < 3; twice++) {
		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		for (unsigned i = 0; i < 2; i++) {
			if (twice == 0)
				flow_tag(&flow, 1);
			else if (twice == 1)
				flow_drop(&flow);
			else
				flow_count(&flow, &counters);
		}
		assert_int_equal(vb_flow_decode(&flow.attr, &rule), EINVAL);
	}
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_count(&flow, NULL);
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), EINVAL);
	flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
	flow_add(&flow, &handle, sizeof(handle));
	assert_int_equal(vb_flow_decode(&flow.attr, &rule), EOPNOTSUPP);
}

/* --- what is refused --- */

TEST(test_attributes_refused)
{
	static const struct {
		uint32_t comp_mask;
		unsigned type;
		uint8_t specs, port;
		uint32_t flags;
		int err;
	} rows[] = {
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 1, 0, 0 },
		{ 1, IBV_FLOW_ATTR_NORMAL, 0, 1, 0, EINVAL },
		{ 0, IBV_FLOW_ATTR_SNIFFER + 1, 0, 1, 0, EINVAL },
		{ 0, 0xffffffff, 0, 1, 0, EINVAL },
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 0, 0, 0 }, /* as other devices have it */
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 2, 0, EINVAL },
		{ 0, IBV_FLOW_ATTR_NORMAL, VB_FLOW_SPECS_MAX + 1, 1, 0, EINVAL },
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 1, 1 << 0, EINVAL },
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 1, 1 << 3, EINVAL },
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 1, 1u << 31, EINVAL },
		{ 0, IBV_FLOW_ATTR_NORMAL, 0, 1, IBV_FLOW_ATTR_FLAGS_EGRESS, 0 },
		{ 0, IBV_FLOW_ATTR_ALL_DEFAULT, 0, 1, IBV_FLOW_ATTR_FLAGS_EGRESS, EINVAL },
		{ 0, IBV_FLOW_ATTR_SNIFFER, 0, 1, IBV_FLOW_ATTR_FLAGS_EGRESS, EINVAL },
		{ 0, IBV_FLOW_ATTR_ALL_DEFAULT, 0, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL },
		{ 0, IBV_FLOW_ATTR_MC_DEFAULT, 0, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL },
		{ 0, IBV_FLOW_ATTR_SNIFFER, 0, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_flow_rule rule;
		struct flow flow;

		flow_begin(&flow, (enum ibv_flow_attr_type)rows[i].type);
		flow.attr.comp_mask = rows[i].comp_mask;
		flow.attr.num_of_specs = rows[i].specs;
		flow.attr.port = rows[i].port;
		flow.attr.flags = rows[i].flags;
		assert_int_equal(vb_flow_decode(&flow.attr, &rule), rows[i].err);
	}
}

/* Each kind has one size; and there are no other kinds. */
TEST(test_specs_refused)
{
	static const uint32_t unknown[] = { 0, 0x1f, 0x21, 0x33, 0x42, 0x52, 0x61, 0x220, 0x1004,
					    0x1100, 0x80000020, IBV_FLOW_SPEC_INNER,
					    IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_VXLAN_TUNNEL,
					    IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ACTION_DROP };
	struct vb_flow_rule rule;
	struct flow flow;

	for (unsigned i = 0; i < SAMPLES; i++) {
		for (uint16_t size = 0; size < 2 * sizeof(struct ibv_flow_spec); size++) {
			struct sample copy = samples[i];

			flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
			copy.spec.any.hdr.size = size;
			flow_add(&flow, copy.spec.octets, copy.bytes);
			assert_int_equal(vb_flow_decode(&flow.attr, &rule),
					 size == copy.bytes ? 0 : EINVAL);
		}
	}
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		for (uint16_t size = 0; size < 128; size++) {
			struct { uint32_t type; uint16_t size; } spec = { unknown[i], size };

			flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
			flow_add(&flow, &spec, sizeof(spec));
			assert_int_equal(vb_flow_decode(&flow.attr, &rule), EINVAL);
		}
	}
}

/* What no frame can be. */
TEST(test_contradictions)
{
	static const struct {
		unsigned a, b; /* samples, with all their masks set */
		int err;
	} rows[] = {
		{ 0, 2, 0 }, { 0, 3, EINVAL }, { 2, 3, EINVAL }, { 4, 5, EINVAL }, { 4, 6, EINVAL },
		{ 6, 7, EINVAL }, { 2, 4, 0 }, { 2, 5, EINVAL }, { 3, 4, EINVAL }, { 3, 5, 0 },
		{ 1, 2, 0 }, { 0, 0, 0 }, { 0, 9, 0 }, { 0, 8, EINVAL },
		{ 4, 9, EINVAL }, { 9, 7, EINVAL }, { 9, 6, EINVAL },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned with[2] = { rows[i].a, rows[i].b };
		struct vb_flow_rule rule;
		struct flow flow;

		flow_begin(&flow, IBV_FLOW_ATTR_NORMAL);
		for (unsigned k = 0; k < 2; k++) {
			struct sample copy = samples[with[k]];

			memset(copy.spec.octets + copy.mask_at, 0xff, copy.filter_bytes);
			if (with[k] == 3)
				memset(copy.spec.any.ipv6.mask.src_ip + 32, 0, 4);
			if (with[k] == 9)
				copy.spec.octets[copy.mask_at] = 0;
			flow_add(&flow, copy.spec.octets, copy.bytes);
		}
		assert_int_equal(vb_flow_decode(&flow.attr, &rule), rows[i].err);
	}
}

GROUP(fill_samples, NULL)
