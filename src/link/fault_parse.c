/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/fault.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"

/* By hand, not strtod(): the decimal point must not depend on the application's locale. */

enum { DELAY_SECONDS_MAX = 10 };

/* Decimal digits; false if there are none or the number does not fit 64 bits. */
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

/* "12.5%" as parts of VB_FAULT_PER_UNIT; more digits than that can hold are refused. */
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

/* clang-format off */
static const struct part {
	const char *name;
	size_t field;
	bool (*take)(const char **text, void *field);
} parts[] = {
	{ "loss=",    offsetof(struct vb_fault, loss),     percent_take },
	{ "dup=",     offsetof(struct vb_fault, dup),      percent_take },
	{ "reorder=", offsetof(struct vb_fault, reorder),  percent_take },
	{ "corrupt=", offsetof(struct vb_fault, corrupt),  percent_take },
	{ "delay=",   offsetof(struct vb_fault, delay_ns), time_take },
	{ "seed=",    offsetof(struct vb_fault, seed),     seed_take },
};
/* clang-format on */

enum { PART_SEED = 5 };

/* Which part begins here, VB_ARRAY_LEN(parts) if none. */
static unsigned part_find(const char **text)
{
	unsigned i = 0;

	while (i < VB_ARRAY_LEN(parts) && !word_take(text, parts[i].name))
		i++;
	return i;
}

int vb_fault_parse(struct vb_fault *fault, const char *text)
{
	struct vb_fault parsed = {0};
	unsigned seen = 0;

	if (!*text)
		return EINVAL;
	do {
		unsigned i = part_find(&text);

		if (i == VB_ARRAY_LEN(parts) || seen & 1u << i ||
		    !parts[i].take(&text, (char *)&parsed + parts[i].field))
			return EINVAL;
		seen |= 1u << i;
	} while (word_take(&text, ","));
	if (*text)
		return EINVAL;
	parsed.seeded = seen >> PART_SEED & 1;
	*fault = parsed;
	return 0;
}
