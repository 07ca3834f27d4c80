/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The way out. Packets of one QP are gathered into bursts: headers and ICRCs from here, payload
 * from where the application has it. What may be sent comes from the engine; if the link refuses
 * a burst, the engine is set back to where it was before.
 */

#include <errno.h>

#include "base/check.h"
#include "base/guard.h"
#include "base/psn.h"
#include "nic/acks.h"
#include "nic/ah.h"
#include "nic/dc.h"
#include "nic/lane_tx.h"
#include "nic/pace.h"
#include "nic/pair.h"
#include "nic/raw.h"
#include "nic/tx.h"
#include "nic/window.h"
#include "nic/xrc.h"
#include "wire/icrc.h"

/*
 * A payload up to this size is copied behind its header: cheaper than a piece of its own, and
 * what the ICRC was made over is what leaves, whatever the application writes meanwhile.
 */
#define COPY_BYTES_MAX 256u

/*
 * The same for the many frames of a long message, which are one piece then: a copy in the cache
 * costs about what the kernel asks for two pieces.
 */
#define WIDE_BYTES_MAX 4096u

#define TAIL_BYTES_MAX (3 + VB_ICRC_BYTES)

/* What a frame takes of the room at most: all of it, if small, or what goes around its payload. */
#define ROOM_FRAME_BYTES (VB_PKT_HEADER_BYTES_MAX + COPY_BYTES_MAX + TAIL_BYTES_MAX)

struct builder {
	struct vb_qp *qp;
	struct vb_burst burst;
	uint32_t bytes;
	unsigned frames_max;
	bool ack_rides; /* an ACK is owed, and nothing else: it may join requests */
	/*
	 * Sum up what was copied, not what it is copied from. The application may write there all
	 * the time, and what changes between the sum and the copy is dropped by whoever gets it. It
	 * is sent again then, and that must not go on for ever.
	 */
	bool certain;
	/* To go back to, if the link refuses. */
	struct vb_req_pos req_pos;
	struct vb_resp_pos resp_pos;
	struct iovec iov[VB_LINK_BURST_IOV_MAX];
	/*
	 * Frames lie one behind the other here, so that small ones are one piece together, and a
	 * tail is one with the header that follows it: each piece costs the kernel something.
	 */
	uint32_t room_used;
	/* Of the NIC's, for whole frames of a long message; NULL: somebody else has it. */
	uint8_t *wide;
	uint32_t wide_used;
	uint8_t room[VB_LINK_BURST_FRAMES_MAX * ROOM_FRAME_BYTES];
};

static void begin(struct builder *b)
{
	b->burst.frames = 0;
	b->burst.iovcnt = 0;
	b->bytes = 0;
	b->room_used = b->wide_used = 0;
	b->req_pos = b->qp->req.pos;
	b->resp_pos = vb_resp_pos_get(&b->qp->resp);
}

/* PSNs that had been sent before. */
static void count_again(struct vb_qp *qp, const struct vb_req_pos *from)
{
	int32_t sent = vb_psn_diff(qp->req.pos.next_psn, from->next_psn);
	int32_t known = vb_psn_diff(qp->req.top_psn, from->next_psn);

	if (sent > 0 && known > 0)
		vb_stat_add(&qp->nic->stats, VB_STAT_RETRANSMITS,
			    (uint64_t)(sent < known ? sent : known));
}

/*
 * Does a frame of these octets fit behind those gathered? Where not, the burst has to leave
 * first. All frames of a burst are equally long but the last.
 */
static bool fits(const struct builder *b, const struct vb_path *path, uint16_t slot,
		 uint32_t frame_bytes, uint32_t pieces)
{
	const struct vb_burst *burst = &b->burst;

	if (!burst->frames)
		return true;
	return burst->frames < b->frames_max && burst->last_bytes == burst->frame_bytes &&
	       frame_bytes <= burst->frame_bytes && burst->slot == slot &&
	       b->bytes + frame_bytes <= VB_LINK_BURST_BYTES_MAX &&
	       burst->iovcnt + pieces + 2 <= VB_LINK_BURST_IOV_MAX &&
	       (path == &b->qp->path || memcmp(path, &burst->path, sizeof(*path)) == 0);
}

