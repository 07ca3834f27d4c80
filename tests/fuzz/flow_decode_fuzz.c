/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any octets as a flow rule and a frame: what is refused is refused by a documented errno; what is
 * accepted is found by the hash exactly if the frame has the rule's bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow_decode_fuzz.h"
#include "fuzz.h"
#include "nic/core/limits.h"
#include "nic/service/eth/flow_table.h"

static bool matches(const struct vb_flow_rule *rule, const union vb_eth_key *key)
{
	bool all = true;

	for (unsigned i = 0; i < VB_KEY_WORDS; i++) {
		vb_check(!(rule->value.word[i] & ~rule->mask.word[i]));
		all &= (key->word[i] & rule->mask.word[i]) == rule->value.word[i];
	}
	return all;
}

static void check_accepted(const struct vb_flow_rule *rule, const uint8_t *frame, size_t bytes)
{
	struct vb_eth_frame parsed;
	struct vb_flow_table table;
	struct vb_flow_entry *entry;
	union vb_eth_key key;

	vb_check(rule->order >> 24 <= VB_FLOW_DEFAULT);
	vb_check(rule->traps == (rule->order >> 24 == VB_FLOW_NORMAL && (rule->order & 1)));
	if (!vb_eth_parse(&parsed, frame, (uint32_t)bytes))
		return;
	vb_eth_key_outer(&key.outer, &parsed);
	vb_eth_key_inner(&key.inner, &parsed);
	vb_flow_table_init(&table);
	vb_check(vb_flow_table_add(&table, rule, NULL, NULL, &entry) == 0);
	vb_check((vb_flow_group_find(table.first, &key) == entry) == matches(rule, &key));
	vb_flow_table_remove(&table, entry, NULL, NULL);
	vb_check(!table.first && !table.groups);
	vb_flow_table_fini(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* As much as the longest rule can have; what is behind it is a sanitizer's business. */
	size_t rule_bytes = sizeof(struct ibv_flow_attr) +
			    VB_FLOW_SPECS_MAX * sizeof(struct ibv_flow_spec);
	size_t given = bytes < FLOW_FUZZ_RULE_BYTES ? bytes : FLOW_FUZZ_RULE_BYTES;
	uint8_t *octets = calloc(1, rule_bytes);
	struct vb_flow_rule rule;
	int err;

	vb_check(octets && given <= rule_bytes);
	memcpy(octets, data, given);
	err = vb_flow_decode((const struct ibv_flow_attr *)octets, &rule);
	vb_check(err == 0 || err == EINVAL || err == EOPNOTSUPP);
	if (!err)
		check_accepted(&rule, data + given, bytes - given);
	free(octets);
	return 0;
}
