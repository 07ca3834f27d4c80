/* SPDX-License-Identifier: BSD-2-Clause */
#include "topology/persona.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "topology/values.h"

/* The files of src/topology/personas, by embed.py: the neutral one is the first. */
static const struct builtin {
	const char *name, *text;
} builtins[] = {
#include "topology/personas.inc"
};

const struct vb_words vb_persona_names = VB_WORDS(builtins);

/* --- keys --- */

struct word {
	const char *name;
	unsigned value;
};

/* Finds the one word of a value. */
static bool word_read(struct vb_span value, const struct word *rows, unsigned count,
		      unsigned *found)
{
	for (unsigned i = 0; i < count; i++) {
		if (vb_span_is(value, rows[i].name)) {
			*found = rows[i].value;
			return true;
		}
	}
	return false;
}

static bool number_read(struct vb_span value, uint32_t *number)
{
	uint64_t wide;

	if (!vb_value_number(value, &wide) || wide > UINT32_MAX)
		return false;
	*number = (uint32_t)wide;
	return true;
}

static bool like_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_persona *persona = arg, like;
	char name[VB_PERSONA_NAME_BYTES];
	struct vb_text *why;

	if (vb_value_name(value, name, sizeof(name)) && vb_persona_make(&like, name)) {
		memcpy(like.name, persona->name, sizeof(like.name));
		*persona = like;
		return true;
	}
	why = vb_lines_wrong(lines, value);
	vb_words_add_unknown(why, &vb_persona_names, "persona", "Personas", value.text,
			     value.bytes);
	return false;
}

static bool vendor_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return number_read(value, &((struct vb_persona *)arg)->vendor_id);
}

static bool part_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return number_read(value, &((struct vb_persona *)arg)->part_id);
}

static bool hw_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return number_read(value, &((struct vb_persona *)arg)->hw_ver);
}

static bool fw_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_value_text(value, ((struct vb_persona *)arg)->fw_ver, VB_PERSONA_FW_BYTES);
}

static bool parcels_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_value_switch(value, &((struct vb_persona *)arg)->has_parcels);
}

/* As <infiniband/verbs.h> counts them, which this layer does not know: tests compare them. */
static const struct word nodes[] = { { "ca", 1 }, { "rnic", 4 }, { "unspecified", 7 } };
static const struct word transports[] = { { "ib", 0 }, { "iwarp", 1 }, { "unspecified", 4 } };
static const struct word layers[] = {
	{ "unspecified", 0 }, { "infiniband", 1 }, { "ethernet", 2 },
};

static bool node_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_persona *persona = arg;
	unsigned found;

	if (!word_read(value, nodes, VB_ARRAY_LEN(nodes), &found))
		return false;
	persona->node_type = (int8_t)found;
	return true;
}

static bool transport_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_persona *persona = arg;
	unsigned found;

	if (!word_read(value, transports, VB_ARRAY_LEN(transports), &found))
		return false;
	persona->transport_type = (int8_t)found;
	return true;
}

static bool layer_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_persona *persona = arg;
	unsigned found;

	if (!word_read(value, layers, VB_ARRAY_LEN(layers), &found))
		return false;
	persona->link_layer = (uint8_t)found;
	return true;
}

static bool rate_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_value_rate(value, &((struct vb_persona *)arg)->rate_mbps);
}

static bool gids_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_key_gids(lines, value, &((struct vb_persona *)arg)->gids);
}

static const struct word services[] = {
	{ "rc", VB_OFFERS_RC },   { "uc", VB_OFFERS_UC },   { "ud", VB_OFFERS_UD },
	{ "xrc", VB_OFFERS_XRC }, { "dc", VB_OFFERS_DC },   { "raw", VB_OFFERS_RAW },
	{ "srd", VB_OFFERS_SRD },
};

static bool services_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_persona *persona = arg;
	struct vb_span word;
	unsigned found, all = 0;

	while (vb_span_word(&value, &word)) {
		if (!word_read(word, services, VB_ARRAY_LEN(services), &found))
			return false;
		all |= found;
	}
	persona->services = (uint8_t)all;
	return all != 0;
}

static bool limit_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_key_limit(lines, value, &((struct vb_persona *)arg)->limits);
}

