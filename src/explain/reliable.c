/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/reliable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/psn.h"
#include "explain/asks.h"
#include "explain/say.h"

/* --- refused requests --- */

/* What was allowed by the same rkey before, from the first address to the end of the last. */
struct allowed {
	uint64_t from, to;
	uint32_t count;
};

static bool has_remote(const struct vb_event *event)
{
	const struct vb_op_info *info = vb_event_op(event);

	return info->headers & (VB_H_RETH | VB_H_ATOMIC) && event->head_bytes == info->header_bytes;
}

static struct allowed allowed_before(const struct vb_asks *asks, const struct vb_ask *ask,
				     uint32_t rkey)
{
	struct allowed allowed = {.from = UINT64_MAX};

	for (const struct vb_ask *a = asks->ask; a < ask; a++) {
		const struct vb_event *event = &asks->story->event[a->first];
		struct vb_pkt pkt;

		if (!has_remote(event))
			continue;
		vb_event_parse(event, &pkt);
		if (pkt.reth.rkey != rkey)
			continue;
		allowed.from = vb_min_u64(allowed.from, pkt.reth.va);
		allowed.to = vb_max_u64(allowed.to, pkt.reth.va + pkt.reth.bytes);
		allowed.count++;
	}
	return allowed;
}

static void say_rkey(struct vb_trouble *trouble, const struct vb_asks *asks,
		     const struct vb_ask *ask, const struct vb_pkt *pkt)
{
	struct allowed allowed = allowed_before(asks, ask, pkt->reth.rkey);
	uint64_t end = pkt->reth.va + pkt->reth.bytes;

	if (!allowed.count) {
		vb_trouble_say(trouble, ". No access by this rkey was allowed before: the key, "
					"the right or the address may be wrong");
		return;
	}
	vb_trouble_say(trouble,
		       ". By this rkey %u accesses were allowed before, from 0x%" PRIx64
		       " to 0x%" PRIx64 ": ",
		       allowed.count, allowed.from, allowed.to);
	if (pkt->reth.va >= allowed.from && end <= allowed.to)
		vb_trouble_say(trouble, "this one lies within that, so the region was deregistered "
					"since, or lacks the right for this operation");
	else
		vb_trouble_say(trouble, "this one goes beyond that, so probably beyond the region");
}

/* The message that a packet belongs to: how much of it was sent up to there. */
static uint64_t message_bytes(const struct vb_asks *asks, const struct vb_ask *ask)
{
	uint64_t bytes = 0;

	for (const struct vb_ask *a = ask; a >= asks->ask; a--) {
		const struct vb_event *event = &asks->story->event[a->first];

		if (a != ask && vb_event_op(event)->pos & VB_P_LAST)
			break;
		bytes += event->payload_bytes;
		if (vb_event_op(event)->pos & VB_P_FIRST)
			break;
	}
	return bytes;
}

static void say_invalid(struct vb_trouble *trouble, const struct vb_asks *asks,
			const struct vb_ask *ask, const struct vb_pkt *pkt)
{
	const struct vb_event *event = &asks->story->event[ask->first];
	const struct vb_op_info *info = vb_event_op(event);
	const struct vb_view *view = &asks->view;
	const struct vb_half *half = &asks->story->half[view->requests];
	uint32_t other = view->answers == VB_NONE ? 0 : asks->story->half[view->answers].mtu;

	if (info->headers & VB_H_ATOMIC && pkt->reth.va % 8)
		vb_trouble_say(trouble, ". The address is not a multiple of 8, which atomics need");
	if (info->kind == VB_K_SEND)
		vb_trouble_say(trouble,
			       ". The message had %" PRIu64 " octets up to here: probably more "
			       "than the receive request has room for", message_bytes(asks, ask));
	if (other && half->longest > other && !half->shm)
		vb_trouble_say(trouble,
			       ". Packets of this side have up to %u octets, those of the other "
			       "%u: path_mtu differs", half->longest, other);
	if (info->kind == VB_K_READ_REQ || info->headers & VB_H_ATOMIC)
		vb_trouble_say(trouble, ". If others were outstanding: no more may be than the "
					"responder's max_dest_rd_atomic");
}

