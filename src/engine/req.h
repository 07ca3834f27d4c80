/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ENGINE_REQ_H
#define VB_ENGINE_REQ_H

/*
 * The requester: what a send queue does. Pure: the caller holds the QP's lock, says what time it
 * is, and carries out what comes back.
 *
 * The queue, oldest first:   head ........ next ........ tail
 *                            not yet       to be sent    first free
 *                            completed     from next_psn
 *
 * una_psn is the oldest PSN that is not acknowledged and always belongs to `head` (or is the next
 * one to be posted, when the queue is empty). To send again means to set next_psn back.
 */

#include "engine/segment.h"
#include "wire/packet.h"

#define VB_NEVER_NS UINT64_MAX

/* When to send again on suspicion, as long as nothing is known of the path. */
#define VB_RTO_START_NS 10000000u

/* How far sending has come; copied to be able to take a step back when the link was full. */
struct vb_req_pos {
	uint32_t next;	       /* the work request that next_psn belongs to */
	uint32_t next_psn;
	uint32_t fetches;      /* READ requests and atomics on their way since una_psn */
	uint32_t since_ackreq; /* packets since one that asked for an acknowledgement */
	uint32_t target;       /* XRC, DC: where all goes that is on its way (vb_wqe.remote) */
};

/*
 * Credits (IBA 9.7.7.2): messages with an SSN beyond the limit wait. Where they are those of
 * packets, the limit is a PSN, and packets wait.
 */
struct vb_req_credits {
	uint32_t limit;
	bool known;
	bool of_packets;
};

/* Work requests without a packet that were carried out, and wait for those before them. */
struct vb_req_local {
	uint32_t next; /* if any are done: behind the last of them */
	uint16_t done;
};

/* The host's own work requests, of which the application knows nothing: how many ever. */
struct vb_req_own {
	uint32_t posted, done;
};

/* A local fault that was met on sending: reported when all before it is done. */
struct vb_req_fault {
	enum ibv_wc_status status;
	uint32_t index;
};

/* To send again what nobody answers. */
struct vb_req_retry {
	uint8_t timeout; /* 5-bit code: 4.096 us * 2^timeout, 0: wait for ever */
	uint8_t count;	 /* retry_cnt */
	uint8_t left;
	uint8_t backoff; /* doublings of rto_ns since progress was made */
	bool gap_known;	 /* a hole in the responses at una_psn was already acted on */
	bool armed;	 /* there is another path to try when retries are used up (nic) */
};

/* The peer is not ready to receive. */
struct vb_req_rnr {
	uint64_t until_ns;
	uint8_t count; /* rnr_retry */
	uint8_t left;
	bool waits;
};

/* Packets on their way: how many there may be, and how many there should. */
struct vb_req_flight {
	uint32_t max;
	uint32_t window, threshold;
	uint32_t grow; /* acknowledged packets towards one more of window */
};

struct vb_req_clock {
	uint64_t progress_ns; /* when una_psn last moved, or the first packet left */
	uint64_t resend_ns;   /* when to send again, VB_NEVER_NS: nothing on its way */
	uint64_t sent_ns;     /* when something last left */
	uint32_t watched_psn; /* una_psn when vb_rc_watch was called */
};

/* The path's round trip. */
struct vb_req_rtt {
	uint64_t smooth_ns, var_ns, rto_ns;
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
	uint32_t top_psn;  /* one past the highest PSN that was ever sent */
	uint32_t post_psn; /* for the next work request */
	uint32_t post_ssn;

	struct vb_req_credits credits;
	struct vb_req_local local;
	struct vb_req_own own;
	struct vb_req_fault fault_met;
	struct vb_req_retry retry;
	struct vb_req_flight flight;
	struct vb_req_rnr rnr;
	struct vb_req_clock clock;
	struct vb_req_rtt rtt;
};

/* What the QP has to do after an answer or a timeout. */
enum vb_req_outcome {
	VB_REQ_NOTHING,
	VB_REQ_MOVED,  /* there may be more to send now */
	VB_REQ_MIGRATE, /* as MOVED, by the other path: retries by this one are used up */
	VB_REQ_STALE,  /* the answer was none to anything: drop it */
	VB_REQ_FAILED, /* a completion with an error was produced: the QP goes to error */
};

/* On the way to RTS (and to RTR for mtu): everything but the queue's memory starts afresh. */
void vb_req_reset(struct vb_req *req);
void vb_req_start(struct vb_req *req, uint32_t sq_psn);

/*
 * From now on it goes by another link, of which nothing is known yet. Nothing is outstanding.
 * window_max: packets that may be on their way.
 */
void vb_req_link_set(struct vb_req *req, bool reliable, uint32_t window_max);

/* So many packets may be on their way from now on; those that are already stay. */
void vb_req_window_max_set(struct vb_req *req, uint32_t window_max);

/* Nothing is outstanding, and no message is half sent. */
bool vb_req_is_between(const struct vb_req *req);

/* So is it: from now on messages are cut into pieces of this size, those in the queue as well. */
void vb_req_mtu_set(struct vb_req *req, uint32_t mtu);

