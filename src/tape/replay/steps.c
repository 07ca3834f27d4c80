/* SPDX-License-Identifier: BSD-2-Clause */
/* Each function reads what the one of the same name in tape/calls.c has put. */
#include "tape/replay/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nic/control/nic.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/control/srq.h"
#include "nic/core/ah.h"
#include "nic/core/domain.h"
#include "nic/core/slots.h"
#include "nic/core/timer.h"
#include "nic/data/qp_error.h"
#include "nic/data/qp_parcels.h"
#include "nic/data/window.h"
#include "nic/mem/mem_kinds.h"
#include "nic/service/dc/dc.h"
#include "nic/way/congestion.h"
#include "nic/way/mcast.h"
#include "nic/way/receive.h"
#include "tape/replay/host.h"

/* More than a CQ may have. */
enum { POLL_MAX = 1 << 22 };

/* --- arguments --- */

static uint64_t number(struct vb_step *step)
{
	uint64_t value;

	vb_tape_get_value(&step->in, &value);
	return value;
}

static void *find(struct vb_step *step, enum vb_object_kind kind, uint64_t was)
{
	void *object = vb_object_find(&step->player->objects, kind, was);

	if (!object && !step->in.bad)
		vb_player_differs(step->player,
				  "%s: it is about an object that is not in the record",
				  vb_tape_words(step->player->call.head->kind));
	if (!object)
		step->in.bad = true;
	return object;
}

/* An object that has to be there; if not, the step is bad, and is not made. */
static void *object(struct vb_step *step, enum vb_object_kind kind)
{
	return find(step, kind, number(step));
}

/* A pointer within a structure, which may be NULL: replaced by that of our object. */
static void *replaced(struct vb_step *step, enum vb_object_kind kind, const void *was)
{
	return was ? find(step, kind, (uintptr_t)was) : NULL;
}

/* is: where the new object was put, a pointer to its type. */
static void made(struct vb_step *step, int rc, enum vb_object_kind kind, const void *is)
{
	step->rc = rc;
	step->kind = kind;
	if (rc == 0)
		memcpy(&step->made, is, sizeof(step->made));
}

/* Memory of the step. */
static void *room(struct vb_step *step, size_t bytes)
{
	return vb_tape_room_make(&step->in, &step->player->heap, bytes);
}

/* --- the NIC --- */

static void step_nic(struct vb_step *step)
{
	struct vb_tape_nic how;
	struct vb_nic_host host;

	vb_tape_get_value(&step->in, &how);
	if (step->in.bad || step->player->nic) {
		step->in.bad = true;
		return;
	}
	host = vb_replay_host(step->player, &how);
	step->rc = vb_nic_create(&step->player->nic, &host, how.seed);
}

static void step_guid_set(struct vb_step *step)
{
	uint64_t guid_be;

	number(step);
	guid_be = number(step);
	vb_nic_guid_set(step->player->nic, guid_be, number(step));
}

static void step_persona_set(struct vb_step *step)
{
	struct vb_persona persona;

	number(step);
	vb_tape_get_value(&step->in, &persona);
	if (!step->in.bad && vb_persona_is_sound(&persona))
		vb_nic_persona_set(step->player->nic, &persona);
	else
		step->in.bad = true;
}

static void step_rx_buffer_set(struct vb_step *step)
{
	number(step);
	vb_nic_rx_buffer_set(step->player->nic, (uint32_t)number(step));
}

static void step_gids_set(struct vb_step *step)
{
	struct vb_gid_entry entries[VB_GIDS_MAX];
	size_t count;

	number(step);
	count = step->in.left / sizeof(*entries);
	if (count > VB_GIDS_MAX) {
		step->in.bad = true;
		return;
	}
	vb_tape_get(&step->in, entries, count * sizeof(*entries));
	vb_nic_gids_set(step->player->nic, entries, (unsigned)count);
}

static void step_fail(struct vb_step *step)
{
	vb_nic_fail(step->player->nic);
}

static void step_farewell(struct vb_step *step)
{
	vb_nic_farewell(step->player->nic);
}

