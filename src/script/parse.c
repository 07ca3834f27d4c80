/* SPDX-License-Identifier: BSD-2-Clause */
#include "script/parse.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/words.h"
#include "script/match.h"
#include "script/values.h"
#include "wire/opcode.h"

/* A word of the line; 0 octets: the line is over. */
struct word {
	const char *text;
	size_t bytes;
};

struct reader {
	const char *name; /* of the file */
	unsigned number;  /* of the line */
	const char *line, *at, *end;
	struct vb_text why;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_arrow(const char *at, const char *end)
{
	return end - at >= 2 && at[0] == '-' && at[1] == '>';
}

static struct word word_next(struct reader *r)
{
	struct word word;

	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	word.text = r->at;
	if (is_arrow(r->at, r->end))
		r->at += 2;
	else
		while (r->at < r->end && !is_blank(*r->at) && !is_arrow(r->at, r->end))
			r->at++;
	word.bytes = (size_t)(r->at - word.text);
	return word;
}

static struct word word_peek(const struct reader *r)
{
	struct reader ahead = *r;

	return word_next(&ahead);
}

static bool is(struct word word, const char *text)
{
	return word.bytes == strlen(text) && memcmp(word.text, text, word.bytes) == 0;
}

/* --- what is wrong --- */

/* Begins a message about this word: its place. */
static struct vb_text *wrong(struct reader *r, struct word word)
{
	char place[48];

	snprintf(place, sizeof(place), ":%u:%u: ", r->number,
		 (unsigned)(word.text - r->line) + 1);
	vb_text_add(&r->why, r->name, place, NULL);
	return &r->why;
}

/* "... 'WORD': it is THIS" */
static bool wrong_value(struct reader *r, struct word word, const char *what, const char *good)
{
	vb_text_add_cannot(wrong(r, word), what, word.text, word.bytes, "missing", good);
	return false;
}

static bool wrong_word(struct reader *r, struct word word, const struct vb_words *words,
		       const char *kind, const char *title)
{
	struct vb_text *why = wrong(r, word);

	if (word.bytes && !is(word, "->")) {
		vb_words_add_unknown(why, words, kind, title, word.text, word.bytes);
		return false;
	}
	vb_text_add(why, "a word is missing: ", NULL);
	vb_words_add_choice(why, words);
	return false;
}

/* --- which packets --- */

#define KIND(kind) (1u << VB_K_##kind)

static const struct class {
	const char *name;
	unsigned kinds;
} classes[] = {
	{ "any", UINT32_MAX },
	{ "request", KIND(SEND) | KIND(WRITE) | KIND(READ_REQ) | KIND(CMP_SWP) | KIND(FETCH_ADD) |
			     KIND(ATOMIC_WRITE) | KIND(FLUSH) },
	{ "answer", KIND(ACK) | KIND(READ_RESP) | KIND(ATOMIC_ACK) },
	{ "send", KIND(SEND) },
	{ "write", KIND(WRITE) },
	{ "read", KIND(READ_REQ) },
	{ "response", KIND(READ_RESP) },
	{ "atomic", KIND(CMP_SWP) | KIND(FETCH_ADD) | KIND(ATOMIC_WRITE) },
	{ "ack", KIND(ACK) },
};
static const struct vb_words class_names = VB_WORDS(classes);

static void opcode_add(struct vb_rule_fits *fits, unsigned opcode)
{
	fits->opcodes[opcode / 64] |= 1ull << opcode % 64;
}

/* One of a list: a class, or an opcode by its name. */
static bool class_read(struct reader *r, struct word word, struct vb_rule_fits *fits)
{
	unsigned i = vb_words_find(&class_names, word.text, word.bytes), found = 0;

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct vb_op_info *info = vb_op_info((uint8_t)opcode);

		if (info && (i < class_names.count ? classes[i].kinds >> info->kind & 1
						   : is(word, info->name))) {
			opcode_add(fits, opcode);
			found++;
		}
	}
	if (found)
		return true;
	wrong_word(r, word, &class_names, "class or opcode", "Classes");
	vb_text_add(&r->why, "; opcodes are written as RC_SEND_ONLY", NULL);
	return false;
}

