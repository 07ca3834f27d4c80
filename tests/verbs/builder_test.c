/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>

/* The builder of work requests, sentence by sentence: ibv_wr_post(3). a builds, b is the peer. */

enum { SEED = 11, AT = 4096 };

#define SENDS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WRITES (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define FETCHES                                                                                   \
	(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                           \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE)
#define WINDOWS (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)
#define WITH_FLUSH (1ull << 11) /* flush_test.c */
#define RC_OPS (SENDS | WRITES | FETCHES | WINDOWS | IBV_QP_EX_WITH_SEND_WITH_INV | WITH_FLUSH)
#define UC_OPS (SENDS | WRITES | WINDOWS)

static struct ibv_qp *qp_ex(struct ibv_cq *cq, enum ibv_qp_type type, uint64_t ops,
			    uint32_t send_wr)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { .max_send_wr = send_wr, .max_recv_wr = 16, .max_send_sge = 4,
			 .max_recv_sge = 1, .max_inline_data = 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = vt.pd,
		.send_ops_flags = ops,
	};

	errno = 0;
	return ibv_create_qp_ex(vt.ctx, &attr);
}

struct scene {
	struct vt_pair p;
	struct ibv_qp_ex *ex;
};

static void scene_open_as(struct scene *s, enum ibv_qp_type type, uint64_t ops, uint32_t send_wr,
			  enum ibv_qp_state state)
{
	struct vt_options opt = { .type = type, .in_reset = true,
				  .mr_access = VT_ALL_ACCESS | IBV_ACCESS_MW_BIND };

	vt_pair_open(&s->p, &opt);
	assert_int_equal(ibv_destroy_qp(s->p.a.qp), 0);
	s->p.a.qp = vt_made(qp_ex(s->p.a.cq, type, ops, send_wr));
	s->ex = vt_made(ibv_qp_to_qp_ex(s->p.a.qp));
	vt_climb(s->p.a.qp, &s->p.opt, state, s->p.b.qp->qp_num);
	vt_climb(s->p.b.qp, &s->p.opt, IBV_QPS_RTS, s->p.a.qp->qp_num);
	vt_fill(s->p.a.buf, AT, SEED);
}

static void scene_open(struct scene *s, uint64_t ops)
{
	scene_open_as(s, IBV_QPT_RC, ops, 16, IBV_QPS_RTS);
}

static void scene_close(struct scene *s)
{
	vt_pair_close(&s->p);
}

#define scene_as_test(f, ...)                                                                     \
	vt_with(vt_test, f, struct scene, s, scene_open_as(&s, __VA_ARGS__), scene_close(&s))

#define scene_test(f, ...)                                                                        \
	vt_with(vt_test, f, struct scene, s, scene_open(&s, __VA_ARGS__), scene_close(&s))

/* A batch begins; what is built next has this wr_id and is signaled. */
static void start(struct scene *s, uint64_t wr_id)
{
	ibv_wr_start(s->ex);
	s->ex->wr_id = wr_id;
	s->ex->wr_flags = IBV_SEND_SIGNALED;
}

static void data(struct scene *s, uint32_t bytes)
{
	ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)s->p.a.buf, bytes);
}

static void build_send(struct scene *s, uint64_t wr_id, uint32_t bytes)
{
	s->ex->wr_id = wr_id;
	ibv_wr_send(s->ex);
	data(s, bytes);
}

static uint64_t there(const struct scene *s)
{
	return (uintptr_t)s->p.b.buf + AT;
}

/* Nothing of it was posted: neither side has anything to tell, and the queue is empty. */
static void assert_nothing_posted(struct scene *s)
{
	vt_expect_none(s->p.a.cq);
	vt_expect_none(s->p.b.cq);
}

/* --- creation --- */

