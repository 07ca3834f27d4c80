/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/framer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/guard.h"

/*
 * A payload up to this size is copied before it is summed: one call for all, and the frame is valid
 * whatever the application writes meanwhile.
 */
enum { SMALL_BYTES_MAX = 256 };

/* A thread prefers the framer that it had last, which is in its cache. */
static __thread unsigned seat_last __attribute__((tls_model("initial-exec")));

static struct vb_framer *framer_make(void)
{
	struct vb_framer *f = malloc(sizeof(*f));

	if (f)
		f->memo.known = false;
	return f;
}

int vb_framers_init(struct vb_nic *nic)
{
	for (unsigned i = 0; i < VB_FRAMERS; i++)
		vb_lock_init(&nic->wire.framers[i].lock, VB_RANK_FRAMER);
	nic->wire.framers[0].framer = framer_make();
	return nic->wire.framers[0].framer ? 0 : ENOMEM;
}

void vb_framers_fini(struct vb_nic *nic)
{
	for (unsigned i = 0; i < VB_FRAMERS; i++) {
		free(nic->wire.framers[i].framer);
		vb_lock_fini(&nic->wire.framers[i].lock);
	}
}

static bool seat_try(struct vb_framer_seat *seat)
{
	if (!vb_lock_try(&seat->lock))
		return false;
	if (!seat->framer)
		seat->framer = framer_make();
	if (!seat->framer)
		vb_lock_drop(&seat->lock);
	return seat->framer;
}

/* The first framer always exists: wait for that one. */
static unsigned seat_take(struct vb_nic *nic)
{
	for (unsigned i = 0; i < VB_FRAMERS; i++) {
		unsigned seat = (seat_last + i) % VB_FRAMERS;

		if (seat_try(&nic->wire.framers[seat])) {
			seat_last = seat;
			return seat;
		}
	}
	vb_lock_take(&nic->wire.framers[0].lock);
	return 0;
}

struct vb_framer *vb_framer_take(const struct vb_qp *qp, uint16_t slot)
{
	struct vb_nic *nic = qp->nic;
	unsigned seat = seat_take(nic);
	struct vb_framer *f = nic->wire.framers[seat].framer;

	f->seat = seat;
	f->qp = qp;
	f->slot = slot;
	f->certain = false;
	f->burst.claim = NULL;
	f->frames_max = nic->host.wire.burst_frames_max(nic->host.arg);
	return f;
}

/* Gives up a claim without a burst. */
static void claim_drop(struct vb_framer *f)
{
	const struct vb_nic *nic = f->qp->nic;

	if (f->burst.claim)
		nic->host.wire.unclaim(nic->host.arg, f->slot, f->burst.claim);
	f->burst.claim = NULL;
}

void vb_framer_drop(struct vb_framer *f)
{
	claim_drop(f);
	vb_lock_drop(&f->qp->nic->wire.framers[f->seat].lock);
}

void vb_framer_begin(struct vb_framer *f)
{
	f->burst.frames = 0;
	f->bytes = 0;
}

const struct vb_burst *vb_framer_burst(struct vb_framer *f)
{
	f->piece = (struct iovec){ f->room, f->bytes };
	f->burst.iov = &f->piece;
	f->burst.iovcnt = 1;
	return &f->burst;
}

/* The first frame determines the burst's path. Drop the claim of a burst that never left. */
static void claim_make(struct vb_framer *f, const struct vb_path *path)
{
	const struct vb_nic *nic = f->qp->nic;

	claim_drop(f);
	f->burst.first_id = 0;
	f->burst.claim =
		nic->host.wire.claim(nic->host.arg, f->slot, path, &f->burst.first_id);
}

/* The identification of the next frame. */
static uint16_t id_next(const struct vb_framer *f)
{
	return (uint16_t)(f->burst.first_id + f->burst.frames);
}

bool vb_framer_fits(const struct vb_framer *f, const struct vb_path *path, uint16_t slot,
		    uint32_t frame_bytes)
{
	const struct vb_burst *burst = &f->burst;

	if (!burst->frames)
		return true;
	return burst->frames < f->frames_max && burst->last_bytes == burst->frame_bytes &&
	       frame_bytes <= burst->frame_bytes && burst->slot == slot &&
	       f->bytes + frame_bytes <= VB_LINK_BURST_BYTES_MAX &&
	       (path == &f->qp->to.path || memcmp(path, &burst->path, sizeof(*path)) == 0);
}

/*
 * Sums and copies. Summing the copy would wait for the store buffer, so the source is summed.
 * Returns false if it cannot be read.
 */
static bool sum_and_copy(uint8_t *room, const struct vb_payload *payload, uint32_t *crc)
{
	struct vb_guard guard;
	uint32_t sum = *crc;
	uint8_t *to;

	vb_guard_cover(&guard, NULL, NULL, 0);
	if (!vb_guard_enter(&guard))
		return false;
	to = room;
	for (uint32_t i = 0; i < payload->count; i++) {
		const struct iovec *from = &payload->iov[i];

		vb_guard_cover(&guard, to, from->iov_base, from->iov_len);
		sum = vb_icrc_add(sum, from->iov_base, from->iov_len);
		memcpy(to, from->iov_base, from->iov_len);
		to += from->iov_len;
	}
	vb_guard_leave();
	*crc = sum;
	return true;
}

