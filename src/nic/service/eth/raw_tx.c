/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/raw_tx.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/guard.h"
#include "eth/checksum.h"
#include "nic/data/pace.h"
#include "nic/way/peer.h"
#include "nic/data/qp_extra.h"
#include "nic/service/eth/steer.h"
#include "nic/way/way.h"
#include "nic/way/send.h"

/*
 * How long a frame waits for its reader before it counts as lost; those behind it are then lost at
 * once.
 */
#define PATIENCE_NS 100000000u

/* When to check again whether the receiver sleeps. */
#define LATER_NS 10000000u

/* --- creating and destroying --- */

int vb_raw_make(struct vb_qp *qp, const struct vb_qp_extra *extra)
{
	uint32_t tso_header_max = extra->tso_header_max;
	struct vb_segment_port *port;
	struct vb_raw *raw;
	int err = vb_segment_qp_add(qp->nic, &port);

	if (err)
		return err;
	raw = calloc(1, sizeof(*raw));
	if (raw && tso_header_max)
		raw->tso = malloc(sizeof(*raw->tso));
	if (!raw || (tso_header_max && !raw->tso)) {
		free(raw);
		vb_segment_qp_remove(qp->nic);
		return ENOMEM;
	}
	raw->context = vb_ctx_of(qp->ibv.qp.context)->family;
	raw->port = port;
	raw->header_max = tso_header_max;
	qp->special.raw = raw;
	return 0;
}

void vb_raw_unmake(struct vb_qp *qp)
{
	if (!qp->special.raw)
		return;
	vb_segment_qp_remove(qp->nic);
	free(qp->special.raw->tso);
	free(qp->special.raw);
}

void vb_raw_reset(struct vb_qp *qp)
{
	qp->special.raw->bytes = 0;
	qp->special.raw->cuts = false;
}

/* The TSO header comes after the rest. */
uint32_t vb_raw_wqe_room(struct vb_qp *qp, uint32_t bytes)
{
	qp->special.raw->header_at = bytes;
	return bytes + qp->special.raw->header_max;
}

/* --- posting --- */

int vb_raw_tso_decode(const struct vb_qp *qp, const struct ibv_send_wr *wr, struct vb_wqe *wqe)
{
	const struct vb_raw *raw = qp->special.raw;
	uint64_t bytes = 0;

	if (!wr->tso.mss || wr->tso.hdr_sz > raw->header_max ||
	    wr->tso.hdr_sz < VB_ETH_HEADER_BYTES)
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	if (!vb_guard_copy(wqe->data + raw->header_at, wr->tso.hdr, wr->tso.hdr_sz))
		return EFAULT;
	wqe->kind = VB_K_SEND;
	wqe->fault = bytes > VB_TSO_BYTES_MAX ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
	wqe->bytes = wqe->fault ? 0 : (uint32_t)bytes;
	wqe->sge_count = (uint16_t)wr->num_sge;
	vb_sges_copy(wqe->sge, wr->sg_list, wqe->sge_count);
	wqe->tso.header_bytes = wr->tso.hdr_sz;
	wqe->tso.mss = wr->tso.mss;
	return 0;
}

/* --- making frames --- */

/* Gathers a work request that is a single frame. */
static enum ibv_wc_status gather(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_raw *raw = qp->special.raw;
	struct vb_payload payload;

	if (wqe->bytes < VB_ETH_HEADER_BYTES || wqe->bytes > VB_ETH_FRAME_BYTES_MAX)
		return IBV_WC_LOC_LEN_ERR;
	if (!vb_qp_gather(qp, wqe, 0, wqe->bytes, &payload) ||
	    !vb_payload_copy(raw->frame, &payload))
		return IBV_WC_LOC_PROT_ERR;
	raw->bytes = wqe->bytes;
	if (wqe->flags & IBV_SEND_IP_CSUM)
		vb_eth_tx_checksums(raw->frame, raw->bytes,
				    qp->made.dv_flags & VB_QP_TUNNEL_OFFLOADS);
	return IBV_WC_SUCCESS;
}

/* Makes the next frame of a segmented work request. */
static enum ibv_wc_status cut(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_raw *raw = qp->special.raw;
	uint32_t header = wqe->tso.header_bytes;
	struct vb_payload payload;

	if (!raw->cuts) {
		if (header + vb_min_u64(wqe->tso.mss, wqe->bytes) > VB_ETH_FRAME_BYTES_MAX)
			return IBV_WC_LOC_LEN_ERR;
		if (!vb_tso_begin(raw->tso, wqe->data + raw->header_at, header, wqe->bytes,
				  wqe->tso.mss) ||
		    !vb_tso_next(raw->tso, &raw->cut))
			return IBV_WC_LOC_QP_OP_ERR;
		raw->cuts = true;
	}
	if (!vb_qp_gather(qp, wqe, raw->cut.offset, raw->cut.bytes, &payload) ||
	    !vb_payload_copy(raw->frame + header, &payload))
		return IBV_WC_LOC_PROT_ERR;
	vb_tso_frame(raw->tso, &raw->cut, raw->frame);
	raw->bytes = header + raw->cut.bytes;
	return IBV_WC_SUCCESS;
}

/* Makes the frame at the current position, unless that was done. */
static enum ibv_wc_status make_frame(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_raw *raw = qp->special.raw;
	enum ibv_wc_status status = (enum ibv_wc_status)wqe->fault;

	if (raw->bytes)
		return IBV_WC_SUCCESS;
	if (status == IBV_WC_SUCCESS)
		status = wqe->wc_opcode == IBV_WC_TSO ? cut(qp, wqe) : gather(qp, wqe);
	if (status != IBV_WC_SUCCESS)
		return status;
	raw->targets = 0;
	if (vb_steer_sends(qp->nic, raw->frame, raw->bytes))
		raw->targets = vb_segment_plan(raw->port, raw->frame, false, raw->target);
	raw->targets_done = 0;
	return IBV_WC_SUCCESS;
}

