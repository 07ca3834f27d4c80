/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of work requests, posted and built. Each goes from a QP to itself, and completes: only
 * then it counts as accepted.
 */
#include "probe.h"

enum { WR_ID = 1, RECV_ID = 2 };

/* --- posted --- */

/* The status with which the WR ended, as an errno. */
static int ended(struct vt_end *end)
{
	struct ibv_wc wc;

	while (vt_poll_ms(end->cq, &wc, VT_WAIT_MS)) {
		if (wc.wr_id == WR_ID)
			return wc.status == IBV_WC_SUCCESS ? 0 : EIO;
	}
	return ETIME;
}

/* A window over the beginning of the buffer; returns its key. */
static uint32_t fill_bind(struct vt_end *end, struct vt_wr *w, struct ibv_mw *mw)
{
	w->wr.num_sge = 0;
	w->wr.bind_mw.mw = mw;
	w->wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	w->wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ end->mr, (uintptr_t)end->buf, 64,
							     IBV_ACCESS_REMOTE_READ };
	return w->wr.bind_mw.rkey;
}

/* The key of a window that is bound, to be invalidated; of none, if it cannot be. */
static uint32_t bound_key(struct vt_end *end, struct ibv_mw *mw)
{
	struct vt_wr w;
	uint32_t key;

	vt_wr(&w, IBV_WR_BIND_MW, end, end, 0);
	key = fill_bind(end, &w, mw);
	return vt_try(end, &w) || ended(end) ? 0 : key;
}

static int post(enum ibv_qp_type type, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct vt_end end;
	struct vt_wr w;
	struct ibv_mw *mw;
	int rc;

	probe_end_open(&end, type, IBV_QP_EX_WITH_SEND);
	vt_recv(&end, RECV_ID);
	vt_wr(&w, opcode, &end, &end, 8);
	w.wr.send_flags |= flags;
	mw = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2);
	if (mw && opcode == IBV_WR_BIND_MW)
		fill_bind(&end, &w, mw);
	if (mw && (opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_SEND_WITH_INV))
		w.wr.invalidate_rkey = bound_key(&end, mw);
	rc = vt_try(&end, &w);
	if (!rc)
		rc = ended(&end);
	/* A window that is bound to it holds the QP's memory. */
	if (mw)
		ibv_dealloc_mw(mw);
	vt_end_close(&end);
	return rc;
}

static int opcode(uint64_t which)
{
	return post(IBV_QPT_RC, (enum ibv_wr_opcode)which, 0);
}

static int send_flag(uint64_t flag)
{
	return post(IBV_QPT_RC, IBV_WR_SEND, (unsigned)flag);
}

static int post_send(uint64_t unused)
{
	return post(IBV_QPT_RC, IBV_WR_SEND, 0);
}

static int post_recv(uint64_t unused)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct vt_end end;
	int rc;

	probe_end_open(&end, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	rc = ibv_post_recv(end.qp, &wr, &bad);
	vt_end_close(&end);
	return rc;
}

/* --- built --- */

struct built {
	struct vt_end end;
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
};

/* A batch begun on a QP that was made for this operation; false: it could not be. */
static bool begin(struct built *b, enum ibv_qp_type type, uint64_t op)
{
	b->mw = NULL;
	probe_end_open(&b->end, type, op);
	if (!b->end.qp)
		return false;
	vt_recv(&b->end, RECV_ID);
	b->qp = ibv_qp_to_qp_ex(b->end.qp);
	ibv_wr_start(b->qp);
	b->qp->wr_id = WR_ID;
	b->qp->wr_flags = IBV_SEND_SIGNALED;
	return true;
}

static void set_sge(struct built *b)
{
	ibv_wr_set_sge(b->qp, b->end.mr->lkey, (uintptr_t)b->end.buf, 8);
}

static int done(struct built *b)
{
	int rc = b->end.qp ? ibv_wr_complete(b->qp) : probe_made(NULL);

	if (!rc)
		rc = ended(&b->end);
	if (b->end.qp)
		ibv_destroy_qp(b->end.qp);
	b->end.qp = NULL;
	if (b->mw)
		ibv_dealloc_mw(b->mw);
	vt_end_close(&b->end);
	return rc;
}

