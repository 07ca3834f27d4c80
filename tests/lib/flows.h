/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_FLOWS_H
#define VB_TESTS_FLOWS_H

/* Flow rules (ibv_create_flow(3)), put together specification by specification. */

#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#define FLOW_BYTES_MAX 1536

/* On purpose without alignment behind the attributes: applications pack them. */
struct flow {
	struct ibv_flow_attr attr;
	uint8_t specs[FLOW_BYTES_MAX];
} __attribute__((packed, aligned(8)));

static inline void flow_begin(struct flow *flow, enum ibv_flow_attr_type type)
{
	memset(flow, 0, sizeof(*flow));
	flow->attr.type = type;
	flow->attr.size = sizeof(flow->attr);
	flow->attr.port = 1;
}

static inline void flow_add(struct flow *flow, const void *spec, uint16_t bytes)
{
	memcpy((uint8_t *)flow + flow->attr.size, spec, bytes);
	flow->attr.size += bytes;
	flow->attr.num_of_specs++;
}

static inline void flow_eth(struct flow *flow, const struct ibv_flow_eth_filter *val,
			    const struct ibv_flow_eth_filter *mask)
{
	struct ibv_flow_spec_eth spec;

	memset(&spec, 0, sizeof(spec));
	spec.type = IBV_FLOW_SPEC_ETH;
	spec.size = sizeof(spec);
	spec.val = *val;
	spec.mask = *mask;
	flow_add(flow, &spec, sizeof(spec));
}

/* Frames to this address. */
static inline void flow_mac(struct flow *flow, const uint8_t mac[6])
{
	struct ibv_flow_eth_filter val = { .ether_type = 0 }, mask = { .ether_type = 0 };

	memcpy(val.dst_mac, mac, 6);
	memset(mask.dst_mac, 0xff, 6);
	flow_eth(flow, &val, &mask);
}

/* UDP to this port. */
static inline void flow_udp(struct flow *flow, uint16_t dport)
{
	struct ibv_flow_spec_tcp_udp spec = {
		.type = IBV_FLOW_SPEC_UDP, .size = sizeof(spec),
		.val = { .dst_port = htobe16(dport) }, .mask = { .dst_port = 0xffff },
	};

	flow_add(flow, &spec, sizeof(spec));
}

static inline void flow_tag(struct flow *flow, uint32_t tag)
{
	struct ibv_flow_spec_action_tag spec = {
		.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(spec), .tag_id = tag,
	};

	flow_add(flow, &spec, sizeof(spec));
}

static inline void flow_drop(struct flow *flow)
{
	struct ibv_flow_spec_action_drop spec = {
		.type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(spec),
	};

	flow_add(flow, &spec, sizeof(spec));
}

static inline void flow_count(struct flow *flow, struct ibv_counters *counters)
{
	struct ibv_flow_spec_counter_action spec = {
		.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(spec), .counters = counters,
	};

	flow_add(flow, &spec, sizeof(spec));
}

#endif