static void step_marked(struct vb_step *step)
{
	uint32_t count;
	struct vb_frame *frames = vb_tape_get_frames(&step->in, &step->player->heap, &count);

	if (frames)
		vb_congestion_tell(step->player->nic, frames);
}

static void frames_take(struct vb_step *step, uint64_t (*take)(struct vb_nic *nic,
							       const struct vb_frame *frames,
							       unsigned count))
{
	struct vb_nic *nic = step->player->nic;
	uint32_t count;
	struct vb_frame *frames = vb_tape_get_frames(&step->in, &step->player->heap, &count);

	if (!frames)
		return;
	step->player->counts.frames_in += count;
	vb_nic_rx_take(nic);
	take(nic, frames, count);
	vb_nic_rx_drop(nic);
}

static void step_rx(struct vb_step *step)
{
	frames_take(step, vb_nic_rx);
}

static void step_rx_polled(struct vb_step *step)
{
	frames_take(step, vb_nic_rx_polled);
}

static void step_turn(struct vb_step *step)
{
	vb_nic_turn(step->player->nic);
}

/* --- contexts and domains --- */

static void step_ctx_create(struct vb_step *step)
{
	struct vb_ctx *ctx = NULL;

	made(step, vb_ctx_create(step->player->nic, -1, &ctx), VB_OBJECT_CTX, &ctx);
}

static void step_ctx_fail(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);

	if (ctx)
		step->rc = vb_ctx_fail(ctx);
}

static void step_ctx_destroy(struct vb_step *step)
{
	struct vb_ctx *ctx = find(step, VB_OBJECT_CTX, step->gone = number(step));

	if (ctx)
		vb_ctx_destroy(ctx);
}

static void step_event_pop(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct ibv_async_event event = { 0 };
	uint32_t *type = room(step, sizeof(*type));

	if (!ctx || !type)
		return;
	step->rc = vb_ctx_event_pop(ctx, &event);
	*type = step->rc ? event.event_type : 0;
	step->results = type;
	step->result_bytes = sizeof(*type);
}

static void step_pd_create(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct vb_pd *pd = NULL;

	if (ctx)
		made(step, vb_pd_create(ctx, &pd), VB_OBJECT_PD, &pd);
}

/* Without the allocators of the program: the NIC has memory of its own. */
static void step_parent_create(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct ibv_parent_domain_init_attr attr;
	struct vb_pd *pd = NULL;

	vb_tape_get_value(&step->in, &attr);
	attr.pd = replaced(step, VB_OBJECT_PD, attr.pd);
	attr.td = replaced(step, VB_OBJECT_TD, attr.td);
	attr.comp_mask &= ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	if (!step->in.bad)
		made(step, vb_parent_domain_create(ctx, &attr, &pd), VB_OBJECT_PD, &pd);
}

static void step_td_create(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct ibv_td_init_attr attr;
	struct vb_td *td = NULL;

	vb_tape_get_value(&step->in, &attr);
	if (ctx)
		made(step, vb_td_create(ctx, &attr, &td), VB_OBJECT_TD, &td);
}

/* --- memory --- */

/*
 * Where the region's memory is now. The same address, unless something of this process is there:
 * then the region has the same iova, which is all that a NIC looks at.
 */
static void *memory_for(struct vb_step *step, uint64_t address, uint64_t bytes)
{
	struct vb_tape_memory *memory = &step->player->memory;
	void *at = (void *)(uintptr_t)address;

	if (!vb_tape_memory_at(memory, address, bytes))
		return at;
	return vb_tape_memory_elsewhere(memory, address, bytes);
}

static void step_mr_reg(struct vb_step *step)
{
	struct vb_pd *pd = object(step, VB_OBJECT_PD);
	uint64_t address = number(step), bytes = number(step), iova = number(step);
	unsigned access = (unsigned)number(step);
	struct vb_mr *mr = NULL;
	void *at;

	if (step->in.bad)
		return;
	at = memory_for(step, address, bytes);
	made(step, vb_mr_reg(pd, at ? at : (void *)(uintptr_t)address, bytes, iova, access, &mr),
	     VB_OBJECT_MR, &mr);
	/* What the NIC refuses needs none. */
	if (mr && !at && address)
		vb_player_differs(step->player, "there is no memory for a region of %llu octets "
				  "(one that covers all memory cannot be replayed)",
				  (unsigned long long)bytes);
}