static void fatal_say(struct vb_asks *asks)
{
	static const enum vb_trouble_kind kinds[] = {
		[VB_NAK_INVALID_REQ] = VB_TROUBLE_INVALID,
		[VB_NAK_ACCESS] = VB_TROUBLE_ACCESS,
		[VB_NAK_OP] = VB_TROUBLE_OPERATION,
	};
	struct vb_story *story = asks->story;
	const struct vb_event *nak = &story->event[asks->fatal.first];
	const struct vb_ask *ask = vb_asks_find(asks, nak->psn);
	unsigned code = vb_aeth_value(nak->syndrome);
	bool known = vb_aeth_class(nak->syndrome) == VB_AETH_NAK && code &&
		     code < VB_ARRAY_LEN(kinds);
	struct vb_trouble *trouble =
		vb_story_trouble(story, known ? kinds[code] : VB_TROUBLE_NAK, asks->view.requests,
				 asks->fatal.first);
	const struct vb_ask *named = ask;
	struct vb_pkt pkt;

	if (!known)
		vb_trouble_say(trouble, "Syndrome 0x%02x to ", nak->syndrome);
	if (!ask) {
		vb_trouble_say(trouble, "PSN 0x%x, whose request the capture does not have",
			       nak->psn);
		return;
	}
	/* The first packet of a WRITE says where it goes. */
	while (named > asks->ask && !(vb_event_op(&story->event[named->first])->pos & VB_P_FIRST))
		named--;
	vb_say_request(trouble, story, named->first);
	if (named != ask)
		vb_trouble_say(trouble, ", refused at its packet of PSN 0x%x", nak->psn);
	vb_event_parse(&story->event[named->first], &pkt);
	if (trouble->kind == VB_TROUBLE_ACCESS && has_remote(&story->event[named->first]))
		say_rkey(trouble, asks, named, &pkt);
	else if (trouble->kind == VB_TROUBLE_INVALID)
		say_invalid(trouble, asks, ask, &pkt);
	vb_trouble_say(trouble, ". The queue pairs of both ends are in error from here on");
}

/* --- waiting for receive requests --- */

static void rnr_say(struct vb_asks *asks, bool gave_up)
{
	struct vb_story *story = asks->story;
	const struct vb_event *last = &story->event[asks->rnrs.last];
	const struct vb_ask *ask = vb_asks_find(asks, last->psn);
	char wait[32];
	struct vb_trouble *trouble =
		vb_story_trouble(story, gave_up ? VB_TROUBLE_RNR_END : VB_TROUBLE_RNR,
				 asks->view.requests, asks->rnrs.first);

	trouble->count = asks->rnrs.count;
	vb_trouble_say(trouble, "%" PRIu64 " RNR NAK%s, the last with a wait of %s",
		       asks->rnrs.count, vb_say_s(asks->rnrs.count),
		       vb_say_time(wait, vb_rnr_timer_ns(vb_aeth_value(last->syndrome))));
	if (ask) {
		vb_trouble_say(trouble, ", to ");
		vb_say_request(trouble, story, ask->first);
		vb_trouble_say(trouble, ", which was sent %u time%s", ask->times,
			       vb_say_s(ask->times));
	}
	if (gave_up)
		vb_trouble_say(trouble, ". Nothing was sent behind the last one: rnr_retry is used "
					"up (IBV_WC_RNR_RETRY_EXC_ERR), or the program ended");
	else
		vb_trouble_say(trouble, ". In the end all went on");
}

/* --- silence --- */

/* How many packets of that PSN, or of it and those behind it, the responder saw of a half. */
static uint32_t seen_count(const struct vb_asks *asks, uint32_t half, uint32_t psn, bool behind,
			   const char **fate, uint64_t *first_ns)
{
	const struct vb_story *story = asks->story;
	const struct vb_half *h = &story->half[half];
	uint32_t count = 0;

	for (uint32_t i = h->first; i < h->first + h->count; i++) {
		const struct vb_event *event = &story->event[i];
		int32_t ahead = vb_psn_diff(event->psn, psn);

		if (vb_view_side(&asks->view, event) != VB_RESPONDER ||
		    behind != vb_event_is_answer(event) || (behind ? ahead < 0 : ahead))
			continue;
		if (!count++)
			*first_ns = event->ns;
		if (event->flags & VB_EVENT_DROPPED)
			*fate = story->fate[event->fate];
	}
	return count;
}

