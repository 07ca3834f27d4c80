/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/mman.h>
#include <unistd.h>

#include "group.h"
#include "script/parse.h"
#include "wire/opcode.h"

static struct vb_script script;
static char why[VB_SCRIPT_WHY_BYTES];

static int parse(const char *text)
{
	why[0] = 0;
	return vb_script_parse(&script, "/some/where/x.fault", text, strlen(text), why);
}

static const struct vb_rule *one(const char *text)
{
	if (parse(text))
		fail_msg("%s: %s", text, why);
	assert_string_equal(why, "");
	assert_int_equal(script.count, 1);
	return &script.rule[0];
}

static bool has(const struct vb_rule *rule, unsigned opcode)
{
	return rule->fits.opcodes[opcode / 64] >> opcode % 64 & 1;
}

TEST(an_empty_script_has_no_rules)
{
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("\n  \t\r\n# a comment -> drop\n"), 0);
	assert_int_equal(script.count, 0);
	assert_string_equal(script.name, "x.fault");
}

TEST(a_rule_without_conditions_is_for_all)
{
	const struct vb_rule *rule = one("sent -> drop");

	assert_int_equal(rule->line, 1);
	assert_int_equal(rule->where, VB_WHERE_SENT);
	assert_int_equal(rule->how.what, VB_FAULT_DROP);
	assert_true(rule->fits.turns.from == 1 && rule->fits.turns.to == UINT64_MAX);
	assert_true(rule->fits.turns.every == 1 && rule->fits.until_ns == UINT64_MAX);
	assert_int_equal(rule->fits.bytes_max, UINT32_MAX);
}

TEST(classes_and_opcodes_are_read)
{
	const struct vb_rule *rule = one("received write,ack,RC_SEND_ONLY->drop # why");

	assert_int_equal(rule->where, VB_WHERE_RECEIVED);
	assert_true(has(rule, VB_OP_RC_WRITE_FIRST) && has(rule, VB_OP_RC_ACK));
	assert_true(has(rule, VB_OP_RC_SEND_ONLY) && !has(rule, VB_OP_RC_SEND_FIRST));
	assert_false(has(rule, VB_OP_RC_READ_REQ));
	rule = one("sent any -> drop");
	assert_true(has(rule, VB_OP_RC_READ_REQ) && has(rule, VB_OP_UD_SEND_ONLY));
}

TEST(conditions_are_read)
{
	static const uint8_t ipv4[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2 };
	const struct vb_rule *rule =
		one("\n\nsent send qp=0x4141 peer=10.0.0.2 size>=64 size<=4096 every=10 "
		    "after=2s until=1500ms state=rts state=sqd -> duplicate");

	assert_int_equal(rule->line, 3);
	assert_int_equal(rule->fits.qpn, 0x4141);
	assert_true(rule->fits.has_peer);
	assert_memory_equal(rule->fits.peer, ipv4, sizeof(ipv4));
	assert_int_equal(rule->fits.bytes_min, 64);
	assert_int_equal(rule->fits.bytes_max, 4096);
	assert_true(rule->fits.turns.from == 10 && rule->fits.turns.every == 10);
	assert_true(rule->fits.after_ns == 2000000000 && rule->fits.until_ns == 1500000000);
	assert_int_equal(rule->fits.states, 1 << 3 | 1 << 4);
	rule = one("sent peer=fe80::1 size=7 -> drop");
	assert_int_equal(rule->fits.peer[0], 0xfe);
	assert_true(rule->fits.bytes_min == 7 && rule->fits.bytes_max == 7);
	rule = one("sent nth=3 -> drop");
	assert_true(rule->fits.turns.from == 3 && rule->fits.turns.to == 3);
	rule = one("sent first=5 -> drop");
	assert_true(rule->fits.turns.from == 1 && rule->fits.turns.to == 5);
	rule = one("sent from=5 -> drop");
	assert_true(rule->fits.turns.from == 5 && rule->fits.turns.to == UINT64_MAX);
}