static bool classes_read(struct reader *r, struct word word, struct vb_rule_fits *fits)
{
	const char *end = word.text + word.bytes;

	for (;;) {
		const char *comma = memchr(word.text, ',', (size_t)(end - word.text));

		word.bytes = (size_t)((comma ? comma : end) - word.text);
		if (!class_read(r, word, fits))
			return false;
		if (!comma)
			return true;
		word.text = comma + 1;
	}
}

/* --- keys --- */

enum compares { EQUAL, LEAST, MOST };

/* Reads a value of its own kind. False: it is not one. */
typedef bool read_fn(struct vb_rule_fits *fits, struct word value, enum compares how);

static bool qp_read(struct vb_rule_fits *fits, struct word value, enum compares how)
{
	uint64_t qpn;

	if (!vb_script_number(value.text, value.bytes, &qpn) || !qpn || qpn > 0xffffff)
		return false;
	fits->qpn = (uint32_t)qpn;
	return true;
}

static bool peer_read(struct vb_rule_fits *fits, struct word value, enum compares how)
{
	fits->has_peer = vb_script_address(value.text, value.bytes, fits->peer);
	return fits->has_peer;
}

static bool size_read(struct vb_rule_fits *fits, struct word value, enum compares how)
{
	uint64_t bytes;

	if (!vb_script_number(value.text, value.bytes, &bytes) || bytes > UINT32_MAX)
		return false;
	if (how != MOST)
		fits->bytes_min = (uint32_t)bytes;
	if (how != LEAST)
		fits->bytes_max = (uint32_t)bytes;
	return true;
}

/* As enum ibv_qp_state counts them. */
static const struct {
	const char *name;
} states[] = { { "reset" }, { "init" }, { "rtr" }, { "rts" }, { "sqd" }, { "sqe" }, { "err" } };
static const struct vb_words state_names = VB_WORDS(states);

static bool state_read(struct vb_rule_fits *fits, struct word value, enum compares how)
{
	unsigned i = vb_words_find(&state_names, value.text, value.bytes);

	if (i == state_names.count)
		return false;
	fits->states |= (uint8_t)(1u << i);
	return true;
}

static const char a_count[] = "a number from 1 on", a_time[] = "a time such as 250us, 10ms or 2s";

#define FITS(member) offsetof(struct vb_rule_fits, member)

enum { NO_MEMBER = 0 };

/* Without a function it is a count, from 1 on, or a time: of one member, or of two. */
/* clang-format off */
static const struct key {
	const char *name;
	read_fn *read;
	bool of_connect; /* for requests to connect, too */
	const char *good;
	size_t member, second;
} keys[] = {
	{ "qp",    qp_read,    false, "the number of a QP of this process, such as 0x4141" },
	{ "peer",  peer_read,  true,  "an address, such as 10.0.0.2 or fe80::1" },
	{ "size",  size_read,  false, "a number of octets" },
	{ "nth",   NULL,       true,  a_count, FITS(turns.from),  FITS(turns.to) },
	{ "from",  NULL,       true,  a_count, FITS(turns.from),  NO_MEMBER },
	{ "first", NULL,       true,  a_count, FITS(turns.to),    NO_MEMBER },
	{ "every", NULL,       true,  a_count, FITS(turns.every), FITS(turns.from) },
	{ "about", NULL,       true,  a_count, FITS(turns.about), NO_MEMBER },
	{ "after", NULL,       true,  a_time,  FITS(after_ns),    NO_MEMBER },
	{ "until", NULL,       true,  a_time,  FITS(until_ns),    NO_MEMBER },
	{ "state", state_read, false, "one of reset, init, rtr, rts, sqd, sqe and err" },
};
/* clang-format on */
static const struct vb_words key_names = VB_WORDS(keys);

static size_t key_bytes(struct word word)
{
	size_t bytes = 0;

	while (bytes < word.bytes && !memchr("=<>", word.text[bytes], 3))
		bytes++;
	return bytes;
}

static bool is_key(struct word word)
{
	return key_bytes(word) < word.bytes;
}

static bool value_read(const struct key *key, struct vb_rule_fits *fits, struct word value,
		       enum compares how)
{
	uint64_t number;
	bool good;

