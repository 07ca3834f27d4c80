/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_COMP_CNTR_H
#define VB_NIC_COMP_CNTR_H

/*
 * Completion counters (rdma-core 64 and later, ibv_create_comp_cntr(3)): how many work requests of
 * some kinds have completed on the QPs that a counter is attached to, signaled or not, and how many
 * with an error. The numbers are rdma-core's, for programs that are compiled with newer headers
 * than ours.
 */

#include <infiniband/verbs.h>

#include "base/lock.h"
#include "engine/wqe.h"

struct vb_ctx;

/* enum ibv_qp_attach_comp_cntr_op: IBV_QP_ATTACH_COMP_CNTR_OP_*. */
enum vb_comp_op {
	VB_COMP_SEND = 1 << 0,
	VB_COMP_RECV = 1 << 1,
	VB_COMP_READ = 1 << 2,
	VB_COMP_REMOTE_READ = 1 << 3,
	VB_COMP_WRITE = 1 << 4,
	VB_COMP_REMOTE_WRITE = 1 << 5,
};

/*
 * Those that are counted. What a peer reads and writes is not: it may do so without a packet, and
 * then this end does not notice (way/direct.h).
 */
#define VB_COMP_OPS ((unsigned)(VB_COMP_SEND | VB_COMP_RECV | VB_COMP_READ | VB_COMP_WRITE))

/* enum ibv_comp_cntr_type. */
enum { VB_COMP_CNTR_WRS, VB_COMP_CNTR_BYTES };

/* struct ibv_comp_cntr_init_attr */
struct vb_comp_cntr_init_attr {
	uint32_t comp_mask;
	uint32_t type;
	uint32_t flags;
};

/* struct ibv_qp_attach_comp_cntr_attr */
struct vb_comp_cntr_attach_attr {
	uint32_t comp_mask;
	uint32_t op_mask; /* enum vb_comp_op */
};

/* struct ibv_comp_cntr_caps */
struct vb_comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t ops; /* enum vb_comp_op */
};

/* First what a program sees, struct ibv_comp_cntr. */
struct vb_comp_cntr {
	struct ibv_context *context;
	uint32_t handle;
	uint32_t type;
	_Atomic uint32_t qps;	       /* it is attached to */
	_Atomic uint64_t done, failed; /* both wrap */
};

/* Of a QP: what counts each kind of work request. */
struct vb_counted {
	struct vb_comp_cntr *send, *recv, *read, *write; /* or NULL */
};

void vb_comp_cntr_query(struct vb_comp_cntr_caps *caps);

/* EINVAL: unknown attributes or type; ENOMEM: too many, or no memory. */
int vb_comp_cntr_create(struct vb_ctx *ctx, const struct vb_comp_cntr_init_attr *attr,
			struct vb_comp_cntr **cntr);

/* EBUSY: attached to QPs, which detach it when they are destroyed. */
int vb_comp_cntr_destroy(struct vb_comp_cntr *cntr);

/* --- inside nic; the QP is locked --- */

/*
 * Has the counter count these operations of a QP; *counted may be NULL, for one that has none yet.
 * EBUSY: one of the operations has a counter, and then nothing is changed; ENOMEM.
 */
int vb_counted_add(struct vb_counted **counted, struct vb_comp_cntr *cntr, uint32_t ops);

/* The QP is destroyed: its counters are attached to one less. counted may be NULL. */
void vb_counted_free(struct vb_counted *counted);

/* A work request has completed. */
void vb_counted_sent(const struct vb_counted *counted, const struct vb_wqe *wqe,
		     enum ibv_wc_status status);
void vb_counted_received(const struct vb_counted *counted, const struct ibv_wc *wc);

#endif