static void piece(struct builder *b, const void *base, size_t bytes)
{
	struct iovec *last = b->burst.iovcnt ? &b->iov[b->burst.iovcnt - 1] : NULL;

	if (last && (const uint8_t *)last->iov_base + last->iov_len == base)
		last->iov_len += bytes;
	else
		b->iov[b->burst.iovcnt++] = (struct iovec){ (void *)base, bytes };
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

bool vb_payload_copy(uint8_t *to, const struct vb_payload *payload)
{
	if (payload->scattered)
		return vb_payload_copy_scattered(to, payload);
	for (uint32_t i = 0; i < payload->count; i++) {
		const struct iovec *from = &payload->iov[i];

		if (!vb_guard_copy(to, from->iov_base, from->iov_len))
			return false;
		to += from->iov_len;
	}
	return true;
}

/* All of it in one place, from its header on. False if the payload cannot be read. */
static bool build_copied(struct builder *b, uint8_t *room, const struct vb_path *path,
			 const struct vb_payload *payload, uint32_t header, uint32_t pad,
			 uint32_t frame)
{
	uint32_t crc;

	if (!vb_payload_copy(room + header, payload))
		return false;
	memset(room + header + payload->bytes, 0, pad);
	crc = vb_icrc_header(path, frame, b->burst.frames, room, frame - VB_ICRC_BYTES);
	vb_icrc_put(room + frame - VB_ICRC_BYTES, vb_icrc_finish(crc));
	piece(b, room, frame);
	return true;
}

/* Small frame: in the room, where its header is. */
static bool build_small(struct builder *b, uint8_t *room, const struct vb_path *path,
			const struct vb_payload *payload, uint32_t header, uint32_t pad,
			uint32_t frame)
{
	if (!build_copied(b, room, path, payload, header, pad, frame))
		return false;
	b->room_used += frame;
	return true;
}

/* The NIC's room for whole frames, until the end of transmitting; none, if somebody else has it. */
static void wide_take(struct builder *b, bool wait)
{
	struct vb_nic *nic = b->qp->nic;

	if (b->wide)
		return;
	if (wait)
		vb_lock_take(&nic->wide_lock);
	else if (!vb_lock_try(&nic->wide_lock))
		return;
	b->wide = nic->wide;
}

/* Too many pieces to be gathered, or certain, and perhaps too much for the room. */
static bool build_large(struct builder *b, uint8_t *room, const struct vb_path *path,
			    const struct vb_payload *payload, uint32_t header, uint32_t pad,
			    uint32_t frame)
{
	wide_take(b, true);
	memcpy(b->wide + b->wide_used, room, header);
	if (!build_copied(b, b->wide + b->wide_used, path, payload, header, pad, frame))
		return false;
	b->wide_used += frame;
	return true;
}

/* The payload stays where it is; header and tail in the room. */
static bool build_gathered(struct builder *b, uint8_t *room, const struct vb_path *path,
			   const struct vb_payload *payload, uint32_t header, uint32_t pad,
			   uint32_t frame)
{
	uint32_t crc = vb_icrc_header(path, frame, b->burst.frames, room, header);
	uint8_t *tail = room + header;

	if (!crc_in_place(payload, &crc))
		return false;
	memset(tail, 0, pad);
	crc = vb_icrc_add(crc, tail, pad);
	vb_icrc_put(tail + pad, vb_icrc_finish(crc));
	piece(b, room, header);
	for (uint32_t i = 0; i < payload->count; i++)
		piece(b, payload->iov[i].iov_base, payload->iov[i].iov_len);
	piece(b, tail, pad + VB_ICRC_BYTES);
	b->room_used += header + pad + VB_ICRC_BYTES;
	return true;
}

#define ACK_FRAME_BYTES (VB_BTH_BYTES + 4 + VB_ICRC_BYTES)

enum added { ADDED, FAULT };

/* Put one packet into the burst, which has room for it. */
static enum added add(struct builder *b, const struct vb_path *path, struct vb_pkt *pkt,
		      const struct vb_payload *payload)
{
	uint8_t *room = b->room + b->room_used;
	uint32_t header, frame;
	bool ok;

	pkt->pad = vb_pkt_pad(payload->bytes);
	header = (uint32_t)vb_pkt_emit(room, pkt);
	frame = header + payload->bytes + pkt->pad + VB_ICRC_BYTES;
	if (payload->bytes <= COPY_BYTES_MAX)
		ok = build_small(b, room, path, payload, header, pkt->pad, frame);
	else if (payload->scattered || b->certain)
		ok = build_large(b, room, path, payload, header, pkt->pad, frame);
	else
		ok = build_gathered(b, room, path, payload, header, pkt->pad, frame);
	if (!ok)
		return FAULT;
	if (!b->burst.frames++) {
		b->burst.path = *path;
		b->burst.slot = (uint16_t)(pkt->dqpn >> VB_INDEX_BITS);
		b->burst.frame_bytes = frame;
	}
	b->burst.last_bytes = frame;
	b->bytes += frame;
	return ADDED;
}

static uint32_t frame_bytes(uint8_t opcode, uint32_t payload)
{
	return vb_op_info(opcode)->header_bytes + ((payload + 3) & ~3u) + VB_ICRC_BYTES;
}

/*
 * The ACK that is owed, as the last and shortest frame of a burst of requests, if there is room: a
 * datagram of its own would cost as much as the burst.
 */
static void add_ack(struct builder *b)
{
	static const struct vb_payload none;
	struct vb_qp *qp = b->qp;
	struct vb_pkt pkt;
	bool data;

	if (!vb_resp_owes_ack_only(&qp->resp) ||
	    !fits(b, &qp->path, b->burst.slot, ACK_FRAME_BYTES, 0))
		return;
	vb_qp_pkt_begin(qp, &pkt);
	vb_rc_response(&qp->resp, &pkt, &data);
	add(b, &qp->path, &pkt, &none);
}

/* By whose socket it leaves. A shadow's number is nobody's. */
static uint16_t slot_from(const struct vb_qp *qp)
{
	uint16_t slot = (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS);

	return slot ? slot : atomic_load(&qp->nic->xrc)->slot;
}

/* Hand over what was gathered: false if the link is full, and then it was undone. */
static bool flush(struct builder *b)
{
	struct vb_qp *qp = b->qp;
	struct vb_nic *nic = qp->nic;
	uint16_t slot = slot_from(qp);
	int err;

	if (!b->burst.frames)
		return true;
	if (b->ack_rides)
		add_ack(b);
	b->burst.iov = b->iov;
	if (!vb_transport_acks(qp->req.transport) &&
	    !vb_pair_admit(nic, slot, &b->burst, qp->now_ns)) {
		vb_pair_hold(nic, qp);
		err = EAGAIN;
	} else {
		err = nic->host.tx(nic->host.arg, slot, &b->burst);
	}
	if (err == EAGAIN) {
		vb_stat_add(&nic->stats, VB_STAT_TX_FULL, 1);
		qp->req.pos = b->req_pos;
		vb_resp_pos_put(&qp->resp, &b->resp_pos);
		qp->link_full = true;
		begin(b);
		return false;
	}
	vb_stat_add(&nic->stats, err ? VB_STAT_TX_LOST : VB_STAT_TX_FRAMES, b->burst.frames);
	vb_stat_add(&nic->stats, VB_STAT_TX_BURSTS, 1);
	count_again(qp, &b->req_pos);
	vb_req_sent(&qp->req, &b->req_pos, qp->now_ns);
	if (!vb_transport_acks(qp->req.transport))
		vb_req_complete_sent(&qp->req);
	begin(b);
	return true;
}

/* Where a stretch of a work request's data lies; false: a key does not allow it. */
bool vb_payload_gather(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t offset, uint32_t bytes,
		       struct vb_payload *out)
{
	const uint32_t start = offset;

	out->count = 0;
	out->bytes = bytes;
	out->scattered = false;
	if (wqe->flags & IBV_SEND_INLINE) {
		out->iov[0] = (struct iovec){ (void *)(wqe->data + offset), bytes };
		out->count = bytes ? 1 : 0;
		return true;
	}
	for (uint32_t i = 0; i < wqe->sge_count && bytes; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];
		uint32_t n = sge->length;
		uint8_t *from;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		from = vb_mr_get(qp->nic, qp->ibv.qp.pd, sge->lkey, sge->addr + offset, n, 0);
		if (!from)
			return vb_payload_scatter(qp, wqe->sge, wqe->sge_count, start, out->bytes,
						  0, out);
		out->iov[out->count++] = (struct iovec){ from, n };
		bytes -= n;
		offset = 0;
	}
	return true;
}

