/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>

/* IBV_WR_ATOMIC_WRITE (IBTA release 1.6): eight aligned octets that appear at once. */

enum { AT = 8192 };

static void aim(struct vt_wr *w, struct vt_pair *p, uint64_t offset, uint32_t bytes)
{
	vt_wr(w, IBV_WR_ATOMIC_WRITE, &p->a, &p->b, bytes);
	w->wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf + offset;
}

vt_pair_test(the_octets_arrive_as_they_are)
{
	struct ibv_wc wc;
	struct vt_wr w;

	for (unsigned i = 0; i < 8; i++) {
		vt_fill(p->a.buf, 8, i);
		aim(&w, p, AT + 8 * i, 8);
		if (i % 2)
			w.wr.send_flags |= IBV_SEND_INLINE;
		wc = vt_done(&p->a, &w, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_ATOMIC_WRITE);
		assert_true(vt_is_filled(p->b.buf + AT + 8 * i, 8, i));
	}
	assert_true(vt_is_octet(p->b.buf, AT, 0));
	assert_true(vt_is_octet(p->b.buf + AT + 64, p->b.bytes - AT - 64, 0));
	vt_expect_none(p->b.cq);
}

/* Gathered from pieces; they need not be aligned here. */
vt_pair_test(it_is_gathered_like_any_data)
{
	struct ibv_send_wr *bad;
	struct ibv_sge sge[2];
	struct vt_wr w;

	vt_fill(p->a.buf + 1, 8, 3);
	aim(&w, p, AT, 8);
	sge[0] = (struct ibv_sge){ (uintptr_t)p->a.buf + 1, 3, p->a.mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)p->a.buf + 4, 5, p->a.mr->lkey };
	w.wr.sg_list = sge;
	w.wr.num_sge = 2;
	assert_int_equal(ibv_post_send(p->a.qp, &w.wr, &bad), 0);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->b.buf + AT, 8, 3));
}

vt_pairs_test(it_has_eight_octets, i, 0, 6)
{
	static const uint32_t lengths[] = { 0, 4, 7, 9, 16, 4096 };
	struct vt_wr w;

	aim(&w, p, AT, lengths[i]);
	vt_done(&p->a, &w, IBV_WC_LOC_LEN_ERR);
	assert_true(vt_is_octet(p->b.buf, p->b.bytes, 0));
}

vt_pair_test(more_than_eight_octets_are_not_inline)
{
	struct vt_wr w;

	aim(&w, p, AT, 9);
	w.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(vt_try(&p->a, &w), EINVAL);
}

struct fault {
	struct vt_options opt;
	uint64_t offset;
	enum ibv_wc_status status;
	enum ibv_event_type event; /* at the responder */
};

/* The right is that of a WRITE; the place is aligned; and it counts among READs and atomics. */
vt_test(what_breaks_a_rule_is_refused)
{
	static const struct fault rows[] = {
		{ { .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC }, AT,
		  IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
		{ { .qp_access = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ }, AT,
		  IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
		{ { .mr_access = 0 }, 65536 - 4, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ { .mr_access = 0 }, 65536, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
		{ { .mr_access = 0 }, AT + 1, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ { .mr_access = 0 }, AT + 4, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
	};

	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &rows[i].opt);
		aim(&w, &p, rows[i].offset, 8);
		vt_fill(p.a.buf, 8, 1);
		vt_done(&p.a, &w, rows[i].status);
		vt_event_acked(rows[i].event);
		assert_true(vt_is_octet(p.b.buf, p.b.bytes, 0));
		vt_pair_close(&p);
	}
}

vt_pair_test(a_write_is_right_enough, .mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	     .qp_access = IBV_ACCESS_REMOTE_WRITE)
{
	struct vt_wr w;

	aim(&w, p, AT, 8);
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
}

vt_pair_test(where_no_reads_may_go_it_may_not, .no_rd_atomic = true)
{
	struct vt_wr w;

	aim(&w, p, AT, 8);
	vt_done(&p->a, &w, IBV_WC_LOC_QP_OP_ERR);
}

/* More of them than may be outstanding, among READs, WRITEs and atomics: all in their order. */
vt_pair_test(it_keeps_the_order)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_ATOMIC_WRITE, IBV_WR_RDMA_WRITE,
						  IBV_WR_ATOMIC_FETCH_AND_ADD,
						  IBV_WR_ATOMIC_WRITE, IBV_WR_RDMA_READ };
	uint64_t *there, *here;
	struct vt_wr w;

	here = (uint64_t *)p->a.buf;
	there = (uint64_t *)(p->b.buf + AT);
	for (uint64_t i = 0; i < 60; i++) {
		here[i] = 1000 * i;
		aim(&w, p, AT, 8);
		w.wr.opcode = ops[i % 5];
		w.wr.wr_id = i;
		w.sge.addr = (uintptr_t)&here[i];
		if (w.wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			w.wr.wr.atomic.remote_addr = (uintptr_t)there;
			w.wr.wr.atomic.rkey = p->b.mr->rkey;
			w.wr.wr.atomic.compare_add = 7;
		}
		if (i % 5 == 0) /* a READ that is asked for again might see later values */
			w.wr.send_flags |= IBV_SEND_FENCE;
		vt_post(&p->a, &w);
	}
	for (uint64_t i = 0; i < 60; i++) {
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		if (ops[i % 5] == IBV_WR_ATOMIC_FETCH_AND_ADD)
			assert_int_equal(here[i], 1000 * (i - 1)); /* what the WRITE left */
		if (ops[i % 5] == IBV_WR_RDMA_READ)
			assert_int_equal(here[i], 1000 * (i - 1));
	}
}

struct watch {
	_Atomic uint64_t *word;
	atomic_bool stop;
	bool torn;
};

static void *watch_run(void *arg)
{
	struct watch *watch = arg;

	while (!atomic_load(&watch->stop)) {
		uint64_t value = atomic_load_explicit(watch->word, memory_order_relaxed);

		if (value % 0x0101010101010101ull)
			watch->torn = true;
	}
	return NULL;
}

vt_pair_test(nobody_sees_half_of_it)
{
	struct watch watch = { .torn = false };
	pthread_t thread;
	struct vt_wr w;

	watch.word = (_Atomic uint64_t *)(p->b.buf + AT);
	assert_int_equal(pthread_create(&thread, NULL, watch_run, &watch), 0);
	for (unsigned i = 0; i < 2000; i++) {
		memset(p->a.buf, (int)(i * 37 & 0xff), 8);
		aim(&w, p, AT, 8);
		vt_done(&p->a, &w, IBV_WC_SUCCESS);
	}
	atomic_store(&watch.stop, true);
	pthread_join(thread, NULL);
	assert_false(watch.torn);
}
