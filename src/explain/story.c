/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "wire/flow.h"

enum { BUCKETS = 1 << 14 };

/* --- memory --- */

void *vb_story_grow(struct vb_story *story, void *array, struct vb_array *state, size_t item_bytes)
{
	void **at = array;
	uint32_t room = state->room ? state->room * 2 : 16;
	void *grown;

	if (state->count == state->room) {
		grown = room > VB_NONE / 2 ? NULL : realloc(*at, room * item_bytes);
		if (!grown) {
			story->no_memory = true;
			return NULL;
		}
		*at = grown;
		state->room = room;
	}
	grown = (char *)*at + state->count++ * item_bytes;
	memset(grown, 0, item_bytes);
	return grown;
}

bool vb_story_begin(struct vb_story *story)
{
	*story = (struct vb_story){
		.zero_ns = UINT64_MAX,
		.first_malformed = VB_NONE,
		.first_merged = VB_NONE,
		.bucket = malloc(BUCKETS * sizeof(uint32_t)),
	};
	if (!story->bucket)
		return false;
	memset(story->bucket, 0xff, BUCKETS * sizeof(uint32_t));
	/* Fate 0 is none. */
	return vb_story_grow(story, &story->fate, &story->fates, sizeof(*story->fate));
}

void vb_story_end(struct vb_story *story)
{
	free(story->event);
	free(story->half);
	free(story->file);
	free(story->place);
	free(story->program);
	free(story->fate);
	free(story->trouble);
	free(story->bucket);
}

struct vb_trouble *vb_story_trouble(struct vb_story *story, enum vb_trouble_kind kind,
				    uint32_t half, uint32_t event)
{
	static _Thread_local struct vb_trouble lost;
	struct vb_trouble *trouble =
		vb_story_grow(story, &story->trouble, &story->troubles, sizeof(*trouble));

	if (!trouble)
		trouble = &lost;
	*trouble = (struct vb_trouble){.kind = kind, .half = half, .event = event, .count = 1};
	return trouble;
}

/* --- events --- */

const struct vb_op_info *vb_event_op(const struct vb_event *event)
{
	return &vb_op_infos[event->opcode];
}

bool vb_event_is_answer(const struct vb_event *event)
{
	return vb_kind_is_answer(vb_event_op(event)->kind);
}

void vb_event_parse(const struct vb_event *event, struct vb_pkt *pkt)
{
	vb_seen_head(pkt, event->frame, event->head_bytes);
}

double vb_story_seconds(const struct vb_story *story, uint64_t ns)
{
	return ns < story->zero_ns ? 0 : (double)(ns - story->zero_ns) / 1e9;
}

static uint32_t program_find(struct vb_story *story, const struct vb_comment *comment)
{
	struct vb_program *program;

	if (!comment->program[0])
		return VB_NONE;
	for (uint32_t i = 0; i < story->programs.count; i++)
		if (story->program[i].pid == comment->pid &&
		    !strcmp(story->program[i].name, comment->program))
			return i;
	program = vb_story_grow(story, &story->program, &story->programs, sizeof(*program));
	if (!program)
		return VB_NONE;
	program->pid = comment->pid;
	memcpy(program->name, comment->program, sizeof(program->name));
	return story->programs.count - 1;
}

static uint16_t fate_find(struct vb_story *story, const struct vb_comment *comment)
{
	enum { FATES_MAX = 256 };
	char(*fate)[VB_COMMENT_FATE_BYTES];

	for (uint32_t i = 0; i < story->fates.count; i++)
		if (!strcmp(story->fate[i], comment->fate))
			return (uint16_t)i;
	if (story->fates.count == FATES_MAX)
		return 0;
	fate = vb_story_grow(story, &story->fate, &story->fates, sizeof(*fate));
	if (!fate)
		return 0;
	memcpy(*fate, comment->fate, sizeof(*fate));
	return (uint16_t)(story->fates.count - 1);
}

/* --- halves --- */

static uint32_t mix(uint32_t hash, const uint8_t *octets, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ octets[i]) * 16777619u;
	return hash;
}

static uint32_t bucket_of(const struct vb_path *path, uint32_t dqpn, uint32_t sqpn)
{
	uint32_t hash = mix(2166136261u, path->src, 2 * VB_GID_BYTES);

	return (hash ^ dqpn * 2654435761u ^ sqpn * 40503u) % BUCKETS;
}

static bool says_sqpn(enum vb_transport transport)
{
	return transport == VB_UD || transport == VB_DC;
}