bool vb_payload_put(struct vb_qp *qp, const struct vb_wqe *wqe, const struct vb_segment *seg,
		    uint8_t *to)
{
	struct vb_payload payload;

	return vb_payload_gather(qp, wqe, seg->offset, seg->bytes, &payload) &&
	       vb_payload_copy(to, &payload);
}

/* --- what the responder owes --- */

bool vb_payload_response(struct vb_qp *qp, const struct vb_pkt *pkt, struct vb_payload *payload)
{
	uint8_t *from;

	payload->count = 0;
	payload->bytes = pkt->dma_bytes;
	payload->scattered = false;
	if (!pkt->dma_bytes)
		return true;
	from = vb_remote_get(qp, pkt->rkey, pkt->va, pkt->dma_bytes, IBV_ACCESS_REMOTE_READ);
	if (!from) {
		payload->response = (struct ibv_sge){ pkt->va, pkt->dma_bytes, pkt->rkey };
		return vb_payload_scatter(qp, &payload->response, 1, 0, pkt->dma_bytes,
					  IBV_ACCESS_REMOTE_READ, payload);
	}
	payload->iov[0] = (struct iovec){ from, pkt->dma_bytes };
	payload->count = 1;
	return true;
}

/* Add the packet in hand, leaving with what was gathered first if it does not fit. */
static bool add_or_flush(struct builder *b, const struct vb_path *path, struct vb_pkt *pkt,
			 const struct vb_payload *payload, enum added *added)
{
	uint32_t bytes = frame_bytes(pkt->opcode, payload->bytes);
	uint16_t slot = (uint16_t)(pkt->dqpn >> VB_INDEX_BITS);

	if (!fits(b, path, slot, bytes, payload->count))
		return false;
	*added = add(b, path, pkt, payload);
	return true;
}

