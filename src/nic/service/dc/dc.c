/* SPDX-License-Identifier: BSD-2-Clause */

/* Common parts of DC, and initiators. */

#include "nic/service/dc/dc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/core/ah.h"
#include "nic/way/peer.h"
#include "nic/way/send.h"
#include "nic/way/send_ring.h"
#include "nic/way/watch/watch.h"
#include "nic/way/way.h"
#include "wire/icrc.h"

/* After this long without traffic it connects anew: the target may have forgotten it. */
#define IDLE_NS (VB_DC_FORGET_NS / 2)

static struct vb_dci *dci_of(const struct vb_qp *qp)
{
	return (struct vb_dci *)qp->special.dc;
}

int vb_dci_begin(struct vb_qp *qp, struct vb_dci *dci)
{
	qp->special.dc = &dci->dc;
	dci->to = calloc(qp->req.sq.mask + (size_t)1, sizeof(*dci->to));
	return dci->to ? 0 : ENOMEM;
}

int vb_dc_initiator_make(struct vb_qp *qp, const struct vb_qp_extra *extra)
{
	const struct vb_dc_attr *attr = extra->dc;
	struct vb_dci *dci = calloc(1, sizeof(*dci));

	if (!dci)
		return ENOMEM;
	dci->streams = attr->streams;
	dci->errored_max = attr->streams ? 1u << attr->errored_log : 0;
	return vb_dci_begin(qp, dci);
}

void vb_dc_initiator_unmake(struct vb_qp *qp)
{
	if (qp->special.dc)
		free(dci_of(qp)->to);
	free(qp->special.dc);
}

/* --- both ends --- */

void vb_dc_pkt_fill(const struct vb_qp *qp, struct vb_pkt *pkt)
{
	const struct vb_dc *dc = qp->special.dc;

	pkt->sqpn = qp->ibv.qp.qp_num;
	pkt->dceth.mtu_code = dc->mtu_code;
	pkt->dceth.start_psn = dc->start_psn;
	pkt->dceth.connection = dc->connection;
}

static bool send_by_wire(struct vb_nic *nic, const struct vb_qp *qp, struct vb_pkt *pkt,
			 const struct vb_path *path)
{
	uint8_t frame[VB_PKT_HEADER_BYTES_MAX + VB_ICRC_BYTES];
	uint32_t head = (uint32_t)vb_pkt_emit(frame, pkt), bytes = head + VB_ICRC_BYTES, crc;
	struct iovec iov = { frame, bytes };
	struct vb_burst burst = {
		.path = *path,
		.slot = (uint16_t)(pkt->dqpn >> VB_INDEX_BITS),
		.frames = 1,
		.frame_bytes = bytes,
		.last_bytes = bytes,
		.iovcnt = 1,
		.iov = &iov,
	};
	int err;

	crc = vb_icrc_header(path, bytes, 0, frame, head);
	vb_icrc_put(frame + head, vb_icrc_finish(crc));
	err = nic->host.wire.tx(nic->host.arg, (uint16_t)(pkt->sqpn >> VB_INDEX_BITS), &burst);
	if (err == EAGAIN)
		return false;
	if (qp && !err && vb_nic_is_watched(nic))
		vb_watch_burst(nic, qp, &burst);
	vb_stat_add(&nic->stats, err ? VB_STAT_TX_LOST : VB_STAT_TX_FRAMES, 1);
	if (!err)
		vb_stat_add(&nic->stats, VB_STAT_TX_OCTETS, bytes);
	vb_stat_add(&nic->stats, VB_STAT_TX_BURSTS, 1);
	return true;
}

bool vb_dc_send(struct vb_nic *nic, const struct vb_qp *qp, struct vb_pkt *pkt,
		const struct vb_path *path, struct vb_lane *lane)
{
	return lane ? vb_lane_put_one(lane, pkt) : send_by_wire(nic, qp, pkt, path);
}

/*
 * The target knows no connection: the CONNECT was lost. Everything is sent again, without costing
 * retries; but only once, as there may be another reason.
 */
static void connect_again(struct vb_batch *batch, struct vb_qp *qp, const struct vb_pkt *pkt)
{
	struct vb_dci *dci = dci_of(qp);
	struct vb_req *req = &qp->req;

	vb_batch_count(batch, VB_STAT_PSN_NAKS_SEEN);
	if (dci->asked || req->retry.rnr_waits || pkt->psn != req->una_psn ||
	    req->una_psn != dci->dc.start_psn)
		return;
	dci->asked = true;
	vb_req_rewind(req);
	vb_batch_touch(batch, qp);
}

