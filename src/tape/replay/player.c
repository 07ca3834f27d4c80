/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/replay/player.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/names.h"
#include "nic/data/qp.h"
#include "tape/replay/steps.h"

void vb_replay_step(uint64_t number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}

void vb_replay_error(const char *words)
{
	__asm__ volatile("" : : "r"(words) : "memory");
}

void vb_player_says(struct vb_player *player, const char *format, ...)
{
	uint64_t ns = player->call.head ? player->call.head->ns : 0;
	char words[VB_REPLAY_WORDS_BYTES];
	va_list args;
	size_t at;

	snprintf(words, sizeof(words), "%5llu.%06llu s, item %llu: ",
		 (unsigned long long)(ns / 1000000000), (unsigned long long)(ns / 1000 % 1000000),
		 (unsigned long long)player->call.number);
	at = strlen(words);
	va_start(args, format);
	vsnprintf(words + at, sizeof(words) - at, format, args);
	va_end(args);
	if (player->say)
		player->say(player->arg, words);
}

void vb_player_differs(struct vb_player *player, const char *format, ...)
{
	va_list args;

	if (player->end != VB_REPLAY_GOES_ON)
		return;
	player->end = VB_REPLAY_DIFFERENT;
	va_start(args, format);
	vsnprintf(player->difference, sizeof(player->difference), format, args);
	va_end(args);
	vb_replay_error(player->difference);
}

void vb_player_ends(struct vb_player *player, enum vb_tape_read read)
{
	player->end = read == VB_TAPE_READ_LAST	 ? VB_REPLAY_OPEN
		      : read == VB_TAPE_READ_CUT ? VB_REPLAY_CUT
						 : VB_REPLAY_ALTERED;
}

const char *vb_player_begin(struct vb_player *player, const void *at, size_t bytes)
{
	vb_refusals_want(true); /* so that the NIC explains what fails */
	return vb_tape_read_begin(&player->reader, at, bytes);
}

/* --- what a call did --- */

/* A QP that went to ERR says so by nothing else if nobody polls. */
static void state_look(struct vb_object *object, void *arg)
{
	struct vb_player *player = arg;
	const struct vb_qp *qp = object->is;
	enum ibv_qp_state state, before = (enum ibv_qp_state)object->state;

	state = vb_qp_state(qp);
	object->state = state;
	if (state == before || (state != IBV_QPS_ERR && state != IBV_QPS_SQE))
		return;
	vb_player_says(player, "QPN 0x%x went from %s to %s, in: %s", qp->ibv.qp.qp_num,
		       vb_state_name(before), vb_state_name(state),
		       vb_tape_words(player->call.head->kind));
}

static void completions_count(struct vb_player *player, const struct vb_step *step)
{
	const struct ibv_wc *wc = step->results;

	for (size_t i = 0; i < step->result_bytes / sizeof(*wc); i++) {
		player->counts.completions++;
		player->counts.flushed += wc[i].status == IBV_WC_WR_FLUSH_ERR;
		if (wc[i].status == IBV_WC_SUCCESS || wc[i].status == IBV_WC_WR_FLUSH_ERR)
			continue;
		player->counts.errors++;
		vb_player_says(player, "completion: QPN 0x%x, wr_id 0x%llx: %s, vendor_err 0x%x",
			       wc[i].qp_num, (unsigned long long)wc[i].wr_id,
			       vb_status_name(wc[i].status), wc[i].vendor_err);
		vb_replay_error("a completion");
	}
}

/* All but the octets behind the last member, which nobody sets. */
#define WC_BYTES (offsetof(struct ibv_wc, dlid_path_bits) + 1)

static bool wc_same(const struct ibv_wc *ours, const uint8_t *theirs, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*ours); i++) {
		if (memcmp(&ours[i], theirs + i * sizeof(*ours), WC_BYTES) != 0)
			return false;
	}
	return true;
}

static bool is_poll(const struct vb_player *player)
{
	return player->call.head->kind == VB_TAPE_CQ_POLL ||
	       player->call.head->kind == VB_TAPE_CQ_TAKE;
}

static void wc_differs(struct vb_player *player, const struct vb_step *step,
		       const struct vb_tape_cursor *in)
{
	const struct ibv_wc *ours = step->results;
	size_t count = vb_min_u64(step->result_bytes, in->left) / sizeof(*ours);
	struct ibv_wc theirs;

	for (size_t i = 0; i < count; i++) {
		if (wc_same(&ours[i], in->at + i * sizeof(theirs), sizeof(theirs)))
			continue;
		memcpy(&theirs, in->at + i * sizeof(theirs), sizeof(theirs));
		vb_player_differs(player,
				  "a completion is QPN 0x%x, wr_id 0x%llx, %s; the record has "
				  "QPN 0x%x, wr_id 0x%llx, %s%s",
				  ours[i].qp_num, (unsigned long long)ours[i].wr_id,
				  vb_status_name(ours[i].status), theirs.qp_num,
				  (unsigned long long)theirs.wr_id, vb_status_name(theirs.status),
				  ours[i].wr_id == theirs.wr_id && ours[i].status == theirs.status
					  ? ", with another length, flag or number"
					  : "");
		return;
	}
}