/* True if all that is owed was sent or gathered. */
static bool transmit_responses(struct builder *b)
{
	struct vb_qp *qp = b->qp;
	struct vb_resp *resp = &qp->resp;

	for (;;) {
		struct vb_resp_pos before;
		struct vb_payload payload;
		enum added added = FAULT;
		struct vb_pkt pkt;
		bool data;

		if (!vb_resp_owes(resp))
			return true;
		before = vb_resp_pos_get(resp);
		b->certain = resp->done < resp->fresh;
		vb_payload_none(&payload);
		vb_qp_pkt_begin(qp, &pkt);
		if (!vb_rc_response(resp, &pkt, &data))
			return true;
		if (resp->transport == VB_DC)
			vb_dc_pkt_fill(qp, &pkt);
		if (!data || vb_payload_response(qp, &pkt, &payload)) {
			if (!add_or_flush(b, &qp->path, &pkt, &payload, &added)) {
				vb_resp_pos_put(resp, &before);
				if (!flush(b))
					return false;
				continue;
			}
		}
		if (added == FAULT && vb_rc_response_fault(resp, &before, &pkt))
			vb_qp_event(qp, vb_verdict_rows[VB_BAD_MEMORY].event);
	}
}

/* --- what the requester may send --- */

void vb_pkt_fill_request(const struct vb_qp *qp, const struct vb_wqe *wqe,
			 const struct vb_segment *seg, bool ackreq, struct vb_pkt *pkt)
{
	unsigned headers = vb_op_info(seg->opcode)->headers;

	vb_qp_pkt_begin(qp, pkt);
	pkt->opcode = seg->opcode;
	pkt->se = seg->last && (wqe->flags & IBV_SEND_SOLICITED) && vb_wqe_takes_recv(wqe);
	pkt->ackreq = ackreq;
	pkt->psn = seg->psn;
	pkt->imm_be = wqe->imm_be;
	pkt->inv_rkey = wqe->imm_be;
	if (headers & VB_H_XRCETH)
		pkt->srqn = wqe->remote.srqn;
	if (headers & VB_H_DCETH)
		vb_dc_pkt_fill(qp, pkt);
	if (headers & (VB_H_RETH | VB_H_ATOMIC)) {
		pkt->va = wqe->remote.va;
		pkt->rkey = wqe->remote.rkey;
		pkt->dma_bytes = wqe->bytes;
		pkt->swap_add = wqe->remote.swap_add;
		pkt->compare = wqe->remote.compare;
		pkt->flush_type = (uint8_t)wqe->remote.swap_add;
		pkt->flush_level = (uint8_t)wqe->remote.compare;
	}
	if (wqe->kind == VB_K_READ_REQ) {
		pkt->va += seg->offset;
		pkt->dma_bytes = seg->bytes;
	}
	if (headers & VB_H_DETH) {
		pkt->dqpn = wqe->ud.dqpn;
		pkt->qkey = wqe->ud.qkey;
		pkt->sqpn = qp->sqpn;
	}
}

