/* SPDX-License-Identifier: BSD-2-Clause */
#include "topology/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "topology/keys.h"
#include "topology/lines.h"
#include "topology/persona.h"

const struct vb_topology vb_topology_default = {
	.device[0] = { .name = "verbatim0" },
	.count = 1,
};

/* The table while it is read. */
struct reader {
	struct vb_lines lines;
	struct vb_topology topology;
	bool has_uverbs[VB_TOPOLOGY_DEVICES_MAX];
};

static struct vb_topology_device *last_of(void *reader)
{
	struct reader *r = reader;

	return &r->topology.device[r->topology.count - 1];
}

/* --- places --- */

/* A word that is no address: does it fit an interface? */
static bool interface_read(struct vb_span word, struct vb_topology_place *place)
{
	if (memchr(word.text, '/', word.bytes) || memchr(word.text, ':', word.bytes) ||
	    vb_span_is(word, ".") || vb_span_is(word, ".."))
		return false;
	return vb_value_text(word, place->interface, sizeof(place->interface));
}

static const struct vb_topology_device *owner_of(const struct vb_topology *topology,
						 const struct vb_topology_place *place)
{
	for (unsigned i = 0; i < topology->count; i++) {
		const struct vb_topology_device *device = &topology->device[i];

		for (unsigned j = 0; j < device->place_count; j++) {
			if (memcmp(&device->place[j], place, sizeof(*place)) == 0)
				return device;
		}
	}
	return NULL;
}

static bool place_add(struct reader *r, struct vb_span word, const struct vb_topology_place *place)
{
	const struct vb_topology_device *owner = owner_of(&r->topology, place);
	struct vb_topology_device *device = last_of(r);
	struct vb_text *why;

	if (!owner && device->place_count < VB_TOPOLOGY_PLACES_MAX) {
		device->place[device->place_count++] = *place;
		return true;
	}
	why = vb_lines_wrong(&r->lines, word);
	vb_text_add(why, "'", NULL);
	vb_text_add_typed(why, word.text, word.bytes);
	if (owner)
		vb_text_add(why, "' belongs to the device ", owner->name,
			    " already: name it once", NULL);
	else
		vb_text_add(why, "' is one too many: a device has 16 interfaces and addresses",
			    NULL);
	return false;
}

/* --- keys --- */

static bool interfaces_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct reader *r = arg;
	struct vb_span word;
	unsigned count = 0;

	for (; vb_span_word(&value, &word); count++) {
		struct vb_topology_place place = { 0 };

		if (!interface_read(word, &place) || !place_add(r, word, &place))
			return false;
	}
	return count > 0;
}

static bool addresses_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct reader *r = arg;
	struct vb_span word;
	unsigned count = 0;

	for (; vb_span_word(&value, &word); count++) {
		struct vb_topology_place place = { 0 };

		if (!vb_value_address(word, place.address) || !place_add(r, word, &place))
			return false;
	}
	return count > 0;
}

static bool persona_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_persona persona;
	char *name = last_of(arg)->persona;

	if (!vb_value_text(value, name, VB_TOPOLOGY_PERSONA_BYTES))
		return false;
	if (memchr(value.text, '/', value.bytes) || vb_persona_make(&persona, name))
		return true;
	vb_words_add_unknown(vb_lines_wrong(lines, value), &vb_persona_names, "persona",
			     "Personas", value.text, value.bytes);
	vb_text_add(&lines->why, "; a file's path has a '/'", NULL);
	return false;
}

static bool uverbs_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct reader *r = arg;
	unsigned last = r->topology.count - 1;
	uint64_t number;

	if (!vb_value_number(value, &number) || number > VB_TOPOLOGY_UVERBS_MAX)
		return false;
	for (unsigned i = 0; i < last; i++) {
		if (r->has_uverbs[i] && r->topology.device[i].uverbs == number) {
			vb_text_add(vb_lines_wrong(&r->lines, value), "the device ",
				    r->topology.device[i].name, " has this number already", NULL);
			return false;
		}
	}
	r->has_uverbs[last] = true;
	last_of(r)->uverbs = (unsigned)number;
	return true;
}

static bool rate_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_value_rate(value, &last_of(arg)->rate_mbps);
}

static bool numa_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	uint64_t number;

	if (!vb_value_number(value, &number) || number > VB_TOPOLOGY_NUMA_MAX)
		return false;
	last_of(arg)->numa = (unsigned)number;
	last_of(arg)->has_numa = true;
	return true;
}

