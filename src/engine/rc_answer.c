/* SPDX-License-Identifier: BSD-2-Clause */

/* What an answer, or its absence, means for an RC requester (IBA 9.7.5 to 9.7.7). */

#include "engine/rc_answer.h"

#include "base/check.h"
#include "base/psn.h"
#include "engine/host.h"

/*
 * A software peer shares its CPU: it may take some milliseconds to answer although nothing is lost.
 * So the timeout is never shorter than the local_ca_ack_delay that we report, and retransmission on
 * suspicion, which costs no retry, never earlier than RTO_MIN_NS.
 */
#define ACK_DELAY_NS 16777216u /* 4.096 us * 2^12 */
#define RTO_MIN_NS 4000000u
#define RTO_MAX_NS 10000000000u

/* How often a requester on a reliable link checks for progress. */
#define LOOK_NS 10000000u

uint64_t vb_req_ack_timeout_ns(const struct vb_req *req)
{
	if (!req->retry.timeout)
		return VB_NEVER_NS;
	return vb_max_u64(4096ull << req->retry.timeout, ACK_DELAY_NS);
}

/* Each whole timeout is to have a retransmission. */
static uint64_t rto_most_ns(const struct vb_req *req)
{
	return vb_min_u64(vb_req_ack_timeout_ns(req), RTO_MAX_NS);
}

static uint64_t rto_measured_ns(const struct vb_req *req)
{
	return vb_max_u64(req->rtt.smooth_ns + 4 * req->rtt.var_ns, RTO_MIN_NS);
}

/*
 * Until a round trip is measured, the wait is twice what this answer took, if it was waited for
 * from the first of the timeouts on.
 */
static void wait_as_it_took(struct vb_req *req, uint64_t now_ns)
{
	uint64_t wait_ns = vb_max_u64(req->rtt.rto_ns, 2 * (now_ns - req->undo.progress_ns));

	req->rtt.rto_ns = vb_min_u64(wait_ns, rto_most_ns(req));
}

/*
 * Something arrived after timeouts. Once they were probably a loss, and the wait is what it was.
 * Twice in a row, or before the first measurement, the path may take longer than we think: the wait
 * stays as long until a packet that was sent once only has been measured, or none ever would be
 * (RFC 6298, 5.5 to 5.7).
 */
static __attribute__((cold, noinline)) void doubled_no_more(struct vb_req *req, uint64_t now_ns)
{
	req->rtt.doubled = false;
	if (!req->rtt.smooth_ns)
		wait_as_it_took(req, now_ns);
	else if (!req->rtt.doubted)
		req->rtt.rto_ns = rto_measured_ns(req);
	req->rtt.doubted = true;
}

/* Something arrived: restarts clocks and retry counters. */
static void made_progress(struct vb_req *req, uint64_t now_ns)
{
	req->retry.gap_known = false;
	req->retry.left = req->retry.count;
	req->retry.rnr_left = req->retry.rnr_count;
	if (req->reliable) {
		req->clock.resend_ns = VB_NEVER_NS;
		return;
	}
	if (req->rtt.doubled)
		doubled_no_more(req, now_ns);
	req->clock.progress_ns = now_ns;
	req->clock.resend_ns =
		req->una_psn == req->top_psn ? VB_NEVER_NS : now_ns + req->rtt.rto_ns;
}

/* Smooths the round trip (RFC 6298), measured by packets sent once only. */
static void take_sample(struct vb_req *req, uint64_t now_ns)
{
	uint64_t rtt = now_ns - req->rtt.sample_ns;
	uint64_t off =
		rtt > req->rtt.smooth_ns ? rtt - req->rtt.smooth_ns : req->rtt.smooth_ns - rtt;

	if (!req->rtt.smooth_ns) {
		req->rtt.smooth_ns = rtt;
		req->rtt.var_ns = rtt / 2;
	} else {
		req->rtt.var_ns = (3 * req->rtt.var_ns + off) / 4;
		req->rtt.smooth_ns = (7 * req->rtt.smooth_ns + rtt) / 8;
	}
	req->rtt.rto_ns = rto_measured_ns(req);
	req->rtt.doubled = req->rtt.doubted = false;
	req->rtt.sample_ns = 0;
}

