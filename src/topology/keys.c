/* SPDX-License-Identifier: BSD-2-Clause */
#include "topology/keys.h"

#include "topology/values.h"

bool vb_key_wrong(struct vb_lines *lines, const char *what, struct vb_span value, const char *good)
{
	vb_text_add_cannot(vb_lines_wrong(lines, value), what, value.text, value.bytes, "empty",
			   good);
	return false;
}

bool vb_key_read(const struct vb_key *keys, const struct vb_words *names, uint64_t *seen,
		 struct vb_lines *lines, void *arg)
{
	struct vb_span key = lines->key;
	unsigned i = vb_words_find(names, key.text, key.bytes);

	if (i == names->count) {
		vb_words_add_unknown(vb_lines_wrong(lines, key), names, "key", "Keys", key.text,
				     key.bytes);
		return false;
	}
	if (*seen >> i & 1) {
		vb_text_add(vb_lines_wrong(lines, key), keys[i].name, " is said twice", NULL);
		return false;
	}
	*seen |= 1ull << i;
	if (keys[i].read(arg, lines, lines->value))
		return true;
	return lines->why.used ? false
			       : vb_key_wrong(lines, keys[i].name, lines->value, keys[i].good);
}

static const struct {
	const char *name;
	uint8_t gids;
} varieties[] = {
	{ "plain", 0 },
	{ "v1", VB_GIDS_V1 },
	{ "link-local-first", VB_GIDS_LOCAL_FIRST },
	{ "holes", VB_GIDS_HOLES },
};
static const struct vb_words variety_names = VB_WORDS(varieties);

const char vb_key_good_gids[] = "plain, or some of v1, link-local-first and holes";

bool vb_key_gids(struct vb_lines *lines, struct vb_span value, uint8_t *gids)
{
	struct vb_span word;
	unsigned count = 0;

	for (*gids = 0; vb_span_word(&value, &word); count++) {
		unsigned i = vb_words_find(&variety_names, word.text, word.bytes);

		if (i == variety_names.count) {
			vb_words_add_unknown(vb_lines_wrong(lines, word), &variety_names,
					     "variety of GID tables", "Varieties", word.text,
					     word.bytes);
			return false;
		}
		*gids |= varieties[i].gids;
	}
	return count > 0;
}

bool vb_key_limit(struct vb_lines *lines, struct vb_span value, struct vb_limits *limits)
{
	unsigned limit = vb_words_find(&vb_limit_names, lines->key.text, lines->key.bytes);
	uint64_t most;

	if (vb_value_number(value, &most) && vb_limit_set(limits, limit, most))
		return true;
	vb_limit_add_range(vb_lines_wrong(lines, value), limit);
	return false;
}