/* The table of WORK REQUESTS: "QP Type Supported". */
vt_cq_test(each_type_has_exactly_its_operations, 8)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
	} rows[] = { { IBV_QPT_RC, RC_OPS }, { IBV_QPT_UC, UC_OPS }, { IBV_QPT_UD, SENDS } };

	for (unsigned i = 0; i < 3; i++) {
		struct ibv_qp *qp = qp_ex(cq, rows[i].type, rows[i].ops, 4);

		assert_non_null(qp);
		assert_int_equal(ibv_destroy_qp(qp), 0);
		for (unsigned bit = 0; bit < 64; bit++) {
			qp = qp_ex(cq, rows[i].type, 1ull << bit, 4);
			if (rows[i].ops >> bit & 1) {
				assert_non_null(qp);
				assert_int_equal(ibv_destroy_qp(qp), 0);
			} else {
				/* "If the QP does not support all the requested [...] fail." */
				assert_null(qp);
				assert_int_equal(errno, EOPNOTSUPP);
			}
		}
	}
}

/* --- the operations --- */

scene_test(sends_arrive_with_what_they_carry, SENDS)
{
	struct ibv_wc wc;

	vt_recv(&s->p.b, 1);
	vt_recv(&s->p.b, 2);
	start(s, 10);
	ibv_wr_send(s->ex);
	data(s, 100);
	s->ex->wr_id = 11;
	ibv_wr_send_imm(s->ex, htonl(0x12345678));
	data(s, 200);
	assert_nothing_posted(s); /* "No work is executed to the queue until" complete */
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	assert_int_equal(vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	assert_int_equal(vt_expect(s->p.a.cq, 11, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	wc = vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 100);
	assert_false(wc.wc_flags & IBV_WC_WITH_IMM);
	wc = vt_expect(s->p.b.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 200);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 0x12345678);
	assert_true(vt_is_filled(s->p.b.buf, 200, SEED));
}

scene_test(writes_and_reads_go_where_they_are_told, WRITES | FETCHES)
{
	struct ibv_wc wc;

	vt_recv(&s->p.b, 1);
	start(s, 10);
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	data(s, 100);
	s->ex->wr_id = 11;
	ibv_wr_rdma_write_imm(s->ex, s->p.b.mr->rkey, there(s) + 100, htonl(7));
	ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)s->p.a.buf + 100, 100);
	s->ex->wr_id = 12;
	ibv_wr_rdma_read(s->ex, s->p.b.mr->rkey, there(s));
	ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)s->p.a.buf + AT, 200);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	assert_int_equal(vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(vt_expect(s->p.a.cq, 11, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(vt_expect(s->p.a.cq, 12, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	wc = vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 7);
	assert_true(vt_is_filled(s->p.b.buf + AT, 200, SEED));
	assert_true(vt_is_filled(s->p.a.buf + AT, 200, SEED));
}

scene_test(atomics_work_on_eight_octets, FETCHES)
{
	uint64_t *word, *found, value = 0x1122334455667788;

	word = (uint64_t *)(s->p.b.buf + AT);
	found = (uint64_t *)(s->p.a.buf + AT);
	*word = 5;
	start(s, 10);
	ibv_wr_atomic_fetch_add(s->ex, s->p.b.mr->rkey, there(s), 3);
	ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)found, 8);
	s->ex->wr_id = 11;
	ibv_wr_atomic_cmp_swp(s->ex, s->p.b.mr->rkey, there(s), 8, 100);
	ibv_wr_set_sge(s->ex, s->p.a.mr->lkey, (uintptr_t)(found + 1), 8);
	s->ex->wr_id = 12;
	ibv_wr_atomic_write(s->ex, s->p.b.mr->rkey, there(s) + 8, &value);
	value = 0; /* it was copied */
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	assert_int_equal(vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(vt_expect(s->p.a.cq, 11, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(vt_expect(s->p.a.cq, 12, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(found[0], 5);
	assert_int_equal(found[1], 8);
	assert_int_equal(word[0], 100);
	assert_int_equal(word[1], 0x1122334455667788);
}

/* b's window is bound and invalidated by the builder of a QP of its own. */
vt_test(windows_are_bound_and_taken_back)
{
	struct ibv_mw *mw = vt_made(ibv_alloc_mw(vt.pd, IBV_MW_TYPE_2));
	struct ibv_mw_bind_info info;
	struct scene s;
	struct ibv_wc wc;
	struct vt_wr w;
	uint32_t key;

	scene_open(&s, WINDOWS | IBV_QP_EX_WITH_SEND_WITH_INV | SENDS);
	info = (struct ibv_mw_bind_info){ s.p.a.mr, (uintptr_t)s.p.a.buf + AT, 64,
					  IBV_ACCESS_REMOTE_WRITE };
	key = ibv_inc_rkey(mw->rkey);
	start(&s, 10);
	ibv_wr_bind_mw(s.ex, mw, key, &info);
	ibv_wr_abort(s.ex);
	assert_int_equal(ibv_inc_rkey(mw->rkey), key);
	start(&s, 10);
	ibv_wr_bind_mw(s.ex, mw, key, &info);
	memset(&info, 0xee, sizeof(info)); /* it was copied */
	assert_int_equal(ibv_wr_complete(s.ex), 0);
	assert_int_equal(mw->rkey, key);
	assert_int_equal(vt_expect(s.p.a.cq, 10, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &s.p.b, &s.p.a, 8);
	w.wr.wr.rdma.remote_addr = (uintptr_t)s.p.a.buf + AT;
	w.wr.wr.rdma.rkey = key;
	vt_done(&s.p.b, &w, IBV_WC_SUCCESS);
	start(&s, 11);
	ibv_wr_local_inv(s.ex, key);
	assert_int_equal(ibv_wr_complete(s.ex), 0);
	assert_int_equal(vt_expect(s.p.a.cq, 11, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	/* "the remote side will invalidate the MR": here it has none by that key. */
	vt_recv(&s.p.b, 2);
	start(&s, 12);
	ibv_wr_send_inv(s.ex, key);
	data(&s, 8);
	assert_int_equal(ibv_wr_complete(s.ex), 0);
	wc = vt_expect(s.p.b.cq, 2, IBV_WC_LOC_ACCESS_ERR);
	assert_int_equal(wc.qp_num, s.p.b.qp->qp_num);
	vt_expect(s.p.a.cq, 12, IBV_WC_RETRY_EXC_ERR); /* IBA 9.9.6.3: no NAK */
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	scene_close(&s);
}

/* --- setters --- */

scene_test(lists_are_logically_concatenated, WRITES)
{
	struct ibv_data_buf bufs[3];
	struct ibv_sge sges[4];

	for (unsigned i = 0; i < 4; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)s->p.a.buf + 100 * i, 100, s->p.a.mr->lkey };
	for (unsigned i = 0; i < 3; i++)
		bufs[i] = (struct ibv_data_buf){ s->p.a.buf + 20 * i, 20 };
	start(s, 10);
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	ibv_wr_set_sge_list(s->ex, 4, sges);
	memset(sges, 0, sizeof(sges));
	s->ex->wr_id = 11;
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s) + 1000);
	ibv_wr_set_inline_data_list(s->ex, 3, bufs);
	s->ex->wr_id = 12;
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s) + 2000);
	ibv_wr_set_inline_data(s->ex, s->p.a.buf, 64);
	s->ex->wr_id = 13;
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s) + 3000); /* of nothing */
	memset(s->p.a.buf + 40, 0, 24); /* inline data has left already */
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	for (unsigned i = 10; i < 14; i++)
		vt_expect(s->p.a.cq, i, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(s->p.b.buf + AT, 40, SEED));
	assert_true(vt_is_octet(s->p.b.buf + AT + 40, 24, 0));
	assert_true(vt_is_filled(s->p.b.buf + AT + 1000, 60, SEED));
	assert_true(vt_is_filled(s->p.b.buf + AT + 2000, 64, SEED));
	assert_true(vt_is_octet(s->p.b.buf + AT + 3000, 100, 0));
}

enum misuse {
	NOT_ENABLED,
	TOO_MUCH_INLINE,
	TOO_MANY_PIECES,
	INLINE_READ,
	DATA_WITHOUT_OP,
	INLINE_WITHOUT_OP,
	DATA_FOR_LOCAL_INV,
	INLINE_FOR_BIND,
	DATA_FOR_ATOMIC_WRITE,
	ADDRESS_ON_RC,
	SRQN_ON_RC,
	UNKNOWN_FLAG,
	IP_CSUM,
	BIND_WITHOUT_WINDOW,
	MISUSES
};

/* What comes in front of it, and behind it, is right in itself. */
static void misuse(struct scene *s, enum misuse what)
{
	struct ibv_sge sges[5] = { { 0 } };
	struct ibv_mw_bind_info info = { .mr = s->p.a.mr, .length = 8 };
	uint8_t octets[65] = { 0 };
	uint64_t value = 0;

	switch (what) {
	case NOT_ENABLED:
		ibv_wr_send_imm(s->ex, 0);
		data(s, 8);
		break;
	case TOO_MUCH_INLINE:
		ibv_wr_send(s->ex);
		ibv_wr_set_inline_data(s->ex, octets, sizeof(octets));
		break;
	case TOO_MANY_PIECES:
		ibv_wr_send(s->ex);
		ibv_wr_set_sge_list(s->ex, 5, sges);
		break;
	case INLINE_READ: /* "Valid only for SEND and RDMA_WRITE." */
		ibv_wr_rdma_read(s->ex, s->p.b.mr->rkey, there(s));
		ibv_wr_set_inline_data(s->ex, octets, 8);
		break;
	case DATA_WITHOUT_OP:
		data(s, 8);
		break;
	case INLINE_WITHOUT_OP:
		ibv_wr_set_inline_data(s->ex, octets, 8);
		break;
	case DATA_FOR_LOCAL_INV:
		ibv_wr_local_inv(s->ex, 1);
		data(s, 8);
		break;
	case INLINE_FOR_BIND:
		ibv_wr_bind_mw(s->ex, NULL, 0, &info);
		ibv_wr_set_inline_data(s->ex, octets, 8);
		break;
	case DATA_FOR_ATOMIC_WRITE:
		ibv_wr_atomic_write(s->ex, s->p.b.mr->rkey, there(s), &value);
		data(s, 8);
		break;
	case ADDRESS_ON_RC:
		ibv_wr_send(s->ex);
		ibv_wr_set_ud_addr(s->ex, NULL, 1, 1);
		break;
	case SRQN_ON_RC:
		ibv_wr_send(s->ex);
		ibv_wr_set_xrc_srqn(s->ex, 1);
		break;
	case UNKNOWN_FLAG:
		s->ex->wr_flags |= 1u << 20;
		ibv_wr_send(s->ex);
		break;
	case IP_CSUM:
		s->ex->wr_flags |= IBV_SEND_IP_CSUM;
		ibv_wr_send(s->ex);
		break;
	case BIND_WITHOUT_WINDOW:
		ibv_wr_bind_mw(s->ex, NULL, 0, &info);
		break;
	case MISUSES:
		break;
	}
	s->ex->wr_flags = IBV_SEND_SIGNALED;
}

/* "ibv_wr_complete() will return failure and the entire posting will be aborted" */
scene_test(what_is_wrong_aborts_the_entire_posting, RC_OPS & ~IBV_QP_EX_WITH_SEND_WITH_IMM)
{
	vt_recv(&s->p.b, 1);
	vt_recv(&s->p.b, 2);
	for (int what = 0; what < MISUSES; what++) {
		start(s, 10);
		if (what != DATA_WITHOUT_OP && what != INLINE_WITHOUT_OP)
			build_send(s, 10, 8);
		misuse(s, (enum misuse)what);
		build_send(s, 11, 8);
		assert_int_equal(ibv_wr_complete(s->ex), EINVAL);
	}
	assert_nothing_posted(s);
	/* And nothing of it is left. */
	start(s, 12);
	build_send(s, 12, 100);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	vt_expect(s->p.a.cq, 12, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS).byte_len, 100);
	assert_nothing_posted(s);
}

scene_as_test(a_batch_that_does_not_fit_is_not_posted, IBV_QPT_RC, WRITES, 4, IBV_QPS_RTS)
{
	/* More than the queue has, and more than is free of it. */
	for (unsigned used = 0; used < 4; used += 2) {
		start(s, 1);
		for (unsigned i = 0; i < used; i++) {
			ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
			data(s, 8);
		}
		assert_int_equal(ibv_wr_complete(s->ex), 0);
		start(s, 2);
		for (unsigned i = 0; i < 5 - used; i++) {
			ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s) + 100);
			data(s, 8);
		}
		assert_int_equal(ibv_wr_complete(s->ex), ENOMEM);
		for (unsigned i = 0; i < used; i++)
			vt_expect(s->p.a.cq, 1, IBV_WC_SUCCESS);
		assert_nothing_posted(s);
		assert_true(vt_is_octet(s->p.b.buf + AT + 100, 8, 0));
	}
	start(s, 3);
	for (unsigned i = 0; i < 4; i++)
		ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	for (unsigned i = 0; i < 4; i++)
		vt_expect(s->p.a.cq, 3, IBV_WC_SUCCESS);
}

