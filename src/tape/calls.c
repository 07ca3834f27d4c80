/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/refusal.h"
#include "nic/control/nic.h"
#include "nic/control/qp_modify.h"
#include "nic/core/slots.h"
#include "nic/core/timer.h"
#include "nic/data/qp_error.h"
#include "nic/data/qp_parcels.h"
#include "nic/mem/mem_kinds.h"
#include "nic/service/dc/dc.h"
#include "nic/way/congestion.h"
#include "nic/way/mcast.h"
#include "nic/way/receive.h"
#include "tape/host.h"
#include "tape/lists.h"
#include "tape/tape.h"

/* Arguments, if they are wanted. Objects are known by their addresses. */
static void put_object(const void *object)
{
	uint64_t at = (uintptr_t)object;

	vb_tape_put_value(at);
}

static void put_number(uint64_t number)
{
	vb_tape_put_value(number);
}

/* A call with an object, or with an object and a number, and nothing else. */
static void enter(enum vb_tape_kind kind, const void *object)
{
	if (vb_tape_enter(kind))
		put_object(object);
}

static void enter_number(enum vb_tape_kind kind, const void *object, uint64_t number)
{
	if (!vb_tape_enter(kind))
		return;
	put_object(object);
	put_number(number);
}

static void enter_octets(enum vb_tape_kind kind, const void *object, const void *octets,
			 size_t bytes)
{
	if (!vb_tape_enter(kind))
		return;
	put_object(object);
	vb_tape_put(octets, bytes);
}

static int done(int rc)
{
	vb_tape_leave(rc, NULL, NULL, 0);
	return rc;
}

/* object: where it was put. */
static int made(int rc, const void *const *object)
{
	vb_tape_leave(rc, rc == 0 && object ? *object : NULL, NULL, 0);
	return rc;
}

/* --- the NIC --- */

int vb_taped_nic_create(struct vb_nic **nic, const struct vb_nic_host *host, uint64_t seed)
{
	const struct vb_tape_nic how = { .seed = seed, .line_kbps = host->line_kbps,
					 .gsi = host->gsi != NULL };
	struct vb_nic_host taped;

	if (!vb_tape_is_on())
		return vb_nic_create(nic, host, seed);
	taped = vb_tape_host(host);
	if (vb_tape_enter(VB_TAPE_NIC))
		vb_tape_put_value(how);
	return made(vb_nic_create(nic, &taped, seed), NULL);
}

void vb_taped_nic_guid_set(struct vb_nic *nic, uint64_t guid_be, uint64_t system_guid_be)
{
	if (vb_tape_enter(VB_TAPE_GUID_SET)) {
		put_object(nic);
		put_number(guid_be);
		put_number(system_guid_be);
	}
	vb_nic_guid_set(nic, guid_be, system_guid_be);
	done(0);
}

void vb_taped_nic_persona_set(struct vb_nic *nic, const struct vb_persona *persona)
{
	enter_octets(VB_TAPE_PERSONA_SET, nic, persona, sizeof(*persona));
	vb_nic_persona_set(nic, persona);
	done(0);
}

void vb_taped_nic_rx_buffer_set(struct vb_nic *nic, uint32_t bytes)
{
	enter_number(VB_TAPE_RX_BUFFER_SET, nic, bytes);
	vb_nic_rx_buffer_set(nic, bytes);
	done(0);
}

void vb_taped_nic_gids_set(struct vb_nic *nic, const struct vb_gid_entry *entries, unsigned count)
{
	enter_octets(VB_TAPE_GIDS_SET, nic, entries, count * sizeof(*entries));
	vb_nic_gids_set(nic, entries, count);
	done(0);
}

void vb_taped_nic_fail(struct vb_nic *nic)
{
	enter(VB_TAPE_FAIL, nic);
	vb_nic_fail(nic);
	done(0);
}