TEST(actions_are_read)
{
	static const struct {
		const char *text;
		struct vb_fault_how how;
	} cases[] = {
		{ "sent -> delay 250us", { .what = VB_FAULT_DELAY, .ns = 250000 } },
		{ "sent -> corrupt", { .what = VB_FAULT_CORRUPT } },
		{ "sent -> truncate", { .what = VB_FAULT_TRUNCATE } },
		{ "sent -> silence", { .what = VB_FAULT_SILENCE } },
		{ "sent -> silence all for 2s",
		  { .what = VB_FAULT_SILENCE, .all = true, .ns = 2000000000 } },
		{ "at 1s -> silence", { .what = VB_FAULT_SILENCE, .all = true } },
		{ "received -> nak rnr", { .what = VB_FAULT_NAK, .nak = VB_NAK_WHAT_RNR } },
		{ "received -> nak operation",
		  { .what = VB_FAULT_NAK, .nak = VB_NAK_WHAT_OPERATION } },
		{ "sent -> fail", { .what = VB_FAULT_FAIL } },
		{ "sent -> fail quietly", { .what = VB_FAULT_FAIL, .quietly = true } },
		{ "at 10ms -> port down for 1s",
		  { .what = VB_FAULT_PORT, .all = true, .ns = 1000000000 } },
		{ "at 10ms -> gid 3 gone", { .what = VB_FAULT_GID, .all = true, .number = 3 } },
		{ "sent -> gid 1 ::",
		  { .what = VB_FAULT_GID, .number = 1, .has_gid = true } },
		{ "sent -> device fatal", { .what = VB_FAULT_DEVICE } },
		{ "sent -> process killed", { .what = VB_FAULT_PROCESS } },
		{ "connect -> reject 28",
		  { .what = VB_FAULT_REJECT, .all = true, .number = 28 } },
		{ "connect nth=2 -> reject stale",
		  { .what = VB_FAULT_REJECT, .all = true, .number = 10 } },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		const struct vb_fault_how *how = &one(cases[i].text)->how;

		assert_int_equal(how->what, cases[i].how.what);
		assert_true(how->ns == cases[i].how.ns);
		assert_true(how->all == cases[i].how.all && how->quietly == cases[i].how.quietly);
		assert_int_equal(how->nak, cases[i].how.nak);
		assert_int_equal(how->number, cases[i].how.number);
		assert_int_equal(how->has_gid, cases[i].how.has_gid);
	}
}

