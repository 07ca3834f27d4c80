/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/explain/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "explain/judge.h"
#include "explain/say.h"

enum { COLUMNS = 92, INDENT = 4 };

uint32_t vb_cli_story_faults(const struct vb_story *story)
{
	uint32_t faults = 0;

	for (uint32_t i = 0; i < story->troubles.count; i++)
		faults += vb_trouble_words[story->trouble[i].kind].weight == VB_WEIGHT_FAULT;
	return faults;
}

/* --- text --- */

/* The words as a sentence; a name keeps its letters. */
static const char *sentence(char *text, size_t bytes, const char *words, bool capital)
{
	size_t chars = strlen(words);

	snprintf(text, bytes, "%s%s", words, chars && words[chars - 1] == '?' ? "" : ".");
	if (capital && text[0] >= 'a' && text[0] <= 'z')
		text[0] = (char)(text[0] - 'a' + 'A');
	return text;
}

/* A paragraph, indented, with lines of some length. */
static void paragraph(const char *lead, const char *text)
{
	unsigned column = INDENT + (unsigned)strlen(lead);

	printf("%*s%s", INDENT, "", lead);
	for (bool first = true; *text; first = false) {
		size_t word = strcspn(text, " ");

		if (column + word > COLUMNS && !first) {
			printf("\n%*s", INDENT, "");
			column = INDENT;
		} else if (!first) {
			putchar(' ');
		}
		column += (unsigned)word + 1;
		printf("%.*s", (int)word, text);
		text += word;
		text += *text == ' ';
	}
	putchar('\n');
}

static void flow_text(const struct vb_story *story, uint32_t half)
{
	char from[VB_SAY_BYTES], to[VB_SAY_BYTES];

	printf("%s, %s to %s", vb_say_transport(&story->half[half]),
	       vb_say_sender(from, story, half), vb_say_receiver(to, story, half));
}

static void event_text(const struct vb_story *story, const struct vb_trouble *trouble)
{
	const struct vb_event *event;
	char text[256];

	if (trouble->event == VB_NONE)
		return;
	event = &story->event[trouble->event];
	snprintf(text, sizeof(text), "packet %u of %s, at %.6f s", event->number,
		 story->file[event->file].name, vb_story_seconds(story, event->ns));
	paragraph(trouble->count > 1 ? "First: " : "Where: ", text);
}

static void trouble_text(const struct vb_story *story, unsigned number,
			 const struct vb_trouble *trouble)
{
	const struct vb_trouble_words *words = &vb_trouble_words[trouble->kind];
	char text[VB_TROUBLE_BYTES + 4];

	printf("%u. %s%s", number, words->weight == VB_WEIGHT_NOTE ? "note, " : "", words->name);
	if (trouble->count > 1)
		printf(" (%" PRIu64 " times)", trouble->count);
	if (trouble->half != VB_NONE) {
		fputs(": ", stdout);
		flow_text(story, trouble->half);
	}
	putchar('\n');
	paragraph("", sentence(text, sizeof(text), words->what, true));
	if (trouble->words[0])
		paragraph("", sentence(text, sizeof(text), trouble->words, false));
	event_text(story, trouble);
	paragraph("Look: ", sentence(text, sizeof(text), words->look, true));
	putchar('\n');
}

static const char *octets_text(char text[32], double octets)
{
	static const char units[] = " KMGT";
	unsigned unit = 0;

	for (; octets >= 1000 && unit < sizeof(units) - 2; unit++)
		octets /= 1000;
	if (unit)
		snprintf(text, 32, "%.3g %cB", octets, units[unit]);
	else
		snprintf(text, 32, "%.0f B", octets);
	return text;
}

/* A half that is told together with its peer. */
static bool is_second(const struct vb_story *story, uint32_t half)
{
	return story->half[half].peer != VB_NONE && story->half[half].peer < half;
}

static void summary_text(const struct vb_story *story, uint32_t half)
{
	struct vb_summary summary = vb_judge_summary(story, half);
	uint64_t ns = summary.last_ns - summary.first_ns;
	char octets[32], time[32], rate[32];

	fputs("  ", stdout);
	flow_text(story, half);
	printf(": %" PRIu64 " packets, %s in %s", summary.packets,
	       octets_text(octets, (double)summary.octets), vb_say_time(time, ns));
	if (ns && summary.octets)
		printf(" (%s/s)", octets_text(rate, (double)summary.octets * 1e9 / (double)ns));
	printf(", %" PRIu64 " sent again\n", summary.again);
}

