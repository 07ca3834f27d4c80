/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_wr_*(3): work requests built by calls. They are collected from wr_start to wr_complete, and
 * then posted together. An error in one of them is stored and reported at the end, before any is
 * posted.
 */
#include "abi/verbs/wr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/check/calls.h"
#include "abi/check/check.h"
#include "abi/verbs/abi.h"
#include "abi/tape/taped.h"
#include "abi/trace/traced.h"
#include "base/check.h"
#include "base/guard.h"
#include "base/refusal.h"
#include "nic/core/domain.h"
#include "nic/data/explain.h"
#include "nic/mem/mkey.h"
#include "nic/service/eth/raw.h"
#include "run/process/callsite.h"
#include "run/process/trail.h"
#include "tape/tape.h"

/* The inline data of an ATOMIC_WRITE, whatever max_inline_data is. */
#define ATOMIC_BYTES sizeof(uint64_t)

static struct vb_post *begin_post(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op)
{
	return vb_wr_begin(qp, opcode, vb_wr_builder(qp)->ops & op);
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op)
{
	return &begin_post(qp, opcode, op)->wr;
}

/* ibv_wr_post(3), WORK REQUESTS: those with "DATA" setters. */
static bool takes_data(const struct ibv_send_wr *wr)
{
	return wr->opcode != IBV_WR_BIND_MW && wr->opcode != IBV_WR_LOCAL_INV &&
	       wr->opcode != IBV_WR_ATOMIC_WRITE && (int)wr->opcode != VB_WR_FLUSH &&
	       (int)wr->opcode != VB_WR_MKEY && (int)wr->opcode != VB_WR_MEMCPY;
}

static uint8_t *inline_room(const struct vb_builder *b, const struct vb_post *post)
{
	return b->inline_data + (size_t)(post - b->posts) * b->inline_stride;
}

/* Appends octets to the inline data at `offset`. */
static void inline_put(struct vb_builder *b, struct vb_post *post, const void *data, size_t bytes,
		       size_t offset)
{
	uint8_t *copy = inline_room(b, post);
	struct ibv_send_wr *wr = &post->wr;

	if (bytes)
		memcpy(copy + offset, data, bytes);
	wr->sg_list[0] = (struct ibv_sge){ .addr = (uintptr_t)copy,
					   .length = (uint32_t)(offset + bytes) };
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_INLINE;
}

void vb_wr_refuse(struct vb_builder *b, int error, const char *why)
{
	if (b->error)
		return;
	b->failed = b->count;
	vb_wr_fail(b, vb_refuse(error, "%s", why));
}

void vb_wr_refuse_next(struct vb_builder *b, int error, const char *why)
{
	if (b->error)
		return;
	vb_wr_refuse(b, error, why);
	b->failed++;
}

/* --- operations --- */

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, IBV_WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	begin(qp, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	struct vb_builder *b = vb_wr_builder(qp);
	struct vb_post *post = begin_post(qp, IBV_WR_TSO, IBV_QP_EX_WITH_TSO);
	uint8_t *copy = inline_room(b, post);

	if (hdr_sz > b->header_max) {
		vb_wr_refuse(b, EINVAL, "hdr_sz is larger than max_tso_header");
		return;
	}
	/* It uses the place of inline data, which cannot be combined with TSO. */
	if (hdr_sz && !vb_guard_copy(copy, hdr, hdr_sz)) {
		vb_wr_fail(b, EFAULT);
		return;
	}
	post->wr.tso.hdr = copy;
	post->wr.tso.hdr_sz = hdr_sz;
	post->wr.tso.mss = mss;
}

static struct vb_post *begin_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op,
				  uint32_t rkey, uint64_t remote_addr)
{
	struct vb_post *post = begin_post(qp, opcode, op);

	post->wr.wr.rdma.remote_addr = remote_addr;
	post->wr.wr.rdma.rkey = rkey;
	return post;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(qp, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey,
		   remote_addr)
		->wr.imm_data = imm_data;
}

static void begin_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint64_t op,
			 uint32_t rkey, uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin(qp, opcode, op);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, rkey,
		     remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, rkey,
		     remote_addr, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	struct vb_post *post = begin_rdma(qp, IBV_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE,
					  rkey, remote_addr);

	inline_put(vb_wr_builder(qp), post, value, ATOMIC_BYTES, 0);
}

/* From newer headers than ours (engine/newer.h). */
static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t bytes,
		     uint8_t type, uint8_t level)
{
	struct vb_post *post;

	if (!type || (type & ~(VB_FLUSH_GLOBAL | VB_FLUSH_PERSISTENT)) || level > VB_FLUSH_MR)
		vb_wr_fail(vb_wr_builder(qp), EINVAL);
	post = begin_rdma(qp, (enum ibv_wr_opcode)VB_WR_FLUSH, VB_QP_EX_WITH_FLUSH, rkey,
			  remote_addr);
	post->flush.bytes = level == VB_FLUSH_MR ? 0 : bytes;
	post->flush.type = type;
	post->flush.level = level;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(qp, IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV)->invalidate_rkey = rkey;
}

