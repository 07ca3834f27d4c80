/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_create_cq_ex(3): completions read one by one, field by field. The completion that the
 * application stands on is kept beside the CQ, so both ways of polling take from the same queue.
 */
#include <limits.h>
#include <stdlib.h>

#include "abi/verbs/abi.h"
#include "nic/cq.h"

struct cursor {
	vb_lock lock; /* from a successful start_poll to end_poll, unless single_threaded */
	bool single_threaded;
	struct ibv_wc wc;
};

static struct cursor *cursor_of(struct ibv_cq_ex *cq)
{
	return ((struct vb_cq *)cq)->abi;
}

static const struct ibv_wc *wc_of(struct ibv_cq_ex *cq)
{
	return &cursor_of(cq)->wc;
}

static int advance(struct ibv_cq_ex *cq)
{
	struct ibv_wc *wc = &cursor_of(cq)->wc;
	int got = vb_abi_poll_cq(ibv_cq_ex_to_cq(cq), 1, wc);

	if (got < 0)
		return -got;
	if (got == 0)
		return ENOENT;
	cq->wr_id = wc->wr_id;
	cq->status = wc->status;
	return 0;
}

static void unlock(struct cursor *cursor)
{
	if (!cursor->single_threaded)
		vb_lock_drop(&cursor->lock);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct cursor *cursor = cursor_of(cq);
	int rc;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (vb_abi_is_gone(cq->context))
		return EIO;
	if (!cursor->single_threaded)
		vb_lock_take(&cursor->lock);
	rc = advance(cq);
	if (rc != 0)
		unlock(cursor);
	return rc;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	unlock(cursor_of(cq));
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

/* What was not asked for at creation may not be read: those readers stay NULL, as a trap. */
static void set_readers(struct ibv_cq_ex *cq, uint64_t flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = advance;
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
}

static int check_attr(const struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	if (attr->cqe > INT_MAX)
		return EINVAL;
	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS)
		return EOPNOTSUPP;
	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
		return EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return EOPNOTSUPP;
	return 0;
}

static int create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
		  struct vb_cq **cq)
{
	struct cursor *cursor;
	int rc;

	rc = check_attr(attr);
	if (rc != 0)
		return rc;
	cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return ENOMEM;
	rc = vb_cq_create(vb_ctx_of(context), attr->cqe, (struct vb_channel *)attr->channel,
			  attr->comp_vector, attr->cq_context, cq);
	if (rc != 0) {
		free(cursor);
		return rc;
	}
	vb_lock_init(&cursor->lock);
	cursor->single_threaded = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
				  (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	(*cq)->abi = cursor;
	return 0;
}

struct ibv_cq_ex *vb_abi_create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct vb_cq *cq;
	int rc = vb_abi_is_gone(context) ? EIO : create(context, attr, &cq);

	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	pthread_mutex_init(&cq->ibv.cq.mutex, NULL);
	pthread_cond_init(&cq->ibv.cq.cond, NULL);
	set_readers(&cq->ibv.cq_ex, attr->wc_flags);
	return &cq->ibv.cq_ex;
}