	if (key->read)
		return key->read(fits, value, how);
	if (key->good == a_time)
		good = vb_script_time(value.text, value.bytes, &number);
	else
		good = vb_script_number(value.text, value.bytes, &number) && number;
	if (!good)
		return false;
	memcpy((char *)fits + key->member, &number, sizeof(number));
	if (key->second)
		memcpy((char *)fits + key->second, &number, sizeof(number));
	return true;
}

static bool key_read(struct reader *r, struct word word, struct vb_rule *rule)
{
	struct word name = { word.text, key_bytes(word) }, value;
	unsigned i = vb_words_find(&key_names, name.text, name.bytes);
	const char *sign = name.text + name.bytes;
	/* Behind a word without a sign there may be nothing at all. */
	char first = is_key(word) ? *sign : 0;
	enum compares how = first == '>' ? LEAST : first == '<' ? MOST : EQUAL;
	size_t sign_bytes = how == EQUAL ? 1 : 2;

	if (i == key_names.count)
		return wrong_word(r, name, &key_names, "condition", "Conditions");
	if (rule->where == VB_WHERE_CONNECT && !keys[i].of_connect) {
		vb_text_add(wrong(r, name), keys[i].name, " is a condition for packets", NULL);
		return false;
	}
	if ((how != EQUAL && keys[i].read != size_read) ||
	    word.bytes < name.bytes + sign_bytes || sign[sign_bytes - 1] != '=') {
		vb_text_add(wrong(r, name), keys[i].name,
			    keys[i].read == size_read ? " takes '=', '>=' or '<='" : " takes '='",
			    NULL);
		return false;
	}
	value = (struct word){ sign + sign_bytes, word.bytes - name.bytes - sign_bytes };
	return value_read(&keys[i], &rule->fits, value, how) ||
	       wrong_value(r, value, keys[i].name, keys[i].good);
}

/* --- what is done --- */

static bool for_read(struct reader *r, struct vb_fault_how *how)
{
	struct word word = word_peek(r);

	if (!is(word, "for"))
		return true;
	word_next(r);
	word = word_next(r);
	return (vb_script_time(word.text, word.bytes, &how->ns) && how->ns) ||
	       wrong_value(r, word, "how long", a_time);
}

static bool nothing_read(struct reader *r, struct vb_fault_how *how)
{
	return true;
}

static bool delay_read(struct reader *r, struct vb_fault_how *how)
{
	struct word word = word_next(r);

	return vb_script_time(word.text, word.bytes, &how->ns) ||
	       wrong_value(r, word, "a delay", a_time);
}

static bool silence_read(struct reader *r, struct vb_fault_how *how)
{
	how->all = is(word_peek(r), "all");
	if (how->all)
		word_next(r);
	return for_read(r, how);
}

/* As enum vb_nak_what counts them. */
static const struct {
	const char *name;
} naks[] = { { "rnr" }, { "sequence" }, { "invalid" }, { "access" }, { "operation" } };
static const struct vb_words nak_names = VB_WORDS(naks);

static bool nak_read(struct reader *r, struct vb_fault_how *how)
{
	struct word word = word_next(r);
	unsigned i = vb_words_find(&nak_names, word.text, word.bytes);

	how->nak = (uint8_t)i;
	return i < nak_names.count || wrong_word(r, word, &nak_names, "NAK", "NAKs");
}

static bool fail_read(struct reader *r, struct vb_fault_how *how)
{
	how->quietly = is(word_peek(r), "quietly");
	if (how->quietly)
		word_next(r);
	return true;
}

/* The one word that can follow: so that the line reads well. */
static bool word_read(struct reader *r, const char *what, const char *text)
{
	struct word word = word_next(r);
	char good[32];

	if (is(word, text))
		return true;
	snprintf(good, sizeof(good), "'%s'", text);
	return wrong_value(r, word, what, good);
}

static bool port_read(struct reader *r, struct vb_fault_how *how)
{
	return word_read(r, "what the port does", "down") && for_read(r, how);
}

static bool device_read(struct reader *r, struct vb_fault_how *how)
{
	return word_read(r, "what happens to the device", "fatal");
}

