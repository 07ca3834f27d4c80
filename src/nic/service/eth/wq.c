/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/wq.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/data/why.h"
#include "nic/queue/cq.h"
#include "nic/queue/rq.h"
#include "nic/service/eth/raw.h"
#include "nic/service/eth/raw_rx.h"
#include "nic/core/lowered.h"

#define CREATE_FLAGS_KNOWN ((uint32_t)(IBV_WQ_FLAGS_RESERVED - 1))
#define ATTR_KNOWN ((uint32_t)(IBV_WQ_ATTR_RESERVED - 1))

/* QPNs have 24 bits, and completions of both may be in one CQ. */
#define NUMBER_FIRST (1u << 24)

/* Frames that wait for a request to be posted, oldest first. */
struct vb_rwq_delayed {
	uint32_t head, tail; /* count up */
	struct delayed {
		uint32_t bytes, tag;
		bool inner;
		uint8_t octets[VB_ETH_FRAME_BYTES_MAX];
	} frame[VB_RWQ_DELAYED_MAX];
};

void vb_rwqs_init(struct vb_rwqs *rwqs)
{
	vb_lock_init(&rwqs->lock, VB_RANK_WQS);
}

void vb_rwqs_fini(struct vb_rwqs *rwqs)
{
	vb_lock_fini(&rwqs->lock);
}

static struct vb_cq *cq_of(const struct vb_rwq *wq)
{
	return (struct vb_cq *)wq->ibv.cq;
}

static enum ibv_wq_state state_of(const struct vb_rwq *wq)
{
	return (enum ibv_wq_state)atomic_load_explicit(&wq->state, memory_order_acquire);
}

/* --- creating --- */

static uint32_t flags_of(const struct ibv_wq_init_attr *attr)
{
	return attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0;
}

static int check(const struct vb_ctx *ctx, const struct ibv_wq_init_attr *attr)
{
	const struct ibv_context *context = &ctx->ibv.context;

	if (!ctx->nic->host.segment || attr->comp_mask >= IBV_WQ_INIT_ATTR_RESERVED ||
	    (flags_of(attr) & ~CREATE_FLAGS_KNOWN))
		return EOPNOTSUPP;
	if (attr->wq_type != IBV_WQT_RQ)
		return vb_refuse(EINVAL, "wq_type is %d; there is IBV_WQT_RQ (%d)",
				 (int)attr->wq_type, (int)IBV_WQT_RQ);
	if (!attr->max_wr || attr->max_wr > vb_lowered(ctx->nic, VB_LIMIT_QP_WR) ||
	    attr->max_sge > vb_lowered(ctx->nic, VB_LIMIT_SGE))
		return vb_refuse(EINVAL, "max_wr is %u and max_sge %u; they may be 1 to %u and at "
					 "most %u",
				 attr->max_wr, attr->max_sge, vb_lowered(ctx->nic, VB_LIMIT_QP_WR),
				 vb_lowered(ctx->nic, VB_LIMIT_SGE));
	if (!attr->pd || attr->pd->context != context)
		return vb_refuse(EINVAL, "pd is %s", attr->pd ? "another context's" : "NULL");
	if (!attr->cq || attr->cq->context != context)
		return vb_refuse(EINVAL, "cq is %s", attr->cq ? "another context's" : "NULL");
	return 0;
}

/* Enters it in the NIC's list. */
static void enter(struct vb_rwq *wq)
{
	struct vb_rwqs *rwqs = &wq->nic->special.rwqs;

	vb_lock_take(&rwqs->lock);
	wq->ibv.wq_num = NUMBER_FIRST + rwqs->last++;
	if (rwqs->last > UINT32_MAX - NUMBER_FIRST)
		rwqs->last = 0;
	wq->next = rwqs->first;
	wq->at = &rwqs->first;
	if (wq->next)
		wq->next->at = &wq->next;
	rwqs->first = wq;
	vb_lock_drop(&rwqs->lock);
}

static void leave(struct vb_rwq *wq)
{
	struct vb_rwqs *rwqs = &wq->nic->special.rwqs;

	vb_lock_take(&rwqs->lock);
	*wq->at = wq->next;
	if (wq->next)
		wq->next->at = wq->at;
	vb_lock_drop(&rwqs->lock);
}

static void fill(struct vb_rwq *wq, struct vb_ctx *ctx, const struct ibv_wq_init_attr *attr)
{
	wq->nic = ctx->nic;
	wq->flags = flags_of(attr);
	wq->ibv.context = &ctx->ibv.context;
	wq->ibv.wq_context = attr->wq_context;
	wq->ibv.pd = attr->pd;
	wq->ibv.cq = attr->cq;
	wq->ibv.wq_type = attr->wq_type;
	wq->ibv.state = IBV_WQS_RESET;
	atomic_store(&wq->state, IBV_WQS_RESET);
}

