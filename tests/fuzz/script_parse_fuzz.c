/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a fault script: what is accepted can be matched with; of what is refused, one line
 * says where and why.
 */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "script/match.h"
#include "script/parse.h"

static void why_check(const char why[VB_SCRIPT_WHY_BYTES])
{
	size_t chars = strnlen(why, VB_SCRIPT_WHY_BYTES);

	/* Shorter than the room that there is: nothing was left out. */
	vb_check(chars && chars < VB_SCRIPT_WHY_BYTES - 1);
	vb_check(memcmp(why, "x:", 2) == 0);
	for (size_t i = 0; i < chars; i++)
		vb_check((uint8_t)why[i] >= ' ' && why[i] != 0x7f);
}

static void match_all(struct vb_script *script)
{
	static const uint8_t peer[VB_GID_BYTES];

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_occasion occasion = {
			.where = (enum vb_rule_where)(opcode % 3),
			.opcode = (uint8_t)opcode,
			.state = (uint8_t)(opcode % 7),
			.qpn = opcode,
			.peer = peer,
			.bytes = opcode,
			.age_ns = opcode,
		};
		const struct vb_rule *rule = vb_script_match(script, &occasion);

		vb_check(!rule || (rule->where == occasion.where && rule->fired <= rule->fitted));
	}
	while (vb_script_due(script, UINT64_MAX))
		continue;
	vb_check(vb_script_next_ns(script) == UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct vb_script script, before;
	char why[VB_SCRIPT_WHY_BYTES] = "";

	memset(&script, 0xee, sizeof(script));
	memset(&before, 0xee, sizeof(before));
	if (vb_script_parse(&script, "/x", (const char *)data, bytes, why)) {
		why_check(why);
		vb_check(memcmp(&script, &before, sizeof(script)) == 0);
		return 0;
	}
	vb_check(!why[0] && script.count <= VB_SCRIPT_RULES_MAX);
	match_all(&script);
	return 0;
}