/* --- setters --- */

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *list)
{
	struct vb_builder *b = vb_wr_builder(qp);
	struct ibv_send_wr *wr = &vb_wr_current(b)->wr;

	if (num_sge > b->sge_max || !takes_data(wr)) {
		vb_wr_refuse(b, EINVAL, "more SGEs than max_send_sge, or an operation that has "
					"none");
		return;
	}
	vb_sges_copy(wr->sg_list, list, num_sge);
	wr->num_sge = (int)num_sge;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(qp, 1, &sge);
}

/* The caller may reuse its buffers at once, so the octets are copied here. */
static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct vb_builder *b = vb_wr_builder(qp);
	struct vb_post *post = vb_wr_current(b);
	size_t bytes = 0;

	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > b->inline_max - bytes || !takes_data(&post->wr) ||
		    post->wr.opcode == IBV_WR_TSO) {
			vb_wr_refuse(b, EINVAL, "more inline data than max_inline_data, or an "
						"operation that has none");
			return;
		}
		inline_put(b, post, list[i].addr, list[i].length, bytes);
		bytes += list[i].length;
	}
	if (!num_buf && post->wr.opcode != IBV_WR_TSO)
		inline_put(b, post, NULL, 0, 0);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(qp, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct vb_builder *b = vb_wr_builder(qp);
	struct ibv_send_wr *wr = &vb_wr_current(b)->wr;

	if (qp->qp_base.qp_type != IBV_QPT_UD) {
		if (vb_qp_is((struct vb_qp *)qp, VB_UD_ADDRESS))
			vb_wr_current(b)->dc = (struct vb_dc_address){
				.ah = ah, .dctn = remote_qpn, .key = remote_qkey
			};
		else
			vb_wr_refuse(b, EINVAL, "only a QP of type UD has such a destination");
		return;
	}
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t remote_srqn)
{
	struct vb_builder *b = vb_wr_builder(qp);
	struct ibv_send_wr *wr = &vb_wr_current(b)->wr;

	if (qp->qp_base.qp_type != IBV_QPT_XRC_SEND) {
		vb_wr_refuse(b, EINVAL, "only a QP of type XRC_SEND addresses an SRQ");
		return;
	}
	wr->qp_type.xrc.remote_srqn = remote_srqn;
}

/* --- the batch --- */

static void batch_lock(struct vb_builder *b)
{
	if (!b->lone)
		vb_lock_take(&b->lock);
}

static void batch_unlock(struct vb_builder *b)
{
	if (!b->lone)
		vb_lock_drop(&b->lock);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct vb_builder *b = vb_wr_builder(qp);

	if (vb_abi_is_gone(qp->qp_base.context)) {
		/* A thread of the parent may have held the lock; the child does not need it. */
		b->error = EIO;
		return;
	}
	batch_lock(b);
	b->count = 0;
	b->error = 0;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct vb_builder *b = vb_wr_builder(qp);
	int rc;

	if (vb_abi_is_gone(qp->qp_base.context))
		return EIO;
	rc = b->error;
	if (rc == 0 && b->count > 0)
		rc = vb_qp_post_batch((struct vb_qp *)qp, b->posts, b->count);
	batch_unlock(b);
	return rc;
}

/* The same; notes the call site, and reports a refusal (told.c). */
static int wr_complete_told(struct ibv_qp_ex *qp)
{
	struct vb_builder *b = vb_wr_builder(qp);

	if (b->error)
		vb_refusal_about("QPN 0x%x, request %u of the batch", qp->qp_base.qp_num,
				 b->failed);
	vb_explain_site((struct vb_qp *)qp, b->count, vb_caller_by(__builtin_return_address(0)));
	return vb_report_refused("ibv_wr_complete", wr_complete(qp));
}

/* The same; notes what was posted (traced.h). */
static int wr_complete_traced(struct ibv_qp_ex *ibv)
{
	struct vb_qp *qp = (struct vb_qp *)ibv;
	uint64_t since_ns = vb_trail_now_ns();
	uint32_t from = qp->req.tail;
	int rc = vb_refusals_are_wanted() ? wr_complete_told(ibv) : wr_complete(ibv);

	vb_trace_posted(qp, from, since_ns);
	return rc;
}

/* The same of a process that is recorded. */
static int wr_complete_taped(struct ibv_qp_ex *qp)
{
	return vb_taped_complete(qp, vb_wr_builder(qp),
				 vb_refusals_are_wanted() ? wr_complete_told : wr_complete);
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	if (!vb_abi_is_gone(qp->qp_base.context))
		batch_unlock(vb_wr_builder(qp));
}

/* --- creation --- */