/* Packets of one QP: those that congestion makes, and the answers, have its transport as well. */
static uint32_t half_find(struct vb_story *story, const struct vb_seen *seen)
{
	enum vb_transport transport = (enum vb_transport)(seen->pkt.opcode >> 5);
	uint32_t sqpn = says_sqpn(transport) ? seen->pkt.sqpn : 0;
	uint32_t *bucket = &story->bucket[bucket_of(&seen->path, seen->pkt.dqpn, sqpn)];
	struct vb_half *half;

	for (uint32_t i = *bucket; i != VB_NONE; i = half->hash_next) {
		half = &story->half[i];
		if (half->dqpn == seen->pkt.dqpn && (!half->has_sqpn || half->sqpn == sqpn) &&
		    half->has_sqpn == says_sqpn(transport) &&
		    !memcmp(half->path.src, seen->path.src, 2 * VB_GID_BYTES)) {
			if (half->transport == VB_CNP)
				half->transport = (uint8_t)transport;
			return i;
		}
	}
	half = vb_story_grow(story, &story->half, &story->halves, sizeof(*half));
	if (!half)
		return VB_NONE;
	*half = (struct vb_half){
		.path = seen->path, .dqpn = seen->pkt.dqpn, .sqpn = sqpn,
		.transport = (uint8_t)transport, .has_sqpn = says_sqpn(transport),
		.pkey = seen->pkt.pkey, .peer = VB_NONE, .sender = VB_NONE, .receiver = VB_NONE,
		.hash_next = *bucket, .last_request = VB_NONE,
	};
	*bucket = story->halves.count - 1;
	return *bucket;
}

/* What is known of a half from one packet. */
static void half_note(struct vb_half *half, const struct vb_event *event, uint32_t program)
{
	const struct vb_op_info *info = vb_event_op(event);

	half->count++;
	half->holes |= event->flags & (VB_EVENT_MERGED | VB_EVENT_CUT);
	if (event->flags & (VB_EVENT_ICRC | VB_EVENT_MERGED))
		return;
	if (event->direction == VB_DIRECTION_OUT && program != VB_NONE)
		half->sender = program;
	if (event->direction == VB_DIRECTION_IN && program != VB_NONE)
		half->receiver = program;
	if (event->local_qpn && !half->has_sqpn)
		half->sqpn = event->local_qpn;
	if (event->flags & VB_EVENT_SHM)
		half->shm = true;
	/* What is cut may be several packets yet. */
	if ((info->pos == VB_P_FIRST || info->pos == VB_P_MIDDLE) &&
	    !(event->payload_bytes & (event->payload_bytes - 1)))
		half->mtu = (uint32_t)vb_max_u64(half->mtu, event->payload_bytes);
	if (!(event->flags & VB_EVENT_CUT))
		half->longest = (uint32_t)vb_max_u64(half->longest, event->payload_bytes);
}

static uint16_t flags_of(const struct vb_seen *seen, const struct vb_reader_packet *packet)
{
	const struct vb_comment *comment = &seen->comment;

	return (uint16_t)((comment->again ? VB_EVENT_AGAIN : 0) |
			  (comment->has_wr ? VB_EVENT_HAS_WR : 0) |
			  (comment->dropped ? VB_EVENT_DROPPED : 0) |
			  (seen->marked ? VB_EVENT_MARKED : 0) |
			  (seen->icrc_wrong ? VB_EVENT_ICRC : 0) | (seen->cut ? VB_EVENT_CUT : 0) |
			  (packet->shm ? VB_EVENT_SHM : 0) | (seen->merged ? VB_EVENT_MERGED : 0));
}

/* Packets come in runs of one interface. */
static uint16_t place_find(struct vb_story *story, uint16_t file, uint32_t interface)
{
	struct vb_place *place;

	for (uint32_t i = story->places.count; i-- > 0;)
		if (story->place[i].file == file && story->place[i].interface == interface)
			return (uint16_t)i;
	place = story->places.count == UINT16_MAX
			? NULL
			: vb_story_grow(story, &story->place, &story->places, sizeof(*place));
	if (!place)
		return 0;
	*place = (struct vb_place){file, interface};
	return (uint16_t)(story->places.count - 1);
}