/* Give a freshly written work request its PSNs, and queue it. The queue must have room. */
void vb_req_commit(struct vb_req *req, struct vb_wqe *wqe);

/*
 * A freshly written work request was carried out without a packet: complete it. Everything before
 * it must be complete. Takes no PSN, so that neither side's numbers know of it.
 */
void vb_req_done_directly(struct vb_req *req);

/*
 * The next packet, false if there is none to be sent now. Moves pos; the caller who cannot send it
 * puts back the pos from before. ackreq: whether the packet should ask for an acknowledgement.
 */
bool vb_req_next(struct vb_req *req, struct vb_segment *seg, bool *ackreq);

/*
 * The short way where the work request that was just posted is all that there is to send: a message
 * of one packet on a reliable link, with nothing about it or before it that could hold it up. NULL:
 * it is for vb_req_next(). Its packet has the opcode wqe->only and the PSN pos.next_psn, and asks
 * for an acknowledgement; sent: after it was handed to the link. RC only.
 */
const struct vb_wqe *vb_req_lone(const struct vb_req *req);
void vb_req_lone_sent(struct vb_req *req);

/*
 * How many packets from pos on are such as need no thought: in the midst of a SEND or WRITE, free
 * to leave, asking for no acknowledgement. 0 says nothing: ask vb_req_next(). skip: they are sent.
 */
uint32_t vb_req_run(const struct vb_req *req);
void vb_req_skip(struct vb_req *req, uint32_t packets);

/*
 * Is it worth a call of the link to send what is queued now? Not while an answer is under way
 * that will bring us here again shortly, unless there is enough for a burst: small messages that
 * are posted one by one travel together that way. RC only; the others have nobody who answers.
 */
bool vb_req_urgent(const struct vb_req *req, uint64_t now_ns);

/*
 * Where vb_req_next() finds nothing to send: is there a work request without a packet whose turn it
 * is? Then it is carried out, now or once already, and sending goes on behind it. It completes with
 * those before it, in vb_req_settle() at the latest. So what comes behind a BIND leaves after it
 * took effect; nothing is said about whether those before it have arrived, unless there is a fence.
 * Only what changes a key waits for those whose data is behind it.
 */
bool vb_req_local(struct vb_req *req);

/* After the packets up to pos were handed to the link. */
void vb_req_sent(struct vb_req *req, const struct vb_req_pos *before, uint64_t now_ns);

/* The work request at pos.next cannot be sent: status says why. */
void vb_req_fault(struct vb_req *req, enum ibv_wc_status status);

/* An RC ACK, NAK, READ response or atomic acknowledgement arrived. */
enum vb_req_outcome vb_rc_answer(struct vb_req *req, const struct vb_pkt *pkt,
				 const struct vb_op_info *info, uint64_t now_ns);

/*
 * The answer that most are: a packet in the midst of a READ response, in its turn. False: it is
 * another, or something is wrong with it; then it is for vb_rc_answer(), as with vb_resp_middle().
 */
bool vb_rc_middle(struct vb_req *req, uint32_t psn, const uint8_t *payload, uint32_t bytes,
		  uint64_t now_ns);

/* Time has come (deadline_ns passed). */
enum vb_req_outcome vb_rc_timeout(struct vb_req *req, uint64_t now_ns);
uint64_t vb_rc_deadline_ns(const struct vb_req *req);

/*
 * The clock of a requester on a reliable link, which runs only now and then. Nothing gets lost
 * there, but the other side may drop what it is not ready for. watch: something is outstanding,
 * from now on; vb_rc_deadline_ns() says when to look. look: was there any progress since, or does
 * something that was sent, by either side, wait to be read (unread)? If neither, as
 * vb_rc_timeout(); else watch anew.
 */
void vb_rc_watch(struct vb_req *req, uint64_t now_ns);
enum vb_req_outcome vb_rc_look(struct vb_req *req, bool unread, uint64_t now_ns);

/*
 * From now on it goes by another path, which gets all the retries anew, and of which nothing is
 * known yet; whatever the reason was.
 */
void vb_rc_new_path(struct vb_req *req, uint64_t now_ns);

/*
 * What was carried out without a packet completes if nothing is left before it; and so does a work
 * request that failed locally.
 */
enum vb_req_outcome vb_req_settle(struct vb_req *req);

/*
 * DC: the oldest work request is given up, and completes so; or it has failed and is completed.
 * Sending goes on with the next one, by another connection, as if nothing had been sent before.
 */
void vb_req_give_up(struct vb_req *req, enum ibv_wc_status status);
void vb_req_go_on(struct vb_req *req);

/* Nothing begun is unfinished (what SQD waits for). */
bool vb_req_drained(const struct vb_req *req);

/* UC and UD: what was sent is done. */
void vb_req_complete_sent(struct vb_req *req);

/* --- of the path between two files --- */
void vb_req_rewind(struct vb_req *req);
void vb_req_complete_head(struct vb_req *req, enum ibv_wc_status status);
uint64_t vb_req_ack_timeout_ns(const struct vb_req *req);

#endif
