/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/steer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/service/eth/flow_table.h"
#include "nic/service/eth/segment.h"

struct vb_steer {
	vb_lock change; /* held to change rules */
	struct vb_flow_table rules, egress;
	/*
	 * What the rules ask for: destinations, and how many rules ask for groups, or everything.
	 */
	struct vb_flow_table macs;
	uint32_t mac_count, groups, everything;
	uint32_t flows, handle;
};

int vb_steer_init(struct vb_nic *nic)
{
	struct vb_steer *steer = calloc(1, sizeof(*steer));

	if (!steer)
		return ENOMEM;
	vb_lock_init(&steer->change, VB_RANK_STEER);
	vb_flow_table_init(&steer->rules);
	vb_flow_table_init(&steer->egress);
	vb_flow_table_init(&steer->macs);
	nic->special.steer = steer;
	return 0;
}

void vb_steer_fini(struct vb_nic *nic)
{
	struct vb_steer *steer = nic->special.steer;

	if (!steer)
		return;
	/* Frees entries of rules that were never destroyed. */
	vb_flow_table_fini(&steer->rules);
	vb_flow_table_fini(&steer->egress);
	vb_flow_table_fini(&steer->macs);
	vb_lock_fini(&steer->change);
	free(steer);
}

/* --- wanted destinations --- */