static void done_compare(struct vb_player *player, const struct vb_step *step,
			 struct vb_tape_cursor *in)
{
	const char *words = vb_tape_words(player->call.head->kind);
	struct vb_tape_done done;

	vb_tape_get_value(in, &done);
	if (done.rc != step->rc) {
		vb_player_differs(player, "%s: it returned %lld; the record has %lld", words,
				  (long long)step->rc, (long long)done.rc);
		return;
	}
	if (step->result_bytes != in->left) {
		vb_player_differs(player, "%s: it gave %zu octets; the record has %zu", words,
				  step->result_bytes, in->left);
		return;
	}
	if (is_poll(player) && !wc_same(step->results, in->at, in->left))
		wc_differs(player, step, in);
	else if (!is_poll(player) && in->left && memcmp(step->results, in->at, in->left) != 0)
		vb_player_differs(player, "%s: it gave something else than the record has", words);
	if (player->end == VB_REPLAY_GOES_ON && step->made && done.made &&
	    vb_object_add(&player->objects, step->kind, done.made, step->made))
		vb_player_differs(player, "no memory");
}

/* The call has returned: so it has on the tape. */
static void step_end(struct vb_player *player, const struct vb_step *step)
{
	struct vb_tape_item item;
	struct vb_tape_cursor in;
	enum vb_tape_read read;

	if (player->end != VB_REPLAY_GOES_ON)
		return;
	read = vb_tape_look(&player->reader, &item);
	if (read != VB_TAPE_READ_ITEM) {
		vb_player_ends(player, read);
		return;
	}
	if (item.head->kind == VB_TAPE_FULL) {
		player->end = VB_REPLAY_FULL;
		return;
	}
	if (item.head->kind != VB_TAPE_DONE) {
		vb_player_differs(player, "%s: it returned; in the record the NIC %s",
				  vb_tape_words(player->call.head->kind),
				  vb_tape_words(item.head->kind));
		return;
	}
	vb_tape_read(&player->reader, &item);
	in = vb_tape_cursor_of(&item);
	done_compare(player, step, &in);
	if (player->end != VB_REPLAY_GOES_ON)
		return;
	if (step->gone && step->rc == 0)
		vb_object_drop(&player->objects, step->gone);
	if (is_poll(player))
		completions_count(player, step);
	else
		vb_object_each_qp(&player->objects, state_look, player);
}

/* --- calls --- */

static void step_run(struct vb_player *player)
{
	struct vb_step step = { .player = player, .in = vb_tape_cursor_of(&player->call) };
	bool known;

	player->counts.calls++;
	vb_replay_step(player->call.number);
	known = vb_step_make(&step, (enum vb_tape_kind)player->call.head->kind);
	/* Its checksum is right, so somebody made it so, or our writer is wrong. */
	if ((!known || step.in.bad) && player->end == VB_REPLAY_GOES_ON)
		player->end = VB_REPLAY_ALTERED;
	step_end(player, &step);
	vb_tape_scrap(&player->heap);
}

static bool ends(struct vb_player *player, uint32_t kind)
{
	if (kind == VB_TAPE_END || kind == VB_TAPE_EXIT)
		player->end = VB_REPLAY_WHOLE;
	else if (kind == VB_TAPE_FULL)
		player->end = VB_REPLAY_FULL;
	return player->end != VB_REPLAY_GOES_ON;
}

enum vb_replay_end vb_player_run(struct vb_player *player)
{
	while (player->end == VB_REPLAY_GOES_ON) {
		enum vb_tape_read read;

		if (player->until && player->reader.number >= player->until) {
			player->end = VB_REPLAY_UNTIL;
			break;
		}
		read = vb_tape_read(&player->reader, &player->call);
		if (read != VB_TAPE_READ_ITEM)
			vb_player_ends(player, read);
		else if (!ends(player, player->call.head->kind))
			step_run(player);
	}
	return player->end;
}

static void state_say(struct vb_object *object, void *arg)
{
	struct vb_player *player = arg;
	const struct vb_qp *qp = object->is;

	vb_player_says(player, "QPN 0x%x is in %s: %u requests posted, %u completed, PSN %u next, "
		       "%u unacknowledged; PSN %u expected", qp->ibv.qp.qp_num,
		       vb_state_name(vb_qp_state(qp)), qp->req.tail, qp->req.head,
		       qp->req.pos.next_psn, qp->req.una_psn, qp->resp.epsn);
}

void vb_player_states(struct vb_player *player)
{
	vb_object_each_qp(&player->objects, state_say, player);
}

void vb_player_end(struct vb_player *player)
{
	vb_tape_scrap(&player->heap);
	vb_objects_free(&player->objects);
	vb_tape_memory_free(&player->memory);
}