void vb_dc_initiator_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
			  const struct vb_pkt *pkt, const struct vb_op_info *info)
{
	const struct vb_dc *dc = qp->special.dc;

	if (!vb_batch_admit(batch, qp, pkt, info))
		return;
	if (!vb_kind_is_answer(info->kind)) {
		vb_batch_count(batch, VB_STAT_DROP_TRANSPORT);
		return;
	}
	if (!dc->connected || pkt->dceth.connection != dc->connection) {
		vb_batch_count(batch, VB_STAT_DROP_STALE);
		return;
	}
	if (from->lane ? qp->lane.rx != from->lane
		       : qp->to.peer || !vb_qp_path_fits(qp, &from->frame->path)) {
		vb_batch_count(batch, VB_STAT_DROP_STRANGER);
		return;
	}
	if (info->kind == VB_K_ACK && !pkt->dceth.mtu_code &&
	    pkt->aeth.syndrome == vb_aeth_nak(VB_NAK_PSN))
		connect_again(batch, qp, pkt);
	else
		vb_batch_packet(batch, qp, from->frame, pkt, info);
}

/* --- posting --- */

int vb_dc_to_check(const struct vb_qp *qp, const struct vb_dc_address *to)
{
	if (!to->ah || to->dctn >> 24 ||
	    ((struct vb_pd *)to->ah->pd)->id != ((struct vb_pd *)qp->ibv.qp.pd)->id ||
	    vb_gid_is_group(((struct vb_ah *)to->ah)->path.dst))
		return EINVAL;
	return 0;
}

int vb_dc_address_check(const struct vb_qp *qp, const struct ibv_send_wr *wr,
			const struct vb_post *post)
{
	return post ? vb_dc_to_check(qp, &post->dc) : EINVAL;
}

void vb_dc_to_set(struct vb_dc_to *to, const struct vb_dc_address *address)
{
	memset(to, 0, sizeof(*to));
	to->path = ((struct vb_ah *)address->ah)->path;
	to->key = address->key;
	to->dctn = address->dctn;
	to->stream = address->stream;
}

void vb_dc_to_keep(struct vb_qp *qp, struct vb_wqe *wqe, const struct vb_dc_to *to)
{
	const struct vb_sq *sq = &qp->req.sq;
	struct vb_dci *dci = dci_of(qp);
	struct vb_peer *peer;

	if (memcmp(to, &dci->last, sizeof(*to)) != 0) {
		dci->last = *to;
		dci->run++;
	}
	dci->to[(size_t)((uint8_t *)wqe - sq->ring) / sq->stride] = *to;
	wqe->remote.target = dci->run;
	/* Look for the destination's process as early as possible. */
	if (to->path.local)
		vb_way_seek(qp->nic, qp->ibv.qp.qp_num, to->dctn, &peer);
}

void vb_dc_address_keep(struct vb_qp *qp, struct vb_wqe *wqe, const struct ibv_send_wr *wr,
			const struct vb_post *post)
{
	struct vb_dc_to to;

	vb_dc_to_set(&to, &post->dc);
	if (!dci_of(qp)->streams)
		to.stream = 0;
	vb_dc_to_keep(qp, wqe, &to);
}

/* --- connecting --- */

static void say(struct vb_qp *qp, uint8_t opcode, bool *room)
{
	struct vb_pkt pkt = { .opcode = opcode };

	vb_pkt_begin(&pkt, qp->to.dqpn, VB_PKEY_DEFAULT);
	pkt.psn = qp->req.una_psn;
	if (opcode == VB_OP_DC_CONNECT_SRD) {
		pkt.srd.qpn = dci_of(qp)->owner->ibv.qp.qp_num;
		pkt.srd.qkey = (uint32_t)dci_of(qp)->key;
		memcpy(pkt.srd.gid, qp->to.path.src, VB_GID_BYTES);
	} else {
		pkt.dceth.key = dci_of(qp)->key;
	}
	vb_dc_pkt_fill(qp, &pkt);
	*room = vb_dc_send(qp->nic, qp, &pkt, &qp->to.path, qp->lane.tx);
}

void vb_dc_part(struct vb_qp *qp)
{
	bool room;

	if (!qp->special.dc->connected)
		return;
	qp->special.dc->connected = false;
	/* If this is lost, the target will find out by itself that we are gone. */
	if (!qp->to.peer || !vb_peer_is_lost(qp->to.peer))
		say(qp, VB_OP_DC_DISCONNECT, &room);
}

void vb_dc_initiator_leave(struct vb_qp *qp)
{
	vb_lock_take(&qp->lock);
	vb_dc_part(qp);
	vb_lock_drop(&qp->lock);
}