static void step_mr_null(struct vb_step *step)
{
	struct vb_pd *pd = object(step, VB_OBJECT_PD);
	struct vb_mr *mr = NULL;

	if (pd)
		made(step, vb_mr_alloc_null(pd, &mr), VB_OBJECT_MR, &mr);
}

static void step_mr_rereg(struct vb_step *step)
{
	struct vb_mr *mr = object(step, VB_OBJECT_MR);
	int flags = (int)number(step);
	void *pd = replaced(step, VB_OBJECT_PD, (void *)(uintptr_t)number(step));
	uint64_t address = number(step), bytes = number(step);
	unsigned access = (unsigned)number(step);

	if (step->in.bad)
		return;
	/* Its iova becomes the address. */
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
	    vb_tape_memory_at(&step->player->memory, address, bytes)) {
		vb_player_differs(step->player, "something of the replay's is where a region goes "
				  "by ibv_rereg_mr: try again, the system will place it elsewhere");
		return;
	}
	step->rc = vb_mr_rereg(mr, flags, pd, (void *)(uintptr_t)address, bytes, access);
}

static void step_mw_alloc(struct vb_step *step)
{
	struct vb_pd *pd = object(step, VB_OBJECT_PD);
	enum ibv_mw_type type = (enum ibv_mw_type)number(step);
	struct vb_mw *mw = NULL;

	if (pd)
		made(step, vb_mw_alloc(pd, type, &mw), VB_OBJECT_MW, &mw);
}

static void step_mw_bind(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	struct vb_mw *mw = object(step, VB_OBJECT_MW);
	struct ibv_mw_bind bind;

	vb_tape_get_value(&step->in, &bind);
	bind.bind_info.mr = replaced(step, VB_OBJECT_MR, bind.bind_info.mr);
	if (!step->in.bad)
		step->rc = vb_mw_bind(qp, mw, &bind);
}

static void step_ah_create(struct vb_step *step)
{
	struct vb_pd *pd = object(step, VB_OBJECT_PD);
	struct ibv_ah_attr attr;
	struct vb_ah *ah = NULL;

	vb_tape_get_value(&step->in, &attr);
	if (!step->in.bad)
		made(step, vb_ah_create(pd, &attr, &ah), VB_OBJECT_AH, &ah);
}

/* --- completion queues --- */

static void step_channel_create(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct vb_channel *channel = NULL;

	if (ctx)
		made(step, vb_channel_create(ctx, -1, &channel), VB_OBJECT_CHANNEL, &channel);
}

static void step_channel_pop(struct vb_step *step)
{
	struct vb_channel *channel = object(step, VB_OBJECT_CHANNEL);

	if (channel)
		step->rc = vb_channel_pop(channel) != NULL;
}

