/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_REQ_H
#define VB_ENGINE_REQ_H

/*
 * The requester: the send side of a QP. Pure: the caller holds the QP's lock, passes the time, and
 * carries out the results.
 *
 * The queue, oldest first:   head ........ next ........ tail
 *                            not yet       to be sent    first free
 *                            completed     from next_psn
 *
 * una_psn is the oldest unacknowledged PSN. It always belongs to `head` (or, if the queue is empty,
 * is the next to be posted). To retransmit means to set next_psn back.
 */

#include "engine/segment.h"
#include "wire/packet.h"

#define VB_NEVER_NS UINT64_MAX

/* The retransmission timeout while nothing is known of the path. */
#define VB_RTO_START_NS 10000000u

/* How far sending has come; copied so that a step can be undone when the link is full. */
struct vb_req_pos {
	uint32_t next;	       /* the work request that next_psn belongs to */
	uint32_t next_psn;
	uint32_t fetches;      /* READs and atomics in flight since una_psn */
	uint32_t since_ackreq; /* packets since the last one that requested an acknowledgement */
	/* XRC, DC: the destination of all packets in flight (vb_wqe.remote) */
	uint32_t target;
};

/*
 * Credits (IBA 9.7.7.2): messages with an SSN beyond the limit wait. With packet credits the limit
 * is a PSN, and packets wait.
 */
struct vb_req_credits {
	uint32_t limit;
	bool known;
	bool of_packets;
};

/* Work requests without a packet that were carried out, and complete after those before them. */
struct vb_req_local {
	uint32_t next; /* if done is not 0: the index behind the last of them */
	uint16_t done;
};

/* The host's own work requests, which the application does not see: counted from the start. */
struct vb_req_own {
	uint32_t posted, done;
};

/* A local fault found when sending: reported when everything before it is done. */
struct vb_req_fault {
	enum ibv_wc_status status;
	uint32_t index;
};

/* Retransmission. */
struct vb_req_retry {
	uint8_t timeout;	  /* 5-bit code: 4.096 us * 2^timeout, 0: wait for ever */
	uint8_t count, rnr_count; /* retry_cnt, rnr_retry */
	uint8_t left, rnr_left;
	bool gap_known;	 /* a gap in the responses at una_psn was handled already */
	bool armed;	 /* there is another path to try when retries are used up (nic) */
	bool rnr_waits;	 /* the peer was not ready to receive */
	uint64_t rnr_until_ns;
};

/* Packets in flight: the bound, and the present window. */
struct vb_req_flight {
	uint32_t max;
	uint32_t window, threshold;
	uint32_t grow; /* acknowledged packets counted towards enlarging the window by one */
};

/* What a timeout changed, in case that it was in vain. window 0: nothing can be undone. */
struct vb_req_undo {
	struct vb_req_pos pos;
	uint32_t window, threshold;
	uint64_t progress_ns;
};

struct vb_req_clock {
	uint64_t progress_ns; /* when una_psn last moved, or the first packet left */
	uint64_t resend_ns;   /* when to retransmit, VB_NEVER_NS: nothing in flight */
	uint64_t sent_ns;     /* when the last packet left */
	uint32_t watched_psn; /* una_psn when vb_rc_watch was called */
};

/* The path's round trip. */
struct vb_req_rtt {
	uint64_t smooth_ns, var_ns, rto_ns;
	bool doubled; /* rto_ns was, since the last progress or sample */
	bool doubted; /* ... and before that, since the last sample */
	uint64_t sample_ns; /* when sample_psn left, 0: none is being timed */
	uint32_t sample_psn;
};

struct vb_req {
	/* Set by modify_qp. */
	enum vb_transport transport;
	uint32_t mtu;
	uint32_t max_fetches; /* max_rd_atomic */
	bool reliable;	      /* the link loses nothing: no window to find, no clocks to run */
	bool sqd;	      /* draining: begin no further work request */

	struct vb_sq sq;
	uint32_t head, tail;
	struct vb_req_pos pos;
	uint32_t una_psn;
	uint32_t top_psn;  /* one past the highest PSN ever sent */
	uint32_t post_psn; /* for the next work request */
	uint32_t post_ssn;

	struct vb_req_credits credits;
	struct vb_req_local local;
	struct vb_req_own own;
	struct vb_req_fault fault_met;
	struct vb_req_flight flight;
	struct vb_req_undo undo;
	struct vb_req_retry retry;
	struct vb_req_clock clock;
	struct vb_req_rtt rtt;
};