static bool is_errored(const struct vb_dci *dci, uint16_t stream)
{
	for (unsigned i = 0; i < dci->errored; i++) {
		if (dci->errored_id[i] == stream)
			return true;
	}
	return false;
}

/* A clock that continues after a reboot. */
static uint64_t clock_ns(struct vb_nic *nic)
{
	return nic->host.stamps ? nic->host.stamps->wall_ns(nic->host.arg) : vb_nic_now_ns(nic);
}

/* Requests by a ring are answered by a ring, so it is either both directions or the wire. */
static struct vb_peer *peer_of(struct vb_qp *qp, const struct vb_dc_to *to)
{
	struct vb_peer *peer = NULL;

	if (to->path.local)
		peer = vb_peer_known(qp->nic, qp->ibv.qp.qp_num, to->dctn);
	if (!peer || vb_peer_is_lost(peer) ||
	    (!atomic_load(&peer->has_rx) && !qp->nic->host.no_wire))
		return NULL;
	return peer;
}

/* Beside the payload: BTH, DCETH, RETH, ImmDt, ICRC. */
#define HEADERS_BYTES 52

/* Of what gets there without being fragmented; without a route, what any path carries. */
static enum ibv_mtu largest_mtu(struct vb_qp *qp, const struct vb_dc_to *to)
{
	uint32_t frame = qp->nic->host.wire.frame_bytes_max(qp->nic->host.arg, &to->path);
	enum ibv_mtu mtu = IBV_MTU_4096;

	while (mtu > IBV_MTU_256 && (128u << mtu) + HEADERS_BYTES > frame)
		mtu--;
	return mtu;
}

static void connect(struct vb_qp *qp, const struct vb_dc_to *to, uint32_t target)
{
	uint16_t own_slot = (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS);
	struct vb_dci *dci = dci_of(qp);
	struct vb_peer *peer = peer_of(qp, to);

	vb_dc_part(qp);
	/* Higher than any of this QP's, and of any earlier QP with its number. */
	dci->dc.connection = vb_max_u64(dci->dc.connection + 1, clock_ns(qp->nic));
	dci->dc.start_psn = qp->req.una_psn;
	dci->key = to->key;
	dci->asked = false;
	qp->to.path = to->path;
	qp->to.dqpn = to->dctn;
	qp->special.aimed_slot = target;
	if (peer)
		vb_qp_bind_locked(qp, peer, to->dctn);
	else
		vb_qp_unbind_locked(qp);
	if (dci->owner)
		qp->attr.path_mtu = largest_mtu(qp, to);
	vb_qp_pieces_set(qp);
	vb_qp_link_set(qp);
	dci->dc.mtu_code = qp->req.mtu == VB_LANE_MTU_BYTES ? VB_DC_MTU_LARGE
							    : (uint8_t)qp->attr.path_mtu;
	vb_path_sport_set(qp->nic, &qp->to.path, own_slot, to->dctn);
	dci->dc.connected = true;
}

/*
 * Does a packet get there without being fragmented? True if there is no route, which is found out
 * otherwise.
 */
static bool fits(struct vb_qp *qp, const struct vb_dc_to *to)
{
	uint32_t frame = qp->nic->host.wire.frame_bytes_max(qp->nic->host.arg, &to->path);

	return !frame || peer_of(qp, to) || (128u << qp->attr.path_mtu) + HEADERS_BYTES <= frame;
}

/* Is the QP still connected to this destination, and by the best way? */
static bool is_aimed(struct vb_qp *qp, const struct vb_dc_to *to, uint32_t target)
{
	const struct vb_dci *dci = dci_of(qp);

	return dci->dc.connected && qp->special.aimed_slot == target &&
	       qp->now_ns - dci->used_ns < IDLE_NS &&
	       (qp->to.peer ? !vb_peer_is_lost(qp->to.peer) : !peer_of(qp, to));
}

bool vb_dc_could_do_better(struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	return !qp->to.peer && qp->to.path.local && req->una_psn != req->top_psn &&
	       peer_of(qp, &dci_of(qp)->to[req->pos.next & req->sq.mask]);
}

