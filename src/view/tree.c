/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/tree.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

enum { WORD_BYTES = 1024, CONFIG_BYTES = 256, UVERBS_MINOR = 192, BARS = 13 };

enum of { ONCE, DEVICE, GID, EMPTY, NET };

/* What a row is about. */
struct subject {
	const struct vb_view_device *device;
	unsigned gid;
	const struct vb_view_net *net;
};

static const struct row {
	enum of of;
	enum vb_view_kind kind;
	const char *path, *content;
} rows[] = {
#define VB_VIEW(of, kind, path, content) { of, VB_VIEW_##kind, path, content },
#include "view/tree.def"
#undef VB_VIEW
};

void vb_view_gid_text(char text[40], const uint8_t gid[VB_GID_BYTES])
{
	for (unsigned i = 0; i < VB_GID_BYTES; i += 2)
		snprintf(text + i / 2 * 5, 6, i + 2 < VB_GID_BYTES ? "%02x%02x:" : "%02x%02x",
			 gid[i], gid[i + 1]);
}

/* --- the words of tree.def --- */

static void guid_word(char *word, uint64_t guid_be)
{
	uint8_t octets[sizeof(guid_be)];

	memcpy(octets, &guid_be, sizeof(octets));
	snprintf(word, WORD_BYTES, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", octets[0], octets[1],
		 octets[2], octets[3], octets[4], octets[5], octets[6], octets[7]);
}