scene_test(an_empty_batch_is_nothing, SENDS)
{
	ibv_wr_start(s->ex);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	ibv_wr_start(s->ex);
	ibv_wr_abort(s->ex);
	assert_nothing_posted(s);
}

/* "ibv_wr_abort() will discard all work prepared since ibv_wr_start()." */
scene_test(abort_leaves_no_trace, SENDS | WRITES)
{
	vt_recv(&s->p.b, 1);
	start(s, 10);
	build_send(s, 10, 100);
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	data(s, 100);
	ibv_wr_abort(s->ex);
	assert_nothing_posted(s);
	start(s, 11);
	ibv_wr_send_inv(s->ex, 1); /* wrong */
	ibv_wr_abort(s->ex);
	start(s, 12);
	build_send(s, 12, 50);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	vt_expect(s->p.a.cq, 12, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS).byte_len, 50);
	assert_nothing_posted(s);
	assert_true(vt_is_octet(s->p.b.buf + AT, 100, 0));
}

/* --- UD --- */

scene_as_test(a_datagram_needs_its_address, IBV_QPT_UD, SENDS, 16, IBV_QPS_RTS)
{
	struct ibv_wc wc;

	vt_recv(&s->p.b, 1);
	start(s, 10);
	build_send(s, 10, 8);
	ibv_wr_set_ud_addr(s->ex, s->p.a.ah, s->p.b.qp->qp_num, VT_QKEY);
	build_send(s, 11, 8); /* "must be called" */
	assert_int_equal(ibv_wr_complete(s->ex), EINVAL);
	assert_nothing_posted(s);
	start(s, 12);
	ibv_wr_send_imm(s->ex, htonl(9));
	ibv_wr_set_ud_addr(s->ex, s->p.a.ah, s->p.b.qp->qp_num, VT_QKEY);
	data(s, 100);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	vt_expect(s->p.a.cq, 12, IBV_WC_SUCCESS);
	wc = vt_expect(s->p.b.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 140);
	assert_int_equal(ntohl(wc.imm_data), 9);
	assert_true(vt_is_filled(s->p.b.buf + 40, 100, SEED));
}

