/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_OPS_H
#define VB_ABI_VERBS_OPS_H

/*
 * The functions of a context, by which the inline functions of <infiniband/verbs.h> call. Each is
 * defined in the file of its object; context.c has the tables.
 */

#include <infiniband/verbs.h>

#include "base/lent.h"

/* Of verbs_context. */
struct ibv_cq_ex *vb_abi_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *vb_abi_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
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

/*
 * Extended CQs, for libraries that add to them: the completion that the application reads at
 * present, and memory from malloc() of that library's, freed with the CQ; or NULL.
 */
struct vb_cq;
struct vb_cqe;
VB_LENT const struct vb_cqe *vb_abi_cq_ex_current(struct ibv_cq_ex *cq);
VB_LENT void vb_abi_cq_ex_dv_set(struct ibv_cq_ex *cq, void *dv);
VB_LENT void *vb_abi_cq_ex_dv(struct ibv_cq_ex *cq);
void vb_abi_cq_ex_free(struct vb_cq *cq);

/* Of ibv_context_ops. */
int vb_abi_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_abi_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int vb_abi_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_abi_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/*
 * The same, which also note call sites and report refusals (told.c). A context has them if there is
 * a log when it is opened; so they cost nothing where there is none.
 */
int vb_told_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_told_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_told_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_told_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr);

struct ibv_mw *vb_abi_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_abi_dealloc_mw(struct ibv_mw *mw);
int vb_abi_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vb_abi_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
