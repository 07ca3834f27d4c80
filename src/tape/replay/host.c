/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/replay/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "wire/bytes.h"

/*
 * What the tape says that the host answered to this. False: nothing; the replay has ended then, and
 * the call comes to its end with any answers.
 */
static bool answer(struct vb_player *player, enum vb_tape_kind kind, struct vb_tape_cursor *in)
{
	struct vb_tape_item item;
	enum vb_tape_read read;

	*in = (struct vb_tape_cursor){ NULL, 0, true };
	if (player->end != VB_REPLAY_GOES_ON)
		return false;
	read = vb_tape_look(&player->reader, &item);
	if (read != VB_TAPE_READ_ITEM) {
		vb_player_ends(player, read);
		return false;
	}
	if (item.head->kind == VB_TAPE_FULL) {
		player->end = VB_REPLAY_FULL;
		return false;
	}
	if (item.head->kind != (uint32_t)kind) {
		vb_player_differs(player, "the NIC %s, and the record has: %s",
				  vb_tape_words(kind), vb_tape_words(item.head->kind));
		return false;
	}
	vb_tape_read(&player->reader, &item);
	*in = vb_tape_cursor_of(&item);
	return true;
}

static uint64_t number(struct vb_player *player, enum vb_tape_kind kind, uint64_t otherwise)
{
	struct vb_tape_cursor in;
	uint64_t value;

	if (!answer(player, kind, &in))
		return otherwise;
	vb_tape_get_value(&in, &value);
	return value;
}

static uint64_t host_now_ns(void *arg)
{
	struct vb_player *player = arg;

	/* Time goes on even when there is no tape any more: some loops wait for it. */
	player->now_ns = number(player, VB_TAPE_NOW, player->now_ns + 1);
	return player->now_ns;
}

static uint64_t host_raw_ns(void *arg)
{
	return number(arg, VB_TAPE_RAW, 0);
}

static uint64_t host_wall_ns(void *arg)
{
	return number(arg, VB_TAPE_WALL, 0);
}

static void host_kick(void *arg)
{
}

static void host_pause(void *arg, uint64_t waited_ns)
{
}

static int host_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	struct vb_tape_cursor in;
	uint32_t got[3] = { ENOSPC };

	if (answer(arg, VB_TAPE_LEASE, &in))
		vb_tape_get(&in, got, sizeof(got));
	if (got[0] != 0)
		return (int)got[0];
	*slot = (uint16_t)got[1];
	*next_index = got[2];
	return 0;
}

/* "2 frames, RC_SEND_ONLY to QPN 0x11 with PSN 3 the first" */
static void sent_say(char words[160], const uint8_t *sent, size_t bytes, unsigned frames)
{
	const size_t head = VB_TAPE_SENT_HEAD_BYTES;
	const struct vb_op_info *info;

	if (bytes < head + VB_BTH_BYTES) {
		snprintf(words, 160, "nothing");
		return;
	}
	info = vb_op_info(sent[head]);
	snprintf(words, 160, "%u frame%s, %s to QPN 0x%x with PSN %u%s", frames,
		 frames == 1 ? "" : "s", info ? info->name : "?",
		 vb_be32_get(sent + head + 4) & 0xffffff,
		 vb_be32_get(sent + head + VB_BTH_PSN_OFFSET) & 0xffffff,
		 frames == 1 ? "" : " the first");
}

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	struct vb_player *player = arg;
	uint8_t sent[VB_TAPE_SENT_BYTES_MAX];
	char ours[160], theirs[160];
	struct vb_tape_cursor in;
	uint32_t rc;
	size_t bytes;

	if (!answer(player, VB_TAPE_SENT, &in))
		return 0;
	vb_tape_get_value(&in, &rc);
	bytes = vb_tape_sent(sent, src_slot, burst);
	player->counts.frames_out += rc ? 0 : burst->frames;
	if (in.left == bytes && memcmp(in.at, sent, bytes) == 0)
		return (int)rc;
	sent_say(ours, sent, bytes, burst->frames);
	sent_say(theirs, in.at, in.left, vb_tape_sent_frames(in.at, in.left));
	vb_player_differs(player, "the NIC sent %s; the record has %s%s", ours, theirs,
			  strcmp(ours, theirs) == 0 ? ", with another path, length or header" : "");
	return (int)rc;
}

