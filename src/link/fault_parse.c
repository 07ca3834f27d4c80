/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/fault_parse.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/words.h"

/* Not strtod(): the decimal point must not depend on the application's locale. */

enum { DELAY_SECONDS_MAX = 10 };

/* Reads decimal digits. False if there are none or the number does not fit in 64 bits. */
static bool number_take(const char **text, uint64_t *value)
{
	const char *digit = *text;

	*value = 0;
	for (; *digit >= '0' && *digit <= '9'; digit++) {
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*digit - '0'), value))
			return false;
	}
	if (digit == *text)
		return false;
	*text = digit;
	return true;
}

static bool word_take(const char **text, const char *word)
{
	size_t bytes = strlen(word);

	if (strncmp(*text, word, bytes))
		return false;
	*text += bytes;
	return true;
}

/* Reads "12.5%" as parts of VB_FAULT_PER_UNIT. False if it has more digits than fit. */
static bool percent_take(const char **text, void *field)
{
	uint64_t unit = VB_FAULT_PER_UNIT / 100, whole, part;
	uint32_t *value = field;

	if (!number_take(text, &whole) || whole > 100)
		return false;
	part = whole * unit;
	if (word_take(text, ".")) {
		if (**text < '0' || **text > '9')
			return false;
		for (; **text >= '0' && **text <= '9'; (*text)++) {
			if (unit == 1)
				return false;
			unit /= 10;
			part += (uint64_t)(**text - '0') * unit;
		}
	}
	*value = (uint32_t)part;
	return part <= VB_FAULT_PER_UNIT && word_take(text, "%");
}

static bool time_take(const char **text, void *field)
{
	static const struct {
		const char *word;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	uint64_t max = DELAY_SECONDS_MAX * 1000000000ull, count, *value = field;

	if (!number_take(text, &count))
		return false;
	for (unsigned i = 0; i < VB_ARRAY_LEN(units); i++) {
		if (!word_take(text, units[i].word))
			continue;
		if (count > max / units[i].ns)
			return false;
		*value = count * units[i].ns;
		return true;
	}
	return false;
}

static bool seed_take(const char **text, void *field)
{
	return number_take(text, field);
}

static const char digits[] = "0123456789";

/* The kinds of values, and the messages for invalid ones. */
static const struct kind {
	bool (*take)(const char **text, void *field);
	const char *units[5];
	bool fractions;
	const char *example, *wanted, *range;
} percentage = {
	percent_take,
	{"%"},
	true,
	"1%",
	"a percentage such as 1% is wanted",
	"a percentage is at most 100%, with at most 7 digits behind the point",
}, duration = {
	time_take,
	{"ns", "us", "ms", "s"},
	false,
	"1ms",
	"a whole number and its unit (ns, us, ms or s) are wanted, such as 250us",
	"a delay is at most 10s",
}, number = {
	seed_take,
	{""},
	false,
	"7",
	"a number is wanted, of decimal digits alone",
	"a seed is at most 18446744073709551615",
};

/* clang-format off */
static const struct part {
	const char *name;
	size_t field;
	const struct kind *kind;
} parts[] = {
	{ "loss",    offsetof(struct vb_fault, loss),     &percentage },
	{ "dup",     offsetof(struct vb_fault, dup),      &percentage },
	{ "reorder", offsetof(struct vb_fault, reorder),  &percentage },
	{ "corrupt", offsetof(struct vb_fault, corrupt),  &percentage },
	{ "delay",   offsetof(struct vb_fault, delay_ns), &duration },
	{ "seed",    offsetof(struct vb_fault, seed),     &number },
};
/* clang-format on */

enum { PART_SEED = 5 };

static const struct vb_words names = VB_WORDS(parts);

/* Does the text have the form of such a value, even if it is too large? */
static bool has_form(const struct kind *kind, const char *text, size_t bytes)
{
	const char *end = text + bytes;
	size_t whole = strspn(text, digits), part;

	if (!whole)
		return false;
	text += whole;
	if (kind->fractions && *text == '.') {
		part = strspn(text + 1, digits);
		if (!part)
			return false;
		text += 1 + part;
	}
	for (unsigned i = 0; kind->units[i]; i++) {
		if (strlen(kind->units[i]) == (size_t)(end - text) &&
		    !strncmp(text, kind->units[i], (size_t)(end - text)))
			return true;
	}
	return false;
}

/* A part of the text, "loss=1%", up to the next comma. */
struct given {
	const char *text, *value; /* value is NULL without "=" */
	size_t bytes, name_bytes, value_bytes;
};

static struct given given_at(const char *text)
{
	struct given given = {.text = text, .bytes = strcspn(text, ",")};

	given.name_bytes = strcspn(text, ",=");
	if (given.name_bytes < given.bytes) {
		given.value = text + given.name_bytes + 1;
		given.value_bytes = given.bytes - given.name_bytes - 1;
	}
	return given;
}

static void no_such_part(struct vb_text *why, const struct given *given)
{
	if (!given->bytes) {
		vb_text_add(why, "a part is empty; there is one comma between two parts", NULL);
		return;
	}
	vb_words_add_unknown(why, &names, "fault", "Faults", given->text, given->name_bytes);
}

static void no_such_value(struct vb_text *why, const struct given *given, const struct part *part)
{
	const struct kind *kind = part->kind;

	vb_text_add_typed(why, given->text, given->bytes);
	if (!given->value)
		vb_text_add(why, ": a value is wanted, such as ", part->name, "=", kind->example,
			    NULL);
	else if (has_form(kind, given->value, given->value_bytes))
		vb_text_add(why, ": ", kind->range, NULL);
	else
		vb_text_add(why, ": ", kind->wanted, NULL);
}

/* Reads one part and marks it as seen. Returns 0 or EINVAL. */
static int part_read(struct vb_fault *fault, const struct given *given, unsigned *seen,
		     struct vb_text *why)
{
	unsigned i = vb_words_find(&names, given->text, given->name_bytes);
	const char *value = given->value;

	if (i == names.count) {
		no_such_part(why, given);
		return EINVAL;
	}
	if (*seen & 1u << i) {
		vb_text_add(why, parts[i].name, " is there twice", NULL);
		return EINVAL;
	}
	if (!value || !parts[i].kind->take(&value, (char *)fault + parts[i].field) ||
	    value != given->text + given->bytes) {
		no_such_value(why, given, &parts[i]);
		return EINVAL;
	}
	*seen |= 1u << i;
	return 0;
}

int vb_fault_parse(struct vb_fault *fault, const char *text, char why_chars[VB_FAULT_WHY_BYTES])
{
	struct vb_text why = vb_text_in(why_chars, VB_FAULT_WHY_BYTES);
	struct vb_fault parsed = {0};
	unsigned seen = 0;

	for (;; text++) {
		struct given given = given_at(text);
		int rc = part_read(&parsed, &given, &seen, &why);

		if (rc)
			return rc;
		text += given.bytes;
		if (!*text)
			break;
	}
	parsed.seeded = seen >> PART_SEED & 1;
	*fault = parsed;
	return 0;
}