/* Chooses the next destination. Returns false if there is nothing to send. */
static bool choose(struct vb_qp *qp)
{
	struct vb_req *req = &qp->req;
	struct vb_dci *dci = dci_of(qp);

	qp->now_ns = vb_nic_now_ns(qp->nic);
	while (req->pos.next != req->tail) {
		const struct vb_dc_to *to = &dci->to[req->pos.next & req->sq.mask];
		const struct vb_wqe *wqe = vb_sq_at(&req->sq, req->pos.next);
		uint32_t target = wqe->remote.target;

		/* Work requests without packets have no destination. */
		if (vb_wqe_is_local(wqe)) {
			if (!vb_req_local(req))
				return true;
			continue;
		}
		vb_req_settle(req);
		if (dci->errored && is_errored(dci, to->stream)) {
			/* mlx5dv_dci_stream_id_reset(3): flushed, in the order of the queue. */
			vb_dc_part(qp);
			vb_req_give_up(req, IBV_WC_WR_FLUSH_ERR);
			continue;
		}
		if (!is_aimed(qp, to, target)) {
			if (to->path.local && vb_way_is_awaited(qp, to->dctn))
				return false;
			if (!dci->owner && !fits(qp, to)) {
				vb_req_fault(req, IBV_WC_LOC_QP_OP_ERR);
				return false;
			}
			connect(qp, to, target);
		}
		dci->used_ns = qp->now_ns;
		return true;
	}
	return false;
}

/*
 * Carries out a work request without packets, with nothing outstanding. Returns false if it failed,
 * and the QP with it.
 */
static bool do_local(struct vb_qp *qp)
{
	struct vb_req *req = &qp->req;

	if (req->una_psn != req->top_psn)
		return true;
	while (vb_req_local(req))
		continue;
	if (vb_req_settle(req) != VB_REQ_FAILED)
		return true;
	vb_qp_after_locked(qp, VB_REQ_FAILED);
	return false;
}

/*
 * Does a CONNECT go first? Until something was acknowledged, the target may not know us. One of SRD
 * answers if it does not exist any more, and is asked with all that is sent again.
 */
static bool introduces(const struct vb_qp *qp)
{
	const struct vb_req *req = &qp->req;

	if (req->pos.next_psn != req->una_psn)
		return false;
	return req->una_psn == qp->special.dc->start_psn ||
	       (dci_of(qp)->owner && req->una_psn != req->top_psn);
}

/*
 * Before sending: connects the QP to the target of the next work request. Nothing is outstanding
 * when that changes. Returns false if there is nothing to send, or no room.
 */
static bool aim(struct vb_qp *qp)
{
	struct vb_req *req = &qp->req;
	struct vb_dc *dc = qp->special.dc;
	bool room;

	if (req->retry.rnr_waits ||
	    (req->fault_met.status && req->pos.next == req->fault_met.index))
		return true;
	if (vb_req_is_between(req) && !choose(qp))
		return false;
	if (!dc->connected || !introduces(qp) || req->pos.next == req->tail ||
	    vb_sq_at(&req->sq, req->pos.next)->fault)
		return true;
	if (qp->to.peer && vb_peer_is_lost(qp->to.peer))
		return true;
	say(qp, dci_of(qp)->owner ? VB_OP_DC_CONNECT_SRD : VB_OP_DC_CONNECT, &room);
	if (!room && !(qp->to.peer && vb_lane_wait(qp->lane.tx, qp)))
		qp->send.link_full = true;
	return room;
}

void vb_dc_initiator_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	qp->send.link_full = false;
	if (state == IBV_QPS_RTS && do_local(qp) && aim(qp))
		vb_qp_transmit_by_way(qp, state);
}

void vb_dc_reset(struct vb_qp *qp)
{
	vb_dc_part(qp);
	dci_of(qp)->errored = 0;
}

/* --- streams --- */

bool vb_dc_isolate(struct vb_qp *qp)
{
	struct vb_req *req = &qp->req;
	struct vb_dci *dci = dci_of(qp);
	uint16_t stream;

	if (!dci->streams ||
	    vb_wqe_is_local(vb_sq_at(&req->sq, req->head - 1)))
		return false;
	/* Work requests without packets belong to no stream, that is stream 0. */
	stream = vb_wqe_is_local(vb_sq_at(&req->sq, req->head - 1))
			 ? 0
			 : dci->to[(req->head - 1) & req->sq.mask].stream;
	if (!is_errored(dci, stream))
		dci->errored_id[dci->errored++] = stream;
	if (dci->errored == dci->errored_max)
		return false;
	vb_dc_part(qp);
	vb_req_go_on(req);
	/* Not now, since this QP is being processed. */
	vb_timer_arm(qp->nic, qp, qp->now_ns);
	return true;
}

int vb_dc_stream_reset(struct vb_qp *qp, uint16_t stream)
{
	struct vb_dci *dci = dci_of(qp);
	int err = EINVAL;

	if (qp->service != &vb_service_dc_initiator)
		return EINVAL;
	vb_lock_take(&qp->lock);
	for (unsigned i = 0; i < dci->errored && err; i++) {
		if (dci->errored_id[i] != stream)
			continue;
		dci->errored_id[i] = dci->errored_id[--dci->errored];
		err = 0;
	}
	vb_lock_drop(&qp->lock);
	return err;
}
