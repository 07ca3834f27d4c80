/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_create_cq_ex(3): completions read one by one, field by field. The application's current
 * completion is kept beside the CQ. So both ways of polling take from the same queue, and the
 * current completion stays the same until the application takes the next.
 */
#include <stdlib.h>

#include "abi/check/calls.h"
#include "abi/check/check.h"
#include "abi/trace/measured.h"
#include "abi/trace/traced.h"
#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/ops.h"
#include "nic/queue/shuffle.h"
#include "run/process/trail.h"
#include "tape/calls.h"
#include "tape/tape.h"

struct cursor {
	struct vb_measured_cq plain; /* the first member (abi/trace/measured.h) */
	vb_lock lock; /* from a successful start_poll to end_poll, unless one thread polls alone */
	struct vb_cqe cqe;
	struct vb_cq_stamp stamp;
	void *dv;
};

static struct cursor *cursor_of(struct ibv_cq_ex *cq)
{
	return ((struct vb_cq *)cq)->abi;
}

static const struct ibv_wc *wc_of(struct ibv_cq_ex *cq)
{
	return &cursor_of(cq)->cqe.wc;
}

typedef bool take_fn(struct vb_cq *cq, struct vb_cqe *cqe, struct vb_cq_stamp *stamp);

/* Inline, with a constant take: a direct call. */
static inline __attribute__((always_inline)) int next(struct ibv_cq_ex *ex, bool turns,
						      take_fn *take)
{
	struct vb_cq *cq = (struct vb_cq *)ex;
	struct vb_device *dev = vb_device_of(ex->context);
	struct cursor *cursor = cq->abi;

	if (vb_device_is_gone(dev))
		return EIO;
	if (!take(cq, &cursor->cqe, &cursor->stamp)) {
		if (!turns)
			return ENOENT;
		vb_progress_poll(dev);
		if (!take(cq, &cursor->cqe, &cursor->stamp))
			return ENOENT;
	}
	ex->wr_id = cursor->cqe.wc.wr_id;
	ex->status = cursor->cqe.wc.status;
	return 0;
}

static int advance(struct ibv_cq_ex *cq)
{
	return next(cq, true, vb_cq_take);
}

static void lock(struct ibv_cq_ex *cq)
{
	if (!((struct vb_cq *)cq)->made.lone)
		vb_lock_take(&cursor_of(cq)->lock);
}

static void unlock(struct ibv_cq_ex *cq)
{
	if (!((struct vb_cq *)cq)->made.lone)
		vb_lock_drop(&cursor_of(cq)->lock);
}

static inline __attribute__((always_inline)) int start(struct ibv_cq_ex *cq,
						       struct ibv_poll_cq_attr *attr, bool turns)
{
	int rc;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (vb_abi_is_gone(cq->context))
		return EIO;
	lock(cq);
	rc = next(cq, turns, vb_cq_take);
	if (rc != 0)
		unlock(cq);
	return rc;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return start(cq, attr, true);
}

/* The same, where there is a log (told.c). */
static int start_poll_told(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc = start_poll(cq, attr);

	vb_report_found();
	return rc;
}

static int advance_told(struct ibv_cq_ex *cq)
{
	int rc = advance(cq);

	vb_report_found();
	return rc;
}

/* The same with another order (context.c). */
static int start_poll_disorder(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (!vb_abi_is_gone(cq->context))
		vb_cq_shuffle((struct vb_cq *)cq);
	rc = start(cq, attr, vb_abi_poll_turns());
	vb_report_found();
	return rc;
}

static int advance_disorder(struct ibv_cq_ex *cq)
{
	int rc = next(cq, false, vb_cq_take);

	vb_report_found();
	return rc;
}

/* The same, where there is a trail (abi/trace/traced.h). */
static int start_poll_traced(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc = vb_refusals_are_wanted() ? start_poll_told(cq, attr) : start_poll(cq, attr);

	vb_trace_taken(cq->context, wc_of(cq), rc == 0);
	return rc;
}

static int advance_traced(struct ibv_cq_ex *cq)
{
	int rc = vb_refusals_are_wanted() ? advance_told(cq) : advance(cq);

	vb_trace_taken(cq->context, wc_of(cq), rc == 0);
	return rc;
}

/* The same of a process that is recorded. */
static int next_taped(struct ibv_cq_ex *cq)
{
	int rc = next(cq, true, vb_taped_cq_take);

	if (!rc)
		vb_report_found();
	return rc;
}

