/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/flow_spec.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/limits.h"

#define SPEC_MASK ((unsigned)~IBV_FLOW_SPEC_INNER)

/* What the presence of a specification implies, whatever its masks. */
struct said {
	uint8_t bits, version, tunnel, proto;
};

/* The kinds of match specifications. */
struct kind {
	unsigned type; /* without INNER */
	uint16_t spec_bytes, val_at, mask_at;
	bool outer_only;
	struct said said;
};

#define KIND(t, s, ...)                                                                           \
	{                                                                                         \
		.type = t, .spec_bytes = sizeof(struct s), .val_at = offsetof(struct s, val),     \
		.mask_at = offsetof(struct s, mask), ##__VA_ARGS__                                \
	}

/* A field of a specification: its offset in the filter and in a level. */
struct field {
	unsigned type;
	uint8_t from, to, bytes;
	uint8_t bits; /* what else the frame must have for this field */
};

#define FIELD(t, filter, f, at, ...)                                                              \
	{                                                                                         \
		t, offsetof(struct filter, f), at, sizeof(((struct filter *)0)->f), ##__VA_ARGS__ \
	}
#define AT(f) offsetof(struct vb_eth_level, f)

/* clang-format off */
static const struct kind kinds[] = {
	KIND(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth, .said = { .bits = VB_KEY_L2 }),
	KIND(IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4, .said = { .version = 4 }),
	KIND(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext, .said = { .version = 4 }),
	KIND(IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6, .said = { .version = 6 }),
	KIND(IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp, .said = { .proto = VB_IPPROTO_TCP }),
	KIND(IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp, .said = { .proto = VB_IPPROTO_UDP }),
	KIND(IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp, .said = { .proto = VB_IPPROTO_ESP }),
	KIND(IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre, .said = { .proto = VB_IPPROTO_GRE }),
	KIND(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls),
	KIND(IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel, .outer_only = true,
	     .said = { .tunnel = 1, .proto = VB_IPPROTO_UDP }),
};

static const struct field fields[] = {
	FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_eth_filter, dst_mac, AT(dst_mac)),
	FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_eth_filter, src_mac, AT(src_mac)),
	FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_eth_filter, ether_type, AT(ethertype)),
	FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_eth_filter, vlan_tag, AT(tci), VB_KEY_VLAN),
	FIELD(IBV_FLOW_SPEC_IPV4, ibv_flow_ipv4_filter, src_ip, AT(src_ip)),
	FIELD(IBV_FLOW_SPEC_IPV4, ibv_flow_ipv4_filter, dst_ip, AT(dst_ip)),
	FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_ipv4_ext_filter, src_ip, AT(src_ip)),
	FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_ipv4_ext_filter, dst_ip, AT(dst_ip)),
	FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_ipv4_ext_filter, proto, AT(proto)),
	FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_ipv4_ext_filter, tos, AT(tos)),
	FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_ipv4_ext_filter, ttl, AT(ttl)),
	FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_ipv4_ext_filter, flags, AT(ip_flags)),
	FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_ipv6_filter, src_ip, AT(src_ip)),
	FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_ipv6_filter, dst_ip, AT(dst_ip)),
	FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_ipv6_filter, flow_label, AT(flow_label)),
	FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_ipv6_filter, next_hdr, AT(proto)),
	FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_ipv6_filter, traffic_class, AT(tos)),
	FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_ipv6_filter, hop_limit, AT(ttl)),
	FIELD(IBV_FLOW_SPEC_TCP, ibv_flow_tcp_udp_filter, src_port, AT(l4), VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_TCP, ibv_flow_tcp_udp_filter, dst_port, AT(l4) + 2, VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_UDP, ibv_flow_tcp_udp_filter, src_port, AT(l4), VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_UDP, ibv_flow_tcp_udp_filter, dst_port, AT(l4) + 2, VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_ESP, ibv_flow_esp_filter, spi, AT(l4), VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_ESP, ibv_flow_esp_filter, seq, AT(l4) + 4, VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_GRE, ibv_flow_gre_filter, c_ks_res0_ver, AT(l4), VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_GRE, ibv_flow_gre_filter, protocol, AT(l4) + 2, VB_KEY_L4),
	FIELD(IBV_FLOW_SPEC_GRE, ibv_flow_gre_filter, key, AT(l4) + 4,
	      VB_KEY_L4 | VB_KEY_GRE_KEY),
	FIELD(IBV_FLOW_SPEC_MPLS, ibv_flow_mpls_filter, label, AT(label)),
	FIELD(IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_tunnel_filter, tunnel_id, AT(vni)),
};
/* clang-format on */