void vb_taped_nic_farewell(struct vb_nic *nic)
{
	/* Another thread may be in a call for ever, since the process ends. */
	if (!vb_tape_hold_try()) {
		vb_nic_farewell(nic);
		return;
	}
	enter(VB_TAPE_FAREWELL, nic);
	vb_nic_farewell(nic);
	done(0);
	vb_tape_let_go();
}

static void enter_frames(enum vb_tape_kind kind, const struct vb_frame *frames, uint32_t count)
{
	if (vb_tape_enter(kind))
		vb_tape_put_frames(frames, count);
}

void vb_taped_congestion_tell(struct vb_nic *nic, const struct vb_frame *frame)
{
	enter_frames(VB_TAPE_MARKED, frame, 1);
	vb_congestion_tell(nic, frame);
	done(0);
}

bool vb_taped_rx_try(struct vb_nic *nic)
{
	if (!vb_tape_hold_try())
		return false;
	if (vb_nic_rx_try(nic))
		return true;
	vb_tape_let_go();
	return false;
}

void vb_taped_rx_take(struct vb_nic *nic)
{
	vb_tape_hold();
	vb_nic_rx_take(nic);
}

void vb_taped_rx_drop(struct vb_nic *nic)
{
	vb_nic_rx_drop(nic);
	vb_tape_let_go();
}

uint64_t vb_taped_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count)
{
	uint64_t now_ns;

	enter_frames(VB_TAPE_RX, frames, count);
	now_ns = vb_nic_rx(nic, frames, count);
	done(0);
	return now_ns;
}

uint64_t vb_taped_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned count)
{
	uint64_t now_ns;

	enter_frames(VB_TAPE_RX_POLLED, frames, count);
	now_ns = vb_nic_rx_polled(nic, frames, count);
	done(0);
	return now_ns;
}

void vb_taped_turn(struct vb_nic *nic)
{
	enter(VB_TAPE_TURN, nic);
	vb_nic_turn(nic);
	done(0);
}

/* --- contexts and domains --- */

int vb_taped_ctx_create(struct vb_nic *nic, int async_fd, struct vb_ctx **ctx)
{
	enter(VB_TAPE_CTX_CREATE, nic);
	return made(vb_ctx_create(nic, async_fd, ctx), (void *)ctx);
}

bool vb_taped_ctx_fail(struct vb_ctx *ctx)
{
	enter(VB_TAPE_CTX_FAIL, ctx);
	return done(vb_ctx_fail(ctx));
}

void vb_taped_ctx_destroy(struct vb_ctx *ctx)
{
	enter(VB_TAPE_CTX_DESTROY, ctx);
	vb_ctx_destroy(ctx);
	done(0);
}

bool vb_taped_ctx_event_pop(struct vb_ctx *ctx, struct ibv_async_event *event)
{
	uint32_t type;
	bool has;

	enter(VB_TAPE_EVENT_POP, ctx);
	has = vb_ctx_event_pop(ctx, event);
	type = has ? event->event_type : 0;
	vb_tape_leave(has, NULL, &type, sizeof(type));
	return has;
}

int vb_taped_pd_create(struct vb_ctx *ctx, struct vb_pd **pd)
{
	enter(VB_TAPE_PD_CREATE, ctx);
	return made(vb_pd_create(ctx, pd), (void *)pd);
}

int vb_taped_parent_domain_create(struct vb_ctx *ctx,
				  const struct ibv_parent_domain_init_attr *attr,
				  struct vb_pd **pd)
{
	enter_octets(VB_TAPE_PARENT_CREATE, ctx, attr, sizeof(*attr));
	return made(vb_parent_domain_create(ctx, attr, pd), (void *)pd);
}

int vb_taped_td_create(struct vb_ctx *ctx, const struct ibv_td_init_attr *attr, struct vb_td **td)
{
	enter_octets(VB_TAPE_TD_CREATE, ctx, attr, sizeof(*attr));
	return made(vb_td_create(ctx, attr, td), (void *)td);
}

/* --- memory --- */

