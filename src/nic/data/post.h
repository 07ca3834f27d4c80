/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_POST_H
#define VB_NIC_POST_H

/*
 * Posting work requests to a queue pair (post.c). Any thread.
 *
 * ibv_post_send(3) passes a struct ibv_send_wr. The builders, ibv_wr_*(3) and mlx5dv_wr_*(3), have
 * more operations and fill a struct vb_post.
 */

#include "engine/wqe.h"
#include "nic/data/qp.h"

/* Opcodes of struct vb_post beyond enum ibv_wr_opcode. */
#define VB_WR_MKEY 16
#define VB_WR_MEMCPY 17

struct vb_mkey_request;

/* The destination of a work request of a DC initiator. */
struct vb_dc_address {
	struct ibv_ah *ah; /* NULL: no address was set */
	uint32_t dctn;
	uint64_t key;
	uint16_t stream; /* 0: none */
};

/* A send work request from a builder. */
struct vb_post {
	struct ibv_send_wr wr;	 /* `next` is not used */
	struct vb_dc_address dc; /* for a DC initiator */
	union {
		struct {
			uint64_t bytes;
			uint8_t type, level; /* engine/newer.h */
		} flush;			     /* VB_WR_FLUSH; its address is in wr.rdma */
		const struct vb_mkey_request *mkey; /* VB_WR_MKEY (mem/mkey.h) */
		struct vb_copy copy;	     /* VB_WR_MEMCPY: 1 to VB_MEMCPY_BYTES_MAX octets */
	};
};

/*
 * ibv_post_send(3), ibv_post_recv(3). EINVAL: state, opcode, SGEs, size; ENOMEM: full; EOPNOTSUPP:
 * an unsupported opcode. *bad is the first work request not queued; those before it are queued.
 */
int vb_qp_post_send(struct vb_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vb_qp_post_recv(struct vb_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ibv_wr_complete(3): as vb_qp_post_send(), but all or none. */
int vb_qp_post_batch(struct vb_qp *qp, const struct vb_post *posts, uint32_t count);

/* --- inside nic --- */

/* Flags of a send request that every service knows; the services' tables have the others. */
#define VB_SEND_FLAGS_KNOWN                                                                       \
	((unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE))

/*
 * For services with send queues of their own (vb_service_post.list). check: what can be said of a
 * work request before it is queued. one: queues it, in a queue with room; it does not leave yet. 0
 * or an errno. QP locked.
 */
int vb_qp_post_check(struct vb_qp *qp, const struct ibv_send_wr *wr, const struct vb_post *post);
int vb_qp_post_one(struct vb_qp *qp, const struct ibv_send_wr *wr, const struct vb_post *post);

/* Posts the BIND of a type 1 window, which applications cannot post themselves (window.c). */
int vb_qp_post_bind(struct vb_qp *qp, const struct ibv_send_wr *wr);

#endif