/* What the QP has to do after an answer or a timeout. */
enum vb_req_outcome {
	VB_REQ_NOTHING,
	VB_REQ_MOVED,  /* there may be more to send now */
	VB_REQ_MIGRATE, /* as MOVED, by the other path: the retries on this one are used up */
	VB_REQ_STALE,  /* the answer matches nothing: drop it */
	VB_REQ_FAILED, /* a work request completed in error: the QP goes to error */
};

/* On the way to RTS (and to RTR for mtu): resets everything but the queue's memory. */
void vb_req_reset(struct vb_req *req);
void vb_req_start(struct vb_req *req, uint32_t sq_psn);

/*
 * Changes to another link, of which nothing is known yet. Nothing may be outstanding. window_max:
 * the most packets in flight.
 */
void vb_req_link_set(struct vb_req *req, bool reliable, uint32_t window_max);

/* Changes the most packets in flight; those in flight already stay. */
void vb_req_window_max_set(struct vb_req *req, uint32_t window_max);

/* Is nothing outstanding, and no message half sent? */
bool vb_req_is_between(const struct vb_req *req);

/* In that state: changes the size of packets, for messages in the queue as well. */
void vb_req_mtu_set(struct vb_req *req, uint32_t mtu);

/* Gives a newly written work request its PSNs and queues it. The queue must have room. */
void vb_req_commit(struct vb_req *req, struct vb_wqe *wqe);

/*
 * Completes a newly written work request that was carried out without a packet. Everything before
 * it must be complete. It takes no PSN, so neither side's numbers change.
 */
void vb_req_done_directly(struct vb_req *req);

/*
 * The next packet; false if none may leave now. Advances pos; a caller that cannot send restores
 * the previous pos. ackreq: the packet should request an acknowledgement.
 */
bool vb_req_next(struct vb_req *req, struct vb_segment *seg, bool *ackreq);

/*
 * The fast path when the work request just posted is all there is to send: a message of one packet
 * on a reliable link that nothing can hold up. NULL: use vb_req_next(). Its packet has the opcode
 * wqe->only and the PSN pos.next_psn, and requests an acknowledgement. Call _sent after it was
 * handed to the link. RC only.
 */
const struct vb_wqe *vb_req_lone(const struct vb_req *req);
void vb_req_lone_sent(struct vb_req *req);

/*
 * How many packets from pos on are plain: in the middle of a SEND or WRITE, allowed to leave,
 * without a request for an acknowledgement. 0 means only: ask vb_req_next(). skip: these packets
 * are sent.
 */
uint32_t vb_req_run(const struct vb_req *req);
void vb_req_skip(struct vb_req *req, uint32_t packets);

/*
 * Is it worth calling the link now? Not while an answer is expected shortly, which brings us here
 * again, unless enough is queued for a burst: so small messages posted one by one leave together.
 * RC only, since the other transports get no answers.
 */
bool vb_req_urgent(const struct vb_req *req, uint64_t now_ns);

/*
 * For when vb_req_next() finds nothing to send: is the next work request one without a packet, and
 * its turn has come? Then it is carried out (unless it was before), and sending continues behind
 * it. It completes after those before it, at the latest in vb_req_settle(). So packets behind a
 * BIND leave after it took effect; without a fence, those before it may not have arrived yet. Only
 * work requests that change a key wait for those whose data is behind that key.
 */
bool vb_req_local(struct vb_req *req);

/* After the packets up to pos were handed to the link. */
void vb_req_sent(struct vb_req *req, const struct vb_req_pos *before, uint64_t now_ns);

/* The work request at pos.next cannot be sent, for the reason in status. */
void vb_req_fault(struct vb_req *req, enum ibv_wc_status status);

/*
 * Completes work requests that were carried out without a packet, or that failed locally, once
 * nothing is before them.
 */
enum vb_req_outcome vb_req_settle(struct vb_req *req);

/*
 * DC. give_up: completes the oldest work request with this status. go_on: sending continues with
 * the next one, on another connection, as if nothing had been sent before.
 */
void vb_req_give_up(struct vb_req *req, enum ibv_wc_status status);
void vb_req_go_on(struct vb_req *req);

/* Is no begun message unfinished? SQD waits for that. */
bool vb_req_drained(const struct vb_req *req);

/* UC and UD: completes what was sent. */
void vb_req_complete_sent(struct vb_req *req);

/* --- between the engine's files --- */
void vb_req_rewind(struct vb_req *req);
void vb_req_complete_head(struct vb_req *req, enum ibv_wc_status status);

#endif
