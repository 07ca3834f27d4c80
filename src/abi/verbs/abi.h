/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_ABI_H
#define VB_ABI_VERBS_ABI_H

/*
 * Shared by the files of libibverbs. They unpack, call the NIC and repack; they decide nothing.
 *
 * An object that the application holds is the NIC's object. In a forked child the inherited ones
 * are dead (see run/device.h): calls on them fail with EIO. Destroying them does nothing and
 * succeeds, because nothing of the child's is left to destroy. What needs no NIC works: querying
 * the device's capabilities, and device memory that the child allocates and copies to and from.
 */

#include <errno.h>
#include <infiniband/verbs.h>

#include "abi/verbs/known.h"
#include "nic/core/ctx.h"
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

/*
 * Has the device gone or failed (vb_nic_fail)? Then control verbs fail with EIO. Of a failed
 * device, objects can still be destroyed, posted to and polled.
 */
static inline bool vb_abi_is_dead(struct ibv_context *context)
{
	return vb_abi_is_gone(context) || vb_nic_has_failed(vb_abi_nic(context));
}

/*
 * Every control verb begins with this: EIO for a dead device, ENOENT for what is not such an
 * object, as from a kernel that looks up its handle (known.h).
 */
static inline int vb_abi_usable(enum vb_known_kind kind, const void *object,
				struct ibv_context *const *context)
{
	int rc = vb_known(kind, object);

	return rc == 0 && vb_abi_is_dead(*context) ? EIO : rc;
}

#define vb_abi_check(kind, object) vb_abi_usable(VB_KNOWN_##kind, object, &(object)->context)

/*
 * For functions that return an errno. They also set it, as a call into the kernel does, since some
 * programs print it.
 */
static inline int vb_abi_result(int rc)
{
	if (rc != 0)
		errno = rc;
	return rc;
}

/* For functions that return -1 and set errno. */
static inline int vb_abi_minus_one(int err)
{
	errno = err;
	return -1;
}

/*
 * Called when a call with this address was refused: if the GIDs are the reason, gives a hint
 * (run/process/log.h). Programs that were given no GID index fail like this, since InfiniBand needs
 * none.
 */
void vb_abi_look_at_gids(const char *call, struct vb_nic *nic, const struct ibv_ah_attr *attr);

/* The only device; its pointer stays the same for the life of the process (device.c). */
struct ibv_device *vb_abi_device(void);

/* Makes a context of that device. It takes over cmd_fd; -1: it gets a new one. */
int vb_abi_context_make(struct vb_device *dev, int cmd_fd, struct vb_ctx **ctx);

/*
 * For objects that live in a context and depend on nothing else: PDs, CQs, channels, domains,
 * device memory, counters. ibv_close_device(3) leaves them, so the context stays until they are
 * gone: destroying the last one closes it. Call _ended with the result of the destruction, and do
 * not touch the context after it.
 */
static inline void vb_abi_made(struct ibv_context *context)
{
	atomic_fetch_add(&vb_ctx_of(context)->holders, 1);
}

int vb_abi_ended(struct ibv_context *context, int rc);

/* Functions of extended CQs, QPs and contexts. */
struct ibv_cq_ex *vb_abi_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *vb_abi_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/*
 * mlx5dv_create_qp(3), translated; attr may ask for more than ibv_create_qp_ex() accepts. part:
 * memory from malloc() that abi/mlx5 finds again in the builder (wr.h), which then owns it; freed
 * at once if the QP gets no builder. Returns NULL with errno.
 */
struct vb_qp_dv_attr;
struct ibv_qp *vb_abi_create_qp_dv(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				   const struct vb_qp_dv_attr *dv, void *part);

struct ibv_srq *vb_abi_create_srq_ex(struct ibv_context *context,
				     struct ibv_srq_init_attr_ex *attr);
int vb_abi_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int vb_abi_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);
int vb_abi_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t attr_bytes);
int vb_abi_query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_bytes);
int vb_abi_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int vb_abi_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_td *vb_abi_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_abi_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_abi_alloc_parent_domain(struct ibv_context *context,
					  struct ibv_parent_domain_init_attr *attr);
struct ibv_counters *vb_abi_create_counters(struct ibv_context *context,
					    struct ibv_counters_init_attr *attr);
int vb_abi_destroy_counters(struct ibv_counters *counters);
int vb_abi_attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
			   struct ibv_flow *flow);
int vb_abi_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count,
			 uint32_t flags);
struct ibv_flow *vb_abi_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int vb_abi_destroy_flow(struct ibv_flow *flow);
struct ibv_dm *vb_abi_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vb_abi_free_dm(struct ibv_dm *dm);
void vb_abi_dm_fill_in(struct ibv_dm *dm);
struct ibv_mr *vb_abi_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
				size_t length, unsigned access);
struct ibv_mr *vb_abi_alloc_null_mr(struct ibv_pd *pd);
int vb_abi_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *sg_list, uint32_t num_sge);

struct ibv_xrcd *vb_abi_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vb_abi_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *vb_abi_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

int vb_abi_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

struct ibv_wq *vb_abi_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int vb_abi_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vb_abi_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *
vb_abi_create_rwq_ind_table(struct ibv_context *context,
			    struct ibv_rwq_ind_table_init_attr *attr);
int vb_abi_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

/* Entries of ibv_context_ops. */
int vb_abi_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_abi_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int vb_abi_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_abi_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_mw *vb_abi_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_abi_dealloc_mw(struct ibv_mw *mw);
int vb_abi_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vb_abi_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/*
 * The builder behind ibv_wr_*(3), kept in vb_qp.abi (wr.c). ops: IBV_QP_EX_WITH_*; EOPNOTSUPP if
 * the QP's type or this NIC does not support one of them. dv_ops: those of enum vb_qp_dv_flag.
 */
int vb_wr_check(enum ibv_qp_type type, uint64_t ops);
uint64_t vb_wr_ops(enum ibv_qp_type type); /* all that are supported */
int vb_wr_attach(struct ibv_qp *qp, const struct ibv_qp_cap *cap, uint64_t ops, uint32_t dv_ops);
void vb_wr_detach(struct ibv_qp *qp);

/*
 * Waits until the application has acknowledged every event that it was given. It gets no further
 * ones, as the object is dead already.
 */
void vb_abi_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acked,
		      const uint32_t *delivered);

#endif
