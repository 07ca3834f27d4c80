/* SPDX-License-Identifier: BSD-2-Clause */

/* Windows seen from inside: what the table of keys says, and objects that vanish too early. */
#include "nic_fixture.h"

#include "nic/data/window.h"

enum { BYTES = 4096 };

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static uint8_t memory[BYTES] __attribute__((aligned(4096)));

static struct {
	struct vb_cq *cq;
	struct vb_qp *qp;
	struct vb_mr *mr;
	struct vb_mw *mw;
} w;

static int open(void **state)
{
	begin(state);
	w.cq = make_cq(16, NULL);
	w.qp = make_qp(IBV_QPT_RC, w.cq, NULL);
	bring(w.qp, IBV_QPS_RTS);
	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, (uintptr_t)memory,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, &w.mr),
			 0);
	assert_int_equal(vb_mw_alloc(fix.pd, IBV_MW_TYPE_2, &w.mw), 0);
	return 0;
}

static int close(void **state)
{
	if (w.mw)
		assert_int_equal(vb_mw_dealloc(w.mw), 0);
	if (w.mr)
		assert_int_equal(vb_mr_dereg(w.mr), 0);
	drop_qp(w.qp);
	drop_cq(w.cq);
	return end(state);
}

#define WINDOW_TEST(name) TEST_BETWEEN(name, open, close)

static void post_bind(uint32_t key)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = &w.mw->ibv, .rkey = key,
			     .bind_info = { &w.mr->ibv, (uintptr_t)memory + 64, 128, REMOTE } },
	};

	assert_int_equal(vb_qp_post_send(w.qp, &wr, &bad), 0);
}

static void assert_completes(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(w.cq, 1, &wc), 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(vb_cq_poll(w.cq, 1, &wc), 0);
}

WINDOW_TEST(only_the_qp_gets_through_a_window)
{
	uint32_t key = ibv_inc_rkey(w.mw->ibv.rkey);
	uint64_t va = (uintptr_t)memory + 64;

	assert_null(vb_remote_get(w.qp, w.mw->ibv.rkey, va, 8, IBV_ACCESS_REMOTE_READ));
	post_bind(key);
	assert_completes(IBV_WC_SUCCESS);
	assert_ptr_equal(vb_remote_get(w.qp, key, va, 128, IBV_ACCESS_REMOTE_WRITE), memory + 64);
	assert_null(vb_remote_get(w.qp, key, va, 129, IBV_ACCESS_REMOTE_WRITE));
	assert_null(vb_remote_get(w.qp, key, va - 1, 1, IBV_ACCESS_REMOTE_WRITE));
	for (unsigned bit = 0; bit < 32; bit++)
		assert_null(vb_remote_get(w.qp, key ^ 1u << bit, va, 8, IBV_ACCESS_REMOTE_READ));
	/* It is no key for SGEs. */
	assert_null(vb_mr_get(fix.nic, &fix.pd->ibv, key, va, 8, 0));
}

/* Peers who look themselves are to send what they want: only we know whose window it is. */
WINDOW_TEST(peers_find_no_way_in)
{
	uint32_t key = ibv_inc_rkey(w.mw->ibv.rkey);
	struct vb_export_region region;

	post_bind(key);
	assert_completes(IBV_WC_SUCCESS);
	assert_true(vb_export_key_read(&fix.nic->export->key[vb_key_place(key)], &region));
	assert_int_equal(region.key, key);
	assert_int_equal(region.pd, 0);
	assert_false(vb_export_region_allows(&region, fix.pd->id, key, (uintptr_t)memory + 64, 8,
					     IBV_ACCESS_REMOTE_READ));
	assert_true(atomic_load(&fix.nic->export->key[vb_key_place(key)].shared) < 0);
}

/* What was posted names things by their keys: it fails if they are gone when its turn comes. */
WINDOW_TEST(a_region_may_vanish_before_its_bind)
{
	assert_int_equal(set_state(w.qp, IBV_QPS_SQD), 0);
	post_bind(w.mw->ibv.rkey + 1);
	assert_int_equal(vb_mr_dereg(w.mr), 0);
	w.mr = NULL;
	assert_int_equal(set_state(w.qp, IBV_QPS_RTS), 0);
	assert_completes(IBV_WC_MW_BIND_ERR);
}

WINDOW_TEST(a_window_may_vanish_before_its_bind)
{
	assert_int_equal(set_state(w.qp, IBV_QPS_SQD), 0);
	post_bind(w.mw->ibv.rkey + 1);
	assert_int_equal(vb_mw_dealloc(w.mw), 0);
	w.mw = NULL;
	assert_int_equal(set_state(w.qp, IBV_QPS_RTS), 0);
	assert_completes(IBV_WC_MW_BIND_ERR);
}

WINDOW_TEST(many_windows_of_one_qp_come_and_go)
{
	struct vb_mw *mws[20], *last = w.mw;

	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(vb_mw_alloc(fix.pd, IBV_MW_TYPE_2, &mws[i]), 0);
		w.mw = mws[i];
		post_bind(mws[i]->ibv.rkey);
		assert_completes(IBV_WC_SUCCESS);
	}
	w.mw = last;
	assert_int_equal(w.mr->windows, 20);
	for (unsigned i = 0; i < 20; i += 3)
		assert_int_equal(vb_mw_dealloc(mws[i]), 0);
	assert_int_equal(w.mr->windows, 13);
	assert_int_equal(set_state(w.qp, IBV_QPS_RESET), 0);
	assert_int_equal(w.mr->windows, 0);
	assert_null(w.qp->recv.windows);
	for (unsigned i = 0; i < 20; i++)
		if (i % 3)
			assert_int_equal(vb_mw_dealloc(mws[i]), 0);
}