static void window_grow(struct vb_req *req, uint32_t acked)
{
	if (req->flight.window < req->flight.threshold) {
		req->flight.window += acked;
	} else {
		req->flight.grow += acked;
		if (req->flight.grow >= req->flight.window) {
			req->flight.grow = 0;
			req->flight.window++;
		}
	}
	if (req->flight.window > req->flight.max)
		req->flight.window = req->flight.max;
}

static void window_shrink(struct vb_req *req, uint32_t least)
{
	if (req->reliable)
		return;
	req->flight.threshold = req->flight.window / 2 < 4 ? 4 : req->flight.window / 2;
	req->flight.window = least ? least : req->flight.threshold;
	req->flight.grow = 0;
}

/* Sends everything again, and keeps what the first of several timeouts in a row found. */
static void rewind_for_now(struct vb_req *req)
{
	struct vb_req_undo undo = req->undo;

	if (!req->rtt.doubled)
		undo = (struct vb_req_undo){
			.pos = req->pos,
			.window = req->reliable ? 0 : req->flight.window,
			.threshold = req->flight.threshold,
			.progress_ns = req->clock.progress_ns,
		};
	vb_req_rewind(req);
	req->undo = undo;
}

/*
 * The answer is to packets that were not sent again yet: nothing before it was lost, and the path
 * takes longer than we thought. The window is what it was, and what is on its way is not sent again
 * (RFC 4015, RFC 5682), unless it is READs or atomics, which are counted from the oldest on.
 */
static __attribute__((cold, noinline)) void timeout_undo(struct vb_req *req, uint64_t now_ns)
{
	const struct vb_req_undo *undo = &req->undo;

	if (!undo->pos.fetches && vb_psn_diff(undo->pos.next_psn, req->una_psn) > 0)
		req->pos = undo->pos;
	req->flight.window = (uint32_t)vb_min_u64(undo->window, req->flight.max);
	req->flight.threshold = (uint32_t)vb_min_u64(undo->threshold, req->flight.max);
	req->undo.window = 0;
	wait_as_it_took(req, now_ns);
	req->rtt.doubled = false;
	req->rtt.doubted = true;
}

/* Moves una_psn up to psn, which is in or right behind what was sent. */
static void advance(struct vb_req *req, uint32_t psn, uint64_t now_ns)
{
	uint32_t acked = (psn - req->una_psn) & VB_PSN_MASK;

	if (!acked)
		return;
	req->una_psn = psn;
	while (req->head != req->tail) {
		const struct vb_wqe *wqe = vb_sq_at(&req->sq, req->head);

		if (((psn - wqe->psn) & VB_PSN_MASK) < wqe->packets)
			break;
		if (vb_wqe_is_local(wqe) && !req->local.done)
			break;
		if (req->pos.next == req->head)
			req->pos.next++;
		vb_req_complete_head(req, IBV_WC_SUCCESS);
	}
	/* The answer is to a packet sent before we went back: it need not be sent again. */
	if (vb_psn_diff(req->pos.next_psn, psn) < 0) {
		req->pos.next_psn = psn;
		req->pos.next = req->head;
		if (req->undo.window)
			timeout_undo(req, now_ns);
	}
	if (req->rtt.sample_ns && vb_psn_diff(psn, req->rtt.sample_psn) > 0)
		take_sample(req, now_ns);
	if (!req->reliable)
		window_grow(req, acked);
	made_progress(req, now_ns);
}

/*
 * The other side says that all before psn arrived. READs and atomics are done only when their data
 * came: una_psn stops at the first of those. Returns true if nothing stopped it.
 */
static bool acknowledge(struct vb_req *req, uint32_t psn, uint64_t now_ns)
{
	uint32_t upto = psn;

	for (uint32_t i = req->head; i != req->tail; i++) {
		const struct vb_wqe *wqe = vb_sq_at(&req->sq, i);
		uint32_t start = i == req->head ? req->una_psn : wqe->psn;

		if (vb_psn_diff(start, psn) >= 0)
			break;
		if (vb_wqe_is_fetch(wqe)) {
			upto = start;
			break;
		}
	}
	advance(req, upto, now_ns);
	return upto == psn;
}

