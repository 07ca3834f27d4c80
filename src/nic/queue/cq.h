/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CQ_H
#define VB_NIC_CQ_H

/* Completion queues. */

#include "nic/core/internal.h"
#include "nic/queue/channel.h"
#include "nic/queue/parcel.h"

/* What a completion is, beside its struct ibv_wc. */
enum vb_cqe_note {
	VB_CQE_PLAIN,
	VB_CQE_TM,     /* about tag matching; releases nothing */
	VB_CQE_PARCEL, /* brings data along (parcel.h); user is the QP, send queue or not */
	VB_CQE_UNSOLICITED, /* of a WRITE with immediate data that took no receive request */
};

/* The part of a QP that its CQs know: what completions release and bring along. */
struct vb_counted;

struct vb_cq_user {
	struct vb_parcels *parcels;   /* NULL: no data inside completions */
	struct vb_counted *counted;   /* NULL: no counter is attached (comp_cntr.h) */
	_Atomic uint32_t sq_released; /* send queue places that the application has got back */
	uint32_t qpn;		      /* in its send completions: SRD's streams name their QP */
	union {
		struct {
			bool has_parcels; /* small data travels inside completions (parcel.h) */
			bool is_counted;  /* receives have a counter (comp_cntr.h) */
		};
		uint16_t has_extras; /* not 0: there is one of these */
	};
};

/* A completion, and what is released when the application takes it. */
struct vb_cqe {
	struct ibv_wc wc;
	union {
		struct vb_cq_user *user; /* whose send queue gets places back, or NULL */
		uint64_t tm_tag;  /* VB_CQE_TM: struct ibv_wc_tm_info */
	};
	union {
		uint32_t sq_released; /* ... up to this place */
		uint32_t tm_priv;
		uint32_t flow_tag; /* of a received frame (raw.h): the rule's, or 0 */
		uint32_t ahn;	   /* received on EFA: the sender's GID (core/ahn.h) */
	};
	bool solicited;
	uint8_t note; /* enum vb_cqe_note */
	uint16_t cvlan; /* of a received frame, if its tag was stripped; else 0 */
};

_Static_assert(sizeof(struct vb_cqe) == 64, "a completion is a cache line");

/* When a completion was made, by the clocks that its CQ was created with; others are 0. */
struct vb_cq_stamp {
	uint64_t raw_ns, wall_ns;
};

enum vb_cq_arm { VB_CQ_QUIET, VB_CQ_SOLICITED, VB_CQ_ANY };

/* Moderation: an event waits for this many completions, or this long; 0: not for that. */
struct vb_cq_mod {
	uint16_t count;
	bool ever;
	uint32_t ns;
	uint32_t held;	 /* completions that wait for an event ... */
	uint64_t due_ns; /* ... and until when */
};

/* The properties it was created with. */
struct vb_cq_made {
	uint64_t wc_flags;    /* enum ibv_create_cq_wc_flags */
	struct vb_pd *domain; /* the parent domain, or NULL */
	uint16_t cqe_bytes;   /* size of mlx5's completions: half of it is for a parcel */
	bool lone;	      /* the application promised a single thread */
	bool overwrites;      /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN */
	bool borrowed;	      /* the ring belongs to the parent domain */
};

/* Events queued in the channel, and those that the application has read. */
struct vb_cq_events {
	struct vb_cq *next; /* in the channel's queue */
	uint32_t pending;   /* queued there */
	uint32_t comp, async; /* read by the application, which must acknowledge as many */
};

/*
 * Adding and taking completions have a lock each, so the two do not wait for each other; whether
 * there is a completion is seen without a lock. Changing the whole ring takes both, poll_lock
 * first. A CQ used by a single thread takes no lock for taking.
 */
struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	} ibv;
	struct vb_cqe *ring; /* mask + 1 entries; changed with both locks held */
	struct vb_cq_stamp *stamps; /* behind the ring, one per entry; NULL: no clock is read */
	uint32_t mask;

	/* Positions count up; 64 bits never wrap. Completions between head and tail wait. */
	_Alignas(64) vb_lock poll_lock;
	_Atomic uint64_t head; /* written with *guard held */
	/*
	 * The lock for taking: poll_lock; NULL if the application promised a single thread;
	 * push_lock if completions not taken may be overwritten.
	 */
	vb_lock *guard;

	_Alignas(64) vb_lock push_lock;
	_Atomic uint64_t tail; /* written with push_lock held, as are the following up to mod */
	uint64_t told;	       /* an event was given for completions before this position */
	_Atomic uint32_t room; /* for completions; 0: it has overrun, and is broken */
	enum vb_cq_arm arm;
	struct vb_cq_mod mod;

	_Alignas(64) _Atomic uint32_t users; /* QPs */
	struct vb_timer timer;
	struct vb_cq_made made;
	struct vb_parcel *parcels; /* one for each completion; NULL: none are used */
	struct vb_cq_events events;
	void *abi; /* owned by abi */
};

/* cqe: requested size, 1..VB_CQE_MAX; ibv.cq.cqe is the actual one. channel may be NULL. EINVAL. */
int vb_cq_create(struct vb_ctx *ctx, int cqe, struct vb_channel *channel, int vector,
		 void *cq_context, struct vb_cq **cq);

/*
 * ibv_create_cq_ex(3). EINVAL: size or vector out of range, a channel of another context, a PD that
 * is not a parent domain of this context; EOPNOTSUPP: an unknown bit of wc_flags, flags or
 * comp_mask, or timestamps without clocks.
 */
int vb_cq_create_ex(struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr, struct vb_cq **cq);

/* Lets QPs made from now on put parcels in it. ENOMEM. */
int vb_cq_parcels_make(struct vb_cq *cq);

/* Delivers the data in completions of this QP's send queue. QP locked. */
void vb_cq_parcels_settle(struct vb_cq *cq, const struct vb_cq_user *user);

/* EINVAL: the completions in it do not fit, cqe is out of range, or it has overrun. */
int vb_cq_resize(struct vb_cq *cq, int cqe);

/*
 * ibv_modify_cq(3): once armed, the event comes after `count` completions that it is armed for, or
 * `period_us` after the first of them; 0: that condition is off; both 0: with the first completion.
 * EINVAL beyond VB_CQ_COUNT_MAX and VB_CQ_PERIOD_US_MAX.
 */
int vb_cq_moderate(struct vb_cq *cq, uint32_t count, uint32_t period_us);

/* EBUSY while QPs use it. After success the object is dead but not freed: see vb_cq_free(). */
int vb_cq_destroy(struct vb_cq *cq);

/* After the application has acknowledged as many events as it has read. */
void vb_cq_free(struct vb_cq *cq);

/* Seen without a lock. */
static inline bool vb_cq_is_empty(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->tail, memory_order_acquire);
}

/*
 * Takes up to n completions and returns their number. Does not turn the NIC. Any thread, unless the
 * CQ is for a single one. A CQ that has overrun gives what came before, and then nothing.
 */
int vb_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc);

/* Takes one with all its data. Returns false, and writes nothing, if there is none. */
bool vb_cq_take(struct vb_cq *cq, struct vb_cqe *cqe, struct vb_cq_stamp *stamp);

/*
 * Requests one event for the next completion; at once if completions wait that came after the last
 * event. (ibv_req_notify_cq(3) leaves that open; hardware does it, and it closes a race.)
 */
void vb_cq_arm_notify(struct vb_cq *cq, bool solicited_only);

/* --- for the rest of the NIC --- */

/*
 * Adds a completion of a QP whose lock the caller holds. Without room the CQ is broken from then
 * on, an event reports it, and its QPs fail when the NIC is turned (vb_qp_on_time).
 */
void vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe);

/* Has it overrun? Then it accepts no further completions. */
static inline bool vb_cq_is_broken(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->room, memory_order_relaxed) == 0;
}

/* Removes the completions with a QP number (the QP is being destroyed or reset). */
void vb_cq_purge(struct vb_cq *cq, uint32_t qpn);

/* The time for a delayed event may have come. */
void vb_cq_on_time(struct vb_cq *cq, uint64_t now_ns);

#endif