static bool process_read(struct reader *r, struct vb_fault_how *how)
{
	return word_read(r, "what happens to the process", "killed");
}

static bool gid_read(struct reader *r, struct vb_fault_how *how)
{
	struct word word = word_next(r);
	uint64_t index;

	if (!vb_script_number(word.text, word.bytes, &index) || index > UINT8_MAX)
		return wrong_value(r, word, "the index of a GID", "a number from 0 to 255");
	how->number = (uint32_t)index;
	word = word_next(r);
	how->has_gid = vb_script_address(word.text, word.bytes, how->gid);
	if (!how->has_gid && !is(word, "gone"))
		return wrong_value(r, word, "what becomes of the GID",
				   "'gone', or an address such as 10.0.0.9");
	return for_read(r, how);
}

/* IBTA 12.6.7.2 */
static const struct {
	const char *name;
	uint32_t number;
} reasons[] = { { "no-resources", 3 }, { "timeout", 4 },  { "no-service", 8 },
		{ "stale", 10 },       { "consumer", 28 } };
static const struct vb_words reason_names = VB_WORDS(reasons);

static bool reject_read(struct reader *r, struct vb_fault_how *how)
{
	struct word word = word_next(r);
	unsigned i = vb_words_find(&reason_names, word.text, word.bytes);
	uint64_t number;

	if (i < reason_names.count) {
		how->number = reasons[i].number;
		return true;
	}
	if (!vb_script_number(word.text, word.bytes, &number) || !number || number > UINT16_MAX)
		return wrong_value(r, word, "a reason",
				   "its number, or one of no-resources, timeout, no-service, "
				   "stale and consumer");
	how->number = (uint32_t)number;
	return true;
}

#define PACKETS (1u << VB_WHERE_SENT | 1u << VB_WHERE_RECEIVED)
#define CONNECT (1u << VB_WHERE_CONNECT)
#define ALL (PACKETS | CONNECT | 1u << VB_WHERE_AT)

/* clang-format off */
static const struct action {
	const char *name;
	enum vb_fault_what what;
	bool (*read)(struct reader *r, struct vb_fault_how *how);
	unsigned where; /* a bit for each enum vb_rule_where */
} actions[] = {
	{ "drop",      VB_FAULT_DROP,      nothing_read, PACKETS | CONNECT },
	{ "delay",     VB_FAULT_DELAY,     delay_read,   PACKETS | CONNECT },
	{ "duplicate", VB_FAULT_DUPLICATE, nothing_read, PACKETS | CONNECT },
	{ "corrupt",   VB_FAULT_CORRUPT,   nothing_read, PACKETS },
	{ "truncate",  VB_FAULT_TRUNCATE,  nothing_read, PACKETS },
	{ "silence",   VB_FAULT_SILENCE,   silence_read, ALL },
	{ "nak",       VB_FAULT_NAK,       nak_read,     PACKETS },
	{ "fail",      VB_FAULT_FAIL,      fail_read,    PACKETS },
	{ "port",      VB_FAULT_PORT,      port_read,    ALL },
	{ "gid",       VB_FAULT_GID,       gid_read,     ALL },
	{ "device",    VB_FAULT_DEVICE,    device_read,  ALL },
	{ "process",   VB_FAULT_PROCESS,   process_read, ALL },
	{ "reject",    VB_FAULT_REJECT,    reject_read,  CONNECT },
};
/* clang-format on */
static const struct vb_words action_names = VB_WORDS(actions);