static void event_add(struct vb_story *story, const struct vb_seen *seen,
		      const struct vb_reader_packet *packet, uint16_t file)
{
	const struct vb_comment *comment = &seen->comment;
	struct vb_event *event =
		vb_story_grow(story, &story->event, &story->events, sizeof(*event));

	if (!event)
		return;
	*event = (struct vb_event){
		.ns = packet->ns, .wr_id = comment->wr_id, .frame = seen->frame,
		.bytes = seen->bytes, .wire_bytes = seen->wire_bytes,
		.payload_bytes = seen->pkt.payload_bytes, .number = packet->number,
		.half = VB_NONE, .psn = seen->pkt.psn, .file = file,
		.place = place_find(story, file, packet->interface),
		.head_bytes = seen->head_bytes,
		.flags = flags_of(seen, packet), .fate = fate_find(story, comment),
		.opcode = seen->pkt.opcode, .syndrome = seen->pkt.aeth.syndrome,
		.direction = (uint8_t)packet->direction,
		.local_qpn = packet->direction == VB_DIRECTION_OUT ? comment->qpn : 0,
		.program = program_find(story, comment),
	};
	if (seen->merged && !story->merged++)
		story->first_merged = story->events.count - 1;
	if (seen->verdict != VB_PARSE_OK && seen->merged)
		return;
	if (seen->verdict != VB_PARSE_OK) {
		story->malformed[seen->verdict]++;
		if (story->first_malformed == VB_NONE)
			story->first_malformed = story->events.count - 1;
		return;
	}
	story->cut += seen->head_bytes < vb_event_op(event)->header_bytes;
	event->half = half_find(story, seen);
	if (event->half != VB_NONE)
		half_note(&story->half[event->half], event, event->program);
}

/* Questions between two of our NICs are no packets of any QP (docs/wire.md). */
static bool is_between_nics(const struct vb_seen *seen)
{
	return seen->verdict == VB_PARSE_OPCODE &&
	       (seen->pkt.opcode == VB_FLOW_ASK || seen->pkt.opcode == VB_FLOW_TELL);
}

bool vb_story_add(struct vb_story *story, const char *name, const uint8_t *octets, size_t bytes)
{
	struct vb_reader reader;
	struct vb_reader_packet packet;
	struct vb_seen seen;
	struct vb_file *file;
	uint16_t index = (uint16_t)story->files.count;

	if (!vb_reader_open(&reader, octets, bytes) || story->files.count == UINT16_MAX)
		return false;
	file = vb_story_grow(story, &story->file, &story->files, sizeof(*file));
	if (!file)
		return false;
	file->name = name;
	file->first_ns = UINT64_MAX;
	while (vb_reader_next(&reader, &packet)) {
		enum vb_sight sight = vb_seen_read(&seen, &packet);

		file->first_ns = vb_min_u64(file->first_ns, packet.ns);
		file->last_ns = vb_max_u64(file->last_ns, packet.ns);
		story->fragments += sight == VB_SIGHT_FRAGMENT;
		story->cut += sight == VB_SIGHT_CUT;
		if (sight == VB_SIGHT_FOREIGN && !story->foreign++)
			story->foreign_linktype = packet.linktype;
		if (sight != VB_SIGHT_ROCE || is_between_nics(&seen))
			continue;
		do {
			file->roce++;
			event_add(story, &seen, &packet, index);
		} while (vb_seen_next(&seen));
	}
	file->packets = reader.packets;
	file->damaged = reader.damaged;
	file->lost = reader.lost;
	file->killed = reader.ours && !reader.ended;
	memcpy(file->program, reader.program, sizeof(file->program));
	story->zero_ns = vb_min_u64(story->zero_ns, file->first_ns);
	return true;
}

/* --- sorting --- */

static int event_compare(const void *a, const void *b)
{
	const struct vb_event *x = a, *y = b;

	if (x->half != y->half)
		return x->half < y->half ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	/* Packets that were captured in one piece. */
	return x->frame < y->frame ? -1 : 1;
}

/* The events that are no packet of a half are found again by their number. */
static uint32_t event_find(const struct vb_story *story, uint16_t file, uint32_t number)
{
	for (uint32_t i = story->events.count; i-- > 0;)
		if (story->event[i].file == file && story->event[i].number == number)
			return i;
	return VB_NONE;
}

static void event_follow(const struct vb_story *story, uint32_t *event,
			 const struct vb_event *before)
{
	if (*event != VB_NONE)
		*event = event_find(story, before->file, before->number);
}

void vb_story_sort(struct vb_story *story)
{
	static const struct vb_event none;
	struct vb_event malformed = none, merged = none;

	if (story->first_malformed != VB_NONE)
		malformed = story->event[story->first_malformed];
	if (story->first_merged != VB_NONE)
		merged = story->event[story->first_merged];
	if (story->events.count)
		qsort(story->event, story->events.count, sizeof(*story->event), event_compare);
	event_follow(story, &story->first_malformed, &malformed);
	event_follow(story, &story->first_merged, &merged);
	for (uint32_t i = story->events.count; i-- > 0;)
		if (story->event[i].half != VB_NONE)
			story->half[story->event[i].half].first = i;
}

static int moment_compare(const void *a, const void *b)
{
	const struct vb_moment *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->event < y->event ? -1 : 1;
}

void vb_moments_sort(struct vb_moment *moments, uint32_t count)
{
	if (count)
		qsort(moments, count, sizeof(*moments), moment_compare);
}
