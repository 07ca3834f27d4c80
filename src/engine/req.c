/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/req.h"

#include "base/check.h"
#include "base/psn.h"
#include "engine/host.h"

#define WINDOW_BYTES_START (64u * 1024)

/* Gathering small messages: up to a burst, for at most a round trip or two. */
#define GATHER_PACKETS 16u
#define GATHER_NS 20000u

void vb_req_reset(struct vb_req *req)
{
	struct vb_sq sq = req->sq;

	*req = (struct vb_req){ .sq = sq, .clock.resend_ns = VB_NEVER_NS };
}

static void window_begin(struct vb_req *req)
{
	req->flight.window = WINDOW_BYTES_START / req->mtu;
	if (req->flight.window > req->flight.max || req->reliable)
		req->flight.window = req->flight.max;
	req->flight.threshold = req->flight.max;
}

void vb_req_start(struct vb_req *req, uint32_t sq_psn)
{
	req->una_psn = req->top_psn = req->post_psn = req->pos.next_psn = sq_psn;
	req->post_ssn = 1;
	window_begin(req);
	req->rtt.rto_ns = VB_RTO_START_NS;
	req->retry.left = req->retry.count;
	req->retry.rnr_left = req->retry.rnr_count;
}

void vb_req_link_set(struct vb_req *req, bool reliable, uint32_t window_max)
{
	req->reliable = reliable;
	req->flight.max = window_max;
	window_begin(req);
	req->flight.grow = 0;
	req->pos.since_ackreq = 0;
	req->rtt.sample_ns = req->rtt.smooth_ns = req->rtt.var_ns = 0;
	req->rtt.rto_ns = VB_RTO_START_NS;
	req->clock.resend_ns = VB_NEVER_NS;
}

void vb_req_window_max_set(struct vb_req *req, uint32_t window_max)
{
	/* Nothing was lost yet, so the threshold follows; a threshold that was found stays. */
	if (req->flight.threshold == req->flight.max || req->flight.threshold > window_max)
		req->flight.threshold = window_max;
	req->flight.max = window_max;
	if (req->flight.window > window_max)
		req->flight.window = window_max;
}

/* Numbers a work request's packets and messages, behind all numbered before. */
static void number(struct vb_req *req, struct vb_wqe *wqe)
{
	wqe->psn = req->post_psn;
	/* The size of a FLUSH is that of its range, not of data. */
	wqe->packets = wqe->kind == VB_K_FLUSH ? 1 : vb_packets(wqe->bytes, req->mtu);
	wqe->ssn = req->post_ssn;
	wqe->messages = 1;
	if (vb_wqe_is_local(wqe))
		wqe->packets = wqe->messages = 0;
	if (wqe->kind == VB_K_READ_REQ) {
		uint32_t chunk = vb_read_chunk_packets(req->mtu);

		wqe->messages = (wqe->packets + chunk - 1) / chunk;
	}
	wqe->only = 0;
	if (wqe->packets == 1 && !vb_wqe_is_fetch(wqe) && req->transport != VB_DC)
		wqe->only = vb_segment_only(req->transport, wqe);
	req->post_psn = vb_psn_add(req->post_psn, wqe->packets);
	req->post_ssn = vb_psn_add(req->post_ssn, wqe->messages);
}

void vb_req_commit(struct vb_req *req, struct vb_wqe *wqe)
{
	number(req, wqe);
	req->tail++;
}

void vb_req_mtu_set(struct vb_req *req, uint32_t mtu)
{
	req->mtu = mtu;
	if (req->head == req->tail)
		return;
	req->post_psn = req->una_psn;
	req->post_ssn = vb_sq_at(&req->sq, req->head)->ssn;
	for (uint32_t i = req->head; i != req->tail; i++)
		number(req, vb_sq_at(&req->sq, i));
}

bool vb_req_is_between(const struct vb_req *req)
{
	return req->una_psn == req->top_psn &&
	       (req->head == req->tail ||
		vb_sq_at(&req->sq, req->head)->psn == req->una_psn);
}

void vb_req_done_directly(struct vb_req *req)
{
	vb_check(req->head == req->tail);
	req->tail++;
	req->pos.next++;
	vb_req_complete_head(req, IBV_WC_SUCCESS);
}

static uint32_t in_flight(const struct vb_req *req)
{
	return (req->pos.next_psn - req->una_psn) & VB_PSN_MASK;
}

/* A packet that was sent once: SQD lets its message finish, and credits no longer hold it up. */
static bool was_sent(const struct vb_req *req, uint32_t psn)
{
	return vb_psn_diff(psn, req->top_psn) < 0;
}