int vb_rwq_create(struct vb_ctx *ctx, struct ibv_wq_init_attr *attr, struct vb_rwq **out)
{
	struct vb_rwqs *rwqs = &ctx->nic->special.rwqs;
	struct vb_rwq *wq;
	int err = check(ctx, attr);

	if (!err)
		err = vb_nic_count_up(&rwqs->count, VB_RWQS_MAX);
	if (err)
		return err;
	wq = calloc(1, sizeof(*wq));
	if (wq && (flags_of(attr) & IBV_WQ_FLAGS_DELAY_DROP)) {
		wq->delayed = calloc(1, sizeof(*wq->delayed));
		if (!wq->delayed) {
			free(wq);
			wq = NULL;
		}
	}
	if (!wq) {
		atomic_fetch_sub(&rwqs->count, 1);
		return ENOMEM;
	}
	fill(wq, ctx, attr);
	vb_lock_init(&wq->lock, VB_RANK_WQ);
	vb_rq_init(&wq->rq, attr->max_wr, attr->max_sge);
	enter(wq);
	wq->ibv.handle = wq->ibv.wq_num;
	atomic_fetch_add(&((struct vb_pd *)attr->pd)->users, 1);
	atomic_fetch_add(&cq_of(wq)->users, 1);
	*out = wq;
	return 0;
}

/* --- states --- */

static const bool transitions[][3] = {
	[IBV_WQS_RESET] = {[IBV_WQS_RESET] = true, [IBV_WQS_RDY] = true},
	[IBV_WQS_RDY] = {[IBV_WQS_RESET] = true, [IBV_WQS_RDY] = true, [IBV_WQS_ERR] = true},
	[IBV_WQS_ERR] = {[IBV_WQS_RESET] = true, [IBV_WQS_ERR] = true},
};

static void forget_delayed(struct vb_rwq *wq)
{
	if (!wq->delayed)
		return;
	vb_stat_add(&wq->nic->stats, VB_STAT_DROP_STATE, wq->delayed->tail - wq->delayed->head);
	wq->delayed->head = wq->delayed->tail;
}

static void flush_locked(struct vb_rwq *wq)
{
	struct vb_recv recv;

	vb_rq_await_posts(&wq->rq);
	while (vb_rq_take(&wq->rq, &recv)) {
		struct vb_cqe cqe = {
			.wc = {.wr_id = recv.wr_id,
			       .status = IBV_WC_WR_FLUSH_ERR,
			       .vendor_err = VB_WHY_FLUSHED,
			       .opcode = IBV_WC_RECV,
			       .qp_num = wq->ibv.wq_num},
			.solicited = true,
		};

		vb_cq_push(cq_of(wq), &cqe);
	}
}

static void state_set_locked(struct vb_rwq *wq, enum ibv_wq_state state)
{
	if (state == state_of(wq))
		return;
	atomic_store(&wq->state, state);
	wq->ibv.state = state;
	if (state == IBV_WQS_RDY)
		return;
	forget_delayed(wq);
	if (state == IBV_WQS_ERR) {
		flush_locked(wq);
		return;
	}
	vb_rq_await_posts(&wq->rq);
	vb_rq_empty(&wq->rq);
	vb_cq_purge(cq_of(wq), wq->ibv.wq_num);
}

static int check_modify(const struct vb_rwq *wq, const struct ibv_wq_attr *attr)
{
	enum ibv_wq_state from = state_of(wq);
	enum ibv_wq_state to = attr->attr_mask & IBV_WQ_ATTR_STATE ? attr->wq_state : from;

	if (attr->attr_mask & ~ATTR_KNOWN)
		return vb_refuse(EINVAL, "attr_mask 0x%x has unknown bits", attr->attr_mask);
	if ((unsigned)to > IBV_WQS_ERR)
		return vb_refuse(EINVAL, "wq_state %d is none", (int)to);
	if ((attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) && attr->curr_wq_state != from)
		return vb_refuse(EINVAL, "curr_wq_state is %d, and the queue is in %d",
				 (int)attr->curr_wq_state, (int)from);
	if (!transitions[from][to])
		return vb_refuse(EINVAL, "there is no transition from state %d to %d (RESET is "
					 "%d, RDY %d, ERR %d)",
				 (int)from, (int)to, (int)IBV_WQS_RESET, (int)IBV_WQS_RDY,
				 (int)IBV_WQS_ERR);
	if ((attr->attr_mask & IBV_WQ_ATTR_FLAGS) &&
	    (attr->flags_mask & ~(uint32_t)IBV_WQ_FLAGS_CVLAN_STRIPPING))
		return EOPNOTSUPP;
	return 0;
}