static int start_poll_taped(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (vb_abi_is_gone(cq->context))
		return EIO;
	lock(cq);
	rc = next_taped(cq);
	if (rc != 0)
		unlock(cq);
	return rc;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	unlock(cq);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->slid;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return wc_of(cq)->dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return cursor_of(cq)->stamp.raw_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	return cursor_of(cq)->stamp.wall_ns;
}

/* Both fields belong to raw Ethernet frames and their steering; others have 0. */
static uint16_t read_cvlan(struct ibv_cq_ex *cq)
{
	return cursor_of(cq)->cqe.cvlan;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *cq)
{
	const struct vb_cqe *cqe = &cursor_of(cq)->cqe;

	/* Completions that release places of a send queue store their number in the tag's place. */
	return cqe->user || cqe->note != VB_CQE_PLAIN ? 0 : cqe->flow_tag;
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
	const struct vb_cqe *cqe = &cursor_of(cq)->cqe;

	*info = (struct ibv_wc_tm_info){ 0 };
	if (cqe->note == VB_CQE_TM) {
		info->tag = cqe->tm_tag;
		info->priv = cqe->tm_priv;
	}
}

const struct vb_cqe *vb_abi_cq_ex_current(struct ibv_cq_ex *cq)
{
	return &cursor_of(cq)->cqe;
}

void vb_abi_cq_ex_dv_set(struct ibv_cq_ex *cq, void *dv)
{
	cursor_of(cq)->dv = dv;
}

void *vb_abi_cq_ex_dv(struct ibv_cq_ex *cq)
{
	return cursor_of(cq)->dv;
}

void vb_abi_cq_ex_free(struct vb_cq *cq)
{
	free(cursor_of(&cq->ibv.cq_ex)->dv);
	free(cq->abi);
}

/* Fields not asked for at creation may not be read: their readers stay NULL, as a trap. */
static void set_readers(struct ibv_cq_ex *cq, uint64_t flags)
{
	cq->start_poll = vb_refusals_are_wanted() ? start_poll_told : start_poll;
	cq->next_poll = vb_refusals_are_wanted() ? advance_told : advance;
	if (vb_trail_is_open()) {
		cq->start_poll = start_poll_traced;
		cq->next_poll = advance_traced;
	}
	if (vb_ctx_of(cq->context)->nic->host.order) {
		cq->start_poll = start_poll_disorder;
		cq->next_poll = advance_disorder;
	}
	if (vb_tape_is_on()) {
		cq->start_poll = start_poll_taped;
		cq->next_poll = next_taped;
	}
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if (flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_src_qp;
	if (flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_slid;
	if (flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_sl;
	if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_dlid_path_bits;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (flags & IBV_WC_EX_WITH_CVLAN)
		cq->read_cvlan = read_cvlan;
	if (flags & IBV_WC_EX_WITH_FLOW_TAG)
		cq->read_flow_tag = read_flow_tag;
	if (flags & IBV_WC_EX_WITH_TM_INFO)
		cq->read_tm_info = read_tm_info;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
	if (vb_check_is_on())
		vb_check_cq_ex(cq, wc_of);
	cursor_of(cq)->plain = (struct vb_measured_cq){ cq->start_poll, cq->next_poll, wc_of };
}

static int create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
		  struct vb_cq **cq)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));
	int rc;

	if (!cursor)
		return ENOMEM;
	rc = vb_taped_cq_create_ex(vb_ctx_of(context), attr, cq);
	if (rc != 0) {
		free(cursor);
		return rc;
	}
	vb_lock_init(&cursor->lock, VB_RANK_CURSOR);
	(*cq)->abi = cursor;
	return 0;
}

struct ibv_cq_ex *vb_abi_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct vb_cq *cq;
	int rc = vb_abi_is_dead(context) ? EIO
					 : vb_known_or_null(VB_KNOWN_CHANNEL, attr->channel);

	if (rc == 0)
		rc = create(context, attr, &cq);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	pthread_mutex_init(&cq->ibv.cq.mutex, NULL);
	pthread_cond_init(&cq->ibv.cq.cond, NULL);
	set_readers(&cq->ibv.cq_ex, attr->wc_flags);
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_CQ, &cq->ibv.cq);
	return &cq->ibv.cq_ex;
}
