/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/host.h"

#include "tape/lists.h"
#include "tape/tape.h"

/* The usual one. A process has one NIC at a time. */
static struct vb_nic_host usual;

static void note_number(enum vb_tape_kind kind, uint64_t number)
{
	if (vb_tape_asked(kind))
		vb_tape_put_value(number);
}

static uint64_t host_now_ns(void *arg)
{
	uint64_t now_ns = usual.clock.now_ns(arg);

	note_number(VB_TAPE_NOW, now_ns);
	return now_ns;
}

static uint64_t host_raw_ns(void *arg)
{
	uint64_t ns = usual.stamps->raw_ns(arg);

	note_number(VB_TAPE_RAW, ns);
	return ns;
}

static uint64_t host_wall_ns(void *arg)
{
	uint64_t ns = usual.stamps->wall_ns(arg);

	note_number(VB_TAPE_WALL, ns);
	return ns;
}

static int host_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	int rc = usual.wire.lease(arg, slot, next_index);
	const uint32_t answer[3] = { (uint32_t)rc, rc ? 0 : *slot, rc ? 0 : *next_index };

	if (vb_tape_asked(VB_TAPE_LEASE))
		vb_tape_put(answer, sizeof(answer));
	return rc;
}

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	uint8_t sent[VB_TAPE_SENT_BYTES_MAX];
	uint32_t rc = (uint32_t)usual.wire.tx(arg, src_slot, burst);

	if (vb_tape_asked(VB_TAPE_SENT)) {
		vb_tape_put_value(rc);
		vb_tape_put(sent, vb_tape_sent(sent, src_slot, burst));
	}
	return (int)rc;
}

static void *host_claim(void *arg, uint16_t src_slot, const struct vb_path *path,
			uint16_t *first_id)
{
	void *claim = usual.wire.claim(arg, src_slot, path, first_id);

	note_number(VB_TAPE_CLAIM, claim ? *first_id | 1u << 16 : 0);
	return claim;
}

static unsigned host_burst_frames_max(void *arg)
{
	unsigned frames = usual.wire.burst_frames_max(arg);

	note_number(VB_TAPE_BURST_MAX, frames);
	return frames;
}

static uint32_t host_frame_bytes_max(void *arg, const struct vb_path *path)
{
	uint32_t bytes = usual.wire.frame_bytes_max(arg, path);

	note_number(VB_TAPE_FRAME_MAX, bytes);
	return bytes;
}

static uint16_t host_sport(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			   enum vb_whom whom)
{
	uint16_t port = usual.wire.sport(arg, src_slot, path, slot, whom);

	note_number(VB_TAPE_SPORT, port);
	return port;
}

static int host_sport_choose(void *arg, uint16_t src_slot, const struct vb_path *path,
			     uint16_t slot, uint16_t port)
{
	int rc = usual.wire.sport_choose(arg, src_slot, path, slot, port);

	note_number(VB_TAPE_SPORT_CHOOSE, (uint32_t)rc);
	return rc;
}

static int host_probe(void *arg, const void *addr, size_t bytes, bool write)
{
	int rc = usual.process.probe(arg, addr, bytes, write);

	note_number(VB_TAPE_PROBE, (uint32_t)rc);
	return rc;
}

static int host_join(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	int rc = usual.groups->join(arg, gid, ifindex);

	note_number(VB_TAPE_JOIN, (uint32_t)rc);
	return rc;
}

struct vb_nic_host vb_tape_host(const struct vb_nic_host *host)
{
	static const struct vb_host_stamps stamps = { .raw_ns = host_raw_ns,
						      .wall_ns = host_wall_ns };
	static struct vb_host_groups groups = { .join = host_join };
	struct vb_nic_host taped = {
		.arg = host->arg,
		.clock = host->clock,
		.wire = host->wire,
		.process = host->process,
		.stamps = &stamps,
		.groups = &groups,
		.gsi = host->gsi,
		.insight = host->insight,
		.capture = host->capture,
		.line_kbps = host->line_kbps,
	};

	usual = *host;
	groups.leave = host->groups->leave;
	taped.clock.now_ns = host_now_ns;
	taped.wire.lease = host_lease;
	taped.wire.tx = host_tx;
	taped.wire.claim = host_claim;
	taped.wire.burst_frames_max = host_burst_frames_max;
	taped.wire.frame_bytes_max = host_frame_bytes_max;
	taped.wire.sport = host_sport;
	taped.wire.sport_choose = host_sport_choose;
	taped.process.probe = host_probe;
	return taped;
}