/* A function that a QP with this operation has, called, and then a list of data set. */
#define BUILT(name, op, call)                                                                     \
	static int built_##name(uint64_t unused)                                                  \
	{                                                                                         \
		struct built b;                                                                   \
		uint64_t there = 0;                                                               \
		uint32_t rkey = 0;                                                                \
												  \
		if (begin(&b, IBV_QPT_RC, op)) {                                                  \
			there = (uintptr_t)b.end.buf + 64;                                        \
			rkey = b.end.mr->rkey;                                                    \
			call;                                                                     \
		}                                                                                 \
		(void)there;                                                                      \
		(void)rkey;                                                                       \
		return done(&b);                                                                  \
	}
#define WITH_SGE(call)                                                                            \
	do {                                                                                      \
		call;                                                                             \
		set_sge(&b);                                                                      \
	} while (0)

static struct ibv_data_buf inline_data = { "12345678", 8 };
static const uint64_t eight_octets = 8;

BUILT(send, IBV_QP_EX_WITH_SEND, WITH_SGE(ibv_wr_send(b.qp)))
BUILT(send_imm, IBV_QP_EX_WITH_SEND_WITH_IMM, WITH_SGE(ibv_wr_send_imm(b.qp, 5)))
BUILT(write, IBV_QP_EX_WITH_RDMA_WRITE, WITH_SGE(ibv_wr_rdma_write(b.qp, rkey, there)))
BUILT(write_imm, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
      WITH_SGE(ibv_wr_rdma_write_imm(b.qp, rkey, there, 5)))
BUILT(read, IBV_QP_EX_WITH_RDMA_READ, WITH_SGE(ibv_wr_rdma_read(b.qp, rkey, there)))
BUILT(cmp_swp, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
      WITH_SGE(ibv_wr_atomic_cmp_swp(b.qp, rkey, there, 0, 1)))
BUILT(fetch_add, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
      WITH_SGE(ibv_wr_atomic_fetch_add(b.qp, rkey, there, 1)))
BUILT(atomic_write, IBV_QP_EX_WITH_ATOMIC_WRITE,
      ibv_wr_atomic_write(b.qp, rkey, there, &eight_octets))
BUILT(inline_data, IBV_QP_EX_WITH_SEND,
      ibv_wr_send(b.qp); ibv_wr_set_inline_data(b.qp, inline_data.addr, inline_data.length))
BUILT(inline_list, IBV_QP_EX_WITH_SEND,
      ibv_wr_send(b.qp); ibv_wr_set_inline_data_list(b.qp, 1, &inline_data))
BUILT(sge_list, IBV_QP_EX_WITH_SEND, ibv_wr_send(b.qp); ibv_wr_set_sge_list(b.qp, 0, NULL))

static int built_ud(uint64_t unused)
{
	struct built b;

	if (begin(&b, IBV_QPT_UD, IBV_QP_EX_WITH_SEND)) {
		ibv_wr_send(b.qp);
		ibv_wr_set_ud_addr(b.qp, b.end.ah, b.end.qp->qp_num, VT_QKEY);
		set_sge(&b);
	}
	return done(&b);
}

/* On a QP of XRC, or else of RC. In the error state it needs nobody at the other end. */
static int built_xrc_srqn(uint64_t unused)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = vt.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *made = ibv_create_qp_ex(vt.ctx, &attr);
	struct ibv_qp_ex *qp;
	int rc;

	attr.qp_type = IBV_QPT_RC;
	made = vt_made(made ? made : ibv_create_qp_ex(vt.ctx, &attr));
	vt_modify(made, IBV_QPS_ERR);
	qp = ibv_qp_to_qp_ex(made);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_xrc_srqn(qp, 7);
	rc = ibv_wr_complete(qp);
	ibv_destroy_qp(made);
	ibv_destroy_cq(cq);
	return rc;
}

/* Nothing of it is sent: the next batch is the one that completes. */
static int built_abort(uint64_t unused)
{
	struct built b;

	if (begin(&b, IBV_QPT_RC, IBV_QP_EX_WITH_SEND)) {
		ibv_wr_send(b.qp);
		ibv_wr_abort(b.qp);
		ibv_wr_start(b.qp);
		ibv_wr_send(b.qp);
		set_sge(&b);
	}
	return done(&b);
}

