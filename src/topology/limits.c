/* SPDX-License-Identifier: BSD-2-Clause */
#include "topology/limits.h"

#include <stdio.h>
#include <string.h>

#include "topology/values.h"

static const struct {
	const char *name;
	uint64_t least, most;
} rows[VB_LIMITS] = {
#define VB_LIMIT(word, name, least, most) { name, least, most },
#include "topology/limits.def"
#undef VB_LIMIT
};

const struct vb_words vb_limit_names = VB_WORDS(rows);

uint64_t vb_limit_least(enum vb_limit limit)
{
	return rows[limit].least;
}

uint64_t vb_limit_most(enum vb_limit limit)
{
	return rows[limit].most;
}

bool vb_limit_set(struct vb_limits *limits, enum vb_limit limit, uint64_t most)
{
	if (most < rows[limit].least || most > rows[limit].most)
		return false;
	limits->said |= 1u << limit;
	limits->most[limit] = most;
	return true;
}

void vb_limit_add_range(struct vb_text *text, enum vb_limit limit)
{
	char range[64];

	snprintf(range, sizeof(range), " is a number from %llu to %llu",
		 (unsigned long long)rows[limit].least, (unsigned long long)rows[limit].most);
	vb_text_add(text, rows[limit].name, range, NULL);
}

void vb_limits_lay(struct vb_limits *limits, const struct vb_limits *above)
{
	for (unsigned i = 0; i < VB_LIMITS; i++) {
		if (vb_limit_is_said(above, i))
			vb_limit_set(limits, i, above->most[i]);
	}
}

/* One of the list: NAME=NUMBER, without blanks, which stand between parts. None is said twice. */
static bool part_parse(struct vb_limits *limits, uint64_t *seen, struct vb_span part,
		       struct vb_text *why)
{
	const char *sign = memchr(part.text, '=', part.bytes);
	size_t name_bytes = sign ? (size_t)(sign - part.text) : part.bytes;
	unsigned limit = vb_words_find(&vb_limit_names, part.text, name_bytes);
	struct vb_span number = { sign + 1, part.bytes - name_bytes - 1 };
	uint64_t most;

	if (limit == VB_LIMITS) {
		vb_words_add_unknown(why, &vb_limit_names, "limit", "Limits", part.text,
				     name_bytes);
		return false;
	}
	if (*seen >> limit & 1) {
		vb_text_add(why, rows[limit].name, " is said twice", NULL);
		return false;
	}
	*seen |= 1ull << limit;
	if (sign && vb_value_number(number, &most) && vb_limit_set(limits, limit, most))
		return true;
	vb_limit_add_range(why, limit);
	if (part.bytes == name_bytes + (sign != NULL))
		vb_text_add(why, ", without blanks: ", rows[limit].name, "=N", NULL);
	return false;
}

bool vb_limits_parse(struct vb_limits *limits, const char *list, struct vb_text *why)
{
	struct vb_span left = { list, strlen(list) }, part;
	struct vb_limits read = *limits;
	uint64_t seen = 0;

	while (vb_span_word(&left, &part)) {
		if (!part_parse(&read, &seen, part, why))
			return false;
	}
	*limits = read;
	return true;
}