int vb_taped_mr_reg(struct vb_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access,
		    struct vb_mr **mr)
{
	if (vb_tape_enter(VB_TAPE_MR_REG)) {
		put_object(pd);
		put_object(addr);
		put_number(bytes);
		put_number(iova);
		put_number(access);
	}
	return made(vb_mr_reg(pd, addr, bytes, iova, access, mr), (void *)mr);
}

int vb_taped_mr_alloc_null(struct vb_pd *pd, struct vb_mr **mr)
{
	enter(VB_TAPE_MR_NULL, pd);
	return made(vb_mr_alloc_null(pd, mr), (void *)mr);
}

int vb_taped_mr_rereg(struct vb_mr *mr, int flags, struct vb_pd *pd, void *addr, size_t bytes,
		      unsigned access)
{
	if (vb_tape_enter(VB_TAPE_MR_REREG)) {
		put_object(mr);
		put_number((uint32_t)flags);
		put_object(flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL);
		put_object(addr);
		put_number(bytes);
		put_number(access);
	}
	return done(vb_mr_rereg(mr, flags, pd, addr, bytes, access));
}

int vb_taped_mw_alloc(struct vb_pd *pd, enum ibv_mw_type type, struct vb_mw **mw)
{
	enter_number(VB_TAPE_MW_ALLOC, pd, type);
	return made(vb_mw_alloc(pd, type, mw), (void *)mw);
}

int vb_taped_mw_bind(struct vb_qp *qp, struct vb_mw *mw, const struct ibv_mw_bind *bind)
{
	if (vb_tape_enter(VB_TAPE_MW_BIND)) {
		put_object(qp);
		put_object(mw);
		vb_tape_put(bind, sizeof(*bind));
	}
	return done(vb_mw_bind(qp, mw, bind));
}

int vb_taped_ah_create(struct vb_pd *pd, const struct ibv_ah_attr *attr, struct vb_ah **ah)
{
	enter_octets(VB_TAPE_AH_CREATE, pd, attr, sizeof(*attr));
	return made(vb_ah_create(pd, attr, ah), (void *)ah);
}

/* --- completion queues --- */

int vb_taped_channel_create(struct vb_ctx *ctx, int fd, struct vb_channel **channel)
{
	enter(VB_TAPE_CHANNEL_CREATE, ctx);
	return made(vb_channel_create(ctx, fd, channel), (void *)channel);
}

struct vb_cq *vb_taped_channel_pop(struct vb_channel *channel)
{
	struct vb_cq *cq;

	enter(VB_TAPE_CHANNEL_POP, channel);
	cq = vb_channel_pop(channel);
	vb_tape_leave(cq != NULL, NULL, NULL, 0);
	return cq;
}

int vb_taped_cq_create_ex(struct vb_ctx *ctx, const struct ibv_cq_init_attr_ex *attr,
			  struct vb_cq **cq)
{
	enter_octets(VB_TAPE_CQ_CREATE, ctx, attr, sizeof(*attr));
	return made(vb_cq_create_ex(ctx, attr, cq), (void *)cq);
}

int vb_taped_cq_resize(struct vb_cq *cq, int cqe)
{
	enter_number(VB_TAPE_CQ_RESIZE, cq, (uint32_t)cqe);
	return done(vb_cq_resize(cq, cqe));
}

int vb_taped_cq_moderate(struct vb_cq *cq, uint32_t count, uint32_t period_us)
{
	enter_number(VB_TAPE_CQ_MODERATE, cq, (uint64_t)count << 32 | period_us);
	return done(vb_cq_moderate(cq, count, period_us));
}

void vb_taped_cq_arm_notify(struct vb_cq *cq, bool solicited_only)
{
	enter_number(VB_TAPE_CQ_ARM, cq, solicited_only);
	vb_cq_arm_notify(cq, solicited_only);
	done(0);
}

/* A poll that finds nothing changes nothing. */
int vb_taped_cq_poll(struct vb_cq *cq, int n, struct ibv_wc *wc)
{
	int got;

	enter_number(VB_TAPE_CQ_POLL, cq, (uint32_t)n);
	got = vb_cq_poll(cq, n, wc);
	if (got == 0)
		vb_tape_leave_unsaid();
	else
		vb_tape_leave(got, NULL, wc, got > 0 ? (size_t)got * sizeof(*wc) : 0);
	return got;
}