/* What the other end's capture has of it. */
static void say_other_end(struct vb_trouble *trouble, const struct vb_asks *asks,
			  const struct vb_ask *ask)
{
	const struct vb_view *view = &asks->view;
	const char *fate = NULL, *of_answer = NULL;
	uint32_t psn = ask->psn & VB_PSN_MASK;
	uint64_t come_ns, answered_ns;
	uint32_t came, answered = 0;

	if (view->main != VB_REQUESTER || !view->seen[VB_RESPONDER])
		return;
	came = seen_count(asks, view->requests, psn, false, &fate, &come_ns);
	if (view->answers != VB_NONE)
		answered = seen_count(asks, view->answers, psn, true, &of_answer, &answered_ns);
	vb_trouble_say(trouble, ". The peer's capture says that it came %u of %u times", came,
		       ask->times);
	if (fate)
		vb_trouble_say(trouble, " and was dropped (%s)", fate);
	else if (came && answered && answered_ns > asks->story->event[ask->last].ns)
		vb_trouble_say(trouble, " and was answered too late, behind the last of them: the "
					"peer is slow, or was stopped");
	else if (came && answered)
		vb_trouble_say(trouble, " and was answered: the answers were lost on their way "
					"back");
	if (!came)
		vb_trouble_say(trouble, ": it was lost on its way there");
	else if (came < ask->times && !fate)
		vb_trouble_say(trouble, "; the others were lost on their way there: nothing "
					"passes any more, or the peer is gone");
}

/* Does anything else come from that address, and to whom? */
static void say_host(struct vb_trouble *trouble, const struct vb_asks *asks, uint64_t since_ns)
{
	const struct vb_story *story = asks->story;
	const struct vb_half *mine = &story->half[asks->view.requests];
	uint64_t others = 0;

	for (uint32_t i = 0; i < story->halves.count; i++) {
		const struct vb_half *half = &story->half[i];

		if (i == asks->view.answers || half->shm ||
		    memcmp(half->path.src, mine->path.dst, VB_GID_BYTES) ||
		    !memcmp(half->path.src, half->path.dst, VB_GID_BYTES))
			continue;
		others += half->count && story->event[half->first + half->count - 1].ns > since_ns;
	}
	if (others)
		vb_trouble_say(trouble, ". Other queue pairs of that address send meanwhile: the "
					"host is up, so look at this queue pair or its program");
}

/* Has the capture of the peer's process no end, and nothing that is later? */
static const struct vb_file *killed_peer(const struct vb_asks *asks, uint64_t ns)
{
	const struct vb_story *story = asks->story;
	const struct vb_half *half = &story->half[asks->view.requests];
	char name[VB_READER_PROGRAM_BYTES];
	uint32_t who = half->receiver;

	if (who == VB_NONE && half->peer != VB_NONE)
		who = story->half[half->peer].sender;
	if (who == VB_NONE)
		return NULL;
	snprintf(name, sizeof(name), "%s (pid %u)", story->program[who].name,
		 story->program[who].pid);
	for (uint32_t i = 0; i < story->files.count; i++)
		if (story->file[i].killed && story->file[i].last_ns < ns &&
		    !strcmp(story->file[i].program, name))
			return &story->file[i];
	return NULL;
}

/*
 * Nobody sends again by shared memory: that the peer has gone is known at once. A program may leave
 * its last request behind without waiting for it, but hardly several, nor its first.
 */
static bool is_left_alone(const struct vb_asks *asks, const struct vb_ask *ask)
{
	const struct vb_ask *last = &asks->ask[asks->asks.count - 1];

	return asks->story->half[asks->view.requests].shm && (!asks->answers.count || last > ask);
}