void vb_cli_story_text(const struct vb_story *story)
{
	uint32_t faults = vb_cli_story_faults(story), flows = 0;

	for (uint32_t i = 0; i < story->troubles.count; i++)
		trouble_text(story, i + 1, &story->trouble[i]);
	for (uint32_t i = 0; i < story->halves.count; i++)
		flows += !is_second(story, i);
	if (flows)
		puts("Flows:");
	for (uint32_t i = 0; i < story->halves.count; i++)
		if (!is_second(story, i))
			summary_text(story, i);
	if (!flows && (story->cut || story->foreign || story->fragments || story->merged))
		puts("No packet of RoCEv2 (UDP port 4791) in it could be read.");
	else if (!flows)
		puts("There is no packet of RoCEv2 (UDP port 4791) in it.");
	else if (!faults)
		puts("Nothing wrong was found.");
}

/* --- JSON --- */

static void seconds_json(struct vb_json *json, const char *key, const struct vb_story *story,
			 uint64_t ns)
{
	vb_json_number(json, key, ns < story->zero_ns ? 0 : ns - story->zero_ns);
}

static void end_json(struct vb_json *json, const char *key, const struct vb_story *story,
		     uint32_t half, bool sender)
{
	const struct vb_half *h = &story->half[half];
	char address[VB_ADDRESS_BYTES], text[VB_SAY_BYTES];
	uint32_t program = sender ? h->sender : h->receiver;

	vb_json_object(json, key);
	vb_json_text(json, "text", (sender ? vb_say_sender : vb_say_receiver)(text, story, half));
	vb_json_text(json, "address", vb_gid_text(address, sender ? h->path.src : h->path.dst));
	if (!sender || h->sqpn || h->has_sqpn)
		vb_json_number(json, "qpn", sender ? h->sqpn : h->dqpn);
	if (program == VB_NONE && h->peer != VB_NONE)
		program = sender ? story->half[h->peer].receiver : story->half[h->peer].sender;
	if (program != VB_NONE) {
		vb_json_text(json, "program", story->program[program].name);
		vb_json_number(json, "pid", story->program[program].pid);
	}
	vb_json_close(json);
}

static void flow_json(struct vb_json *json, const struct vb_story *story, uint32_t half)
{
	vb_json_text(json, "transport", vb_say_transport(&story->half[half]));
	end_json(json, "from", story, half, true);
	end_json(json, "to", story, half, false);
}

static void trouble_json(struct vb_json *json, const struct vb_story *story,
			 const struct vb_trouble *trouble)
{
	const struct vb_trouble_words *words = &vb_trouble_words[trouble->kind];

	vb_json_object(json, NULL);
	vb_json_text(json, "name", words->name);
	vb_json_bool(json, "fault", words->weight == VB_WEIGHT_FAULT);
	vb_json_number(json, "count", trouble->count);
	vb_json_text(json, "what", words->what);
	vb_json_text(json, "words", trouble->words);
	vb_json_text(json, "look", words->look);
	if (trouble->event != VB_NONE) {
		const struct vb_event *event = &story->event[trouble->event];

		vb_json_text(json, "file", story->file[event->file].name);
		vb_json_number(json, "packet", event->number);
		vb_json_number(json, "psn", event->psn);
		seconds_json(json, "ns", story, event->ns);
		if (event->flags & VB_EVENT_HAS_WR)
			vb_json_number(json, "wr_id", event->wr_id);
	}
	if (trouble->half != VB_NONE) {
		vb_json_object(json, "flow");
		flow_json(json, story, trouble->half);
		vb_json_close(json);
	}
	vb_json_close(json);
}

void vb_cli_story_json(const struct vb_story *story)
{
	struct vb_json json = {0};

	vb_json_object(&json, NULL);
	vb_json_array(&json, "troubles");
	for (uint32_t i = 0; i < story->troubles.count; i++)
		trouble_json(&json, story, &story->trouble[i]);
	vb_json_close(&json);
	vb_json_array(&json, "flows");
	for (uint32_t i = 0; i < story->halves.count; i++) {
		struct vb_summary summary = vb_judge_summary(story, i);

		if (is_second(story, i))
			continue;
		vb_json_object(&json, NULL);
		flow_json(&json, story, i);
		vb_json_number(&json, "packets", summary.packets);
		vb_json_number(&json, "octets", summary.octets);
		vb_json_number(&json, "sent_again", summary.again);
		seconds_json(&json, "first_ns", story, summary.first_ns);
		vb_json_number(&json, "ns", summary.last_ns - summary.first_ns);
		vb_json_close(&json);
	}
	vb_json_close(&json);
	vb_json_close(&json);
}
