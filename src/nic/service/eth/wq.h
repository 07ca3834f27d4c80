/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WQ_H
#define VB_NIC_WQ_H

/*
 * Work queues (ibv_create_wq(3)): receive queues outside of any QP, with a CQ each, and the tables
 * of them (ibv_create_rwq_ind_table(3)) over which a QP spreads what it receives (rss.h). Any
 * thread.
 */

#include "eth/parse.h"
#include "nic/core/internal.h"
#include "nic/queue/srq.h"

struct vb_cq;
struct vb_rwq_delayed;

struct vb_rwq {
	struct ibv_wq ibv; /* wq_num: no QP has it */
	struct vb_nic *nic;
	vb_lock lock; /* who takes requests, or changes the state; before rq.lock */
	struct vb_rq rq;
	_Atomic int state;		/* enum ibv_wq_state; written with the lock held */
	uint32_t flags;			/* enum ibv_wq_flags; lock */
	struct vb_rwq_delayed *delayed; /* IBV_WQ_FLAGS_DELAY_DROP: what waits; lock */
	_Atomic uint32_t users;		/* places in tables */
	uint32_t events_delivered;
	struct vb_rwq *next, **at; /* in nic->rwqs (its lock) */
};

/*
 * ibv_create_wq(3). attr->max_wr (1..VB_QP_WR_MAX) and max_sge (at most VB_SGE_MAX) come out as
 * they were. EINVAL: they are not, the type is no receive queue, or objects of another context, or
 * none. EOPNOTSUPP: bits of comp_mask or create_flags that nobody knows; or there is no segment
 * (segment.h), and so nothing to receive. ENOMEM.
 */
int vb_rwq_create(struct vb_ctx *ctx, struct ibv_wq_init_attr *attr, struct vb_rwq **wq);

/*
 * ibv_modify_wq(3); what was selected comes out as it is then. From RESET to RDY, from RDY to ERR,
 * from anywhere to RESET or to where it is. EINVAL: another transition, a state that it is not in,
 * bits that nobody knows. EOPNOTSUPP: flags other than CVLAN_STRIPPING, which stay what they were
 * at creation. In ERR what was posted is flushed; to RESET it is forgotten, completions as well.
 */
int vb_rwq_modify(struct vb_rwq *wq, struct ibv_wq_attr *attr);

/* EBUSY while a table has it. Dead but not freed after that: as vb_srq_destroy(). */
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
 * ibv_create_rwq_ind_table(3): 1 << log_ind_tbl_size places, any of which may have the same queue.
 * EINVAL: more than 1 << VB_RWQ_TABLE_LOG_MAX, or a queue of another context, or none;
 * EOPNOTSUPP: bits of comp_mask; ENOMEM.
 */
int vb_rwq_table_create(struct vb_ctx *ctx, const struct ibv_rwq_ind_table_init_attr *attr,
			struct vb_rwq_table **table);
int vb_rwq_table_destroy(struct vb_rwq_table *table); /* EBUSY while a QP has it */

/* --- inside nic --- */

void vb_rwqs_init(struct vb_rwqs *rwqs);
void vb_rwqs_fini(struct vb_rwqs *rwqs);

/*
 * Receive a frame, or drop it, with the reason counted. tag: of the rule, 0: none; inner: look at
 * the checksums inside a tunnel. A queue that cannot tell so in a completion (its CQ has overrun)
 * fails with IBV_EVENT_WQ_FATAL.
 */
void vb_rwq_receive(struct vb_rwq *wq, const struct vb_eth_frame *frame, uint32_t tag, bool inner);

/*
 * Those of a CQ that has overrun fail. cq NULL: all, or those of a context; as the device has
 * failed or the application has closed the context, there is no event.
 */
void vb_rwqs_fail(struct vb_nic *nic, const struct vb_cq *cq, const struct ibv_context *of);

#endif