static void step_cq_create(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct ibv_cq_init_attr_ex attr;
	struct vb_cq *cq = NULL;

	vb_tape_get_value(&step->in, &attr);
	attr.channel = replaced(step, VB_OBJECT_CHANNEL, attr.channel);
	if (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		attr.parent_domain = replaced(step, VB_OBJECT_PD, attr.parent_domain);
	if (!step->in.bad)
		made(step, vb_cq_create_ex(ctx, &attr, &cq), VB_OBJECT_CQ, &cq);
}

static void step_cq_resize(struct vb_step *step)
{
	struct vb_cq *cq = object(step, VB_OBJECT_CQ);

	if (cq)
		step->rc = vb_cq_resize(cq, (int)number(step));
}

static void step_cq_moderate(struct vb_step *step)
{
	struct vb_cq *cq = object(step, VB_OBJECT_CQ);
	uint64_t both = number(step);

	if (cq)
		step->rc = vb_cq_moderate(cq, (uint32_t)(both >> 32), (uint32_t)both);
}

static void step_cq_arm(struct vb_step *step)
{
	struct vb_cq *cq = object(step, VB_OBJECT_CQ);

	if (cq)
		vb_cq_arm_notify(cq, number(step) != 0);
}

static void step_cq_poll(struct vb_step *step)
{
	struct vb_cq *cq = object(step, VB_OBJECT_CQ);
	int n = (int)vb_min_u64(number(step), POLL_MAX);
	struct ibv_wc *wc = cq ? room(step, (size_t)n * sizeof(*wc)) : NULL;

	if (!wc)
		return;
	step->rc = vb_cq_poll(cq, n, wc);
	step->results = wc;
	step->result_bytes = step->rc > 0 ? (size_t)step->rc * sizeof(*wc) : 0;
}

static void step_cq_take(struct vb_step *step)
{
	struct vb_cq *cq = object(step, VB_OBJECT_CQ);
	struct vb_cqe *cqe = room(step, sizeof(*cqe));
	struct vb_cq_stamp stamp;

	if (!cq || !cqe)
		return;
	step->rc = vb_cq_take(cq, cqe, &stamp);
	step->results = &cqe->wc;
	step->result_bytes = step->rc ? sizeof(cqe->wc) : 0;
}

/* --- SRQs --- */

static void step_srq_create(struct vb_step *step)
{
	struct vb_pd *pd = object(step, VB_OBJECT_PD);
	struct ibv_srq_init_attr attr;
	struct vb_srq *srq = NULL;

	vb_tape_get_value(&step->in, &attr);
	if (pd)
		made(step, vb_srq_create(pd, &attr, &srq), VB_OBJECT_SRQ, &srq);
}

static void step_srq_create_ex(struct vb_step *step)
{
	struct vb_ctx *ctx = object(step, VB_OBJECT_CTX);
	struct ibv_srq_init_attr_ex attr;
	struct vb_srq *srq = NULL;

	vb_tape_get_value(&step->in, &attr);
	if (attr.comp_mask & IBV_SRQ_INIT_ATTR_PD)
		attr.pd = replaced(step, VB_OBJECT_PD, attr.pd);
	if (attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		attr.cq = replaced(step, VB_OBJECT_CQ, attr.cq);
	if (!step->in.bad)
		made(step, vb_srq_create_ex(ctx, &attr, &srq), VB_OBJECT_SRQ, &srq);
}

static void step_srq_modify(struct vb_step *step)
{
	struct vb_srq *srq = object(step, VB_OBJECT_SRQ);
	int mask = (int)number(step);
	struct ibv_srq_attr attr;

	vb_tape_get_value(&step->in, &attr);
	if (!step->in.bad)
		step->rc = vb_srq_modify(srq, &attr, mask);
}

static void place_result(struct vb_step *step, uint32_t place)
{
	uint32_t *at = room(step, sizeof(*at));

	if (!at)
		return;
	*at = place;
	step->results = at;
	step->result_bytes = sizeof(*at);
}

static void step_srq_post(struct vb_step *step)
{
	struct vb_srq *srq = object(step, VB_OBJECT_SRQ);
	struct ibv_recv_wr *wr = vb_tape_get_recvs(&step->in, &step->player->heap), *bad = NULL;

	if (step->in.bad)
		return;
	step->rc = vb_srq_post(srq, wr, &bad);
	place_result(step, vb_tape_recv_place(wr, step->rc ? bad : NULL));
}

/* --- QPs --- */

static void step_qp_create(struct vb_step *step)
{
	struct vb_pd *pd = object(step, VB_OBJECT_PD);
	struct ibv_qp_init_attr attr;
	struct vb_qp *qp = NULL;

	vb_tape_get_value(&step->in, &attr);
	attr.send_cq = replaced(step, VB_OBJECT_CQ, attr.send_cq);
	attr.recv_cq = replaced(step, VB_OBJECT_CQ, attr.recv_cq);
	attr.srq = replaced(step, VB_OBJECT_SRQ, attr.srq);
	if (!step->in.bad)
		made(step, vb_qp_create(pd, &attr, &qp), VB_OBJECT_QP, &qp);
}

static void step_qp_create_dv(struct vb_step *step)
{
	struct ibv_qp_init_attr_ex attr;
	struct vb_qp_dv_attr dv;
	struct vb_dc_attr dc;
	struct vb_qp *qp = NULL;

	vb_tape_get_value(&step->in, &attr);
	vb_tape_get_value(&step->in, &dv);
	vb_tape_get_value(&step->in, &dc);
	attr.send_cq = replaced(step, VB_OBJECT_CQ, attr.send_cq);
	attr.recv_cq = replaced(step, VB_OBJECT_CQ, attr.recv_cq);
	attr.srq = replaced(step, VB_OBJECT_SRQ, attr.srq);
	if (attr.comp_mask & IBV_QP_INIT_ATTR_PD)
		attr.pd = replaced(step, VB_OBJECT_PD, attr.pd);
	dv.dc = dv.dc ? &dc : NULL;
	if (!step->in.bad)
		made(step, vb_qp_create_dv(&attr, &dv, &qp), VB_OBJECT_QP, &qp);
}

static void step_qp_parcels(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);

	if (qp)
		step->rc = vb_parcels_make(qp, number(step) != 0);
}

static void step_qp_modify(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	int mask = (int)number(step);
	struct ibv_qp_attr attr;

	vb_tape_get_value(&step->in, &attr);
	if (!step->in.bad)
		step->rc = vb_qp_modify(qp, &attr, mask);
}

static void step_qp_rate(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	struct ibv_qp_rate_limit_attr attr;

	vb_tape_get_value(&step->in, &attr);
	if (!step->in.bad)
		step->rc = vb_qp_rate_limit(qp, &attr);
}

static void step_qp_sport(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);

	if (qp)
		step->rc = vb_qp_sport_choose(qp, (uint16_t)number(step));
}

