/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/framer.h"

#include "base/check.h"
#include "base/guard.h"

void vb_framer_init(struct vb_framer *f, const struct vb_qp *qp, uint16_t slot)
{
	f->qp = qp;
	f->slot = slot;
	f->wide = NULL;
	f->certain = false;
	f->burst.claim = NULL;
	f->frames_max = qp->nic->host.burst_frames_max(qp->nic->host.arg);
}

/* A claim that no burst left by. */
static void claim_drop(struct vb_framer *f)
{
	const struct vb_nic *nic = f->qp->nic;

	if (f->burst.claim)
		nic->host.unclaim(nic->host.arg, f->slot, f->burst.claim);
	f->burst.claim = NULL;
}

void vb_framer_fini(struct vb_framer *f)
{
	claim_drop(f);
	if (f->wide)
		vb_lock_drop(&f->qp->nic->wide_lock);
}

void vb_framer_begin(struct vb_framer *f)
{
	claim_drop(f);
	f->burst.first_id = 0;
	f->burst.frames = 0;
	f->burst.iovcnt = 0;
	f->bytes = 0;
	f->room_used = f->wide_used = 0;
}

/* The first frame says where the burst goes. */
static void claim_make(struct vb_framer *f, const struct vb_path *path)
{
	const struct vb_nic *nic = f->qp->nic;

	vb_framer_begin(f);
	if (nic->host.claim)
		f->burst.claim = nic->host.claim(nic->host.arg, f->slot, path, &f->burst.first_id);
}

/* Of the frame that comes next. */
static uint16_t id_next(const struct vb_framer *f)
{
	return (uint16_t)(f->burst.first_id + f->burst.frames);
}

bool vb_framer_fits(const struct vb_framer *f, const struct vb_path *path, uint16_t slot,
		    uint32_t frame_bytes, uint32_t pieces)
{
	const struct vb_burst *burst = &f->burst;

	if (!burst->frames)
		return true;
	return burst->frames < f->frames_max && burst->last_bytes == burst->frame_bytes &&
	       frame_bytes <= burst->frame_bytes && burst->slot == slot &&
	       f->bytes + frame_bytes <= VB_LINK_BURST_BYTES_MAX &&
	       burst->iovcnt + pieces + 2 <= VB_LINK_BURST_IOV_MAX &&
	       (path == &f->qp->path || memcmp(path, &burst->path, sizeof(*path)) == 0);
}

static void piece(struct vb_framer *f, const void *base, size_t bytes)
{
	struct iovec *last = f->burst.iovcnt ? &f->iov[f->burst.iovcnt - 1] : NULL;

	if (last && (const uint8_t *)last->iov_base + last->iov_len == base)
		last->iov_len += bytes;
	else
		f->iov[f->burst.iovcnt++] = (struct iovec){ (void *)base, bytes };
}

/* The ICRC over a payload that stays where it is; false if it cannot be read. */
static bool crc_in_place(const struct vb_payload *payload, uint32_t *crc)
{
	struct vb_guard guard;
	uint32_t sum = *crc;

	if (!vb_guard_enter(&guard))
		return false;
	for (uint32_t i = 0; i < payload->count; i++)
		sum = vb_icrc_add(sum, payload->iov[i].iov_base, payload->iov[i].iov_len);
	vb_guard_leave();
	*crc = sum;
	return true;
}

/* All of it in one place, from its header on. False if the payload cannot be read. */
static bool build_copied(struct vb_framer *f, uint8_t *room, const struct vb_path *path,
			 const struct vb_payload *payload, uint32_t header, uint32_t pad,
			 uint32_t frame)
{
	uint32_t crc;

	if (!vb_payload_copy(room + header, payload))
		return false;
	memset(room + header + payload->bytes, 0, pad);
	crc = vb_icrc_header(path, frame, id_next(f), room, frame - VB_ICRC_BYTES);
	vb_icrc_put(room + frame - VB_ICRC_BYTES, vb_icrc_finish(crc));
	piece(f, room, frame);
	return true;
}

/* Small frame: in the room, where its header is. */
static bool build_small(struct vb_framer *f, uint8_t *room, const struct vb_path *path,
			const struct vb_payload *payload, uint32_t header, uint32_t pad,
			uint32_t frame)
{
	if (!build_copied(f, room, path, payload, header, pad, frame))
		return false;
	f->room_used += frame;
	return true;
}

/* The NIC's room for whole frames, until the end of transmitting; none, if somebody else has it. */
static void wide_take(struct vb_framer *f, bool wait)
{
	struct vb_nic *nic = f->qp->nic;

	if (f->wide)
		return;
	if (wait)
		vb_lock_take(&nic->wide_lock);
	else if (!vb_lock_try(&nic->wide_lock))
		return;
	f->wide = nic->wide;
}

/* Too many pieces to be gathered, or certain, and perhaps too much for the room. */
static bool build_large(struct vb_framer *f, uint8_t *room, const struct vb_path *path,
			const struct vb_payload *payload, uint32_t header, uint32_t pad,
			uint32_t frame)
{
	wide_take(f, true);
	memcpy(f->wide + f->wide_used, room, header);
	if (!build_copied(f, f->wide + f->wide_used, path, payload, header, pad, frame))
		return false;
	f->wide_used += frame;
	return true;
}