static bool action_read(struct reader *r, struct vb_rule *rule)
{
	struct word word = word_next(r);
	unsigned i = vb_words_find(&action_names, word.text, word.bytes);

	if (i == action_names.count)
		return wrong_word(r, word, &action_names, "action", "Actions");
	if (!(actions[i].where >> rule->where & 1)) {
		vb_text_add(wrong(r, word), actions[i].name, " is an action for ",
			    actions[i].where == CONNECT ? "'connect'" : "'sent' and 'received'",
			    actions[i].where & CONNECT && actions[i].where & PACKETS
				    ? ", and for 'connect'" : "", NULL);
		return false;
	}
	rule->how.what = actions[i].what;
	if (rule->how.what == VB_FAULT_NAK && !vb_script_may_refuse(&rule->fits)) {
		vb_text_add(wrong(r, word), "nak is for requests of RC, and this rule is for none",
			    NULL);
		return false;
	}
	if (!actions[i].read(r, &rule->how))
		return false;
	/* There is no QP that it could be about. */
	rule->how.all |= !(PACKETS >> rule->where & 1);
	word = word_next(r);
	if (!word.bytes)
		return true;
	vb_text_add(wrong(r, word), "the rule is over here, but there is '", NULL);
	vb_text_add_typed(&r->why, word.text, word.bytes);
	vb_text_add(&r->why, "'", NULL);
	return false;
}

/* --- lines --- */

/* As enum vb_rule_where counts them. */
static const struct {
	const char *name;
} wheres[] = { { "sent" }, { "received" }, { "connect" }, { "at" } };
static const struct vb_words where_names = VB_WORDS(wheres);

static bool rule_read(struct reader *r, struct vb_rule *rule)
{
	struct word word = word_next(r);
	unsigned i = vb_words_find(&where_names, word.text, word.bytes);

	if (i == where_names.count)
		return wrong_word(r, word, &where_names, "kind of rule", "Rules begin with");
	rule->where = (enum vb_rule_where)i;
	word = word_next(r);
	if (rule->where == VB_WHERE_AT) {
		if (!vb_script_time(word.text, word.bytes, &rule->at_ns))
			return wrong_value(r, word, "a moment", a_time);
		word = word_next(r);
	} else if (rule->where != VB_WHERE_CONNECT && word.bytes && !is_key(word) &&
		   !is(word, "->")) {
		if (!classes_read(r, word, &rule->fits))
			return false;
		word = word_next(r);
	}
	for (; word.bytes && !is(word, "->") && rule->where != VB_WHERE_AT; word = word_next(r)) {
		if (!key_read(r, word, rule))
			return false;
	}
	return is(word, "->") ? action_read(r, rule)
			      : wrong_value(r, word, "what stands before the action", "'->'");
}

/* The line without its comment. */
static void line_begin(struct reader *r, const char *line, const char *end)
{
	const char *comment = memchr(line, '#', (size_t)(end - line));

	r->number++;
	r->line = r->at = line;
	r->end = comment ? comment : end;
}

static const struct vb_rule blank = {
	.fits = { .bytes_max = UINT32_MAX, .until_ns = UINT64_MAX,
		  .turns = { .from = 1, .to = UINT64_MAX, .every = 1, .about = 1 } },
};

static bool lines_read(struct reader *r, struct vb_script *script, const char *text, size_t bytes)
{
	const char *end = text + bytes;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		struct vb_rule *rule = &script->rule[script->count];

		line_begin(r, text, stop ? stop : end);
		text = stop ? stop + 1 : end;
		if (!word_peek(r).bytes)
			continue;
		if (script->count == VB_SCRIPT_RULES_MAX) {
			vb_text_add(wrong(r, word_peek(r)), "a script has 64 rules at most", NULL);
			return false;
		}
		*rule = blank;
		rule->line = r->number;
		if (!rule_read(r, rule))
			return false;
		script->count++;
	}
	return true;
}

/* The last part of a path, or of that its end. */
static void name_set(struct vb_script *script, const char *path)
{
	const char *name = strrchr(path, '/');
	size_t bytes;

	name = name ? name + 1 : path;
	bytes = strlen(name);
	if (bytes >= sizeof(script->name))
		name += bytes - sizeof(script->name) + 1;
	snprintf(script->name, sizeof(script->name), "%s", name);
}

int vb_script_parse(struct vb_script *script, const char *path, const char *text, size_t bytes,
		    char why[VB_SCRIPT_WHY_BYTES])
{
	struct vb_script read = { .count = 0 };
	struct reader r = { .name = read.name, .why = vb_text_in(why, VB_SCRIPT_WHY_BYTES) };

	name_set(&read, path);
	if (!lines_read(&r, &read, text, bytes))
		return EINVAL;
	*script = read;
	return 0;
}
