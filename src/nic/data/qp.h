/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_QP_H
#define VB_NIC_QP_H

/* Queue pairs: the structure. The headers of the rooms say what is done with them. */

#include "engine/dcqcn.h"
#include "engine/newer.h"
#include "engine/req.h"
#include "engine/resp.h"
#include "nic/core/internal.h"
#include "nic/data/post.h"
#include "nic/data/qp_error.h"
#include "nic/data/qp_flags.h"
#include "nic/data/qp_parcels.h"
#include "nic/data/service.h"
#include "nic/queue/cq.h"
#include "nic/queue/srq.h"

/* An ACK that may be delayed (acks.h). */
struct vb_ack {
	uint64_t came_ns; /* when a message came; 0: the application has posted since */
	uint64_t due_ns;  /* when the ACK leaves at the latest; 0: none waits */
	uint8_t quick;	  /* how often in a row the application answered at once */
};

/* A rate limit (pace.h). */
struct vb_pace {
	uint32_t rate_kbps; /* 0: none */
	uint32_t asked_kbps, asked_bytes; /* what the application set */
	uint64_t burst_ns;  /* allowed lead over the rate */
	uint64_t due_ns, until_ns, now_ns;
};

struct vb_dc;
struct vb_raw;
struct vb_rss;
struct vb_unacked;

/* The properties it was created with. */
struct vb_qp_made {
	struct ibv_qp_cap cap;
	int sq_sig_all;
	uint8_t wqe_flags; /* that all work requests have: SIGNALED with sq_sig_all, VB_WQE_ASIDE */
	uint32_t create_flags;	       /* enum ibv_qp_create_flags */
	uint32_t dv_flags;	       /* enum vb_qp_dv_flag (qp_flags.h) */
	bool sq_borrowed, rq_borrowed; /* the ring belongs to the parent domain (domain.h) */
};

/* The destination. */
struct vb_qp_to {
	struct vb_path path; /* RC, UC: the peer */
	uint32_t dqpn;
	bool migreq;   /* RC, UC: MigReq of packets sent (migrate.h) */
	bool migrates; /* there is an alternate path */
	/*
	 * RC, UC: the peer, if reached through shared memory (peer.h). XRC_SEND: the owner of the
	 * current target SRQ; a shadow: the sender of the last request.
	 */
	struct vb_peer *peer;
	struct vb_migration *migration; /* NULL: no alternate path was ever loaded */
};

/* Its lanes, if it uses a ring. */
struct vb_qp_lane {
	struct vb_lane *tx, *rx;
	struct vb_lane *_Atomic waits; /* has no room: we are in its queue (its tx_lock) */
	uint64_t stuck_ns;	       /* UD: since when */
};

/* What holds up or hurries what it sends. */
struct vb_qp_send {
	bool paced;		 /* there is a rate (pace.h) */
	bool link_full;		 /* a burst was refused: try again by the clock */
	bool drain_event;	 /* SQD: report when drained */
	_Atomic bool awaits_way; /* the next work request waits for an answer (way.h) */
	uint32_t sharers;	 /* QPs of the NIC, when the window was last computed */
	/* time of the last post that may have been part of a stream (direct.c) */
	uint64_t direct_ns;
	struct vb_pace pace;
};

/* The receive side. */
struct vb_qp_recv {
	struct vb_rq *rq; /* its own, or the SRQ's */
	struct vb_rq own_rq;
	struct vb_tm_qp *tm;	    /* if its SRQ has tags */
	struct vb_unacked *unacked; /* responders of XRC and DC (acks.h) */
	struct vb_mw *windows;	    /* type 2 windows bound here (the keys' lock) */
	uint64_t marked_ns; /* when it last sent a CNP (congestion.h) */
	/* messages that came before a receive was posted: the place that the last one wanted in
	 * rq, and in the high half how many there were */
	_Atomic uint64_t late;
	/* datagrams dropped because of their Q_Key, or for being longer than their receive */
	_Atomic uint32_t wrong_qkeys, too_long;
};

/* What peers see of it (export.h). */
struct vb_qp_shown {
	bool wire_told;	    /* it uses the wire to a QP of this host */
	unsigned rights;    /* IBV_ACCESS_REMOTE_* in its entry */
	uint32_t withdrawn; /* how many callers want the entry to grant nothing */
};

/* Events given to the application, or read by it. */
struct vb_qp_events {
	bool last_wqe; /* LAST_WQE_REACHED was given */
	bool comm_est; /* COMM_EST was given */
	uint32_t delivered;
};

/* What makes it run later: a time, or a queue that it is in. */
struct vb_qp_later {
	struct vb_timer timer;
	struct vb_later touched; /* it received something in this batch (its lock) */
	struct vb_later ack;	 /* in nic->later.acks (rx right) */
	struct vb_later held;	 /* in nic->later.held (its lock) */
	struct vb_later room;	 /* in the queue of the lane that it waits for (its tx_lock) */
};