static bool pci_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct reader *r = arg;
	char pci[VB_TOPOLOGY_PCI_BYTES];

	if (!vb_value_pci(value, pci))
		return false;
	for (unsigned i = 0; pci[0] && i + 1 < r->topology.count; i++) {
		if (strcmp(r->topology.device[i].pci, pci) == 0) {
			vb_text_add(vb_lines_wrong(&r->lines, value), "the device ",
				    r->topology.device[i].name, " is at this address already",
				    NULL);
			return false;
		}
	}
	memcpy(last_of(r)->pci, pci, sizeof(pci));
	return true;
}

static bool fabric_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_value_name(value, last_of(arg)->fabric, VB_TOPOLOGY_FABRIC_BYTES);
}

static bool gids_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	struct vb_topology_device *device = last_of(arg);

	device->has_gids = true;
	return vb_key_gids(lines, value, &device->gids);
}

static bool limit_read(void *arg, struct vb_lines *lines, struct vb_span value)
{
	return vb_key_limit(lines, value, &last_of(arg)->limits);
}

/* clang-format off */
static const struct vb_key keys[] = {
	{ "interfaces", interfaces_read, "names of interfaces, such as eth0 eth1" },
	{ "addresses",  addresses_read,  "addresses, such as 10.0.0.2 or fd00::2" },
	{ "persona",    persona_read,    "the name of a persona, or a file's path" },
	{ "uverbs",     uverbs_read,     "a number from 0 to 255" },
	{ "rate",       rate_read,       vb_value_rates },
	{ "numa",       numa_read,       "the number of a NUMA node, from 0 to 1023" },
	{ "pci",        pci_read,        "an address such as 0000:17:00.0, or virtual" },
	{ "fabric",     fabric_read,     "a word of 1 to 31 letters, digits, '_', '-' or '.'" },
	{ "gids",       gids_read,       vb_key_good_gids },
#define VB_LIMIT(word, name, least, most) { name, limit_read, NULL },
#include "topology/limits.def"
#undef VB_LIMIT
};
/* clang-format on */
static const struct vb_words key_names = VB_WORDS(keys);

static bool pair_read(struct reader *r, uint64_t *seen)
{
	if (!r->topology.count) {
		vb_text_add(vb_lines_wrong(&r->lines, r->lines.key),
			    "a device begins with a line such as [device rail0]", NULL);
		return false;
	}
	return vb_key_read(keys, &key_names, seen, &r->lines, r);
}

static bool device_add(struct reader *r, struct vb_span name)
{
	struct vb_topology_device device = { .line = r->lines.number };

	if (!vb_value_name(name, device.name, sizeof(device.name)))
		return vb_key_wrong(&r->lines, "a device's name", name,
				   "a word of 1 to 63 letters, digits, '_', '-' or '.'");
	if (vb_topology_find(&r->topology, device.name)) {
		vb_text_add(vb_lines_wrong(&r->lines, name), "there are two devices '",
			    device.name, "': each needs a name of its own", NULL);
		return false;
	}
	if (r->topology.count == VB_TOPOLOGY_DEVICES_MAX) {
		vb_text_add(vb_lines_wrong(&r->lines, name), "there are 16 devices at most", NULL);
		return false;
	}
	r->topology.device[r->topology.count++] = device;
	return true;
}

static bool section_read(struct reader *r)
{
	static const struct {
		const char *name;
	} kinds[] = { { "device" } };
	static const struct vb_words kind_names = VB_WORDS(kinds);
	struct vb_span kind = r->lines.key;

	if (vb_span_is(kind, "device"))
		return device_add(r, r->lines.value);
	vb_words_add_unknown(vb_lines_wrong(&r->lines, kind), &kind_names, "section", "Sections",
			     kind.text, kind.bytes);
	return false;
}

/* --- the whole --- */

static bool uverbs_is_free(const struct reader *r, unsigned number)
{
	for (unsigned i = 0; i < r->topology.count; i++) {
		if (r->has_uverbs[i] && r->topology.device[i].uverbs == number)
			return false;
	}
	return true;
}

/* Devices that name no number get the lowest ones that are free, in their order. */
static void uverbs_number(struct reader *r)
{
	unsigned number = 0;

	for (unsigned i = 0; i < r->topology.count; i++) {
		if (r->has_uverbs[i])
			continue;
		while (!uverbs_is_free(r, number))
			number++;
		r->topology.device[i].uverbs = number++;
	}
}

