/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/parts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"

/* Not strtod(): the decimal point must not depend on the application's locale. */

/* What a value may be, and the messages about others. */
struct vb_part_kind {
	bool (*take)(const char **text, void *field);
	const char *units[5];
	bool fractions;
	const char *example, *wanted, *range;
};

/* A unit and how many of the smallest it is. */
struct unit {
	const char *word;
	uint64_t times;
};

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

/* Reads "12.5%" as parts of VB_PARTS_PER_UNIT. False if it has more digits than fit. */
static bool percent_take(const char **text, void *field)
{
	uint64_t unit = VB_PARTS_PER_UNIT / 100, whole, part;
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
	return part <= VB_PARTS_PER_UNIT && word_take(text, "%");
}

/* Reads a whole number and its unit; at most max of the smallest unit. */
static bool measure_take(const char **text, uint64_t *value, const struct unit *units,
			 unsigned n, uint64_t max)
{
	uint64_t count;

	if (!number_take(text, &count))
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (!word_take(text, units[i].word))
			continue;
		*value = count * units[i].times;
		return count <= max / units[i].times;
	}
	return false;
}

static bool time_take(const char **text, void *field)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
	};

	return measure_take(text, field, units, VB_ARRAY_LEN(units),
			    VB_PARTS_SECONDS_MAX * 1000000000ull);
}

static bool octets_take(const char **text, void *field)
{
	static const struct unit units[] = { { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "B", 1 } };

	return measure_take(text, field, units, VB_ARRAY_LEN(units), 1 << 30);
}

static bool rate_take(const char **text, void *field)
{
	static const struct unit units[] = {
		{ "kbit", 1000 }, { "Mbit", 1000000 }, { "Gbit", 1000000000 },
	};

	return measure_take(text, field, units, VB_ARRAY_LEN(units), 1000000000000u) &&
	       *(uint64_t *)field >= 8000;
}

static bool whole_take(const char **text, void *field)
{
	return number_take(text, field);
}

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

static bool name_take(const char **text, void *field)
{
	size_t bytes = strspn(*text, name_chars);

	if (!bytes || bytes >= VB_PARTS_NAME_BYTES)
		return false;
	memcpy(field, *text, bytes);
	((char *)field)[bytes] = 0;
	*text += bytes;
	return true;
}

static const char digits[] = "0123456789";

const struct vb_part_kind vb_part_percentage = {
	.take = percent_take,
	.units = { "%" },
	.fractions = true,
	.example = "1%",
	.wanted = "a percentage such as 1% is wanted",
	.range = "a percentage is at most 100%, with at most 7 digits behind the point",
};

const struct vb_part_kind vb_part_duration = {
	.take = time_take,
	.units = { "ns", "us", "ms", "s" },
	.example = "1ms",
	.wanted = "a whole number and its unit (ns, us, ms or s) are wanted, such as 250us",
	.range = "a delay is at most 10s",
};

const struct vb_part_kind vb_part_number = {
	.take = whole_take,
	.units = { "" },
	.example = "7",
	.wanted = "a number is wanted, of decimal digits alone",
	.range = "a seed is at most 18446744073709551615",
};

const struct vb_part_kind vb_part_octets = {
	.take = octets_take,
	.units = { "B", "KiB", "MiB" },
	.example = "64KiB",
	.wanted = "a whole number and its unit (B, KiB or MiB) are wanted, such as 64KiB",
	.range = "a size is at most 1024MiB",
};

const struct vb_part_kind vb_part_rate = {
	.take = rate_take,
	.units = { "kbit", "Mbit", "Gbit" },
	.example = "10Gbit",
	.wanted = "a whole number and its unit (kbit, Mbit or Gbit) are wanted, such as 10Gbit",
	.range = "a rate is at least 8kbit and at most 1000Gbit",
};

const struct vb_part_kind vb_part_name = {
	.take = name_take,
	.units = { NULL },
	.example = "lab",
	.wanted = "a name is wanted, of at most 31 letters, digits and '-'",
};

/* Does the text have the form of such a value, even if it is too large? */
static bool has_form(const struct vb_part_kind *kind, const char *text, size_t bytes)
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

static void no_such_part(const struct vb_parts *parts, struct vb_text *why,
			 const struct given *given)
{
	if (!given->bytes) {
		vb_text_add(why, "a part is empty; there is one comma between two parts", NULL);
		return;
	}
	vb_words_add_unknown(why, &parts->words, parts->kind, parts->title, given->text,
			     given->name_bytes);
}

static void no_such_value(struct vb_text *why, const struct given *given,
			  const struct vb_part *part)
{
	const struct vb_part_kind *kind = part->kind;

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
static int part_read(const struct vb_parts *parts, void *into, const struct given *given,
		     unsigned *seen, struct vb_text *why)
{
	unsigned i = vb_words_find(&parts->words, given->text, given->name_bytes);
	const struct vb_part *part = &parts->part[i];
	const char *value = given->value;

	if (i == parts->words.count) {
		no_such_part(parts, why, given);
		return EINVAL;
	}
	if (*seen & 1u << i) {
		vb_text_add(why, part->name, " is there twice", NULL);
		return EINVAL;
	}
	if (!value || !part->kind->take(&value, (char *)into + part->field) ||
	    value != given->text + given->bytes) {
		no_such_value(why, given, part);
		return EINVAL;
	}
	*seen |= 1u << i;
	return 0;
}

int vb_parts_read(const struct vb_parts *parts, const char *text, void *into, unsigned *seen,
		  char why_chars[VB_PARTS_WHY_BYTES])
{
	struct vb_text why = vb_text_in(why_chars, VB_PARTS_WHY_BYTES);

	*seen = 0;
	for (;; text++) {
		struct given given = given_at(text);
		int rc = part_read(parts, into, &given, seen, &why);

		if (rc)
			return rc;
		text += given.bytes;
		if (!*text)
			return 0;
	}
}