/*
 * XRC: all packets in flight are for one slot; those for another begin when these are done. The
 * SRQs of a receive QP may belong to several NICs, and none of them may get the middle of another's
 * message. DC: all are on one connection.
 */
static bool waits_for_target(const struct vb_req *req, const struct vb_wqe *wqe)
{
	return vb_transport_aims(req->transport) && in_flight(req) &&
	       wqe->remote.target != req->pos.target;
}

/*
 * Does it take a receive request, or a part of one, without a credit for it? Messages that have
 * begun are not held up.
 */
static bool lacks_credit(const struct vb_req *req, const struct vb_segment *seg,
			 const struct vb_wqe *wqe)
{
	if (!req->credits.known || !vb_wqe_takes_recv(wqe))
		return false;
	if (!req->credits.of_packets)
		return seg->first && vb_psn_diff(wqe->ssn, req->credits.limit) > 0;
	/* A WRITE needs one for its last packet only. */
	return (wqe->kind == VB_K_SEND || seg->last) &&
	       vb_psn_diff(seg->psn, req->credits.limit) > 0;
}

/* May the packet at pos leave now? */
static bool may_send(const struct vb_req *req, const struct vb_segment *seg,
		     const struct vb_wqe *wqe)
{
	uint32_t flying = in_flight(req);

	if (!vb_transport_acks(req->transport))
		return !(req->sqd && seg->first);
	if (flying && flying + seg->span > req->flight.window)
		return false;
	if (waits_for_target(req, wqe))
		return false;
	if ((seg->first || req->credits.of_packets) && !was_sent(req, seg->psn)) {
		if (req->sqd && seg->first)
			return false;
		/* IBA 9.7.7.2.5: without a credit, one may be sent to find out. */
		if (flying && lacks_credit(req, seg, wqe))
			return false;
	}
	if (seg->first && (wqe->flags & IBV_SEND_FENCE) && req->pos.fetches)
		return false;
	/* An invalid one passes, to be reported: max_rd_atomic 0 may be what is wrong. */
	if (vb_wqe_is_fetch(wqe) && !wqe->fault && req->pos.fetches >= req->max_fetches)
		return false;
	return true;
}

/* The packet at pos, and whether it may leave. */
static bool look(struct vb_req *req, struct vb_segment *seg)
{
	const struct vb_wqe *wqe;

	if (req->retry.rnr_waits || req->pos.next == req->tail)
		return false;
	if (req->fault_met.status && req->pos.next == req->fault_met.index)
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	if (vb_wqe_is_local(wqe))
		return false;
	vb_segment_at(seg, req->transport, wqe, req->pos.next_psn, req->mtu);
	return may_send(req, seg, wqe);
}

/*
 * The commonest case: a message of one packet on a reliable link that nothing can hold up. NULL:
 * look closer.
 */
static inline const struct vb_wqe *simple(const struct vb_req *req)
{
	const struct vb_wqe *wqe;

	if (!req->reliable || req->pos.next == req->tail || req->retry.rnr_waits ||
	    req->fault_met.status || req->sqd || req->pos.fetches)
		return NULL;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	if (!wqe->only || in_flight(req) >= req->flight.window ||
	    (req->credits.known &&
	     (req->credits.of_packets || vb_psn_diff(wqe->ssn, req->credits.limit) > 0)))
		return NULL;
	return wqe;
}

const struct vb_wqe *vb_req_lone(const struct vb_req *req)
{
	const struct vb_wqe *wqe = simple(req);

	if (!wqe || req->transport != VB_RC || req->pos.next + 1 != req->tail || wqe->fault ||
	    req->local.done || req->pos.next_psn != req->top_psn)
		return NULL;
	return wqe;
}

void vb_req_lone_sent(struct vb_req *req)
{
	req->top_psn = req->pos.next_psn = vb_psn_add(req->pos.next_psn, 1);
	req->pos.next++;
	req->clock.sent_ns = 0;
}

static bool next_simple(struct vb_req *req, struct vb_segment *seg)
{
	const struct vb_wqe *wqe = simple(req);

	if (!wqe)
		return false;
	if (req->transport == VB_XRC) {
		if (waits_for_target(req, wqe))
			return false;
		req->pos.target = wqe->remote.target;
	}
	seg->opcode = wqe->only;
	seg->first = seg->last = true;
	seg->psn = req->pos.next_psn;
	seg->span = 1;
	seg->offset = 0;
	seg->bytes = wqe->bytes;
	req->pos.next_psn = vb_psn_add(req->pos.next_psn, 1);
	req->pos.next++;
	return true;
}