/* The request at pos cannot be sent: stop there, and let what was gathered before it go. */
static void fault(struct builder *b, const struct vb_req_pos *before, enum ibv_wc_status status)
{
	b->qp->req.pos = *before;
	vb_req_fault(&b->qp->req, status);
}

/* How far a burst is built, which has a piece at least. */
struct mark {
	uint32_t iovcnt, room_used, wide_used;
	size_t last_bytes;
};

static struct mark mark(const struct builder *b)
{
	return (struct mark){
		.iovcnt = b->burst.iovcnt,
		.room_used = b->room_used,
		.wide_used = b->wide_used,
		.last_bytes = b->iov[b->burst.iovcnt - 1].iov_len,
	};
}

static void go_back(struct builder *b, const struct mark *to)
{
	b->burst.iovcnt = to->iovcnt;
	b->room_used = to->room_used;
	b->wide_used = to->wide_used;
	/* What came behind may have joined it (piece). */
	b->iov[to->iovcnt - 1].iov_len = to->last_bytes;
}

/*
 * A frame in the midst of a message, payload included, as one piece with those before it. The guard
 * is entered. Where it may be, the sum is taken first: of what was only just written it would have
 * to wait for each octet to get out of the store buffer.
 */
static void build_wide(struct builder *b, const uint8_t *header, uint32_t psn, uint32_t crc,
		       const uint8_t *payload, uint32_t bytes)
{
	uint8_t *room = b->wide + b->wide_used;
	uint8_t *data = room + VB_BTH_BYTES;

	memcpy(room, header, VB_BTH_BYTES);
	vb_be32_put(room + 8, psn);
	if (!b->certain)
		crc = vb_icrc_add(crc, payload, bytes);
	memcpy(data, payload, bytes);
	if (b->certain)
		crc = vb_icrc_add(crc, data, bytes);
	vb_icrc_put(data + bytes, vb_icrc_finish(crc));
	piece(b, room, VB_BTH_BYTES + bytes + VB_ICRC_BYTES);
	b->wide_used += VB_BTH_BYTES + bytes + VB_ICRC_BYTES;
}

/* The same, with the payload where it lies. */
static void build_narrow(struct builder *b, const uint8_t *header, uint32_t psn, uint32_t crc,
			 const uint8_t *payload, uint32_t bytes)
{
	uint8_t *room = b->room + b->room_used;

	memcpy(room, header, VB_BTH_BYTES);
	vb_be32_put(room + 8, psn);
	crc = vb_icrc_add(crc, payload, bytes);
	vb_icrc_put(room + VB_BTH_BYTES, vb_icrc_finish(crc));
	piece(b, room, VB_BTH_BYTES);
	piece(b, payload, bytes);
	piece(b, room + VB_BTH_BYTES, VB_ICRC_BYTES);
	b->room_used += VB_BTH_BYTES + VB_ICRC_BYTES;
}

/*
 * The frames of n packets in the midst of a message, whose headers differ in their PSNs only. False
 * if the payload cannot be read; then there are none.
 */