static enum vb_req_outcome fail_head(struct vb_req *req, enum ibv_wc_status status)
{
	vb_req_complete_head(req, status);
	return VB_REQ_FAILED;
}

void vb_rc_new_path(struct vb_req *req, uint64_t now_ns)
{
	req->retry.armed = false;
	req->retry.left = req->retry.count;
	req->retry.rnr_left = req->retry.rnr_count;
	req->retry.gap_known = false;
	req->rtt.smooth_ns = req->rtt.var_ns = req->rtt.sample_ns = 0;
	req->rtt.rto_ns = VB_RTO_START_NS;
	req->rtt.doubled = req->rtt.doubted = false;
	if (req->clock.resend_ns == VB_NEVER_NS)
		return;
	req->clock.progress_ns = now_ns;
	req->clock.resend_ns = now_ns + req->rtt.rto_ns;
}

/* IBA 17.2.8: if migration is armed, takes the other path and sends everything again. */
static enum vb_req_outcome retries_used_up(struct vb_req *req, uint64_t now_ns)
{
	if (!req->retry.armed)
		return fail_head(req, IBV_WC_RETRY_EXC_ERR);
	vb_rc_new_path(req, now_ns);
	window_shrink(req, 1);
	vb_req_rewind(req);
	return VB_REQ_MIGRATE;
}

/* A response before this one is missing: asks again, once for each gap. */
static enum vb_req_outcome send_again(struct vb_req *req, uint64_t now_ns)
{
	if (req->retry.gap_known)
		return VB_REQ_NOTHING;
	if (!req->retry.left)
		return retries_used_up(req, now_ns);
	req->retry.left--;
	req->retry.gap_known = true;
	window_shrink(req, 0);
	vb_req_rewind(req);
	req->clock.resend_ns = now_ns + req->rtt.rto_ns;
	return VB_REQ_MOVED;
}

static enum vb_req_outcome rnr_nak(struct vb_req *req, const struct vb_pkt *pkt, uint64_t now_ns)
{
	uint64_t wait_ns = vb_rnr_timer_ns(vb_aeth_value(pkt->aeth.syndrome));

	/* While we wait nothing is in flight: this NAK is a duplicate. */
	if (req->una_psn != pkt->psn || req->retry.rnr_waits)
		return VB_REQ_STALE;
	if (!req->retry.rnr_left)
		return fail_head(req, IBV_WC_RNR_RETRY_EXC_ERR);
	if (req->retry.rnr_count != 7) /* IBA 9.7.5.2.8: 7 is for ever */
		req->retry.rnr_left--;
	vb_req_rewind(req);
	req->retry.rnr_waits = true;
	req->retry.rnr_until_ns = now_ns + wait_ns;
	req->clock.progress_ns = req->retry.rnr_until_ns;
	req->clock.resend_ns = VB_NEVER_NS;
	return VB_REQ_MOVED;
}