TEST(what_is_wrong_is_said_with_its_place)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "sent -> drop\nsent -> dorp",
		  "x.fault:2:9: there is no action 'dorp'; did you mean 'drop'? Actions: drop, "
		  "delay, duplicate, corrupt, truncate, silence, nak, fail, port, gid, device, "
		  "process, reject" },
		{ "snet -> drop", "x.fault:1:1: there is no kind of rule 'snet'; did you mean "
				  "'sent'? Rules begin with: sent, received, connect, at" },
		{ "sent wirte -> drop",
		  "x.fault:1:6: there is no class or opcode 'wirte'; did you mean 'write'? "
		  "Classes: any, request, answer, send, write, read, response, atomic, ack; "
		  "opcodes are written as RC_SEND_ONLY" },
		{ "sent nht=3 -> drop",
		  "x.fault:1:6: there is no condition 'nht'; did you mean 'nth'? Conditions: qp, "
		  "peer, size, nth, from, first, every, about, after, until, state" },
		{ "sent nth=0 -> drop",
		  "x.fault:1:10: nth cannot be '0': it is a number from 1 on" },
		{ "sent nth= -> drop", "x.fault:1:10: nth is missing: it is a number from 1 on" },
		{ "sent nth>=3 -> drop", "x.fault:1:6: nth takes '='" },
		{ "sent size>3 -> drop", "x.fault:1:6: size takes '=', '>=' or '<='" },
		{ "sent peer=10.0.0 -> drop", "x.fault:1:11: peer cannot be '10.0.0': it is an "
					      "address, such as 10.0.0.2 or fe80::1" },
		{ "sent", "x.fault:1:5: what stands before the action is missing: it is '->'" },
		{ "sent ->", "x.fault:1:8: a word is missing: 'drop', 'delay', 'duplicate', "
			     "'corrupt', 'truncate', 'silence', 'nak', 'fail', 'port', 'gid', "
			     "'device', 'process' or 'reject'" },
		{ "sent -> drop it",
		  "x.fault:1:14: the rule is over here, but there is 'it'" },
		{ "sent -> delay 3", "x.fault:1:15: a delay cannot be '3': it is a time such as "
				     "250us, 10ms or 2s" },
		{ "sent -> nak rrn", "x.fault:1:13: there is no NAK 'rrn'; did you mean 'rnr'? "
				     "NAKs: rnr, sequence, invalid, access, operation" },
		{ "at 2s -> drop", "x.fault:1:10: drop is an action for 'sent' and 'received', "
				   "and for 'connect'" },
		{ "sent ack -> nak access",
		  "x.fault:1:13: nak is for requests of RC, and this rule is for none" },
		{ "sent -> reject 3", "x.fault:1:9: reject is an action for 'connect'" },
		{ "connect qp=3 -> drop", "x.fault:1:9: qp is a condition for packets" },
		{ "connect -> reject no", "x.fault:1:19: a reason cannot be 'no': it is its "
					  "number, or one of no-resources, timeout, no-service, "
					  "stale and consumer" },
		{ "at 3 -> device fatal", "x.fault:1:4: a moment cannot be '3': it is a time such "
					  "as 250us, 10ms or 2s" },
		{ "at 3s -> port up", "x.fault:1:15: what the port does cannot be 'up': it is "
				      "'down'" },
		{ "at 3s -> gid 0 away", "x.fault:1:16: what becomes of the GID cannot be 'away': "
					 "it is 'gone', or an address such as 10.0.0.9" },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		struct vb_script before;

		memset(&script, 0xee, sizeof(script));
		before = script;
		if (!parse(cases[i].text))
			fail_msg("%s: accepted", cases[i].text);
		assert_string_equal(why, cases[i].why);
		assert_memory_equal(&script, &before, sizeof(script));
	}
}

/* As a fuzzer found: behind a condition without a sign there may be no memory. */
TEST(a_script_ends_where_it_ends)
{
	static const char *const texts[] = {
		"sent send nth", "sent qp=1 x", "sent qp=", "sent size>", "at -", "se",
	};
	long page = sysconf(_SC_PAGESIZE);
	char *end = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(end, MAP_FAILED);
	end += page;
	assert_int_equal(mprotect(end, (size_t)page, PROT_NONE), 0);
	for (unsigned i = 0; i < VB_ARRAY_LEN(texts); i++) {
		size_t bytes = strlen(texts[i]);

		memcpy(end - bytes, texts[i], bytes);
		assert_int_not_equal(vb_script_parse(&script, "x", end - bytes, bytes, why), 0);
	}
	munmap(end - page, 2 * (size_t)page);
}

TEST(a_script_has_so_many_rules_at_most)
{
	static char text[(VB_SCRIPT_RULES_MAX + 1) * 16];

	for (unsigned i = 0; i < VB_SCRIPT_RULES_MAX; i++)
		memcpy(text + strlen(text), "sent -> drop\n", 14);
	assert_int_equal(parse(text), 0);
	assert_int_equal(script.count, VB_SCRIPT_RULES_MAX);
	memcpy(text + strlen(text), "sent -> drop\n", 14);
	assert_int_not_equal(parse(text), 0);
	assert_string_equal(why, "x.fault:65:1: a script has 64 rules at most");
}