static bool build_middles(struct builder *b, const struct vb_pkt *first, const uint8_t *payload,
			  uint32_t bytes, uint32_t n)
{
	const struct mark before = mark(b);
	uint8_t header[VB_PKT_HEADER_BYTES_MAX];
	struct vb_icrc_run run;
	struct vb_guard guard;

	vb_pkt_emit(header, first);
	vb_icrc_run_begin(&run, &b->burst.path, VB_BTH_BYTES + bytes + VB_ICRC_BYTES,
			  b->burst.frames, header);
	if (!vb_guard_enter(&guard)) {
		go_back(b, &before);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		(b->wide ? build_wide : build_narrow)(b, header, run.psn, run.crc,
						      payload + (size_t)i * bytes, bytes);
		vb_icrc_run_next(&run);
	}
	vb_guard_leave();
	b->burst.frames += (uint16_t)n;
	b->bytes += n * (VB_BTH_BYTES + bytes + VB_ICRC_BYTES);
	return true;
}

/* How many more frames of this length have room. They must be as long as those that are there. */
static uint32_t room_for(const struct builder *b, uint32_t frame)
{
	const struct vb_burst *burst = &b->burst;
	uint64_t n = b->frames_max - burst->frames;

	if (!burst->frames || burst->frame_bytes != frame || burst->last_bytes != frame)
		return 0;
	n = vb_min_u64(n, (VB_LINK_BURST_BYTES_MAX - b->bytes) / frame);
	return (uint32_t)vb_min_u64(n, (VB_LINK_BURST_IOV_MAX - burst->iovcnt - 1) / 2);
}

/* What comes torn to UC's peer is lost with all of its message, and never sent again. */
static bool must_be_certain(const struct vb_req *req)
{
	return req->transport == VB_UC || vb_psn_diff(req->pos.next_psn, req->top_psn) < 0;
}

/* Add as many as go without a thought behind one that is like them; false: none. */
static bool add_middles(struct builder *b)
{
	struct vb_qp *qp = b->qp;
	struct vb_req *req = &qp->req;
	uint32_t n = vb_req_run(req);
	struct vb_payload payload;
	struct vb_segment seg;
	const struct vb_wqe *wqe;
	struct vb_pkt pkt;

	if (n)
		n = (uint32_t)vb_min_u64(
			n, room_for(b, VB_BTH_BYTES + req->mtu + VB_ICRC_BYTES));
	if (!n)
		return false;
	if (req->mtu <= WIDE_BYTES_MAX)
		wide_take(b, b->certain);
	wqe = vb_sq_at(&req->sq, req->pos.next);
	vb_segment_at(&seg, req->transport, wqe, req->pos.next_psn, req->mtu);
	if (!vb_payload_gather(qp, wqe, seg.offset, n * req->mtu, &payload) || payload.count != 1)
		return false;
	vb_pkt_fill_request(qp, wqe, &seg, false, &pkt);
	pkt.pad = 0;
	if (!build_middles(b, &pkt, payload.iov[0].iov_base, req->mtu, n))
		return false;
	vb_req_skip(req, n);
	return true;
}

/* False if the link is full. */
static bool transmit_requests(struct builder *b)
{
	struct vb_qp *qp = b->qp;
	struct vb_req *req = &qp->req;

	for (;;) {
		struct vb_req_pos before = req->pos;
		const struct vb_wqe *wqe;
		const struct vb_path *path;
		struct vb_payload payload;
		struct vb_segment seg;
		struct vb_pkt pkt;
		enum added added;
		bool ackreq;

		if (qp->paced && vb_pace_waits(qp))
			break;
		b->certain = must_be_certain(req);
		if (!qp->paced && add_middles(b))
			continue;
		if ((req->transport == VB_UD && vb_lane_is_next(qp)) || vb_lane_is_astray(qp))
			break;
		if (!vb_req_next(req, &seg, &ackreq)) {
			if (vb_req_local(req))
				continue;
			break;
		}
		wqe = vb_sq_at(&req->sq, before.next);
		path = req->transport == VB_UD ? &wqe->ud.path : &qp->path;
		if (wqe->fault) {
			fault(b, &before, (enum ibv_wc_status)wqe->fault);
			break;
		}
		vb_payload_none(&payload);
		vb_pkt_fill_request(qp, wqe, &seg, ackreq, &pkt);
		if (!vb_wqe_sends_nothing(wqe) &&
		    !vb_payload_gather(qp, wqe, seg.offset, seg.bytes, &payload)) {
			fault(b, &before, IBV_WC_LOC_PROT_ERR);
			break;
		}
		if (!add_or_flush(b, path, &pkt, &payload, &added)) {
			req->pos = before;
			if (!flush(b))
				return false;
			continue;
		}
		if (added == FAULT) {
			fault(b, &before, IBV_WC_LOC_PROT_ERR);
			break;
		}
		if (qp->paced)
			vb_pace_charge(qp, b->burst.last_bytes);
	}
	return flush(b);
}