/* A rule being built. */
struct making {
	struct vb_flow_rule *rule;
	unsigned actions; /* bits: type - ACTION_TAG */
	unsigned before;  /* the type of the previous specification */
};

/* Requires these bits of an octet. EINVAL: they contradict an earlier requirement. */
static int require(struct vb_eth_level *value, struct vb_eth_level *mask, unsigned at, uint8_t v,
		   uint8_t m)
{
	uint8_t *to_value = (uint8_t *)value + at, *to_mask = (uint8_t *)mask + at;

	if ((*to_value ^ v) & *to_mask & m)
		return EINVAL;
	*to_value |= v & m;
	*to_mask |= m;
	return 0;
}

/* The order of specifications says where MPLS is (ibv_create_flow(3)). */
static int label_place(const struct making *making, unsigned type, uint8_t *place)
{
	unsigned before = making->before & SPEC_MASK;

	*place = VB_KEY_LABEL_ETH;
	if ((making->before ^ type) & IBV_FLOW_SPEC_INNER)
		return 0; /* the first of its level */
	switch (before) {
	case IBV_FLOW_SPEC_UDP:
		*place = VB_KEY_LABEL_UDP;
		return 0;
	case IBV_FLOW_SPEC_GRE:
		*place = VB_KEY_LABEL_GRE;
		return 0;
	case IBV_FLOW_SPEC_IPV4:
	case IBV_FLOW_SPEC_IPV4_EXT:
	case IBV_FLOW_SPEC_IPV6:
		return EOPNOTSUPP;
	default:
		return 0;
	}
}

static int require_said(struct vb_eth_level *value, struct vb_eth_level *mask,
			const struct said *said)
{
	int err = require(value, mask, AT(bits), said->bits, said->bits);

	if (!err && said->version)
		err = require(value, mask, AT(version), said->version, 0xff);
	if (!err && said->tunnel)
		err = require(value, mask, AT(tunnel), said->tunnel, 0xff);
	if (!err && said->proto)
		err = require(value, mask, AT(proto), said->proto, 0xff);
	return err;
}

/* Numbers with more bits in a specification than in a header: 24, and 20. */
static int check_width(const struct vb_eth_level *mask)
{
	return mask->vni[0] || mask->flow_label[0] || mask->flow_label[1] >> 4 ? EINVAL : 0;
}

static int require_fields(struct vb_eth_level *value, struct vb_eth_level *mask,
			  const struct kind *kind, const uint8_t *spec)
{
	int err = 0;

	for (unsigned f = 0; f < VB_ARRAY_LEN(fields); f++) {
		const struct field *field = &fields[f];
		uint8_t any = 0;

		if (field->type != kind->type)
			continue;
		for (unsigned i = 0; !err && i < field->bytes; i++) {
			uint8_t bits = spec[kind->mask_at + field->from + i];

			any |= bits;
			err = require(value, mask, field->to + i,
				      spec[kind->val_at + field->from + i], bits);
		}
		if (!err && any)
			err = require(value, mask, AT(bits), field->bits, field->bits);
	}
	return err;
}