int vb_rwq_modify(struct vb_rwq *wq, struct ibv_wq_attr *attr)
{
	int err;

	vb_lock_take(&wq->lock);
	err = check_modify(wq, attr);
	if (err) {
		vb_lock_drop(&wq->lock);
		return err;
	}
	if (attr->attr_mask & IBV_WQ_ATTR_FLAGS) {
		wq->flags = (wq->flags & ~attr->flags_mask) | (attr->flags & attr->flags_mask);
		attr->flags = wq->flags;
	}
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		state_set_locked(wq, attr->wq_state);
	if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE)
		attr->curr_wq_state = state_of(wq);
	vb_lock_drop(&wq->lock);
	return 0;
}

static void fail_locked(struct vb_rwq *wq, bool tell)
{
	struct ibv_async_event event = {.element.wq = &wq->ibv, .event_type = IBV_EVENT_WQ_FATAL};

	if (state_of(wq) != IBV_WQS_RDY)
		return;
	state_set_locked(wq, IBV_WQS_ERR);
	if (tell)
		vb_ctx_event_push(vb_ctx_of(wq->ibv.context), &event, &wq->events_delivered);
}

void vb_rwqs_fail(struct vb_nic *nic, const struct vb_cq *cq, const struct ibv_context *of)
{
	vb_lock_take(&nic->special.rwqs.lock);
	for (struct vb_rwq *wq = nic->special.rwqs.first; wq; wq = wq->next) {
		if ((cq && cq_of(wq) != cq) || (of && wq->ibv.context != of))
			continue;
		vb_lock_take(&wq->lock);
		fail_locked(wq, cq);
		vb_lock_drop(&wq->lock);
	}
	vb_lock_drop(&nic->special.rwqs.lock);
}

/* --- destroying --- */

int vb_rwq_destroy(struct vb_rwq *wq)
{
	if (atomic_load(&wq->users))
		return EBUSY;
	leave(wq);
	vb_cq_purge(cq_of(wq), wq->ibv.wq_num);
	vb_ctx_events_cancel(vb_ctx_of(wq->ibv.context), &wq->events_delivered);
	atomic_fetch_sub(&cq_of(wq)->users, 1);
	atomic_fetch_sub(&((struct vb_pd *)wq->ibv.pd)->users, 1);
	atomic_fetch_sub(&wq->nic->special.rwqs.count, 1);
	return 0;
}

void vb_rwq_free(struct vb_rwq *wq)
{
	vb_rq_fini(&wq->rq);
	vb_lock_fini(&wq->lock);
	free(wq->delayed);
	free(wq);
}

/* --- frames --- */

static void take_locked(struct vb_rwq *wq, const struct vb_eth_frame *frame, uint32_t tag,
			bool inner)
{
	const struct vb_raw_sink sink = {
		.nic = wq->nic,
		.pd = wq->ibv.pd,
		.rq = &wq->rq,
		.cq = cq_of(wq),
		.number = wq->ibv.wq_num,
		.strips_cvlan = wq->flags & IBV_WQ_FLAGS_CVLAN_STRIPPING,
		.scatters_fcs = wq->flags & IBV_WQ_FLAGS_SCATTER_FCS,
		.checks_inner = inner,
	};
	enum ibv_wc_status status = vb_raw_receive(&sink, frame, tag);

	if (vb_cq_is_broken(cq_of(wq)))
		fail_locked(wq, true);
	else if (status != IBV_WC_SUCCESS)
		fail_locked(wq, false);
}

/* Stores a frame if no request is posted, or others wait already. Returns true if it waits now. */
static bool delay_locked(struct vb_rwq *wq, const struct vb_eth_frame *frame, uint32_t tag,
			 bool inner)
{
	struct vb_rwq_delayed *delayed = wq->delayed;
	struct delayed *place;

	if (!delayed || (delayed->head == delayed->tail && vb_rq_count(&wq->rq)))
		return false;
	if (delayed->tail - delayed->head == VB_RWQ_DELAYED_MAX ||
	    frame->bytes > VB_ETH_FRAME_BYTES_MAX) {
		vb_stat_add(&wq->nic->stats, VB_STAT_DROP_NO_RECV, 1);
		return true;
	}
	place = &delayed->frame[delayed->tail++ % VB_RWQ_DELAYED_MAX];
	place->bytes = frame->bytes;
	place->tag = tag;
	place->inner = inner;
	memcpy(place->octets, frame->octets, frame->bytes);
	return true;
}