/* --- sending them --- */

enum step { SENT, LOST, FULL };

/* Has the reader not moved since a frame waited too long? tx_lock held. */
static bool is_given_up(struct vb_lane *lane)
{
	lane->given_up = lane->given_up && lane->tx.tail == lane->given_up_tail;
	return lane->given_up;
}

static void give_up(struct vb_lane *lane)
{
	vb_lock_take(&lane->tx_lock);
	lane->given_up = true;
	lane->given_up_tail = lane->tx.tail;
	vb_lock_drop(&lane->tx_lock);
}

static enum step put(struct vb_qp *qp, struct vb_lane *lane, unsigned what)
{
	const struct vb_raw *raw = qp->special.raw;
	enum step step = SENT;

	if (qp->lane.waits != lane)
		vb_lane_unwait(qp);
	vb_lock_take(&lane->tx_lock);
	/*
	 * Checked with the lock held: when a peer ends, it is marked first and then its queue is
	 * emptied.
	 */
	while (!vb_segment_put(lane, raw->frame, raw->bytes, what, raw->context)) {
		if (vb_lane_is_lost(lane) || is_given_up(lane))
			step = LOST;
		else if (vb_lane_wait_locked(lane, qp))
			step = FULL;
		else
			continue;
		break;
	}
	vb_lock_drop(&lane->tx_lock);
	if (step == SENT)
		vb_peer_published(lane->peer);
	return step;
}

/* Sends it to one of its destinations. */
static enum step send_to(struct vb_qp *qp, uint16_t target)
{
	struct vb_raw *raw = qp->special.raw;
	unsigned what = target >> VB_SEGMENT_TARGET_SHIFT;
	uint32_t slot = target & (VB_SLOTS - 1);
	struct vb_lane *lane;
	struct vb_peer *peer;
	enum vb_way way;
	enum step step;

	if (slot == raw->port->slot && (what & VB_SEGMENT_OUT)) {
		vb_segment_out(qp->nic, raw->frame, raw->bytes);
		what &= ~(unsigned)VB_SEGMENT_OUT;
		if (!what)
			return SENT;
	}
	way = vb_way_choose(qp, slot << VB_INDEX_BITS, &peer);
	if (way == VB_WAY_ASKED)
		return FULL;
	if (way != VB_WAY_RING || vb_peer_is_lost(peer))
		return LOST;
	lane = &peer->lane[qp->ibv.qp.qp_num % VB_RING_LANES];
	step = put(qp, lane, what);
	if (step == FULL && vb_lane_is_overdue(qp, PATIENCE_NS)) {
		vb_lane_unwait(qp);
		give_up(lane);
		step = LOST;
	}
	if (step != FULL)
		qp->lane.stuck_ns = 0;
	return step;
}

/* Sends the frame to the remaining destinations. Returns false if there is no room. */
static bool send_frame(struct vb_qp *qp)
{
	struct vb_raw *raw = qp->special.raw;
	struct vb_stats *stats = &qp->nic->stats;

	for (; raw->targets_done < raw->targets; raw->targets_done++) {
		enum step step = send_to(qp, raw->target[raw->targets_done]);

		if (step == FULL)
			return false;
		if (step == LOST)
			vb_stat_add(stats, VB_STAT_TX_LOST, 1);
	}
	if (!raw->targets)
		vb_stat_add(stats, VB_STAT_RAW_NOBODY, 1);
	if (qp->send.paced)
		vb_pace_charge(qp, raw->bytes);
	raw->bytes = 0;
	return true;
}

/*
 * An application that only sends may have missed that the other side fell asleep: sets the timer to
 * check again.
 */
static void look_later(struct vb_qp *qp)
{
	if (vb_timer_at_ns(&qp->later.timer) == UINT64_MAX)
		vb_timer_arm(qp->nic, qp, vb_nic_now_ns(qp->nic) + LATER_NS);
}

/* Sends all frames of a work request. Returns true when done; *status says why not sent. */
static bool send_all(struct vb_qp *qp, const struct vb_wqe *wqe, enum ibv_wc_status *status)
{
	struct vb_raw *raw = qp->special.raw;

	do {
		*status = make_frame(qp, wqe);
		if (*status != IBV_WC_SUCCESS)
			break;
		if (!send_frame(qp))
			return false;
		raw->cuts = raw->cuts && vb_tso_next(raw->tso, &raw->cut);
	} while (raw->cuts);
	raw->cuts = false;
	return true;
}

void vb_raw_transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct vb_req *req = &qp->req;
	uint32_t from = req->pos.next;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct vb_segment seg;
	bool ackreq;

	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD)
		return;
	while (status == IBV_WC_SUCCESS && !(qp->send.paced && vb_pace_waits(qp))) {
		struct vb_req_pos before = req->pos;

		if (!vb_req_next(req, &seg, &ackreq))
			break;
		if (!send_all(qp, vb_sq_at(&req->sq, before.next), &status)) {
			req->pos = before;
			break;
		}
		if (status != IBV_WC_SUCCESS) {
			req->pos = before;
			vb_req_fault(req, status);
		} else {
			vb_req_sent(req, &before, 0);
		}
	}
	if (atomic_load_explicit(&qp->special.raw->port->has_uplink, memory_order_relaxed))
		vb_segment_flush(qp->nic);
	if (from != req->pos.next)
		look_later(qp);
	vb_req_complete_sent(req);
}