static void step_qp_stream(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);

	if (qp)
		step->rc = vb_dc_stream_reset(qp, (uint16_t)number(step));
}

/* The objects that a request names. */
static void request_replace(struct vb_step *step, const struct vb_qp *qp, struct ibv_send_wr *wr)
{
	if (qp->ibv.qp.qp_type == IBV_QPT_UD)
		wr->wr.ud.ah = replaced(step, VB_OBJECT_AH, wr->wr.ud.ah);
	if (wr->opcode != IBV_WR_BIND_MW)
		return;
	wr->bind_mw.mw = replaced(step, VB_OBJECT_MW, wr->bind_mw.mw);
	wr->bind_mw.bind_info.mr = replaced(step, VB_OBJECT_MR, wr->bind_mw.bind_info.mr);
}

static void step_qp_post_send(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	struct ibv_send_wr *wr = vb_tape_get_sends(&step->in, &step->player->heap), *bad = NULL;

	for (struct ibv_send_wr *w = wr; qp && w; w = w->next)
		request_replace(step, qp, w);
	if (step->in.bad)
		return;
	step->rc = vb_qp_post_send(qp, wr, &bad);
	place_result(step, vb_tape_send_place(wr, step->rc ? bad : NULL));
}

static void step_qp_post_recv(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	struct ibv_recv_wr *wr = vb_tape_get_recvs(&step->in, &step->player->heap), *bad = NULL;

	if (step->in.bad)
		return;
	step->rc = vb_qp_post_recv(qp, wr, &bad);
	place_result(step, vb_tape_recv_place(wr, step->rc ? bad : NULL));
}

static void step_qp_post_batch(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	uint32_t count;
	struct vb_post *posts = vb_tape_get_posts(&step->in, &step->player->heap, &count);

	for (uint32_t i = 0; qp && posts && i < count; i++) {
		request_replace(step, qp, &posts[i].wr);
		posts[i].dc.ah = replaced(step, VB_OBJECT_AH, posts[i].dc.ah);
	}
	if (!step->in.bad && posts)
		step->rc = vb_qp_post_batch(qp, posts, count);
}