/* --- flags --- */

/* "These values should be set before invoking the WR builder function." */
scene_test(wr_id_and_flags_are_those_when_it_was_built, WRITES)
{
	start(s, 10);
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	s->ex->wr_id = 99;
	s->ex->wr_flags = 0;
	data(s, 8);
	s->ex->wr_id = 11;
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	data(s, 8);
	s->ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	s->ex->wr_id = 12;
	ibv_wr_rdma_write(s->ex, s->p.b.mr->rkey, there(s));
	s->ex->wr_flags = 0;
	data(s, 8);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS);
	vt_expect(s->p.a.cq, 12, IBV_WC_SUCCESS);
	vt_expect_none(s->p.a.cq);
}

/* "Set the solicited bit in the RDMA packet." */
vt_test(only_the_solicited_send_makes_an_event)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(vt.ctx);
	struct vt_options opt = { .channel = channel };
	struct ibv_qp *qp;
	struct vt_pair p;
	struct ibv_qp_ex *ex;
	struct ibv_cq *cq;
	void *context;

	vt_pair_open(&p, &opt);
	qp = qp_ex(p.a.cq, IBV_QPT_RC, SENDS, 8);
	ex = ibv_qp_to_qp_ex(qp);
	assert_int_equal(vt_modify(p.b.qp, IBV_QPS_RESET), 0);
	vt_climb(qp, &p.opt, IBV_QPS_RTS, p.b.qp->qp_num);
	vt_climb(p.b.qp, &p.opt, IBV_QPS_RTS, qp->qp_num);
	vt_recv(&p.b, 1);
	vt_recv(&p.b, 2);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
	for (unsigned i = 0; i < 2; i++) {
		ibv_wr_start(ex);
		ex->wr_flags = i ? IBV_SEND_SOLICITED : 0;
		ibv_wr_send(ex);
		ibv_wr_set_inline_data(ex, p.a.buf, 8);
		assert_int_equal(ibv_wr_complete(ex), 0);
		vt_expect(p.b.cq, i + 1, IBV_WC_SUCCESS);
		assert_int_equal(vt_readable(channel->fd, VT_QUIET_MS), i);
	}
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	assert_ptr_equal(cq, p.b.cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	vt_pair_close(&p);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* --- states --- */

scene_as_test(before_rts_nothing_is_posted, IBV_QPT_RC, SENDS, 16, IBV_QPS_RTR)
{
	start(s, 10);
	build_send(s, 10, 8);
	assert_int_equal(ibv_wr_complete(s->ex), EINVAL);
	vt_expect_none(s->p.a.cq);
}

scene_test(in_the_error_state_it_is_flushed, SENDS)
{
	assert_int_equal(vt_modify(s->p.a.qp, IBV_QPS_ERR), 0);
	start(s, 10);
	build_send(s, 10, 8);
	build_send(s, 11, 8);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	vt_expect(s->p.a.cq, 10, IBV_WC_WR_FLUSH_ERR);
	vt_expect(s->p.a.cq, 11, IBV_WC_WR_FLUSH_ERR);
}

/* --- beside ibv_post_send(3) and other threads --- */

/* "WRs batches of ibv_post_send() and this API WRs batches can interleave together" */
scene_test(it_goes_together_with_post_send, SENDS)
{
	for (unsigned i = 0; i < 4; i++)
		vt_recv(&s->p.b, i);
	for (unsigned i = 0; i < 4; i++) {
		if (i % 2) {
			struct vt_wr w;

			vt_wr(&w, IBV_WR_SEND, &s->p.a, &s->p.b, 10 + i);
			w.wr.wr_id = i;
			vt_post(&s->p.a, &w);
		} else {
			start(s, i);
			build_send(s, i, 10 + i);
			assert_int_equal(ibv_wr_complete(s->ex), 0);
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		vt_expect(s->p.a.cq, i, IBV_WC_SUCCESS);
		assert_int_equal(vt_expect(s->p.b.cq, i, IBV_WC_SUCCESS).byte_len, 10 + i);
	}
}

struct rival {
	struct scene *s;
	atomic_bool inside;
	int rc;
};

static void *rival_run(void *arg)
{
	struct rival *rival = arg;

	start(rival->s, 20);
	atomic_store(&rival->inside, true);
	build_send(rival->s, 20, 8);
	rival->rc = ibv_wr_complete(rival->s->ex);
	return NULL;
}

/* CONCURRENCY: "a per-QP critical section where no other threads can enter" */
scene_test(one_thread_builds_at_a_time, SENDS)
{
	struct rival rival = { .rc = -1 };
	pthread_t thread;

	rival.s = s;
	vt_recv(&s->p.b, 1);
	vt_recv(&s->p.b, 2);
	start(s, 10);
	assert_int_equal(pthread_create(&thread, NULL, rival_run, &rival), 0);
	vt_sleep_ms(VT_QUIET_MS);
	assert_false(atomic_load(&rival.inside));
	build_send(s, 10, 8);
	assert_int_equal(ibv_wr_complete(s->ex), 0);
	pthread_join(thread, NULL);
	assert_int_equal(rival.rc, 0);
	vt_expect(s->p.a.cq, 10, IBV_WC_SUCCESS);
	vt_expect(s->p.a.cq, 20, IBV_WC_SUCCESS);
}