bool vb_taped_cq_take(struct vb_cq *cq, struct vb_cqe *cqe, struct vb_cq_stamp *stamp)
{
	bool has;

	enter(VB_TAPE_CQ_TAKE, cq);
	has = vb_cq_take(cq, cqe, stamp);
	if (has)
		vb_tape_leave(1, NULL, &cqe->wc, sizeof(cqe->wc));
	else
		vb_tape_leave_unsaid();
	return has;
}

/* --- SRQs --- */

int vb_taped_srq_create(struct vb_pd *pd, struct ibv_srq_init_attr *attr, struct vb_srq **srq)
{
	enter_octets(VB_TAPE_SRQ_CREATE, pd, attr, sizeof(*attr));
	return made(vb_srq_create(pd, attr, srq), (void *)srq);
}

int vb_taped_srq_create_ex(struct vb_ctx *ctx, struct ibv_srq_init_attr_ex *attr,
			   struct vb_srq **srq)
{
	/* Its requests, and what is posted to it, are not on the tape. */
	if (vb_tape_is_on() && (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	    attr->srq_type == IBV_SRQT_TM)
		return vb_refuse(EOPNOTSUPP, "tag matching is not recorded");
	enter_octets(VB_TAPE_SRQ_CREATE_EX, ctx, attr, sizeof(*attr));
	return made(vb_srq_create_ex(ctx, attr, srq), (void *)srq);
}

int vb_taped_srq_modify(struct vb_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	if (vb_tape_enter(VB_TAPE_SRQ_MODIFY)) {
		put_object(srq);
		put_number((uint32_t)mask);
		vb_tape_put(attr, sizeof(*attr));
	}
	return done(vb_srq_modify(srq, attr, mask));
}

/* --- QPs --- */

/* What these do is in memory of others. */
static int type_refused(enum ibv_qp_type type)
{
	if (!vb_tape_is_on())
		return 0;
	if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV)
		return vb_refuse(EOPNOTSUPP, "XRC is not recorded");
	return type == IBV_QPT_RAW_PACKET ? vb_refuse(EOPNOTSUPP, "Ethernet is not recorded") : 0;
}

int vb_taped_qp_create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **qp)
{
	int rc = type_refused(attr->qp_type);

	if (rc != 0)
		return rc;
	enter_octets(VB_TAPE_QP_CREATE, pd, attr, sizeof(*attr));
	return made(vb_qp_create(pd, attr, qp), (void *)qp);
}

int vb_taped_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
			  struct vb_qp **qp)
{
	static const struct vb_dc_attr none;
	int rc = type_refused(attr->qp_type);

	if (rc != 0)
		return rc;
	if (vb_tape_enter(VB_TAPE_QP_CREATE_DV)) {
		vb_tape_put(attr, sizeof(*attr));
		vb_tape_put(dv, sizeof(*dv));
		vb_tape_put(dv->dc ? dv->dc : &none, sizeof(none));
	}
	return made(vb_qp_create_dv(attr, dv, qp), (void *)qp);
}

int vb_taped_parcels_make(struct vb_qp *qp, bool always)
{
	enter_number(VB_TAPE_QP_PARCELS, qp, always);
	return done(vb_parcels_make(qp, always));
}

int vb_taped_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (vb_tape_enter(VB_TAPE_QP_MODIFY)) {
		put_object(qp);
		put_number((uint32_t)mask);
		vb_tape_put(attr, sizeof(*attr));
	}
	return done(vb_qp_modify(qp, attr, mask));
}

int vb_taped_qp_rate_limit(struct vb_qp *qp, const struct ibv_qp_rate_limit_attr *attr)
{
	enter_octets(VB_TAPE_QP_RATE, qp, attr, sizeof(*attr));
	return done(vb_qp_rate_limit(qp, attr));
}