static void step_qp_attach(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	const uint8_t *gid = vb_tape_get_octets(&step->in, VB_GID_BYTES);

	if (qp && gid)
		step->rc = vb_group_attach(qp, gid);
}

static void step_qp_detach(struct vb_step *step)
{
	struct vb_qp *qp = object(step, VB_OBJECT_QP);
	const uint8_t *gid = vb_tape_get_octets(&step->in, VB_GID_BYTES);

	if (qp && gid)
		step->rc = vb_group_detach(qp, gid);
}

static void step_qpn_reserve(struct vb_step *step)
{
	uint32_t qpn = 0;

	step->rc = vb_nic_qpn_reserve(step->player->nic, &qpn);
	place_result(step, step->rc == 0 ? qpn : 0);
}

static void step_qpn_release(struct vb_step *step)
{
	number(step);
	step->rc = vb_nic_qpn_release(step->player->nic, (uint32_t)number(step));
}

/* --- destroyed --- */

#define DESTROYS(name, type, kind, call)                                                           \
	static void step_##name(struct vb_step *step)                                              \
	{                                                                                          \
		struct type *it = find(step, kind, step->gone = number(step));                     \
                                                                                                   \
		if (it)                                                                            \
			step->rc = call(it);                                                       \
	}

DESTROYS(pd_destroy, vb_pd, VB_OBJECT_PD, vb_pd_destroy)
DESTROYS(td_destroy, vb_td, VB_OBJECT_TD, vb_td_destroy)
DESTROYS(mr_dereg, vb_mr, VB_OBJECT_MR, vb_mr_dereg)
DESTROYS(mw_dealloc, vb_mw, VB_OBJECT_MW, vb_mw_dealloc)
DESTROYS(ah_destroy, vb_ah, VB_OBJECT_AH, vb_ah_destroy)
DESTROYS(channel_destroy, vb_channel, VB_OBJECT_CHANNEL, vb_channel_destroy)

/* These live until the application has acknowledged their events. */
#define DIES(name, type, kind, call)                                                               \
	static void step_##name(struct vb_step *step)                                              \
	{                                                                                          \
		struct type *it = object(step, kind);                                              \
                                                                                                   \
		if (it)                                                                            \
			step->rc = call(it);                                                       \
	}
#define IS_FREED(name, type, kind, call)                                                           \
	static void step_##name(struct vb_step *step)                                              \
	{                                                                                          \
		struct type *it = find(step, kind, step->gone = number(step));                     \
                                                                                                   \
		if (it)                                                                            \
			call(it);                                                                  \
		vb_object_drop(&step->player->objects, step->gone);                                \
	}

DIES(cq_destroy, vb_cq, VB_OBJECT_CQ, vb_cq_destroy)
DIES(srq_destroy, vb_srq, VB_OBJECT_SRQ, vb_srq_destroy)
DIES(qp_destroy, vb_qp, VB_OBJECT_QP, vb_qp_destroy)
IS_FREED(cq_free, vb_cq, VB_OBJECT_CQ, vb_cq_free)
IS_FREED(srq_free, vb_srq, VB_OBJECT_SRQ, vb_srq_free)
IS_FREED(qp_fini, vb_qp, VB_OBJECT_QP, vb_qp_free)