static enum vb_req_outcome nak(struct vb_req *req, const struct vb_pkt *pkt, uint64_t now_ns)
{
	static const enum ibv_wc_status status[] = {
		[VB_NAK_INVALID_REQ] = IBV_WC_REM_INV_REQ_ERR,
		[VB_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[VB_NAK_OP] = IBV_WC_REM_OP_ERR,
	};
	unsigned code = vb_aeth_value(pkt->aeth.syndrome);

	if (req->una_psn != pkt->psn)
		return VB_REQ_STALE;
	if (code == VB_NAK_PSN) {
		/* Nothing was sent since the last one: this NAK is a duplicate. */
		if (req->pos.next_psn == req->una_psn)
			return VB_REQ_STALE;
		req->retry.gap_known = false;
		return send_again(req, now_ns);
	}
	if (code >= VB_ARRAY_LEN(status) || !status[code])
		return VB_REQ_STALE;
	return fail_head(req, status[code]);
}

static void take_credits(struct vb_req *req, const struct vb_pkt *pkt)
{
	unsigned code = vb_aeth_value(pkt->aeth.syndrome);

	req->credits.known = code != VB_CREDIT_CODE_UNLIMITED;
	if (req->credits.known)
		req->credits.limit = vb_psn_add(req->credits.of_packets ? pkt->psn : pkt->aeth.msn,
					       vb_credit_decode(code));
}

static enum vb_req_outcome ack_or_nak(struct vb_req *req, const struct vb_pkt *pkt,
				      uint64_t now_ns)
{
	enum vb_aeth class = vb_aeth_class(pkt->aeth.syndrome);
	bool ack = class == VB_AETH_ACK;

	if (class == VB_AETH_RESERVED)
		return VB_REQ_STALE;
	if (!acknowledge(req, vb_psn_add(pkt->psn, ack), now_ns))
		return send_again(req, now_ns);
	if (ack) {
		take_credits(req, pkt);
		return VB_REQ_MOVED;
	}
	return class == VB_AETH_RNR ? rnr_nak(req, pkt, now_ns) : nak(req, pkt, now_ns);
}

/* A READ response or an atomic's answer, in its turn. */
static enum vb_req_outcome take_data(struct vb_req *req, const struct vb_pkt *pkt,
				     const struct vb_op_info *info, uint64_t now_ns)
{
	const struct vb_wqe *wqe = vb_sq_at(&req->sq, req->head);
	enum vb_kind kind = (enum vb_kind)wqe->kind;
	struct vb_segment seg;
	enum ibv_wc_status status;

	vb_segment_at(&seg, req->transport, wqe, pkt->psn, req->mtu);
	if (info->kind == VB_K_ATOMIC_ACK) {
		if (!vb_wqe_is_atomic(wqe))
			return fail_head(req, IBV_WC_BAD_RESP_ERR);
		status = vb_host_local_write(req, wqe, 0, &pkt->atomic.orig,
					     sizeof(pkt->atomic.orig));
	} else if (kind == VB_K_ATOMIC_WRITE || kind == VB_K_FLUSH) {
		/* Release 1.6: answered by a READ response without data. */
		if (pkt->payload_bytes)
			return fail_head(req, IBV_WC_BAD_RESP_ERR);
		status = IBV_WC_SUCCESS;
	} else {
		uint32_t expected = (uint32_t)vb_min_u64(req->mtu, wqe->bytes - seg.offset);

		if (kind != VB_K_READ_REQ || pkt->payload_bytes != expected)
			return fail_head(req, IBV_WC_BAD_RESP_ERR);
		status = vb_host_local_write(req, wqe, seg.offset, pkt->payload, expected);
	}
	if (status != IBV_WC_SUCCESS)
		return fail_head(req, status);
	if (info->headers & VB_H_AETH)
		take_credits(req, pkt);
	/* The end of a piece frees a place for another request. */
	if (seg.span == 1 && req->pos.fetches && vb_psn_diff(pkt->psn, req->pos.next_psn) < 0)
		req->pos.fetches--;
	advance(req, vb_psn_add(pkt->psn, 1), now_ns);
	return VB_REQ_MOVED;
}

enum vb_req_outcome vb_rc_answer(struct vb_req *req, const struct vb_pkt *pkt,
				 const struct vb_op_info *info, uint64_t now_ns)
{
	enum vb_req_outcome outcome;

	/*
	 * Only what was asked can be answered. A repeated ACK of the newest PSN may bring credits.
	 */
	if (vb_psn_diff(pkt->psn, req->top_psn) >= 0)
		return VB_REQ_STALE;
	if (vb_psn_diff(pkt->psn, req->una_psn) < 0) {
		if (info->kind != VB_K_ACK || vb_aeth_class(pkt->aeth.syndrome) != VB_AETH_ACK ||
		    vb_psn_add(pkt->psn, 1) != req->una_psn)
			return VB_REQ_STALE;
		take_credits(req, pkt);
		return VB_REQ_MOVED;
	}
	if (info->kind == VB_K_ACK) {
		outcome = ack_or_nak(req, pkt, now_ns);
	} else if (!acknowledge(req, pkt->psn, now_ns)) {
		outcome = send_again(req, now_ns);
	} else {
		outcome = take_data(req, pkt, info, now_ns);
	}
	if (outcome != VB_REQ_FAILED && vb_req_settle(req) == VB_REQ_FAILED)
		return VB_REQ_FAILED;
	return outcome;
}

bool vb_rc_middle(struct vb_req *req, uint32_t psn, const uint8_t *payload, uint32_t bytes,
		  uint64_t now_ns)
{
	const struct vb_wqe *wqe;
	uint32_t index, next = vb_psn_add(psn, 1);

	if (psn != req->una_psn || bytes != req->mtu || req->head == req->tail ||
	    vb_psn_diff(psn, req->top_psn) >= 0 || vb_psn_diff(next, req->pos.next_psn) > 0)
		return false;
	wqe = vb_sq_at(&req->sq, req->head);
	index = (psn - wqe->psn) & VB_PSN_MASK;
	/* At the end of a piece there is more to do (take_data). */
	if (wqe->kind != VB_K_READ_REQ || index + 1 >= wqe->packets ||
	    (index + 1) % vb_read_chunk_packets(req->mtu) == 0 ||
	    vb_host_local_write(req, wqe, index * req->mtu, payload, bytes) != IBV_WC_SUCCESS)
		return false;
	advance(req, next, now_ns);
	return true;
}

uint64_t vb_rc_deadline_ns(const struct vb_req *req)
{
	if (req->retry.rnr_waits)
		return req->retry.rnr_until_ns;
	return req->clock.resend_ns;
}

enum vb_req_outcome vb_rc_timeout(struct vb_req *req, uint64_t now_ns)
{
	uint64_t timeout_ns = vb_req_ack_timeout_ns(req);