static int add_match(struct making *making, const struct kind *kind,
		     const struct ibv_flow_spec *spec)
{
	bool inner = spec->hdr.type & IBV_FLOW_SPEC_INNER;
	union vb_eth_key *v = &making->rule->value, *m = &making->rule->mask;
	struct vb_eth_level *value = inner ? &v->inner : &v->outer;
	struct vb_eth_level *mask = inner ? &m->inner : &m->outer;
	uint8_t place;
	int err;

	if (inner && kind->outer_only)
		return EINVAL;
	/* The order says where labels are, which is never before the Ethernet header. */
	if (kind->type == IBV_FLOW_SPEC_ETH && mask->label_in)
		return EINVAL;
	err = require_said(value, mask, &kind->said);
	if (!err && kind->type == IBV_FLOW_SPEC_MPLS) {
		err = label_place(making, spec->hdr.type, &place);
		if (!err)
			err = require(value, mask, AT(label_in), place, 0xff);
	}
	return err ? err : require_fields(value, mask, kind, (const uint8_t *)spec);
}

/* --- actions --- */

static int add_action(struct making *making, const struct ibv_flow_spec *spec, unsigned type)
{
	struct vb_flow_rule *rule = making->rule;
	unsigned bit = 1u << (type - IBV_FLOW_SPEC_ACTION_TAG);

	if (making->actions & bit)
		return EINVAL;
	making->actions |= bit;
	switch (type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		if (spec->hdr.size != sizeof(spec->flow_tag))
			return EINVAL;
		rule->has_tag = true;
		rule->tag = spec->flow_tag.tag_id;
		return 0;
	case IBV_FLOW_SPEC_ACTION_DROP:
		if (spec->hdr.size != sizeof(spec->drop))
			return EINVAL;
		rule->drop = true;
		return 0;
	case IBV_FLOW_SPEC_ACTION_COUNT:
		if (spec->hdr.size != sizeof(spec->flow_count) || !spec->flow_count.counters)
			return EINVAL;
		rule->counters = (struct vb_counters *)spec->flow_count.counters;
		return 0;
	default:
		return EOPNOTSUPP; /* there are no flow actions */
	}
}

static int add_spec(struct making *making, const struct ibv_flow_spec *spec)
{
	unsigned type = spec->hdr.type;
	int err = EINVAL;

	if (type >= IBV_FLOW_SPEC_ACTION_TAG && type <= IBV_FLOW_SPEC_ACTION_COUNT)
		return add_action(making, spec, type);
	for (unsigned i = 0; i < VB_ARRAY_LEN(kinds); i++) {
		if (kinds[i].type != (type & SPEC_MASK) || kinds[i].spec_bytes != spec->hdr.size)
			continue;
		err = add_match(making, &kinds[i], spec);
	}
	making->before = type;
	return err;
}

/* --- the whole rule --- */

/* Can the ethertype have this value? */
static bool type_can_be(const struct vb_eth_level *value, const struct vb_eth_level *mask,
			uint16_t type)
{
	return !((value->ethertype[0] ^ (type >> 8)) & mask->ethertype[0]) &&
	       !((value->ethertype[1] ^ (type & 0xff)) & mask->ethertype[1]);
}

/* Ethertype, labels and IP version must be consistent; IP may be below labels. */
static int check_ethertype(const struct vb_eth_level *value, const struct vb_eth_level *mask)
{
	uint16_t ip = value->version == 4 ? VB_ETHERTYPE_IPV4 : VB_ETHERTYPE_IPV6;
	bool labels = type_can_be(value, mask, VB_ETHERTYPE_MPLS) ||
		      type_can_be(value, mask, VB_ETHERTYPE_MPLS_MC);

	if (value->label_in == VB_KEY_LABEL_ETH)
		return labels ? 0 : EINVAL;
	return !mask->version || labels || type_can_be(value, mask, ip) ? 0 : EINVAL;
}

/* The first bit on the wire marks a group (IEEE 802.3 3.2.3). */
static int only_groups(struct vb_flow_rule *rule)
{
	return require(&rule->value.outer, &rule->mask.outer, AT(dst_mac), 1, 1);
}

