/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WQ_H
#define VB_NIC_WQ_H

/*
 * Work queues (ibv_create_wq(3)): receive queues outside of any QP, with a CQ each; and tables of
 * them (ibv_create_rwq_ind_table(3)) over which a QP spreads received frames (rss.h). Any thread.
 */

#include "eth/parse.h"
#include "nic/core/internal.h"
#include "nic/queue/srq.h"

struct vb_cq;
struct vb_rwq_delayed;

struct vb_rwq {
	struct ibv_wq ibv; /* wq_num: not a QPN */
	struct vb_nic *nic;
	vb_lock lock; /* held to take requests or change the state; before rq.lock */
	struct vb_rq rq;
	_Atomic int state;		/* enum ibv_wq_state; written with the lock held */
	uint32_t flags;			/* enum ibv_wq_flags; lock */
	struct vb_rwq_delayed *delayed; /* IBV_WQ_FLAGS_DELAY_DROP: frames that wait; lock */
	_Atomic uint32_t users;		/* places in tables */
	uint32_t events_delivered;
	struct vb_rwq *next, **at; /* in nic->rwqs (its lock) */
};

/*
 * ibv_create_wq(3). attr->max_wr (1..VB_QP_WR_MAX) and max_sge (at most VB_SGE_MAX) are unchanged.
 * EINVAL: they are out of range, the type is not a receive queue, or objects are missing or of
 * another context. EOPNOTSUPP: unknown bits of comp_mask or create_flags; or there is no segment
 * (segment.h), and so nothing to receive. ENOMEM.
 */
int vb_rwq_create(struct vb_ctx *ctx, struct ibv_wq_init_attr *attr, struct vb_rwq **wq);

/*
 * ibv_modify_wq(3); selected attributes are returned as they are afterwards. From RESET to RDY,
 * from RDY to ERR, from any state to RESET or to itself. EINVAL: another transition, a wrong
 * current state, unknown bits. EOPNOTSUPP: flags other than CVLAN_STRIPPING, which are fixed at
 * creation. ERR flushes posted requests; RESET drops them, and completions as well.
 */
int vb_rwq_modify(struct vb_rwq *wq, struct ibv_wq_attr *attr);

/* EBUSY while a table has it. Afterwards it is dead but not freed, as with vb_srq_destroy(). */
int vb_rwq_destroy(struct vb_rwq *wq);
void vb_rwq_free(struct vb_rwq *wq);

/* ibv_post_wq_recv(3). EINVAL: RESET, too many SGEs or octets; ENOMEM: full. In ERR: flushed. */
int vb_rwq_post(struct vb_rwq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct vb_rwq_table {
	struct ibv_rwq_ind_table ibv;
	_Atomic uint32_t users; /* QPs */
	uint32_t mask;
	struct vb_rwq *wq[]; /* mask + 1 */
};

/*
 * ibv_create_rwq_ind_table(3): 1 << log_ind_tbl_size places, which may repeat a queue. EINVAL: more
 * than 1 << VB_RWQ_TABLE_LOG_MAX, or a queue is missing or of another context; EOPNOTSUPP: bits of
 * comp_mask; ENOMEM.
 */
int vb_rwq_table_create(struct vb_ctx *ctx, const struct ibv_rwq_ind_table_init_attr *attr,
			struct vb_rwq_table **table);
int vb_rwq_table_destroy(struct vb_rwq_table *table); /* EBUSY while a QP has it */

/* --- inside nic --- */

void vb_rwqs_init(struct vb_rwqs *rwqs);
void vb_rwqs_fini(struct vb_rwqs *rwqs);

/*
 * Receives a frame, or drops it and counts the reason. tag: of the rule, 0: none; inner: check the
 * checksums inside a tunnel. If a completion cannot report an error (its CQ has overrun), the queue
 * fails with IBV_EVENT_WQ_FATAL.
 */
void vb_rwq_receive(struct vb_rwq *wq, const struct vb_eth_frame *frame, uint32_t tag, bool inner);

/*
 * Makes the work queues of an overrun CQ fail. cq NULL: all, or those of a context, without an
 * event, since the device has failed or the application has closed the context.
 */
void vb_rwqs_fail(struct vb_nic *nic, const struct vb_cq *cq, const struct ibv_context *of);

#endif