bool vb_req_next(struct vb_req *req, struct vb_segment *seg, bool *ackreq)
{
	const struct vb_wqe *wqe;
	struct vb_segment after;

	if (next_simple(req, seg)) {
		*ackreq = vb_transport_acks(req->transport);
		return true;
	}
	if (!look(req, seg))
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	req->pos.next_psn = vb_psn_add(req->pos.next_psn, seg->span);
	if (vb_wqe_is_fetch(wqe))
		req->pos.fetches++;
	if (vb_transport_aims(req->transport))
		req->pos.target = wqe->remote.target;
	if (seg->last)
		req->pos.next++;
	if (!vb_transport_acks(req->transport)) {
		*ackreq = false;
		return true;
	}
	if (req->reliable) {
		/* If the credits end within a message, their return has to be requested. */
		*ackreq = seg->last || (req->credits.of_packets && !look(req, &after));
		return true;
	}
	/*
	 * Request one where sending stops, and often enough for the window to move without
	 * stopping.
	 */
	*ackreq = ++req->pos.since_ackreq * 4 >= req->flight.window || !look(req, &after);
	if (*ackreq)
		req->pos.since_ackreq = 0;
	return true;
}

/* As may_send() and vb_req_next(), for packets that are neither first nor last. */
uint32_t vb_req_run(const struct vb_req *req)
{
	const struct vb_wqe *wqe;
	uint32_t index, left, until_ackreq;

	if (req->pos.next == req->tail || req->retry.rnr_waits ||
	    (req->fault_met.status && req->pos.next == req->fault_met.index))
		return 0;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	index = (req->pos.next_psn - wqe->psn) & VB_PSN_MASK;
	if (index == 0 || index + 1 >= wqe->packets ||
	    (wqe->kind != VB_K_SEND && wqe->kind != VB_K_WRITE) || req->transport == VB_DC ||
	    req->credits.of_packets)
		return 0;
	/* The framer, which builds runs for the wire, cannot add an XRCETH. */
	if (req->transport == VB_XRC && !req->reliable)
		return 0;
	left = wqe->packets - 1 - index;
	if (!vb_transport_acks(req->transport))
		return left;
	/* The last packet in the window requests one, and so does one in each quarter of it. */
	if (in_flight(req) + 1 >= req->flight.window)
		return 0;
	left = (uint32_t)vb_min_u64(left, req->flight.window - 1 - in_flight(req));
	if (req->reliable)
		return left;
	if ((req->pos.since_ackreq + 1) * 4 >= req->flight.window)
		return 0;
	until_ackreq = (req->flight.window - 1) / 4 - req->pos.since_ackreq;
	return (uint32_t)vb_min_u64(left, until_ackreq);
}

void vb_req_skip(struct vb_req *req, uint32_t packets)
{
	req->pos.next_psn = vb_psn_add(req->pos.next_psn, packets);
	if (req->transport == VB_XRC)
		req->pos.target = vb_sq_at(&req->sq, req->pos.next)->remote.target;
	if (vb_transport_acks(req->transport) && !req->reliable)
		req->pos.since_ackreq += packets;
}

bool vb_req_urgent(const struct vb_req *req, uint64_t now_ns)
{
	return !vb_transport_acks(req->transport) || !in_flight(req) ||
	       ((req->post_psn - req->pos.next_psn) & VB_PSN_MASK) >= GATHER_PACKETS ||
	       now_ns >= req->clock.sent_ns + GATHER_NS;
}

void vb_req_sent(struct vb_req *req, const struct vb_req_pos *before, uint64_t now_ns)
{
	bool fresh = !was_sent(req, before->next_psn);

	if (before->next_psn == req->pos.next_psn)
		return;
	if (vb_psn_diff(req->pos.next_psn, req->top_psn) > 0)
		req->top_psn = req->pos.next_psn;
	req->clock.sent_ns = now_ns;
	if (!vb_transport_acks(req->transport) || req->reliable)
		return;
	if (before->next_psn == req->una_psn && fresh)
		req->clock.progress_ns = now_ns;
	/* A link that was full may have held it up since the timeout. */
	if (before->next_psn == req->una_psn || req->clock.resend_ns == VB_NEVER_NS)
		req->clock.resend_ns = now_ns + req->rtt.rto_ns;
	if (fresh && !req->rtt.sample_ns) {
		req->rtt.sample_ns = now_ns;
		req->rtt.sample_psn = vb_psn_add(req->pos.next_psn, VB_PSN_MASK);
	}
}

/* Was the work request at pos, which needs no packet, carried out already? */
static bool was_carried_out(const struct vb_req *req)
{
	return req->local.done && (int32_t)(req->pos.next - req->local.next) < 0;
}