/* Used by one service only. */
struct vb_qp_special {
	uint32_t sqpn;	     /* UD: the source QPN of its packets */
	uint32_t attached;   /* UD, RAW_PACKET: number of groups or flow rules (mcast.c, steer.c) */
	uint8_t *snapshots;  /* UD: copies of payloads of datagrams that wait (snapshot.h) */
	uint64_t brake_ns;   /* UC: when its invalid keys are forgotten (demux.c); 0: none */
	uint32_t aimed_slot; /* XRC_SEND: the slot of the current target SRQ */
	bool rx_ipv4;	     /* UD: the current datagram came over IPv4 */
	struct vb_ahn_sender rx_from; /* ... and from there, on EFA; else zero */
	union {
		struct vb_dc *dc;      /* dc.h */
		struct vb_xrc_qp *xrc; /* the receiving end (xrc.h) */
		struct vb_raw *raw;    /* raw.h */
	};
	struct vb_rss *rss; /* RAW_PACKET without queues of its own (rss.h) */
};

/* What it has done, and what went wrong, for who looks (tally.h). */
struct vb_qp_tally {
	uint32_t resent; /* packets */
	uint32_t timeouts;
	uint32_t rnr_seen, rnr_sent;   /* RNR NAKs: the peer's, ours */
	uint32_t naks_seen, naks_sent; /* NAKs of a PSN: the peer's, ours */
	/* Work before this place of the send queue, and up to this MSN, is in the sums. */
	uint32_t head, msn;
	uint64_t done, octets; /* work requests carried out */
	uint64_t served;       /* the peer's messages */
	struct vb_latency *latency; /* latency.h; NULL: was never measured */
	/* What the last note of a trace said (abi/verbs/traced.c). */
	struct vb_qp_traced {
		uint32_t psn, una, head, flags;
	} traced;
};

struct vb_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
		struct {
			char older[VB_QP_EX_OLDER_BYTES];
			vb_wr_flush_fn *wr_flush;
		};
	} ibv;
	struct vb_nic *nic;
	const struct vb_service *service;
	vb_lock lock;
	_Atomic int state; /* enum ibv_qp_state; written with the lock held */
	uint64_t now_ns;   /* of the current call */

	struct vb_req req;
	struct vb_resp resp;
	struct vb_cq_user user;
	struct vb_qp_recv recv;
	struct vb_qp_to to;
	struct vb_qp_lane lane;
	struct vb_qp_send send;
	struct vb_ack ack;
	struct vb_qp_made made;
	struct vb_qp_shown shown;
	struct vb_qp_events events;
	struct vb_qp_later later;
	struct vb_qp_special special;
	struct ibv_qp_attr attr; /* as set; state and caps are elsewhere */
	void *abi;		 /* owned by abi */
	struct vb_dcqcn congestion; /* what CNPs of its peer say (pace.h) */
	const void **sites; /* where each send request was posted (explain.h); NULL: not noted */
	struct vb_qp_tally tally;
	const char *rule;   /* of a script, that met it last (control/inject.h); NULL: none did */
};

/*
 * After vb_qp_destroy() (control/qp.h) and the acknowledgement of events.delivered; or for a QP
 * that the application never got.
 */
void vb_qp_free(struct vb_qp *qp);

/* --- inside nic --- */

/* Has its service any of these traits? */
static inline bool vb_qp_is(const struct vb_qp *qp, uint32_t traits)
{
	return qp->service->traits & traits;
}

static inline enum ibv_qp_state vb_qp_state(const struct vb_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

/* Sets the time by which it is looked at; clears it. Under any lock but the timers'. */
static inline void vb_timer_arm(struct vb_nic *nic, struct vb_qp *qp, uint64_t at_ns)
{
	vb_timer_set(nic, &qp->later.timer, at_ns);
}

static inline void vb_timer_cancel(struct vb_nic *nic, struct vb_qp *qp)
{
	vb_timer_clear(nic, &qp->later.timer);
}

/*
 * Does vb_qp_transmit_locked() have anything to do? Not if everything was sent, nothing is owed,
 * and the application does not wait for the queue to drain.
 */
static inline bool vb_qp_wants_to_send(const struct vb_qp *qp)
{
	return vb_resp_owes(&qp->resp) || qp->req.pos.next != qp->req.tail || qp->resp.broken ||
	       qp->send.drain_event || !qp->to.peer;
}

/* Allocates the send queue, at the first post. 0 or ENOMEM. */
int vb_qp_sq_make(struct vb_qp *qp);

/* Sends all that is owed and all that may be sent (send.c). */
void vb_qp_transmit_locked(struct vb_qp *qp);

/*
 * XRC, DC. pieces: cuts messages as the current way requires. link: configures the engine for that
 * way (qp_modify.c). Nothing is outstanding.
 */
void vb_qp_pieces_set(struct vb_qp *qp);
void vb_qp_link_set(struct vb_qp *qp);

/* By the wire: adapts the window to the present number of QPs. QP locked. */
void vb_qp_window_share(struct vb_qp *qp);

/*
 * Updates what peers see of the QP after its state or rights changed (export.c). A peer that has
 * just read the old entry may still use it for a moment.
 */
void vb_export_qp_locked(struct vb_qp *qp);

/* --- changing attributes (qp_modify.c), for any type --- */

int vb_qp_values_check(const struct vb_nic *nic, const struct ibv_qp_attr *attr, int mask);
int vb_qp_path_check(struct vb_qp *qp, const struct ibv_ah_attr *av, enum ibv_mtu mtu,
		     struct vb_path *path);
void vb_qp_attr_keep(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask);

#endif