/* By way of the wire; false if the link, or pacing, has no room for more. */
static bool transmit_by(struct builder *b, enum ibv_qp_state state)
{
	struct vb_qp *qp = b->qp;
	bool sends = state == IBV_QPS_RTS || state == IBV_QPS_SQD;

	begin(b);
	b->ack_rides = sends && vb_resp_owes_ack_only(&qp->resp);
	if (!b->ack_rides && (!transmit_responses(b) || !flush(b)))
		return false;
	if (sends && !transmit_requests(b))
		return false;
	b->ack_rides = false;
	return vb_ack_waits(qp) || (transmit_responses(b) && flush(b));
}

static bool transmit_wire(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct builder b;
	bool done;

	b.qp = qp;
	b.wide = NULL;
	b.frames_max = qp->nic->host.burst_frames_max(qp->nic->host.arg);
	qp->link_full = false;
	done = transmit_by(&b, state);
	if (b.wide)
		vb_lock_drop(&qp->nic->wide_lock);
	return done;
}

/* Datagrams go by the way that each one's address asks for, in their order. */
static void transmit_datagrams(struct vb_qp *qp, enum ibv_qp_state state)
{
	bool more;

	qp->link_full = false;
	do
		more = vb_lane_datagrams(qp, state) && transmit_wire(qp, state);
	while (more && vb_lane_is_next(qp));
}

/* Requests of XRC go to one slot after the other, to each by the way that there is. */
static void transmit_xrc(struct vb_qp *qp, enum ibv_qp_state state)
{
	bool sends = state == IBV_QPS_RTS || state == IBV_QPS_SQD;

	do {
		if (sends)
			vb_lane_aim(qp);
		if (qp->peer)
			vb_lane_transmit(qp, state);
		else
			transmit_wire(qp, state);
	} while (sends && qp->req.una_psn == qp->req.top_psn && vb_lane_is_astray(qp));
}

/* Requests of DC go to one target after the other, to each by the way that there is. */
static void transmit_dc(struct vb_qp *qp, enum ibv_qp_state state)
{
	qp->link_full = false;
	if (state != IBV_QPS_RTS || !vb_dc_local(qp) || !vb_dc_aim(qp))
		return;
	if (qp->peer)
		vb_lane_transmit(qp, state);
	else
		transmit_wire(qp, state);
}

/* Has sending left nothing behind: no failure, no event to tell, and a clock where one is due? */
static bool is_settled(const struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	return vb_qp_state(qp) == IBV_QPS_RTS && !req->fault && !req->local_done &&
	       !qp->resp.broken &&
	       !qp->drain_event && vb_rc_deadline_ns(req) == VB_NEVER_NS &&
	       (vb_timer_at_ns(&qp->timer) != VB_NEVER_NS ||
		req->una_psn == req->top_psn);
}

void vb_qp_transmit_locked(struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	if (state < IBV_QPS_RTR)
		return;
	if (qp->has_parcels)
		vb_parcels_before_send(qp);
	if (qp->ibv.qp.qp_type == IBV_QPT_XRC_SEND) {
		transmit_xrc(qp, state);
	} else if (qp->ibv.qp.qp_type == IBV_QPT_DRIVER && !vb_dc_is_context(qp)) {
		transmit_dc(qp, state);
	} else if (qp->peer) {
		vb_lane_transmit(qp, state);
		if (is_settled(qp))
			return;
	} else if (qp->ibv.qp.qp_type == IBV_QPT_UD) {
		transmit_datagrams(qp, state);
	} else if (qp->raw) {
		vb_raw_transmit(qp, state);
	} else {
		transmit_wire(qp, state);
	}
	if (qp->resp.broken && state != IBV_QPS_ERR)
		vb_qp_fail_locked(qp);
	vb_qp_after_locked(qp, vb_req_settle(&qp->req));
}