/* The payload stays where it is; header and tail in the room. */
static bool build_gathered(struct vb_framer *f, uint8_t *room, const struct vb_path *path,
			   const struct vb_payload *payload, uint32_t header, uint32_t pad,
			   uint32_t frame)
{
	uint32_t crc = vb_icrc_header(path, frame, id_next(f), room, header);
	uint8_t *tail = room + header;

	if (!crc_in_place(payload, &crc))
		return false;
	memset(tail, 0, pad);
	crc = vb_icrc_add(crc, tail, pad);
	vb_icrc_put(tail + pad, vb_icrc_finish(crc));
	piece(f, room, header);
	for (uint32_t i = 0; i < payload->count; i++)
		piece(f, payload->iov[i].iov_base, payload->iov[i].iov_len);
	piece(f, tail, pad + VB_ICRC_BYTES);
	f->room_used += header + pad + VB_ICRC_BYTES;
	return true;
}

bool vb_framer_add(struct vb_framer *f, const struct vb_path *path, struct vb_pkt *pkt,
		   const struct vb_payload *payload)
{
	uint8_t *room;
	uint32_t header, frame;
	bool ok;

	if (!f->burst.frames)
		claim_make(f, path);
	room = f->room + f->room_used;
	pkt->pad = vb_pkt_pad(payload->bytes);
	header = (uint32_t)vb_pkt_emit(room, pkt);
	frame = header + payload->bytes + pkt->pad + VB_ICRC_BYTES;
	if (payload->bytes <= VB_FRAMER_COPY_BYTES_MAX)
		ok = build_small(f, room, path, payload, header, pkt->pad, frame);
	else if (payload->scattered || f->certain)
		ok = build_large(f, room, path, payload, header, pkt->pad, frame);
	else
		ok = build_gathered(f, room, path, payload, header, pkt->pad, frame);
	if (!ok)
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
	n = vb_min_u64(n, (VB_LINK_BURST_BYTES_MAX - f->bytes) / frame);
	return (uint32_t)vb_min_u64(n, (VB_LINK_BURST_IOV_MAX - burst->iovcnt - 1) / 2);
}

/* How far a burst is built, which has a piece at least. */
struct mark {
	uint32_t iovcnt, room_used, wide_used;
	size_t last_bytes;
};

static struct mark mark(const struct vb_framer *f)
{
	return (struct mark){
		.iovcnt = f->burst.iovcnt,
		.room_used = f->room_used,
		.wide_used = f->wide_used,
		.last_bytes = f->iov[f->burst.iovcnt - 1].iov_len,
	};
}

static void go_back(struct vb_framer *f, const struct mark *to)
{
	f->burst.iovcnt = to->iovcnt;
	f->room_used = to->room_used;
	f->wide_used = to->wide_used;
	/* What came behind may have joined it (piece). */
	f->iov[to->iovcnt - 1].iov_len = to->last_bytes;
}

/*
 * A frame in the midst of a message, payload included, as one piece with those before it. The guard
 * is entered. Where it may be, the sum is taken first: of what was only just written it would have
 * to wait for each octet to get out of the store buffer.
 */
static void build_wide(struct vb_framer *f, const uint8_t *header, uint32_t psn, uint32_t crc,
		       const uint8_t *payload, uint32_t bytes)
{
	uint8_t *room = f->wide + f->wide_used;
	uint8_t *data = room + VB_BTH_BYTES;

	memcpy(room, header, VB_BTH_BYTES);
	vb_be32_put(room + 8, psn);
	if (!f->certain)
		crc = vb_icrc_add(crc, payload, bytes);
	memcpy(data, payload, bytes);
	if (f->certain)
		crc = vb_icrc_add(crc, data, bytes);
	vb_icrc_put(data + bytes, vb_icrc_finish(crc));
	piece(f, room, VB_BTH_BYTES + bytes + VB_ICRC_BYTES);
	f->wide_used += VB_BTH_BYTES + bytes + VB_ICRC_BYTES;
}

/* The same, with the payload where it lies. */
static void build_narrow(struct vb_framer *f, const uint8_t *header, uint32_t psn, uint32_t crc,
			 const uint8_t *payload, uint32_t bytes)
{
	uint8_t *room = f->room + f->room_used;

	memcpy(room, header, VB_BTH_BYTES);
	vb_be32_put(room + 8, psn);
	crc = vb_icrc_add(crc, payload, bytes);
	vb_icrc_put(room + VB_BTH_BYTES, vb_icrc_finish(crc));
	piece(f, room, VB_BTH_BYTES);
	piece(f, payload, bytes);
	piece(f, room + VB_BTH_BYTES, VB_ICRC_BYTES);
	f->room_used += VB_BTH_BYTES + VB_ICRC_BYTES;
}

bool vb_framer_add_middles(struct vb_framer *f, const struct vb_pkt *first,
			   const uint8_t *payload, uint32_t bytes, uint32_t n)
{
	const struct mark before = mark(f);
	uint8_t header[VB_PKT_HEADER_BYTES_MAX];
	struct vb_icrc_run run;
	struct vb_guard guard;

	if (bytes <= VB_FRAMER_WIDE_BYTES_MAX)
		wide_take(f, f->certain);
	vb_pkt_emit(header, first);
	vb_icrc_run_begin(&run, &f->burst.path, VB_BTH_BYTES + bytes + VB_ICRC_BYTES,
			  id_next(f), header);
	if (!vb_guard_enter(&guard)) {
		go_back(f, &before);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		(f->wide ? build_wide : build_narrow)(f, header, run.psn, run.crc,
						      payload + (size_t)i * bytes, bytes);
		vb_icrc_run_next(&run);
	}
	vb_guard_leave();
	f->burst.frames += (uint16_t)n;
	f->bytes += n * (VB_BTH_BYTES + bytes + VB_ICRC_BYTES);
	return true;
}
