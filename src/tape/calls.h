/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_CALLS_H
#define VB_TAPE_CALLS_H

/*
 * The NIC's functions that change something, as run and abi call them: those of the same name
 * without "taped", which are on the tape if there is one. Those of the hot paths are called only if
 * there is one.
 */

#include "nic/control/qp.h"
#include "nic/control/srq.h"
#include "nic/core/ah.h"
#include "nic/core/domain.h"
#include "nic/data/post.h"
#include "nic/data/window.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"

/* --- the NIC: run --- */

/* The host is one that notes its answers; *host is copied. */
int vb_taped_nic_create(struct vb_nic **nic, const struct vb_nic_host *host, uint64_t seed);
void vb_taped_nic_guid_set(struct vb_nic *nic, uint64_t guid_be, uint64_t system_guid_be);
void vb_taped_nic_persona_set(struct vb_nic *nic, const struct vb_persona *persona);
void vb_taped_nic_rx_buffer_set(struct vb_nic *nic, uint32_t bytes);
void vb_taped_nic_gids_set(struct vb_nic *nic, const struct vb_gid_entry *entries, unsigned count);
void vb_taped_nic_fail(struct vb_nic *nic);
void vb_taped_nic_farewell(struct vb_nic *nic);
void vb_taped_congestion_tell(struct vb_nic *nic, const struct vb_frame *frame);

/* Hot: only if there is a tape. The rx right comes with the tape's lock. */
bool vb_taped_rx_try(struct vb_nic *nic);
void vb_taped_rx_take(struct vb_nic *nic);
void vb_taped_rx_drop(struct vb_nic *nic);
uint64_t vb_taped_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);
uint64_t vb_taped_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);
void vb_taped_turn(struct vb_nic *nic);

/* --- objects: abi --- */

int vb_taped_ctx_create(struct vb_nic *nic, int async_fd, struct vb_ctx **ctx);
bool vb_taped_ctx_fail(struct vb_ctx *ctx);
void vb_taped_ctx_destroy(struct vb_ctx *ctx);
bool vb_taped_ctx_event_pop(struct vb_ctx *ctx, struct ibv_async_event *event);
int vb_taped_pd_create(struct vb_ctx *ctx, struct vb_pd **pd);
int vb_taped_parent_domain_create(struct vb_ctx *ctx,
				  const struct ibv_parent_domain_init_attr *attr,
				  struct vb_pd **pd);
int vb_taped_pd_destroy(struct vb_pd *pd);
int vb_taped_td_create(struct vb_ctx *ctx, const struct ibv_td_init_attr *attr, struct vb_td **td);
int vb_taped_td_destroy(struct vb_td *td);
int vb_taped_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
		    struct vb_mr **mr);
int vb_taped_mr_alloc_null(struct vb_pd *pd, struct vb_mr **mr);
int vb_taped_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		      unsigned access);
int vb_taped_mr_dereg(struct vb_mr *mr);
int vb_taped_mw_alloc(struct vb_pd *pd, enum ibv_mw_type type, struct vb_mw **mw);
int vb_taped_mw_bind(struct vb_qp *qp, struct vb_mw *mw, const struct ibv_mw_bind *bind);
int vb_taped_mw_dealloc(struct vb_mw *mw);
int vb_taped_ah_create(struct vb_pd *pd, const struct ibv_ah_attr *attr, struct vb_ah **ah);
int vb_taped_ah_destroy(struct vb_ah *ah);
int vb_taped_channel_create(struct vb_ctx *ctx, int fd, struct vb_channel **channel);
struct vb_cq *vb_taped_channel_pop(struct vb_channel *channel);
int vb_taped_channel_destroy(struct vb_channel *channel);
int vb_taped_cq_create_ex(struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr,
			  struct vb_cq **cq);
int vb_taped_cq_resize(struct vb_cq *cq, int cqe);
int vb_taped_cq_moderate(struct vb_cq *cq, uint32_t count, uint32_t period_us);
int vb_taped_cq_destroy(struct vb_cq *cq);
void vb_taped_cq_free(struct vb_cq *cq);
int vb_taped_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **srq);
int vb_taped_srq_create_ex(struct vb_ctx *ctx, struct ibv_srq_init_attr_ex *attr,
			   struct vb_srq **srq);
int vb_taped_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask);
int vb_taped_srq_destroy(struct vb_srq *srq);
void vb_taped_srq_free(struct vb_srq *srq);
int vb_taped_qp_create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **qp);
int vb_taped_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
			  struct vb_qp **qp);
int vb_taped_parcels_make(struct vb_qp *qp, bool always);
int vb_taped_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
int vb_taped_qp_rate_limit(struct vb_qp *qp, const struct ibv_qp_rate_limit_attr *attr);
VB_LENT int vb_taped_qp_sport_choose(struct vb_qp *qp, uint16_t port);
VB_LENT int vb_taped_dc_stream_reset(struct vb_qp *qp, uint16_t stream);
int vb_taped_group_attach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES]);
int vb_taped_group_detach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES]);
int vb_taped_qp_destroy(struct vb_qp *qp);
void vb_taped_qp_fini(struct vb_qp *qp);
void vb_taped_qp_free(struct vb_qp *qp);
VB_LENT int vb_taped_qpn_reserve(struct vb_nic *nic, uint32_t *qpn);
VB_LENT int vb_taped_qpn_release(struct vb_nic *nic, uint32_t qpn);

/* Hot: only if there is a tape. */
void vb_taped_cq_arm_notify(struct vb_cq *cq, bool solicited_only);
int vb_taped_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc);
bool vb_taped_cq_take(struct vb_cq *cq, struct vb_cqe *cqe, struct vb_cq_stamp *stamp);

#endif
