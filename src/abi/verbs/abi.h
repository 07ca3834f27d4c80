/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_ABI_H
#define VB_ABI_VERBS_ABI_H

/*
 * What the files of libibverbs share. They unpack, call the NIC and repack; they decide nothing.
 *
 * An object that the application holds is the NIC's object. In a forked child the inherited ones
 * are dead (see run/device.h): calls on them fail with EIO, and destroying them does nothing, with
 * success, because nothing of the child's is left to destroy.
 */

#include <errno.h>
#include <infiniband/verbs.h>

#include "nic/ctx.h"
#include "run/device.h"

static inline struct vb_device *vb_device_of(struct ibv_context *context)
{
	return vb_ctx_of(context)->run;
}

static inline struct vb_nic *vb_abi_nic(struct ibv_context *context)
{
	return vb_ctx_of(context)->nic;
}

static inline bool vb_abi_is_gone(struct ibv_context *context)
{
	return vb_device_is_gone(vb_device_of(context));
}

/* For functions that return -1 and set errno. */
static inline int vb_abi_minus_one(int err)
{
	errno = err;
	return -1;
}

/* The one device; its pointer is the same for the life of the process (device.c). */
struct ibv_device *vb_abi_device(void);

/* The functions of an extended completion queue, a queue pair, a context. */
struct ibv_cq_ex *vb_abi_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *vb_abi_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int vb_abi_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t attr_bytes);
int vb_abi_query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_bytes);

/* The slots of ibv_context_ops. */
int vb_abi_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_abi_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int vb_abi_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_abi_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_abi_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/*
 * The builder behind ibv_wr_*(3), kept in vb_qp.abi (wr.c). ops: IBV_QP_EX_WITH_*; EOPNOTSUPP if
 * the QP's type or this NIC cannot do one of them.
 */
int vb_wr_check(enum ibv_qp_type type, uint64_t ops);
int vb_wr_attach(struct ibv_qp *qp, const struct ibv_qp_cap *cap, uint64_t ops);
void vb_wr_detach(struct ibv_qp *qp);

/*
 * Wait until the application has acknowledged as many events as it was given. Nobody gives it
 * further ones: the object is dead already.
 */
void vb_abi_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acked,
		      const uint32_t *delivered);

#endif