	if (req->retry.rnr_waits) {
		if (now_ns < req->retry.rnr_until_ns)
			return VB_REQ_NOTHING;
		req->retry.rnr_waits = false;
		return VB_REQ_MOVED;
	}
	if (now_ns < req->clock.resend_ns)
		return VB_REQ_NOTHING;
	if (req->una_psn == req->top_psn) {
		req->clock.resend_ns = VB_NEVER_NS;
		return VB_REQ_NOTHING;
	}
	/* Our own lateness is not the peer's silence: its answer may be waiting here. */
	req->clock.progress_ns += now_ns - req->clock.resend_ns;
	/*
	 * retry_cnt counts whole timeouts, as in the man page; retransmissions in between, at
	 * doubling intervals, are free.
	 */
	if (timeout_ns != VB_NEVER_NS &&
	    now_ns >= req->clock.progress_ns + (req->retry.count + 1ull) * timeout_ns)
		return retries_used_up(req, now_ns);
	/* What was to be sent again has not left yet, since the link is full. */
	if (req->pos.next_psn == req->una_psn) {
		req->clock.resend_ns = now_ns + req->rtt.rto_ns;
		return VB_REQ_MOVED;
	}
	rewind_for_now(req);
	req->rtt.doubled = true;
	req->rtt.rto_ns = vb_min_u64(2 * req->rtt.rto_ns, rto_most_ns(req));
	window_shrink(req, 1);
	req->retry.gap_known = false;
	req->clock.resend_ns = now_ns + req->rtt.rto_ns;
	return VB_REQ_MOVED;
}

void vb_rc_watch(struct vb_req *req, uint64_t now_ns)
{
	req->clock.watched_psn = req->una_psn;
	req->clock.progress_ns = now_ns;
	/* A look later than this is late by us: vb_rc_timeout() subtracts that. */
	req->clock.resend_ns = now_ns + LOOK_NS;
}

enum vb_req_outcome vb_rc_look(struct vb_req *req, bool unread, uint64_t now_ns)
{
	if (req->retry.rnr_waits)
		return vb_rc_timeout(req, now_ns);
	if (req->una_psn == req->top_psn)
		return VB_REQ_NOTHING;
	if (req->una_psn != req->clock.watched_psn || unread ||
	    req->clock.resend_ns == VB_NEVER_NS) {
		vb_rc_watch(req, now_ns);
		return VB_REQ_NOTHING;
	}
	return vb_rc_timeout(req, now_ns);
}