/* Lanes by the code of the width, and the rate of a lane by that of the speed, in 100 Mbit/s. */
static void rate_word(char *word, const struct vb_view_device *device)
{
	static const struct {
		unsigned code, rate;
		const char *name;
	} speeds[] = {
		{ 1, 25, "SDR" },   { 2, 50, "DDR" },	{ 4, 100, "QDR" },   { 8, 100, "FDR10" },
		{ 16, 140, "FDR" }, { 32, 250, "EDR" }, { 64, 500, "HDR" },  { 128, 1000, "NDR" },
		{ 256, 2000, "XDR" },
	};
	static const struct {
		unsigned code, lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	unsigned s = 0, w = 0, rate;
	char fraction[8];

	while (s + 1 < VB_ARRAY_LEN(speeds) && speeds[s].code != device->speed)
		s++;
	while (w + 1 < VB_ARRAY_LEN(widths) && widths[w].code != device->width)
		w++;
	rate = speeds[s].rate * widths[w].lanes;
	snprintf(fraction, sizeof(fraction), rate % 10 ? ".%u" : "", rate % 10);
	snprintf(word, WORD_BYTES, "%u%s Gb/sec (%uX %s)", rate / 10, fraction, widths[w].lanes,
		 speeds[s].name);
}

static void resource_word(char *word)
{
	static const char bar[] = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";

	for (unsigned i = 0; i < BARS; i++)
		memcpy(word + i * (sizeof(bar) - 1), bar, sizeof(bar));
	word[BARS * (sizeof(bar) - 1) - 1] = 0;
}

static void device_word(char *word, char letter, const struct vb_view_device *device)
{
	const struct vb_view_part *part = &device->part;
	/* clang-format off */
	const struct { char letter; const char *text; } texts[] = {
		{ 'D', device->name }, { 'B', device->pci }, { 'O', device->description },
		{ 'K', part->driver }, { 'Y', part->type }, { 'A', part->board },
		{ 'F', part->firmware }, { 'L', device->cpu_list }, { 'C', device->cpu_mask },
		{ 'S', device->up ? "4: ACTIVE" : "1: DOWN" },
		{ 's', device->up ? "5: LinkUp" : "3: Disabled" },
	};
	const struct { char letter; const char *format; unsigned number; } numbers[] = {
		{ 'U', "%u", device->uverbs }, { 'u', "%u", UVERBS_MINOR + device->uverbs },
		{ 'V', "%04x", part->vendor }, { 'd', "%04x", part->device },
		{ 'E', "%04X", part->vendor }, { 'e', "%04X", part->device },
		{ 'r', "%x", part->revision }, { 'M', "0x%08x", device->port_caps },
		{ 'N', "%d", (unsigned)device->numa },
	};
	/* clang-format on */
	int bus = (int)strcspn(device->pci, ".") - 3; /* without ":06" */

	for (unsigned i = 0; i < VB_ARRAY_LEN(texts); i++) {
		if (texts[i].letter == letter)
			snprintf(word, WORD_BYTES, "%s", texts[i].text);
	}
	for (unsigned i = 0; i < VB_ARRAY_LEN(numbers); i++) {
		if (numbers[i].letter == letter)
			snprintf(word, WORD_BYTES, numbers[i].format, numbers[i].number);
	}
	if (letter == 'P')
		snprintf(word, WORD_BYTES, "devices/pci%.*s/%s", bus, device->pci, device->pci);
	else if (letter == 'H')
		snprintf(word, WORD_BYTES, "%.*s", bus, device->pci);
	else if (letter == 'G')
		guid_word(word, device->guid_be);
	else if (letter == 'I')
		guid_word(word, device->system_guid_be);
	else if (letter == 'R')
		rate_word(word, device);
	else if (letter == 'Z')
		resource_word(word);
}

static void word_of(char *word, char letter, const struct subject *subject)
{
	const struct vb_view_gid *gid = &subject->device->gid[subject->gid];

	*word = 0;
	switch (letter) {
	case 'n':
		snprintf(word, WORD_BYTES, "%u", subject->gid);
		break;
	case 'g':
		vb_view_gid_text(word, gid->gid);
		break;
	case 't':
		snprintf(word, WORD_BYTES, "%s", gid->v1 ? "IB/RoCE v1" : "RoCE v2");
		break;
	case 'i':
		snprintf(word, WORD_BYTES, "%s", subject->net ? subject->net->name : gid->net);
		break;
	case 'x':
		snprintf(word, WORD_BYTES, "%u", subject->net ? subject->net->index : 0);
		break;
	default:
		device_word(word, letter, subject->device);
	}
}

static void expand(struct vb_text *text, const char *from, const struct subject *subject)
{
	char word[WORD_BYTES];

	for (; *from; from++) {
		if (*from == '%') {
			word_of(word, *++from, subject);
		} else {
			word[0] = *from;
			word[1] = 0;
		}
		vb_text_add(text, word, NULL);
	}
}

/* The standard header of configuration space (PCI 3.0, 6.1). */
static void config_fill(uint8_t config[CONFIG_BYTES], const struct vb_view_part *part)
{
	const struct {
		uint8_t at;
		uint16_t value;
	} words[] = { { 0, part->vendor }, { 2, part->device }, { 10, 0x0200 },
		      { 44, part->vendor }, { 46, part->device } };

	memset(config, 0, CONFIG_BYTES);
	for (unsigned i = 0; i < VB_ARRAY_LEN(words); i++) {
		config[words[i].at] = (uint8_t)words[i].value;
		config[words[i].at + 1] = (uint8_t)(words[i].value >> 8);
	}
}

/* --- the rows --- */

struct walk {
	int (*emit)(void *arg, const struct vb_view_entry *entry);
	void *arg;
};

static int row_emit(const struct walk *walk, const struct row *row, const struct subject *subject)
{
	char path[VB_VIEW_PATH_BYTES], content[VB_VIEW_TEXT_BYTES];
	struct vb_text path_text = vb_text_in(path, sizeof(path));
	struct vb_text text = vb_text_in(content, sizeof(content));
	struct vb_view_entry entry = { row->kind, path, content };

	expand(&path_text, row->path, subject);
	if (row->kind == VB_VIEW_CONFIG) {
		config_fill((uint8_t *)content, &subject->device->part);
		entry.bytes = CONFIG_BYTES;
		return walk->emit(walk->arg, &entry);
	}
	expand(&text, row->content, subject);
	if (row->kind == VB_VIEW_FILE)
		vb_text_add(&text, "\n", NULL);
	entry.bytes = text.used;
	return walk->emit(walk->arg, &entry);
}

static bool is_empty(const struct vb_view_gid *gid)
{
	static const uint8_t none[VB_GID_BYTES];

	return memcmp(gid->gid, none, sizeof(none)) == 0;
}

static int gid_rows(const struct walk *walk, const struct row *row, struct subject subject)
{
	int rc = 0;

	for (; subject.gid < VB_VIEW_GIDS && !rc; subject.gid++) {
		if (is_empty(&subject.device->gid[subject.gid]) == (row->of == EMPTY))
			rc = row_emit(walk, row, &subject);
	}
	return rc;
}

static int net_rows(const struct walk *walk, const struct row *row, struct subject subject)
{
	int rc = 0;

	for (unsigned i = 0; i < subject.device->nets && !rc; i++) {
		subject.net = &subject.device->net[i];
		rc = row_emit(walk, row, &subject);
	}
	return rc;
}

int vb_view_tree(const struct vb_view_device *devices, unsigned count,
		 int (*emit)(void *arg, const struct vb_view_entry *entry), void *arg)
{
	struct walk walk = { emit, arg };
	int rc = 0;

	for (unsigned r = 0; r < VB_ARRAY_LEN(rows) && !rc; r++) {
		const struct row *row = &rows[r];

		for (unsigned i = 0; i < (row->of == ONCE ? 1 : count) && !rc; i++) {
			struct subject subject = { &devices[i] };

			if (row->of == GID || row->of == EMPTY)
				rc = gid_rows(&walk, row, subject);
			else if (row->of == NET)
				rc = net_rows(&walk, row, subject);
			else
				rc = row_emit(&walk, row, &subject);
		}
	}
	return rc;
}