/* Adds what a rule asks for. changed: the other members must be told. */
static int want(struct vb_steer *steer, const struct vb_flow_rule *rule, struct vb_steer_flow *flow,
		bool *changed)
{
	static const struct vb_eth_level exact = {
		.dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	const struct vb_eth_level *value = &rule->value.outer, *mask = &rule->mask.outer;
	struct vb_flow_rule mac = { .mask = { .outer = exact } };
	int err;

	if (rule->egress)
		return 0;
	if (memcmp(mask->dst_mac, exact.dst_mac, VB_MAC_BYTES) != 0) {
		flow->groups = mask->dst_mac[0] & value->dst_mac[0] & 1;
		*changed = 1 == (flow->groups ? ++steer->groups : ++steer->everything);
		return 0;
	}
	memcpy(mac.value.outer.dst_mac, value->dst_mac, VB_MAC_BYTES);
	err = vb_flow_table_add(&steer->macs, &mac, NULL, NULL, &flow->mac);
	if (err)
		return err;
	*changed = flow->mac->one.refs == 1;
	steer->mac_count += *changed;
	return 0;
}

static bool unwant(struct vb_steer *steer, const struct vb_steer_flow *flow)
{
	bool last;

	if (flow->egress)
		return false;
	if (!flow->mac)
		return 0 == (flow->groups ? --steer->groups : --steer->everything);
	last = flow->mac->one.refs == 1;
	steer->mac_count -= last;
	vb_flow_table_remove(&steer->macs, flow->mac, NULL, NULL);
	return last;
}

void vb_steer_filter(struct vb_nic *nic, struct vb_segment_filter *filter)
{
	struct vb_steer *steer = nic->special.steer;
	const struct vb_flow_group *group;

	vb_lock_take(&steer->change);
	filter->count = 0;
	filter->flags = (steer->everything ? VB_SEGMENT_ALL : 0) |
			(steer->groups ? VB_SEGMENT_GROUPS : 0);
	group = steer->macs.first;
	if (steer->mac_count > VB_SEGMENT_MACS_MAX) {
		filter->flags |= VB_SEGMENT_ALL;
		group = NULL;
	}
	for (uint32_t i = 0; group && i < group->buckets && filter->count < steer->mac_count; i++) {
		for (const struct vb_flow_entry *at = group->bucket[i]; at; at = at->next) {
			union vb_eth_key key = { .word = { 0 } };

			for (unsigned k = 0; k < group->words; k++)
				key.word[group->word[k]] = at->value[k];
			filter->mac[filter->count++] = vb_segment_mac(key.outer.dst_mac);
		}
	}
	vb_lock_drop(&steer->change);
}

/* --- rules --- */

static struct vb_flow_table *table_of(struct vb_steer *steer, const struct vb_steer_flow *flow)
{
	return flow->egress ? &steer->egress : &steer->rules;
}

static int add_locked(struct vb_steer *steer, const struct vb_flow_rule *rule,
		      struct vb_steer_flow *flow, bool *changed)
{
	int err;

	if (steer->flows == VB_FLOWS_MAX)
		return ENOMEM;
	err = vb_flow_table_add(table_of(steer, flow), rule, flow->qp, rule->counters,
				&flow->entry);
	if (err)
		return err;
	err = want(steer, rule, flow, changed);
	if (err) {
		vb_flow_table_remove(table_of(steer, flow), flow->entry, flow->qp,
				     rule->counters);
		return err;
	}
	steer->flows++;
	flow->ibv.handle = ++steer->handle;
	flow->qp->special.attached++;
	if (rule->counters)
		atomic_fetch_add(&rule->counters->flows, 1);
	return 0;
}

/* ibv_create_flow(3): only UD and RAW_PACKET. */
static int check(const struct vb_qp *qp, const struct vb_flow_rule *rule)
{
	if (qp->ibv.qp.qp_type != IBV_QPT_RAW_PACKET && qp->ibv.qp.qp_type != IBV_QPT_UD)
		return vb_refuse(EINVAL, "the QP is of type %s; flows are of RAW_PACKET QPs",
				 qp->service->name);
	if (qp->ibv.qp.qp_type == IBV_QPT_UD && !rule->egress)
		return EOPNOTSUPP;
	if (rule->counters && vb_nic_of(rule->counters->ibv.context) != qp->nic)
		return vb_refuse(EINVAL, "the counters are another device's");
	return 0;
}

int vb_flow_create(struct vb_qp *qp, const struct ibv_flow_attr *attr, struct vb_steer_flow **out)
{
	struct vb_steer *steer = qp->nic->special.steer;
	struct vb_flow_rule rule;
	struct vb_steer_flow *flow;
	bool changed = false;
	int err = vb_flow_decode(attr, &rule);

	if (!err)
		err = check(qp, &rule);
	if (err)
		return err;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return ENOMEM;
	flow->ibv.context = qp->ibv.qp.context;
	flow->qp = qp;
	flow->counters = rule.counters;
	flow->egress = rule.egress;
	vb_lock_take(&steer->change);
	err = add_locked(steer, &rule, flow, &changed);
	vb_lock_drop(&steer->change);
	if (err) {
		free(flow);
		return err;
	}
	if (changed)
		vb_segment_tell(qp->nic);
	*out = flow;
	return 0;
}

int vb_flow_destroy(struct vb_steer_flow *flow)
{
	struct vb_nic *nic = flow->qp->nic;
	struct vb_steer *steer = nic->special.steer;
	bool changed;

	vb_lock_take(&steer->change);
	vb_flow_table_remove(table_of(steer, flow), flow->entry, flow->qp, flow->counters);
	changed = unwant(steer, flow);
	steer->flows--;
	flow->qp->special.attached--;
	if (flow->counters)
		atomic_fetch_sub(&flow->counters->flows, 1);
	vb_lock_drop(&steer->change);
	if (changed)
		vb_segment_tell(nic);
	free(flow);
	return 0;
}

/* --- frames --- */

/* A frame being matched. */
struct passing {
	const struct vb_eth_frame *frame;
	union vb_eth_key key;
	bool has_inner_key;
	bool dropped;
	struct vb_steer_hit *hit;
	unsigned hits, max, lost;
};

static const struct vb_flow_entry *ask(const struct vb_flow_group *group, struct passing *passing)
{
	if (group->inner && !passing->has_inner_key) {
		vb_eth_key_inner(&passing->key.inner, passing->frame);
		passing->has_inner_key = true;
	}
	return vb_flow_group_find(group, &passing->key);
}

static void apply(const struct vb_flow_entry *entry, struct passing *passing)
{
	passing->dropped |= entry->drop;
	for (uint32_t i = 0; i < entry->dests; i++) {
		const struct vb_flow_dest *dest = &entry->dest[i];

		if (dest->counters)
			vb_counters_add(dest->counters, passing->frame->bytes);
		if (entry->drop || dest->again)
			continue;
		if (passing->hits == passing->max) {
			passing->lost++;
			continue;
		}
		passing->hit[passing->hits++] = (struct vb_steer_hit){
			.qp = dest->qp, .tag = entry->tag, .has_tag = entry->has_tag,
			.sniffed = entry->group->order >> 24 == VB_FLOW_SNIFFER,
		};
	}
}

/* Tries all rules of a table, which has some. */
static void pass(struct vb_flow_table *rules, struct passing *passing)
{
	vb_eth_key_outer(&passing->key.outer, passing->frame);
	vb_lock_take(&rules->look);
	for (const struct vb_flow_group *group = rules->first; group; group = group->next) {
		const struct vb_flow_entry *entry = ask(group, passing);

		if (!entry)
			continue;
		apply(entry, passing);
		if (group->traps || entry->drop)
			break;
	}
	vb_lock_drop(&rules->look);
}

static bool has_rules(const struct vb_flow_table *rules)
{
	return atomic_load_explicit(&rules->groups, memory_order_relaxed) != 0;
}

unsigned vb_steer_match(struct vb_nic *nic, const struct vb_eth_frame *frame,
			struct vb_steer_hit hits[], unsigned max)
{
	struct passing passing = { .frame = frame, .hit = hits, .max = max };

	if (has_rules(&nic->special.steer->rules))
		pass(&nic->special.steer->rules, &passing);
	if (passing.lost)
		vb_stat_add(&nic->stats, VB_STAT_DROP_FLOW_HITS, passing.lost);
	if (passing.dropped)
		vb_stat_add(&nic->stats, VB_STAT_DROP_FLOW, 1);
	else if (!passing.hits)
		vb_stat_add(&nic->stats, VB_STAT_DROP_NO_FLOW, 1);
	return passing.hits;
}

bool vb_steer_sends(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes)
{
	struct vb_eth_frame frame;
	struct passing passing = { .frame = &frame };

	if (!has_rules(&nic->special.steer->egress) || !vb_eth_parse(&frame, octets, bytes))
		return true;
	pass(&nic->special.steer->egress, &passing);
	if (passing.dropped)
		vb_stat_add(&nic->stats, VB_STAT_DROP_FLOW, 1);
	return !passing.dropped;
}