/* clang-format off */
static void (*const steps[VB_TAPE_KINDS])(struct vb_step *step) = {
	[VB_TAPE_NIC] = step_nic,
	[VB_TAPE_GUID_SET] = step_guid_set,
	[VB_TAPE_PERSONA_SET] = step_persona_set,
	[VB_TAPE_RX_BUFFER_SET] = step_rx_buffer_set,
	[VB_TAPE_GIDS_SET] = step_gids_set,
	[VB_TAPE_RX] = step_rx,
	[VB_TAPE_RX_POLLED] = step_rx_polled,
	[VB_TAPE_TURN] = step_turn,
	[VB_TAPE_MARKED] = step_marked,
	[VB_TAPE_FAIL] = step_fail,
	[VB_TAPE_FAREWELL] = step_farewell,
	[VB_TAPE_CTX_CREATE] = step_ctx_create,
	[VB_TAPE_CTX_FAIL] = step_ctx_fail,
	[VB_TAPE_CTX_DESTROY] = step_ctx_destroy,
	[VB_TAPE_EVENT_POP] = step_event_pop,
	[VB_TAPE_PD_CREATE] = step_pd_create,
	[VB_TAPE_PARENT_CREATE] = step_parent_create,
	[VB_TAPE_PD_DESTROY] = step_pd_destroy,
	[VB_TAPE_TD_CREATE] = step_td_create,
	[VB_TAPE_TD_DESTROY] = step_td_destroy,
	[VB_TAPE_MR_REG] = step_mr_reg,
	[VB_TAPE_MR_NULL] = step_mr_null,
	[VB_TAPE_MR_REREG] = step_mr_rereg,
	[VB_TAPE_MR_DEREG] = step_mr_dereg,
	[VB_TAPE_MW_ALLOC] = step_mw_alloc,
	[VB_TAPE_MW_BIND] = step_mw_bind,
	[VB_TAPE_MW_DEALLOC] = step_mw_dealloc,
	[VB_TAPE_AH_CREATE] = step_ah_create,
	[VB_TAPE_AH_DESTROY] = step_ah_destroy,
	[VB_TAPE_CHANNEL_CREATE] = step_channel_create,
	[VB_TAPE_CHANNEL_POP] = step_channel_pop,
	[VB_TAPE_CHANNEL_DESTROY] = step_channel_destroy,
	[VB_TAPE_CQ_CREATE] = step_cq_create,
	[VB_TAPE_CQ_RESIZE] = step_cq_resize,
	[VB_TAPE_CQ_MODERATE] = step_cq_moderate,
	[VB_TAPE_CQ_ARM] = step_cq_arm,
	[VB_TAPE_CQ_POLL] = step_cq_poll,
	[VB_TAPE_CQ_TAKE] = step_cq_take,
	[VB_TAPE_CQ_DESTROY] = step_cq_destroy,
	[VB_TAPE_CQ_FREE] = step_cq_free,
	[VB_TAPE_SRQ_CREATE] = step_srq_create,
	[VB_TAPE_SRQ_CREATE_EX] = step_srq_create_ex,
	[VB_TAPE_SRQ_MODIFY] = step_srq_modify,
	[VB_TAPE_SRQ_POST] = step_srq_post,
	[VB_TAPE_SRQ_DESTROY] = step_srq_destroy,
	[VB_TAPE_SRQ_FREE] = step_srq_free,
	[VB_TAPE_QP_CREATE] = step_qp_create,
	[VB_TAPE_QP_CREATE_DV] = step_qp_create_dv,
	[VB_TAPE_QP_PARCELS] = step_qp_parcels,
	[VB_TAPE_QP_MODIFY] = step_qp_modify,
	[VB_TAPE_QP_RATE] = step_qp_rate,
	[VB_TAPE_QP_SPORT] = step_qp_sport,
	[VB_TAPE_QP_STREAM] = step_qp_stream,
	[VB_TAPE_QP_POST_SEND] = step_qp_post_send,
	[VB_TAPE_QP_POST_RECV] = step_qp_post_recv,
	[VB_TAPE_QP_POST_BATCH] = step_qp_post_batch,
	[VB_TAPE_QP_ATTACH] = step_qp_attach,
	[VB_TAPE_QP_DETACH] = step_qp_detach,
	[VB_TAPE_QP_DESTROY] = step_qp_destroy,
	[VB_TAPE_QP_FINI] = step_qp_fini,
	[VB_TAPE_QPN_RESERVE] = step_qpn_reserve,
	[VB_TAPE_QPN_RELEASE] = step_qpn_release,
};
/* clang-format on */

bool vb_step_make(struct vb_step *step, enum vb_tape_kind kind)
{
	if (kind >= VB_TAPE_KINDS || !steps[kind] || (!step->player->nic && kind != VB_TAPE_NIC))
		return false;
	steps[kind](step);
	return true;
}