static void silence_say(struct vb_asks *asks, const struct vb_ask *ask)
{
	struct vb_story *story = asks->story;
	const struct vb_event *first = &story->event[ask->first], *last = &story->event[ask->last];
	const struct vb_file *killed = killed_peer(asks, last->ns);
	bool alone = ask->times == 1 && is_left_alone(asks, ask);
	struct vb_trouble *trouble =
		vb_story_trouble(story, ask->times > 1 || killed || alone ? VB_TROUBLE_SILENT
									  : VB_TROUBLE_OPEN,
				 asks->view.requests, ask->first);
	char span[32];

	trouble->count = ask->times;
	vb_say_request(trouble, story, ask->first);
	if (ask->times > 1)
		vb_trouble_say(trouble, " was sent %u times within %s and never answered",
			       ask->times, vb_say_time(span, last->ns - first->ns));
	else
		vb_trouble_say(trouble, " was sent once and not answered");
	if (asks->answers.count)
		vb_trouble_say(trouble, ". The peer had answered %" PRIu64 " time%s before, the "
					"last time at %.6f s, so the connection was good",
			       asks->answers.count, vb_say_s(asks->answers.count),
			       vb_story_seconds(story, story->event[asks->answers.last].ns));
	else if (!alone)
		vb_trouble_say(trouble, ". The peer never answered at all: wrong QPN or address, "
					"a QP that is not in RTR, or a firewall%s",
			       asks->again.count ? ""
						 : "; or the capture has one direction only, as "
						   "of a mirror port or with a filter");
	if (alone)
		vb_trouble_say(trouble, ". By shared memory the end of a peer is noticed at once: "
					"its process has ended, or its queue pair failed or was "
					"destroyed");
	if (killed)
		vb_trouble_say(trouble, ". Its capture (%s) has no end, and nothing behind %.6f s: "
					"it was killed or crashed then, or nothing reached it any "
					"more",
			       killed->name, vb_story_seconds(story, killed->last_ns));
	say_other_end(trouble, asks, ask);
	if (trouble->kind == VB_TROUBLE_SILENT)
		say_host(trouble, asks, last->ns);
}

/* --- repetitions --- */

static void again_say(struct vb_trouble *trouble, const struct vb_asks *asks)
{
	const struct vb_tally *silence = &asks->round[VB_CAUSE_SILENCE];
	const struct vb_tally *nak = &asks->round[VB_CAUSE_NAK];
	char span[32];

	if (!asks->again.count)
		return;
	vb_trouble_say(trouble, ". %" PRIu64 " packet%s sent again, from PSN 0x%x on",
		       asks->again.count, asks->again.count == 1 ? " was" : "s were",
		       asks->story->event[asks->again.first].psn);
	if (nak->count)
		vb_trouble_say(trouble, ", %" PRIu64 " time%s after a NAK that asked for it",
			       nak->count, vb_say_s(nak->count));
	if (silence->count)
		vb_trouble_say(trouble, ", %" PRIu64 " time%s since no answer came for up to %s",
			       silence->count, vb_say_s(silence->count),
			       vb_say_time(span, asks->wait_ns));
}

/* A trouble of some packets of a half, of which the words are to be composed. */
static struct vb_trouble *packets_say(struct vb_story *story, enum vb_trouble_kind kind,
				      uint32_t half, uint64_t count, uint32_t first)
{
	struct vb_trouble *trouble = vb_story_trouble(story, kind, half, first);

	trouble->count = count;
	return trouble;
}

/* What was answered, and not sent again, has come: so it is no loss of the network's. */
static void missing_say(struct vb_asks *asks, uint64_t count)
{
	struct vb_trouble *trouble;

	if (!count)
		return;
	asks->gaps.count -= vb_min_u64(asks->gaps.count, count);
	/* They are in what could not be told apart. */
	if (asks->story->merged)
		return;
	trouble = packets_say(asks->story, VB_TROUBLE_CAPTURE_LOST, asks->view.requests, count,
			      VB_NONE);
	vb_trouble_say(trouble, "%" PRIu64 " packet%s acknowledged and not sent again, so the "
				"responder has what the capture has not",
		       count, count == 1 ? " was" : "s were");
}

static void compared_one_say(struct vb_asks *asks, const struct vb_compared *c,
			     enum vb_trouble_kind kind, uint32_t half, bool with_again)
{
	struct vb_trouble *trouble;

	if (!c->lost)
		return;
	trouble = packets_say(asks->story, kind, half, c->lost, c->first_lost);
	vb_trouble_say(trouble, "%" PRIu64 " of %" PRIu64 " packet%s did not come, the first of "
				"PSN 0x%x", c->lost, c->sent, vb_say_s(c->sent),
		       asks->story->event[c->first_lost].psn);
	if (with_again)
		again_say(trouble, asks);
}