/* The key that it changes, if other work requests' data may be behind it; 0: none. */
static uint32_t changed_key(const struct vb_wqe *wqe)
{
	if (wqe->kind == VB_K_MKEY)
		return wqe->mkey.key;
	return wqe->kind == VB_K_LOCAL_INV ? wqe->inv_rkey : 0;
}

/*
 * Does a work request in flight have data behind this key? It may have to be sent again, or its
 * answer is still to be stored.
 */
static bool is_in_use(const struct vb_req *req, uint32_t key)
{
	for (uint32_t i = req->head; key && i != req->pos.next; i++) {
		const struct vb_wqe *wqe = vb_sq_at(&req->sq, i);

		for (uint32_t k = 0; k < wqe->sge_count; k++) {
			if (!((wqe->sge[k].lkey ^ key) & ~VB_KEY_TAG_MASK))
				return true;
		}
	}
	return false;
}

bool vb_req_local(struct vb_req *req)
{
	const struct vb_wqe *wqe;
	enum ibv_wc_status status;

	if (req->pos.next == req->tail || req->retry.rnr_waits ||
	    (req->fault_met.status && req->pos.next == req->fault_met.index))
		return false;
	wqe = vb_sq_at(&req->sq, req->pos.next);
	if (!vb_wqe_is_local(wqe))
		return false;
	if (was_carried_out(req)) {
		req->pos.next++;
		return true;
	}
	if (req->sqd || ((wqe->flags & IBV_SEND_FENCE) && req->pos.fetches) ||
	    (vb_transport_acks(req->transport) && is_in_use(req, changed_key(wqe))))
		return false;
	status = wqe->fault ? (enum ibv_wc_status)wqe->fault : vb_host_local(req, wqe);
	if (status != IBV_WC_SUCCESS) {
		vb_req_fault(req, status);
		return false;
	}
	req->local.next = ++req->pos.next;
	req->local.done++;
	return true;
}

void vb_req_fault(struct vb_req *req, enum ibv_wc_status status)
{
	req->fault_met.status = status;
	req->fault_met.index = req->pos.next;
}

/* Completes work requests that were carried out, once nothing is before them. */
static void complete_locals(struct vb_req *req)
{
	while (req->local.done && vb_wqe_is_local(vb_sq_at(&req->sq, req->head))) {
		if (req->pos.next == req->head)
			req->pos.next++;
		vb_req_complete_head(req, IBV_WC_SUCCESS);
	}
}

enum vb_req_outcome vb_req_settle(struct vb_req *req)
{
	if (req->local.done)
		complete_locals(req);
	if (!req->fault_met.status || req->head != req->fault_met.index)
		return VB_REQ_NOTHING;
	vb_req_complete_head(req, req->fault_met.status);
	req->fault_met.status = IBV_WC_SUCCESS;
	return VB_REQ_FAILED;
}

bool vb_req_drained(const struct vb_req *req)
{
	const struct vb_wqe *wqe;

	if (req->head == req->tail)
		return true;
	wqe = vb_sq_at(&req->sq, req->head);
	return !was_sent(req, wqe->psn);
}

void vb_req_rewind(struct vb_req *req)
{
	req->pos = (struct vb_req_pos){ .next = req->head, .next_psn = req->una_psn };
	req->rtt.sample_ns = 0;
	req->undo.window = 0;
}

void vb_req_complete_head(struct vb_req *req, enum ibv_wc_status status)
{
	uint32_t index = req->head++;
	const struct vb_wqe *wqe = vb_sq_at(&req->sq, index);

	vb_check(index != req->tail);
	if (req->local.done && vb_wqe_is_local(wqe))
		req->local.done--;
	vb_host_send_done(req, wqe, index, status);
}

void vb_req_give_up(struct vb_req *req, enum ibv_wc_status status)
{
	vb_req_complete_head(req, status);
	vb_req_go_on(req);
}

void vb_req_go_on(struct vb_req *req)
{
	bool more = req->head != req->tail;

	req->una_psn = more ? vb_sq_at(&req->sq, req->head)->psn : req->post_psn;
	req->top_psn = req->una_psn;
	vb_req_rewind(req);
	req->fault_met.status = IBV_WC_SUCCESS;
	req->retry.rnr_waits = false;
	req->clock.resend_ns = VB_NEVER_NS;
	req->retry.left = req->retry.count;
	req->retry.rnr_left = req->retry.rnr_count;
	req->retry.gap_known = false;
	req->credits.known = false;
}

void vb_req_complete_sent(struct vb_req *req)
{
	while (req->head != req->pos.next)
		vb_req_complete_head(req, IBV_WC_SUCCESS);
	req->una_psn = req->pos.next_psn;
}