uint64_t vb_wr_ops(enum ibv_qp_type type, const struct vb_dc_attr *dc)
{
	static const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	static const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	static const uint64_t classic = IBV_QP_EX_WITH_RDMA_READ |
					IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	static const uint64_t fetches = IBV_QP_EX_WITH_RDMA_READ |
					IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
					IBV_QP_EX_WITH_ATOMIC_WRITE | VB_QP_EX_WITH_FLUSH;
	static const uint64_t windows = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
	} table[] = {
		{ IBV_QPT_RC,
		  sends | writes | fetches | windows | IBV_QP_EX_WITH_SEND_WITH_INV },
		{ IBV_QPT_XRC_SEND,
		  sends | writes | classic | windows | IBV_QP_EX_WITH_SEND_WITH_INV },
		{ IBV_QPT_UC, sends | writes | windows },
		{ IBV_QPT_UD, sends },
		{ IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO },
		/* A DC initiator. A target cannot send, which vb_qp_create_dv() checks. */
		{ IBV_QPT_DRIVER,
		  sends | writes | classic | windows | IBV_QP_EX_WITH_SEND_WITH_INV },
	};

	if (dc && dc->srd)
		return sends | writes | IBV_QP_EX_WITH_RDMA_READ;
	for (size_t i = 0; i < VB_ARRAY_LEN(table); i++) {
		if (table[i].type == type)
			return table[i].ops;
	}
	return 0;
}

int vb_wr_check(enum ibv_qp_type type, const struct vb_dc_attr *dc, uint64_t ops)
{
	uint64_t all = vb_wr_ops(type, dc);

	return !all || (ops & ~all) ? vb_refuse(EOPNOTSUPP,
						"send_ops_flags 0x%" PRIx64 ": a QP of this type "
						"has only 0x%" PRIx64,
						ops, all)
				    : 0;
}

static void set_functions(struct ibv_qp_ex *qp)
{
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_send_tso = wr_send_tso;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_start = wr_start;
	qp->wr_complete = vb_refusals_are_wanted() ? wr_complete_told : wr_complete;
	if (vb_trail_is_open())
		qp->wr_complete = wr_complete_traced;
	if (vb_tape_is_on())
		qp->wr_complete = wr_complete_taped;
	qp->wr_abort = wr_abort;
	qp->wr_atomic_write = wr_atomic_write;
	if (vb_check_is_on())
		vb_check_builder(qp);
}

static void builder_free(struct vb_builder *b)
{
	vb_lock_fini(&b->lock);
	free(b->dv);
	free(b->mkeys);
	free(b->inline_data);
	free(b->sges);
	free(b->posts);
	free(b);
}

int vb_wr_attach(struct ibv_qp *ibv, const struct ibv_qp_cap *cap, uint64_t ops, uint32_t dv_ops)
{
	struct vb_qp *qp = (struct vb_qp *)ibv;
	struct vb_builder *b = calloc(1, sizeof(*b));
	size_t places = (size_t)cap->max_send_wr + 1;

	if (!b)
		return ENOMEM;
	vb_lock_init(&b->lock, VB_RANK_BUILDER);
	b->lone = vb_pd_is_lone((struct vb_pd *)ibv->pd);
	b->ops = ops;
	b->dv_ops = dv_ops;
	b->wr_max = cap->max_send_wr;
	b->sge_max = (uint32_t)vb_max_u64(cap->max_send_sge, 1);
	b->inline_max = cap->max_inline_data;
	b->header_max = vb_qp_is(qp, VB_TSO) ? qp->special.raw->header_max : 0;
	b->inline_stride = (uint32_t)vb_max_u64(vb_max_u64(b->inline_max, b->header_max),
						ATOMIC_BYTES);
	b->posts = calloc(places, sizeof(*b->posts));
	b->sges = calloc(places * b->sge_max, sizeof(*b->sges));
	b->inline_data = calloc(places, b->inline_stride);
	b->mkey_stride = (uint32_t)(sizeof(struct vb_mkey_request) +
				    vb_mkey_room(cap) * sizeof(struct vb_mkey_entry));
	if (dv_ops & VB_QP_MKEYS)
		b->mkeys = calloc(places, b->mkey_stride);
	if (!b->posts || !b->sges || !b->inline_data || (!b->mkeys && (dv_ops & VB_QP_MKEYS))) {
		builder_free(b);
		return ENOMEM;
	}
	/* Setters without an operation write there; they need an SGE list as any other. */
	b->posts[b->wr_max].wr.sg_list = b->sges + (size_t)b->wr_max * b->sge_max;
	set_functions(&qp->ibv.qp_ex);
	qp->ibv.wr_flush = wr_flush;
	b->complete = qp->ibv.qp_ex.wr_complete;
	qp->abi = b;
	return 0;
}

void vb_wr_detach(struct ibv_qp *ibv)
{
	struct vb_qp *qp = (struct vb_qp *)ibv;

	if (qp->abi)
		builder_free(qp->abi);
	qp->abi = NULL;
}