/* How many packets of the requests are damaged: they are told of by their ICRC. */
static uint64_t damaged(const struct vb_asks *asks)
{
	const struct vb_half *half = &asks->story->half[asks->view.requests];
	uint64_t count = 0;

	for (uint32_t i = half->first; i < half->first + half->count; i++)
		count += !!(asks->story->event[i].flags & VB_EVENT_ICRC);
	return count;
}

static void nak_say(struct vb_asks *asks, bool here)
{
	const struct vb_tally *nak = &asks->naks, *gaps = &asks->gaps;
	struct vb_trouble *trouble =
		packets_say(asks->story, VB_TROUBLE_LOST, asks->view.requests,
			    nak->count ? nak->count : gaps->count,
			    nak->count ? nak->first : gaps->first);

	if (nak->count)
		vb_trouble_say(trouble, "The responder said %" PRIu64 " time%s by a NAK that "
					"packets are missing, first from PSN 0x%x on",
			       nak->count, vb_say_s(nak->count),
			       asks->story->event[nak->first].psn);
	if (here && gaps->count)
		vb_trouble_say(trouble, "%s%" PRIu64 " packet%s had not come when later ones did: "
					"lost before this capture, or overtaken",
			       nak->count ? "; " : "", gaps->count, vb_say_s(gaps->count));
	else if (nak->count && asks->view.main == VB_REQUESTER)
		vb_trouble_say(trouble, ", though they were sent: lost behind this capture, or "
					"overtaken by others");
	again_say(trouble, asks);
}

/* With one capture alone, what the answers and the order of PSNs show. */
static void lost_say(struct vb_asks *asks)
{
	bool here = asks->view.main == VB_RESPONDER || asks->view.on_the_way;
	struct vb_trouble *trouble;

	if (asks->copies.count) {
		trouble = packets_say(asks->story, VB_TROUBLE_DUPLICATED, asks->view.requests,
				      asks->copies.count, asks->copies.first);
		vb_trouble_say(trouble, "%" PRIu64 " packet%s came twice at once, the first of PSN "
					"0x%x", asks->copies.count, vb_say_s(asks->copies.count),
			       asks->story->event[asks->copies.first].psn);
	}
	if (here && asks->gaps.count && asks->gaps.count <= damaged(asks))
		return;
	if (asks->naks.count || (here && asks->gaps.count)) {
		nak_say(asks, here);
	} else if (here && asks->acked_again.count) {
		trouble = packets_say(asks->story, VB_TROUBLE_AGAIN, asks->view.requests,
				      asks->acked_again.count, asks->acked_again.first);
		vb_trouble_say(trouble, "%" PRIu64 " packet%s came again that the capture has the "
					"answer to: that was lost on its way back, or too late, "
					"which this capture does not show",
			       asks->acked_again.count, vb_say_s(asks->acked_again.count));
		again_say(trouble, asks);
	} else if (asks->round[VB_CAUSE_SILENCE].count) {
		trouble = packets_say(asks->story, VB_TROUBLE_AGAIN, asks->view.requests,
				      asks->again.count, asks->again.first);
		vb_trouble_say(trouble, "Whether the request or its answer was lost, this capture "
					"does not show");
		again_say(trouble, asks);
	}
}