/* What it is does not matter, but that it is one. */
static void *host_claim(void *arg, uint16_t src_slot, const struct vb_path *path,
			uint16_t *first_id)
{
	uint64_t claim = number(arg, VB_TAPE_CLAIM, 0);

	*first_id = (uint16_t)claim;
	return claim ? arg : NULL;
}

static void host_unclaim(void *arg, uint16_t src_slot, void *claim)
{
}

static unsigned host_burst_frames_max(void *arg)
{
	uint64_t frames = number(arg, VB_TAPE_BURST_MAX, 1);

	return frames >= 1 && frames <= VB_LINK_BURST_FRAMES_MAX ? (unsigned)frames : 1;
}

static uint32_t host_frame_bytes_max(void *arg, const struct vb_path *path)
{
	return (uint32_t)number(arg, VB_TAPE_FRAME_MAX, 0);
}

static uint16_t host_sport(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			   enum vb_whom whom)
{
	return (uint16_t)number(arg, VB_TAPE_SPORT, 0);
}

static int host_sport_choose(void *arg, uint16_t src_slot, const struct vb_path *path,
			     uint16_t slot, uint16_t port)
{
	return (int)number(arg, VB_TAPE_SPORT_CHOOSE, 0);
}

static void host_afar(void *arg, const uint8_t gid[VB_GID_BYTES])
{
}

static void host_signal(void *arg, int fd)
{
}

static int host_probe(void *arg, const void *addr, size_t bytes, bool write)
{
	return (int)number(arg, VB_TAPE_PROBE, 0);
}

static int host_join(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	return (int)number(arg, VB_TAPE_JOIN, 0);
}

static void host_leave(void *arg, const uint8_t gid[VB_GID_BYTES])
{
}

static void host_came(void *arg, const struct vb_path *path, const uint8_t *frame, uint32_t bytes)
{
}

static void host_found(void *arg, struct vb_finding *finding)
{
	struct vb_player *player = arg;
	bool has_look = finding->look && *finding->look;
	char words[VB_REPLAY_WORDS_BYTES];

	snprintf(words, sizeof(words), "%s: %s%s%s", finding->what, finding->why,
		 has_look ? "; " : "", has_look ? finding->look : "");
	if (player->end == VB_REPLAY_GOES_ON) {
		vb_player_says(player, "%s", words);
		vb_replay_error(words);
	}
	free(finding);
}

struct vb_nic_host vb_replay_host(struct vb_player *player, const struct vb_tape_nic *how)
{
	static const struct vb_host_stamps stamps = { .raw_ns = host_raw_ns,
						      .wall_ns = host_wall_ns };
	static const struct vb_host_groups groups = { .join = host_join, .leave = host_leave };
	static const struct vb_host_gsi gsi = { .came = host_came };
	static const struct vb_host_insight insight = { .found = host_found };

	return (struct vb_nic_host){
		.arg = player,
		.clock = { .now_ns = host_now_ns, .kick = host_kick, .pause = host_pause },
		.wire = { .lease = host_lease, .tx = host_tx, .claim = host_claim,
			  .unclaim = host_unclaim, .burst_frames_max = host_burst_frames_max,
			  .frame_bytes_max = host_frame_bytes_max, .sport = host_sport,
			  .sport_choose = host_sport_choose, .afar = host_afar },
		.process = { .signal = host_signal, .unsignal = host_signal,
			     .probe = host_probe },
		.stamps = &stamps,
		.groups = &groups,
		.gsi = how->gsi ? &gsi : NULL,
		.insight = &insight,
		.line_kbps = how->line_kbps,
	};
}