/* Port 0 is accepted, as by other devices. */
static int check_attr(const struct ibv_flow_attr *attr)
{
	const uint32_t known = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;

	if (attr->comp_mask || (attr->flags & ~known))
		return vb_refuse(EINVAL, "comp_mask 0x%x or flags 0x%x has unknown bits",
				 attr->comp_mask, attr->flags);
	if ((unsigned)attr->type > IBV_FLOW_ATTR_SNIFFER)
		return vb_refuse(EINVAL, "type %d is none", (int)attr->type);
	if (attr->port > VB_PORTS)
		return vb_refuse(EINVAL, "port is %u; it may be 1 to %u", attr->port, VB_PORTS);
	if (attr->num_of_specs > VB_FLOW_SPECS_MAX)
		return vb_refuse(EINVAL, "num_of_specs is %u; it may be at most %u",
				 attr->num_of_specs, VB_FLOW_SPECS_MAX);
	/* ibv_create_flow(3): only NORMAL supports DONT_TRAP. EGRESS has no default rules. */
	if (attr->flags && attr->type != IBV_FLOW_ATTR_NORMAL)
		return vb_refuse(EINVAL, "flags 0x%x go with IBV_FLOW_ATTR_NORMAL alone",
				 attr->flags);
	return 0;
}

static void set_order(struct vb_flow_rule *rule, const struct ibv_flow_attr *attr)
{
	/*
	 * A rule that does not trap comes first; otherwise it would miss frames that others keep.
	 */
	rule->traps = attr->type == IBV_FLOW_ATTR_NORMAL &&
		      !(attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
	switch (attr->type) {
	case IBV_FLOW_ATTR_NORMAL:
		rule->order = VB_FLOW_NORMAL << 24 | (uint32_t)attr->priority << 1 | rule->traps;
		break;
	case IBV_FLOW_ATTR_SNIFFER:
		rule->order = VB_FLOW_SNIFFER << 24;
		break;
	case IBV_FLOW_ATTR_ALL_DEFAULT:
	case IBV_FLOW_ATTR_MC_DEFAULT:
		rule->order = VB_FLOW_DEFAULT << 24;
		break;
	}
}

int vb_flow_decode(const struct ibv_flow_attr *attr, struct vb_flow_rule *rule)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	struct making making = { .rule = rule };
	struct ibv_flow_spec spec;
	int err = check_attr(attr);

	if (err)
		return err;
	memset(rule, 0, sizeof(*rule));
	set_order(rule, attr);
	rule->egress = attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS;
	for (unsigned i = 0; !err && i < attr->num_of_specs; i++) {
		/* They follow each other unaligned. */
		memcpy(&spec.hdr, at, sizeof(spec.hdr));
		if (spec.hdr.size < sizeof(spec.hdr) || spec.hdr.size > sizeof(spec))
			return vb_refuse(EINVAL, "spec %u says that it has %u octets", i,
					 spec.hdr.size);
		memcpy(&spec, at, spec.hdr.size);
		err = add_spec(&making, &spec);
		if (err)
			vb_refuse(err, "spec %u, of type 0x%x and %u octets, is unknown, has a "
				       "field that cannot be matched, or contradicts those before "
				       "it", i, (unsigned)spec.hdr.type, spec.hdr.size);
		at += spec.hdr.size;
	}
	if (!err && attr->type == IBV_FLOW_ATTR_MC_DEFAULT)
		err = only_groups(rule);
	if (!err)
		err = check_width(&rule->mask.outer);
	if (!err)
		err = check_width(&rule->mask.inner);
	if (!err)
		err = check_ethertype(&rule->value.outer, &rule->mask.outer);
	if (!err)
		err = check_ethertype(&rule->value.inner, &rule->mask.inner);
	/* DONT_TRAP with drop contradicts itself; and a tag cannot be seen on sent frames. */
	if (!err && ((rule->drop && (attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP)) ||
		     (rule->egress && rule->has_tag)))
		err = EINVAL;
	return err;
}