/* With captures of both ends it is known which way. */
static void compared_say(struct vb_asks *asks, uint64_t until_ns)
{
	struct vb_story *story = asks->story;
	const struct vb_view *view = &asks->view;
	struct vb_compared forth = vb_view_compare(story, view, view->requests, until_ns);
	struct vb_compared back = {0};
	struct vb_trouble *trouble;

	if (view->answers != VB_NONE)
		back = vb_view_compare(story, view, view->answers, until_ns);
	/* A ring loses nothing; behind an RNR NAK its receiver takes packets off unseen. */
	if (story->half[view->requests].shm && asks->rnrs.count)
		forth.lost = 0;
	if (view->on_the_way && !asks->again.count && !vb_asks_open(asks)) {
		missing_say(asks, forth.lost);
		forth.lost = 0;
	}
	compared_one_say(asks, &forth, VB_TROUBLE_LOST, view->requests, true);
	compared_one_say(asks, &back, VB_TROUBLE_LOST_BACK, view->answers, !forth.lost);
	if (forth.duplicated) {
		trouble = packets_say(story, VB_TROUBLE_DUPLICATED, view->requests,
				      forth.duplicated, forth.first_duplicated);
		vb_trouble_say(trouble, "%" PRIu64 " packet%s came once too often, the first of "
					"PSN 0x%x", forth.duplicated, vb_say_s(forth.duplicated),
			       story->event[forth.first_duplicated].psn);
	}
	if (forth.late) {
		trouble = packets_say(story, VB_TROUBLE_ORDER, view->requests, forth.late,
				      forth.first_late);
		vb_trouble_say(trouble, "%" PRIu64 " packet%s came behind later ones, the first of "
					"PSN 0x%x", forth.late, vb_say_s(forth.late),
			       story->event[forth.first_late].psn);
		if (!forth.lost && !back.lost)
			again_say(trouble, asks);
	}
	if (forth.lost || back.lost || forth.late || damaged(asks) || until_ns != UINT64_MAX ||
	    asks->again.count == 0 || asks->rnrs.count)
		return;
	/* Between a capture and its end there is something yet: a filter, a socket. */
	if (view->one_host ||
	    (view->on_the_way && (asks->naks.count || asks->acked_again.count))) {
		lost_say(asks);
		return;
	}
	trouble = packets_say(story, VB_TROUBLE_NEEDLESS, view->requests, asks->again.count,
			      asks->again.first);
	vb_trouble_say(trouble, "The captures of both ends have all packets, so answers came late");
	again_say(trouble, asks);
}

/* --- all of a connection --- */

static bool judge(struct vb_asks *asks)
{
	const struct vb_event *event = asks->story->event;
	const struct vb_ask *open = vb_asks_open(asks);
	bool rnr_last = asks->rnrs.count && asks->last_answer == asks->rnrs.last &&
			event[asks->rnrs.last].ns >= event[asks->last_request].ns;
	bool gave_up = open && !asks->fatal.count && !rnr_last &&
		       (asks->last_answer == VB_NONE ||
			event[asks->last_answer].ns <= event[open->last].ns);

	uint64_t until_ns = UINT64_MAX;

	if (!asks->begun)
		return false;
	asks->story->half[asks->view.requests].again += asks->again.count;
	if (asks->view.on_the_way)
		missing_say(asks, vb_asks_missing(asks));
	if (asks->fatal.count)
		fatal_say(asks);
	if (asks->rnrs.count)
		rnr_say(asks, rnr_last && open);
	if (gave_up)
		silence_say(asks, open);
	if (asks->fatal.count)
		open = vb_asks_find(asks, event[asks->fatal.first].psn);
	if (open && (gave_up || asks->fatal.count))
		until_ns = event[open->first].ns;
	/* What was repeated in vain at the end has been told. */
	if (asks->view.seen[VB_REQUESTER] && asks->view.seen[VB_RESPONDER] &&
	    !(asks->view.on_the_way && asks->gaps.count))
		compared_say(asks, until_ns);
	else if (!gave_up || asks->naks.count || asks->gaps.count)
		lost_say(asks);
	return asks->fatal.count;
}

bool vb_reliable_judge(struct vb_story *story, uint32_t half)
{
	const struct vb_half *x = &story->half[half];
	const struct vb_half *y = x->peer == VB_NONE ? NULL : &story->half[x->peer];
	uint32_t i = x->first, j = y ? y->first : 0, event;
	uint32_t end = x->first + x->count, other = y ? y->first + y->count : 0;
	struct vb_view view = vb_view_of(story, half);
	struct vb_asks asks;
	bool fatal = false;

	vb_asks_begin(&asks, story, &view);
	while (i < end || j < other) {
		if (j == other || (i < end && story->event[i].ns <= story->event[j].ns))
			event = i++;
		else
			event = j++;
		if (vb_asks_take(&asks, event))
			continue;
		/* The QPNs are in use once more. */
		fatal |= judge(&asks);
		vb_asks_end(&asks);
		vb_asks_begin(&asks, story, &view);
		vb_asks_take(&asks, event);
	}
	fatal |= judge(&asks);
	vb_asks_end(&asks);
	return fatal;
}