void vb_rwq_receive(struct vb_rwq *wq, const struct vb_eth_frame *frame, uint32_t tag, bool inner)
{
	vb_lock_take(&wq->lock);
	if (state_of(wq) != IBV_WQS_RDY)
		vb_stat_add(&wq->nic->stats, VB_STAT_DROP_STATE, 1);
	else if (!delay_locked(wq, frame, tag, inner))
		take_locked(wq, frame, tag, inner);
	vb_lock_drop(&wq->lock);
}

static void take_delayed_locked(struct vb_rwq *wq)
{
	struct vb_rwq_delayed *delayed = wq->delayed;
	struct vb_eth_frame frame;

	while (delayed->head != delayed->tail && vb_rq_count(&wq->rq)) {
		const struct delayed *place = &delayed->frame[delayed->head % VB_RWQ_DELAYED_MAX];

		vb_check(vb_eth_parse(&frame, place->octets, place->bytes));
		delayed->head++;
		take_locked(wq, &frame, place->tag, place->inner);
	}
}

int vb_rwq_post(struct vb_rwq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err;

	if (state_of(wq) == IBV_WQS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	err = vb_rq_post(&wq->rq, wr, bad);
	/*
	 * As in vb_qp_post_recv(): either these were flushed, or we see here that the queue failed.
	 */
	if (state_of(wq) != IBV_WQS_RDY || wq->delayed) {
		vb_lock_take(&wq->lock);
		if (state_of(wq) == IBV_WQS_ERR)
			flush_locked(wq);
		else if (wq->delayed)
			take_delayed_locked(wq);
		vb_lock_drop(&wq->lock);
	}
	return err;
}

/* --- tables --- */

static int table_check(const struct vb_ctx *ctx, const struct ibv_rwq_ind_table_init_attr *attr)
{
	if (!ctx->nic->host.segment || attr->comp_mask)
		return EOPNOTSUPP;
	if (attr->log_ind_tbl_size > VB_RWQ_TABLE_LOG_MAX)
		return vb_refuse(EINVAL, "log_ind_tbl_size is %u; it may be at most %u",
				 attr->log_ind_tbl_size, VB_RWQ_TABLE_LOG_MAX);
	if (!attr->ind_tbl)
		return vb_refuse(EINVAL, "ind_tbl is NULL");
	for (uint32_t i = 0; i < 1u << attr->log_ind_tbl_size; i++) {
		const struct ibv_wq *wq = attr->ind_tbl[i];

		if (!wq || wq->context != &ctx->ibv.context)
			return vb_refuse(EINVAL, "ind_tbl[%u] is %s", i,
					 wq ? "another context's" : "NULL");
	}
	return 0;
}

int vb_rwq_table_create(struct vb_ctx *ctx, const struct ibv_rwq_ind_table_init_attr *attr,
			struct vb_rwq_table **out)
{
	struct vb_rwqs *rwqs = &ctx->nic->special.rwqs;
	struct vb_rwq_table *table;
	uint32_t size;
	int err = table_check(ctx, attr);

	if (!err)
		err = vb_nic_count_up(&rwqs->tables, VB_RWQ_TABLES_MAX);
	if (err)
		return err;
	size = 1u << attr->log_ind_tbl_size;
	table = calloc(1, sizeof(*table) + size * sizeof(table->wq[0]));
	if (!table) {
		atomic_fetch_sub(&rwqs->tables, 1);
		return ENOMEM;
	}
	table->mask = size - 1;
	table->ibv.context = &ctx->ibv.context;
	table->ibv.ind_tbl_num = table->ibv.ind_tbl_handle =
		(int)(atomic_fetch_add(&rwqs->table_last, 1) & INT32_MAX);
	for (uint32_t i = 0; i < size; i++) {
		table->wq[i] = (struct vb_rwq *)attr->ind_tbl[i];
		atomic_fetch_add(&table->wq[i]->users, 1);
	}
	*out = table;
	return 0;
}

int vb_rwq_table_destroy(struct vb_rwq_table *table)
{
	struct vb_nic *nic = vb_nic_of(table->ibv.context);

	if (atomic_load(&table->users))
		return EBUSY;
	for (uint32_t i = 0; i <= table->mask; i++)
		atomic_fetch_sub(&table->wq[i]->users, 1);
	atomic_fetch_sub(&nic->special.rwqs.tables, 1);
	free(table);
	return 0;
}