static void built_bind(struct built *b)
{
	struct ibv_mw_bind_info info = { b->end.mr, (uintptr_t)b->end.buf, 64,
					 IBV_ACCESS_REMOTE_READ };

	b->mw = vt_made(ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2));
	ibv_wr_bind_mw(b->qp, b->mw, ibv_inc_rkey(b->mw->rkey), &info);
}

static int built_bind_mw(uint64_t unused)
{
	struct built b;

	if (begin(&b, IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW))
		built_bind(&b);
	return done(&b);
}

/* Bound in the same batch, whose first completion says how that went. */
static int built_invalidate(uint64_t op)
{
	struct built b;

	if (begin(&b, IBV_QPT_RC, op | IBV_QP_EX_WITH_BIND_MW)) {
		b.qp->wr_flags = 0;
		built_bind(&b);
		b.qp->wr_flags = IBV_SEND_SIGNALED;
		if (op == IBV_QP_EX_WITH_LOCAL_INV) {
			ibv_wr_local_inv(b.qp, ibv_inc_rkey(b.mw->rkey));
		} else {
			ibv_wr_send_inv(b.qp, ibv_inc_rkey(b.mw->rkey));
			set_sge(&b);
		}
	}
	return done(&b);
}

/* clang-format off */
const struct probe probe_requests[] = {
	PROBE(ibv_post_send, post_send),
	PROBE(ibv_post_recv, post_recv),
	PROBE_FLAG(IBV_WR_RDMA_WRITE, opcode),
	PROBE_FLAG(IBV_WR_RDMA_WRITE_WITH_IMM, opcode),
	PROBE_FLAG(IBV_WR_SEND, opcode),
	PROBE_FLAG(IBV_WR_SEND_WITH_IMM, opcode),
	PROBE_FLAG(IBV_WR_RDMA_READ, opcode),
	PROBE_FLAG(IBV_WR_ATOMIC_CMP_AND_SWP, opcode),
	PROBE_FLAG(IBV_WR_ATOMIC_FETCH_AND_ADD, opcode),
	PROBE_FLAG(IBV_WR_LOCAL_INV, opcode),
	PROBE_FLAG(IBV_WR_BIND_MW, opcode),
	PROBE_FLAG(IBV_WR_SEND_WITH_INV, opcode),
	PROBE_FLAG(IBV_WR_DRIVER1, opcode),
	PROBE_FLAG(IBV_WR_ATOMIC_WRITE, opcode),
	PROBE_FLAG(IBV_SEND_FENCE, send_flag),
	PROBE_FLAG(IBV_SEND_SIGNALED, send_flag),
	PROBE_FLAG(IBV_SEND_SOLICITED, send_flag),
	PROBE_FLAG(IBV_SEND_INLINE, send_flag),

	PROBE(ibv_wr_start, built_send),
	PROBE(ibv_wr_complete, built_send),
	PROBE(ibv_wr_abort, built_abort),
	PROBE(ibv_wr_send, built_send),
	PROBE(ibv_wr_send_imm, built_send_imm),
	PROBE_OF(ibv_wr_send_inv, built_invalidate, IBV_QP_EX_WITH_SEND_WITH_INV),
	PROBE(ibv_wr_rdma_write, built_write),
	PROBE(ibv_wr_rdma_write_imm, built_write_imm),
	PROBE(ibv_wr_rdma_read, built_read),
	PROBE(ibv_wr_atomic_cmp_swp, built_cmp_swp),
	PROBE(ibv_wr_atomic_fetch_add, built_fetch_add),
	PROBE(ibv_wr_atomic_write, built_atomic_write),
	PROBE(ibv_wr_bind_mw, built_bind_mw),
	PROBE_OF(ibv_wr_local_inv, built_invalidate, IBV_QP_EX_WITH_LOCAL_INV),
	PROBE(ibv_wr_set_sge, built_send),
	PROBE(ibv_wr_set_sge_list, built_sge_list),
	PROBE(ibv_wr_set_inline_data, built_inline_data),
	PROBE(ibv_wr_set_inline_data_list, built_inline_list),
	PROBE(ibv_wr_set_ud_addr, built_ud),
	PROBE(ibv_wr_set_xrc_srqn, built_xrc_srqn),
	{ NULL },
};
