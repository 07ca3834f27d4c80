/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CQ_H
#define VB_NIC_CQ_H

/* Completion queues. */

#include "nic/core/internal.h"
#include "nic/queue/channel.h"
#include "nic/queue/parcel.h"

/* What there is to a completion beside its struct ibv_wc. */
enum vb_cqe_note {
	VB_CQE_PLAIN,
	VB_CQE_TM,     /* it tells of tag matching, and gives nothing back */
	VB_CQE_PARCEL, /* it brings data along (parcel.h); user is whose, send queue or not */
};

/* A QP as its CQs know it: what completions give back to it, and bring along. Part of it. */
struct vb_cq_user {
	struct vb_parcels *parcels;   /* NULL: nothing travels inside completions */
	_Atomic uint32_t sq_released; /* send queue places that the application has got back */
	bool has_parcels;	      /* small data travels inside completions (parcel.h) */
};

/* A completion, and what is to be given back when the application takes it. */
struct vb_cqe {
	struct ibv_wc wc;
	union {
		struct vb_cq_user *user; /* whose send queue gets room back by that, or NULL */
		uint64_t tm_tag;  /* VB_CQE_TM: struct ibv_wc_tm_info */
	};
	union {
		uint32_t sq_released; /* ... up to this place */
		uint32_t tm_priv;
		uint32_t flow_tag; /* of a frame that was received (raw.h): the rule's, or 0 */
	};
	bool solicited;
	uint8_t note; /* enum vb_cqe_note */
	uint16_t cvlan; /* of a frame that was received, if its tag was stripped; else 0 */
};

_Static_assert(sizeof(struct vb_cqe) == 64, "a completion is a cache line");

/* When a completion was made, by the clocks that its CQ was created with; zero by others. */
struct vb_cq_stamp {
	uint64_t raw_ns, wall_ns;
};

enum vb_cq_arm { VB_CQ_QUIET, VB_CQ_SOLICITED, VB_CQ_ANY };

/* Moderation: events wait for so many completions, or so long; 0: not for that. */
struct vb_cq_mod {
	uint16_t count;
	bool ever;
	uint32_t ns;
	uint32_t held;	 /* completions that an event waits for ... */
	uint64_t due_ns; /* ... and until when */
};

/* As it was made. */
struct vb_cq_made {
	uint64_t wc_flags;    /* enum ibv_create_cq_wc_flags */
	struct vb_pd *domain; /* the parent domain, or NULL */
	uint16_t cqe_bytes;   /* what mlx5 would make a completion: half of it is for a parcel */
	bool lone;	      /* one thread uses it, so its author promised */
	bool overwrites;      /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN */
	bool borrowed;	      /* the ring is the parent domain's */
};

/* Events: those that wait in the channel, and those that the application has read. */
struct vb_cq_events {
	struct vb_cq *next; /* in the channel's queue */
	uint32_t pending;   /* queued there */
	uint32_t comp, async; /* read: it must ack as many */
};

/*
 * Whoever adds completions and whoever takes them have a lock each, so the two do not wait for one
 * another, and that there is nothing to take is seen without any. Who changes the ring as a whole
 * takes both, poll_lock first. A CQ that a single thread uses has no lock for taking.
 */
struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	} ibv;
	struct vb_cqe *ring; /* mask + 1 entries; changed with both locks held */
	struct vb_cq_stamp *stamps; /* as many, behind them; NULL: no clock is read */
	uint32_t mask;

	/* Places count on; 64 bits never come round. Between head and tail is what waits. */
	_Alignas(64) vb_lock poll_lock;
	_Atomic uint64_t head; /* written with *guard held */
	/*
	 * What whoever takes completions holds: poll_lock; NULL if one thread does all that, so
	 * its author promised; push_lock if completions that nobody took may be overwritten.
	 */
	vb_lock *guard;

	_Alignas(64) vb_lock push_lock;
	_Atomic uint64_t tail; /* written with push_lock held, as all up to mod */
	uint64_t told;	       /* an event was given for the completions before this place */
	_Atomic uint32_t room; /* for so many completions; 0: it has overrun, and is broken */
	enum vb_cq_arm arm;
	struct vb_cq_mod mod;

	_Alignas(64) _Atomic uint32_t users; /* QPs */
	struct vb_timer timer;
	struct vb_cq_made made;
	struct vb_parcel *parcels; /* one beside each completion, NULL: none ever comes */
	struct vb_cq_events events;
	void *abi; /* belongs to abi */
};

/* cqe: wanted, 1..VB_CQE_MAX; ibv.cq.cqe is what came out. channel may be NULL. EINVAL. */
int vb_cq_create(struct vb_ctx *ctx, int cqe, struct vb_channel *channel, int vector,
		 void *cq_context, struct vb_cq **cq);

/*
 * ibv_create_cq_ex(3). EINVAL: size or vector out of range, a channel of another context, a PD that
 * is no parent domain of this one; EOPNOTSUPP: an unknown bit of wc_flags, flags or comp_mask, or
 * stamps without clocks.
 */
int vb_cq_create_ex(struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr, struct vb_cq **cq);

/* From now on it holds parcels, of QPs made after this. ENOMEM. */
int vb_cq_parcels_make(struct vb_cq *cq);

/* Deliver what completions of this QP's send queue hold. QP locked. */
void vb_cq_parcels_settle(struct vb_cq *cq, const struct vb_cq_user *user);

/* EINVAL if what it holds does not fit, cqe is out of range, or it has overrun. */
int vb_cq_resize(struct vb_cq *cq, int cqe);

/*
 * ibv_modify_cq(3): when the CQ is armed, an event comes after `count` completions that it is armed
 * for, or `period_us` after the first of them; 0: not by that; both 0: with the first. At most
 * VB_CQ_COUNT_MAX and VB_CQ_PERIOD_US_MAX: EINVAL.
 */
int vb_cq_moderate(struct vb_cq *cq, uint32_t count, uint32_t period_us);

/* EBUSY while QPs use it. After success the object is dead but not freed: see vb_cq_free(). */
int vb_cq_destroy(struct vb_cq *cq);

/* After the application has acknowledged as many events as it has read. */
void vb_cq_free(struct vb_cq *cq);

/*
 * Take up to n completions: their number. Does not turn the NIC. Any thread, unless the CQ is for
 * one alone. A CQ that has overrun gives what came before, and then nothing.
 */
int vb_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc);

/* Take one, with all that is known of it: false if there is none, and nothing is written. */
bool vb_cq_take(struct vb_cq *cq, struct vb_cqe *cqe, struct vb_cq_stamp *stamp);

/*
 * Ask for one event at the next completion; at once if completions wait that came after the last
 * event. (ibv_req_notify_cq(3) leaves that open; hardware does it, and it closes a race.)
 */
void vb_cq_arm_notify(struct vb_cq *cq, bool solicited_only);

/* --- for the rest of the NIC --- */

/*
 * Add a completion, of a QP whose lock the caller holds. If there is no room, the CQ is broken from
 * then on, an event says so, and its QPs fail when the NIC is turned (vb_qp_on_time).
 */
void vb_cq_push(struct vb_cq *cq, const struct vb_cqe *cqe);

/* Has it overrun? It takes no completion any more. */
static inline bool vb_cq_is_broken(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->room, memory_order_relaxed) == 0;
}

/* Remove the completions of a QP number (it is being destroyed or reset). */
void vb_cq_purge(struct vb_cq *cq, uint32_t qpn);

/* Time has come for an event that was held back. */
void vb_cq_on_time(struct vb_cq *cq, uint64_t now_ns);

#endif
