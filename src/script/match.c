/* SPDX-License-Identifier: BSD-2-Clause */
#include "script/match.h"

#include <string.h>

#include "base/prng.h"
#include "wire/opcode.h"

static bool fits_opcode(const struct vb_rule_fits *fits, uint8_t opcode)
{
	static const uint64_t any[4];

	return memcmp(fits->opcodes, any, sizeof(any)) == 0 ||
	       (fits->opcodes[opcode / 64] >> opcode % 64 & 1);
}

/* Is it answered with a NAK if something is wrong with it, by a responder that rules reach? */
static bool may_be_refused(unsigned opcode)
{
	const struct vb_op_info *info = vb_op_info((uint8_t)opcode);

	return info && info->transport == VB_RC && !vb_kind_is_answer(info->kind);
}

bool vb_script_may_refuse(const struct vb_rule_fits *fits)
{
	for (unsigned opcode = 0; opcode < 256; opcode++)
		if (fits_opcode(fits, (uint8_t)opcode) && may_be_refused(opcode))
			return true;
	return false;
}

static bool fits(const struct vb_rule *rule, const struct vb_occasion *occasion)
{
	const struct vb_rule_fits *fits = &rule->fits;

	if (rule->where != occasion->where || occasion->age_ns < fits->after_ns ||
	    occasion->age_ns >= fits->until_ns)
		return false;
	if (fits->has_peer &&
	    (!occasion->peer || memcmp(fits->peer, occasion->peer, VB_GID_BYTES) != 0))
		return false;
	/* The others are about packets. */
	if (rule->where == VB_WHERE_CONNECT)
		return true;
	return fits_opcode(fits, occasion->opcode) &&
	       (rule->how.what != VB_FAULT_NAK || may_be_refused(occasion->opcode)) &&
	       (!fits->qpn || fits->qpn == occasion->qpn) &&
	       occasion->bytes >= fits->bytes_min && occasion->bytes <= fits->bytes_max &&
	       (!fits->states ||
		(occasion->qpn && fits->states >> occasion->state & 1));
}

static bool is_its_turn(const struct vb_rule_turns *turns, uint64_t n)
{
	uint64_t state = n;

	return n >= turns->from && n <= turns->to && (n - turns->from) % turns->every == 0 &&
	       vb_prng_next(&state) % turns->about == 0;
}

struct vb_rule *vb_script_match(struct vb_script *script, const struct vb_occasion *occasion)
{
	for (unsigned i = 0; i < script->count; i++) {
		struct vb_rule *rule = &script->rule[i];

		if (!fits(rule, occasion) || !is_its_turn(&rule->fits.turns, ++rule->fitted))
			continue;
		rule->fired++;
		return rule;
	}
	return NULL;
}

static bool is_to_come(const struct vb_rule *rule)
{
	return rule->where == VB_WHERE_AT && !rule->fired;
}

struct vb_rule *vb_script_due(struct vb_script *script, uint64_t age_ns)
{
	struct vb_rule *due = NULL;

	for (unsigned i = 0; i < script->count; i++) {
		struct vb_rule *rule = &script->rule[i];

		if (is_to_come(rule) && rule->at_ns <= age_ns && (!due || rule->at_ns < due->at_ns))
			due = rule;
	}
	if (due)
		due->fired++;
	return due;
}

uint64_t vb_script_next_ns(const struct vb_script *script)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned i = 0; i < script->count; i++) {
		const struct vb_rule *rule = &script->rule[i];

		if (is_to_come(rule) && rule->at_ns < next_ns)
			next_ns = rule->at_ns;
	}
	return next_ns;
}