int vb_taped_qp_sport_choose(struct vb_qp *qp, uint16_t port)
{
	enter_number(VB_TAPE_QP_SPORT, qp, port);
	return done(vb_qp_sport_choose(qp, port));
}

int vb_taped_dc_stream_reset(struct vb_qp *qp, uint16_t stream)
{
	enter_number(VB_TAPE_QP_STREAM, qp, stream);
	return done(vb_dc_stream_reset(qp, stream));
}

int vb_taped_group_attach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES])
{
	enter_octets(VB_TAPE_QP_ATTACH, qp, gid, VB_GID_BYTES);
	return done(vb_group_attach(qp, gid));
}

int vb_taped_group_detach(struct vb_qp *qp, const uint8_t gid[VB_GID_BYTES])
{
	enter_octets(VB_TAPE_QP_DETACH, qp, gid, VB_GID_BYTES);
	return done(vb_group_detach(qp, gid));
}

void vb_taped_qp_free(struct vb_qp *qp)
{
	vb_taped_qp_fini(qp);
	free(qp);
}

int vb_taped_qpn_reserve(struct vb_nic *nic, uint32_t *qpn)
{
	uint32_t got;
	int rc;

	enter(VB_TAPE_QPN_RESERVE, nic);
	rc = vb_nic_qpn_reserve(nic, qpn);
	got = rc == 0 ? *qpn : 0;
	vb_tape_leave(rc, NULL, &got, sizeof(got));
	return rc;
}

int vb_taped_qpn_release(struct vb_nic *nic, uint32_t qpn)
{
	enter_number(VB_TAPE_QPN_RELEASE, nic, qpn);
	return done(vb_nic_qpn_release(nic, qpn));
}

/* --- destroyed --- */

int vb_taped_pd_destroy(struct vb_pd *pd)
{
	enter(VB_TAPE_PD_DESTROY, pd);
	return done(vb_pd_destroy(pd));
}

int vb_taped_td_destroy(struct vb_td *td)
{
	enter(VB_TAPE_TD_DESTROY, td);
	return done(vb_td_destroy(td));
}

int vb_taped_mr_dereg(struct vb_mr *mr)
{
	enter(VB_TAPE_MR_DEREG, mr);
	return done(vb_mr_dereg(mr));
}

int vb_taped_mw_dealloc(struct vb_mw *mw)
{
	enter(VB_TAPE_MW_DEALLOC, mw);
	return done(vb_mw_dealloc(mw));
}

int vb_taped_ah_destroy(struct vb_ah *ah)
{
	enter(VB_TAPE_AH_DESTROY, ah);
	return done(vb_ah_destroy(ah));
}

int vb_taped_channel_destroy(struct vb_channel *channel)
{
	enter(VB_TAPE_CHANNEL_DESTROY, channel);
	return done(vb_channel_destroy(channel));
}

int vb_taped_cq_destroy(struct vb_cq *cq)
{
	enter(VB_TAPE_CQ_DESTROY, cq);
	return done(vb_cq_destroy(cq));
}

void vb_taped_cq_free(struct vb_cq *cq)
{
	enter(VB_TAPE_CQ_FREE, cq);
	vb_cq_free(cq);
	done(0);
}

int vb_taped_srq_destroy(struct vb_srq *srq)
{
	enter(VB_TAPE_SRQ_DESTROY, srq);
	return done(vb_srq_destroy(srq));
}

void vb_taped_srq_free(struct vb_srq *srq)
{
	enter(VB_TAPE_SRQ_FREE, srq);
	vb_srq_free(srq);
	done(0);
}

int vb_taped_qp_destroy(struct vb_qp *qp)
{
	enter(VB_TAPE_QP_DESTROY, qp);
	return done(vb_qp_destroy(qp));
}

void vb_taped_qp_fini(struct vb_qp *qp)
{
	enter(VB_TAPE_QP_FINI, qp);
	vb_qp_fini(qp);
	done(0);
}