/* Small, or `certain`: copies first, then sums the copy together with the header. */
static bool build_copied(struct vb_framer *f, uint8_t *room, const struct vb_path *path,
			 const struct vb_payload *payload, uint32_t header, uint32_t frame)
{
	uint32_t tail = header + payload->bytes;

	if (!vb_payload_copy(room + header, payload))
		return false;
	memset(room + tail, 0, frame - VB_ICRC_BYTES - tail);
	vb_icrc_put(room + frame - VB_ICRC_BYTES,
		    vb_icrc_known_frame(&f->memo, path, room, frame, id_next(f)));
	return true;
}

static bool build_large(struct vb_framer *f, uint8_t *room, const struct vb_path *path,
			const struct vb_payload *payload, uint32_t header, uint32_t frame)
{
	uint32_t crc = vb_icrc_known_header(&f->memo, path, frame, id_next(f), room, header);
	uint8_t *tail = room + header + payload->bytes, *icrc = room + frame - VB_ICRC_BYTES;

	if (!sum_and_copy(room + header, payload, &crc))
		return false;
	memset(tail, 0, (size_t)(icrc - tail));
	vb_icrc_put(icrc, vb_icrc_finish(vb_icrc_add(crc, tail, (size_t)(icrc - tail))));
	return true;
}

bool vb_framer_add(struct vb_framer *f, const struct vb_path *path, struct vb_pkt *pkt,
		   const struct vb_payload *payload)
{
	bool copied = payload->bytes <= SMALL_BYTES_MAX || payload->scattered || f->certain;
	uint32_t header, frame;
	uint8_t *room;

	if (!f->burst.frames)
		claim_make(f, path);
	room = f->room + f->bytes;
	pkt->pad = vb_pkt_pad(payload->bytes);
	header = (uint32_t)vb_pkt_emit(room, pkt);
	frame = header + payload->bytes + pkt->pad + VB_ICRC_BYTES;
	if (!(copied ? build_copied : build_large)(f, room, path, payload, header, frame))
		return false;
	if (!f->burst.frames++) {
		f->burst.path = *path;
		f->burst.slot = (uint16_t)(pkt->dqpn >> VB_INDEX_BITS);
		f->burst.frame_bytes = frame;
	}
	f->burst.last_bytes = frame;
	f->bytes += frame;
	return true;
}

uint32_t vb_framer_room(const struct vb_framer *f, uint32_t payload_bytes)
{
	const struct vb_burst *burst = &f->burst;
	uint32_t frame = VB_BTH_BYTES + payload_bytes + VB_ICRC_BYTES;
	uint64_t n = f->frames_max - burst->frames;

	if (!burst->frames || burst->frame_bytes != frame || burst->last_bytes != frame)
		return 0;
	return (uint32_t)vb_min_u64(n, (VB_LINK_BURST_BYTES_MAX - f->bytes) / frame);
}

/* Builds a frame in the middle of a message. The guard is entered. */
static void build_middle(const struct vb_framer *f, uint8_t *room, const uint8_t *header,
			 const struct vb_icrc_run *run, const uint8_t *payload, uint32_t bytes)
{
	uint8_t *data = room + VB_BTH_BYTES;
	uint32_t crc = run->crc;

	memcpy(room, header, VB_BTH_BYTES);
	vb_be32_put(room + VB_BTH_PSN_OFFSET, run->psn);
	if (!f->certain)
		crc = vb_icrc_add(crc, payload, bytes);
	memcpy(data, payload, bytes);
	if (f->certain)
		crc = vb_icrc_add(crc, data, bytes);
	vb_icrc_put(data + bytes, vb_icrc_finish(crc));
}

bool vb_framer_add_middles(struct vb_framer *f, const struct vb_pkt *first,
			   const uint8_t *payload, uint32_t bytes, uint32_t n)
{
	const uint32_t frame = VB_BTH_BYTES + bytes + VB_ICRC_BYTES;
	uint8_t header[VB_PKT_HEADER_BYTES_MAX];
	uint8_t *room = f->room + f->bytes;
	struct vb_icrc_run run;
	struct vb_guard guard;

	vb_pkt_emit(header, first);
	vb_icrc_run_begin(&run, &f->memo, &f->burst.path, frame, id_next(f), header);
	vb_guard_cover(&guard, room, payload, (size_t)n * bytes);
	if (!vb_guard_enter(&guard))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		build_middle(f, room + (size_t)i * frame, header, &run, payload + (size_t)i * bytes,
			     bytes);
		vb_icrc_run_next(&run);
	}
	vb_guard_leave();
	f->burst.frames += (uint16_t)n;
	f->bytes += n * frame;
	return true;
}