static const char a_number[] = "a number of 32 bits, decimal or with 0x";

/* clang-format off */
static const struct vb_key keys[] = {
	{ "like",       like_read,      NULL },
	{ "vendor_id",  vendor_read,    a_number },
	{ "part_id",    part_read,      a_number },
	{ "hw_ver",     hw_read,        a_number },
	{ "fw_ver",     fw_read,        "a text of 1 to 63 octets, such as 28.0.0" },
	{ "parcels",    parcels_read,   "yes or no" },
	{ "node_type",  node_read,      "ca, rnic or unspecified" },
	{ "transport",  transport_read, "ib, iwarp or unspecified" },
	{ "link_layer", layer_read,     "ethernet, infiniband or unspecified" },
	{ "rate",       rate_read,      vb_value_rates },
	{ "gids",       gids_read,      vb_key_good_gids },
	{ "services",   services_read,  "some of rc, uc, ud, xrc, dc, raw and srd" },
#define VB_LIMIT(word, name, least, most) { name, limit_read, NULL },
#include "topology/limits.def"
#undef VB_LIMIT
};
/* clang-format on */
static const struct vb_words key_names = VB_WORDS(keys);

/* --- the whole --- */

/* A persona as whose file says nothing. */
static struct vb_persona blank(const char *name)
{
	const char *slash = strrchr(name, '/');
	struct vb_persona persona = {
		.node_type = 1,
		.link_layer = 2,
		.fw_ver = "0",
		.services = VB_OFFERS_RC | VB_OFFERS_UC | VB_OFFERS_UD | VB_OFFERS_XRC |
			    VB_OFFERS_DC | VB_OFFERS_RAW,
	};
	struct vb_text text = vb_text_in(persona.name, sizeof(persona.name));

	vb_text_add(&text, slash ? slash + 1 : name, NULL);
	return persona;
}

static bool pair_read(struct vb_persona *persona, struct vb_lines *lines, uint64_t *seen)
{
	if (*seen && vb_span_is(lines->key, keys[0].name)) {
		vb_text_add(vb_lines_wrong(lines, lines->key),
			    "'like' is the first of all keys: it sets the others", NULL);
		return false;
	}
	return vb_key_read(keys, &key_names, seen, lines, persona);
}

int vb_persona_parse(struct vb_persona *out, const char *name, const char *text, size_t bytes,
		     char why[VB_PERSONA_WHY_BYTES])
{
	struct vb_lines lines = vb_lines_of(name, text, bytes,
					    vb_text_in(why, VB_PERSONA_WHY_BYTES));
	struct vb_persona persona = blank(name);
	uint64_t seen = 0;

	for (;;) {
		switch (vb_lines_next(&lines)) {
		case VB_LINE_PAIR:
			if (!pair_read(&persona, &lines, &seen))
				return EINVAL;
			break;
		case VB_LINE_SECTION:
			vb_text_add(vb_lines_wrong(&lines, lines.key),
				    "a persona has no sections", NULL);
			return EINVAL;
		case VB_LINE_WRONG:
			return EINVAL;
		case VB_LINE_END:
			*out = persona;
			return 0;
		}
	}
}

bool vb_persona_make(struct vb_persona *persona, const char *name)
{
	unsigned i = vb_words_find(&vb_persona_names, name, strlen(name));
	char why[VB_PERSONA_WHY_BYTES];

	if (i == vb_persona_names.count)
		return false;
	vb_check(!vb_persona_parse(persona, name, builtins[i].text, strlen(builtins[i].text), why));
	return true;
}

bool vb_persona_is_sound(const struct vb_persona *persona)
{
	struct vb_limits limits = { 0 };

	for (unsigned i = 0; i < VB_LIMITS; i++) {
		if (vb_limit_is_said(&persona->limits, i) &&
		    !vb_limit_set(&limits, i, persona->limits.most[i]))
			return false;
	}
	return limits.said == persona->limits.said && persona->gids <= VB_GIDS_ALL &&
	       memchr(persona->name, 0, sizeof(persona->name)) &&
	       memchr(persona->fw_ver, 0, sizeof(persona->fw_ver));
}