static int finish(struct reader *r, bool ok, struct vb_topology *topology)
{
	if (ok && !r->topology.count) {
		vb_text_add(&r->lines.why, r->lines.name ? r->lines.name : "it",
			    " names no device: one begins with a line such as [device rail0]",
			    NULL);
		ok = false;
	}
	if (!ok)
		return EINVAL;
	uverbs_number(r);
	*topology = r->topology;
	return 0;
}

int vb_topology_parse(struct vb_topology *topology, const char *name, const char *text,
		      size_t bytes, char why[VB_TOPOLOGY_WHY_BYTES])
{
	struct reader r = {
		.lines = vb_lines_of(name, text, bytes, vb_text_in(why, VB_TOPOLOGY_WHY_BYTES)),
	};
	uint64_t seen = 0;
	bool ok = true;

	while (ok) {
		switch (vb_lines_next(&r.lines)) {
		case VB_LINE_SECTION:
			ok = section_read(&r);
			seen = 0;
			break;
		case VB_LINE_PAIR:
			ok = pair_read(&r, &seen);
			break;
		case VB_LINE_WRONG:
			ok = false;
			break;
		case VB_LINE_END:
			return finish(&r, true, topology);
		}
	}
	return finish(&r, false, topology);
}

/* Takes what stands before the sign, or all of it. */
static struct vb_span part_take(struct vb_span *from, char sign)
{
	const char *found = memchr(from->text, sign, from->bytes);
	struct vb_span part = { from->text, found ? (size_t)(found - from->text) : from->bytes };
	size_t taken = found ? part.bytes + 1 : part.bytes;

	*from = (struct vb_span){ from->text + taken, from->bytes - taken };
	return part;
}

/* NAME=PLACE[+PLACE...] */
static bool short_read(struct reader *r, struct vb_span said)
{
	struct vb_span name = part_take(&said, '=');

	if (!device_add(r, name))
		return false;
	do {
		struct vb_span word = part_take(&said, '+');
		struct vb_topology_place place = { 0 };

		if (!vb_value_address(word, place.address)) {
			place = (struct vb_topology_place){ 0 };
			if (!interface_read(word, &place))
				return vb_key_wrong(&r->lines, "a place", word,
						   "an interface or an address, as in "
						   "rail0=eth0,rail1=eth1+10.0.0.7");
		}
		if (!place_add(r, word, &place))
			return false;
	} while (said.bytes);
	return true;
}

int vb_topology_parse_short(struct vb_topology *topology, const char *text, size_t bytes,
			    char why[VB_TOPOLOGY_WHY_BYTES])
{
	struct reader r = {
		.lines = vb_lines_of(NULL, text, bytes, vb_text_in(why, VB_TOPOLOGY_WHY_BYTES)),
	};
	struct vb_span left = { text, bytes };
	bool ok = true;

	r.lines.line = text;
	do
		ok = short_read(&r, part_take(&left, ','));
	while (ok && left.bytes);
	return finish(&r, ok, topology);
}

bool vb_topology_is_short(const char *setting)
{
	size_t bytes = strlen(setting);

	return memchr(setting, '=', bytes) && !memchr(setting, '/', bytes);
}

/* --- who has what --- */

const struct vb_topology_device *vb_topology_find(const struct vb_topology *topology,
						  const char *name)
{
	for (unsigned i = 0; i < topology->count; i++) {
		if (strcmp(topology->device[i].name, name) == 0)
			return &topology->device[i];
	}
	return NULL;
}

bool vb_topology_names(const struct vb_topology_device *device, const char *interface,
		       const uint8_t address[VB_GID_BYTES])
{
	for (unsigned i = 0; i < device->place_count; i++) {
		const struct vb_topology_place *place = &device->place[i];

		if (place->interface[0] ? strcmp(place->interface, interface) == 0
					: memcmp(place->address, address, VB_GID_BYTES) == 0)
			return true;
	}
	return false;
}

/* An address that is named for itself goes there, whichever device has its interface. */
static bool names_address(const struct vb_topology_device *device,
			  const uint8_t address[VB_GID_BYTES])
{
	return vb_topology_names(device, "", address);
}

bool vb_topology_has(const struct vb_topology *topology, const struct vb_topology_device *device,
		     const char *interface, const uint8_t address[VB_GID_BYTES])
{
	bool others = false;

	if (names_address(device, address))
		return true;
	for (unsigned i = 0; i < topology->count; i++) {
		if (names_address(&topology->device[i], address))
			return false;
		others |= vb_topology_names(&topology->device[i], interface, address);
	}
	return device->place_count ? vb_topology_names(device, interface, address) : !others;
}
