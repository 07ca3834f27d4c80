/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A work queue that one thread posts to, another brings frames, a third polls, and whose state
 * changes meanwhile: completions come in the order of the requests, each at most once, and the
 * queue is as good as new at the end.
 */
#include <pthread.h>
#include <sched.h>

#include "wq_fixture.h"

enum { CYCLES = 300, CQE = 1 << 12 };

static struct {
	struct vb_cq *cq;
	struct vb_rwq *wq;
	struct vb_mr *mr;
	_Atomic bool done, quiet; /* enough; no more requests */
	_Atomic uint64_t received;
	uint64_t posted, flushed, last;
	bool disordered;
} t;

static void *carry(void *unused)
{
	struct vb_eth_frame parsed;
	struct frame frame;

	frame_make(&frame, 1, 2);
	vb_eth_parse(&parsed, frame.octets, frame.bytes);
	while (!atomic_load(&t.done))
		vb_rwq_receive(t.wq, &parsed, 0, false);
	return NULL;
}

static void *feed(void *unused)
{
	while (!atomic_load(&t.done)) {
		struct ibv_sge sge = {.addr = (uintptr_t)buffers[t.posted % WR_MAX],
				      .length = BUFFER_BYTES,
				      .lkey = t.mr->ibv.lkey};
		struct ibv_recv_wr wr = {.wr_id = t.posted + 1, .sg_list = &sge, .num_sge = 1};
		struct ibv_recv_wr *bad;

		/* What is flushed at once must not be more than the CQ holds. */
		if (atomic_load(&t.cq->tail) - atomic_load(&t.cq->head) > CQE / 2)
			sched_yield();
		else if (vb_rwq_post(t.wq, &wr, &bad) == 0)
			t.posted++;
		else
			sched_yield();
	}
	atomic_store(&t.quiet, true);
	return NULL;
}

static void *drain(void *unused)
{
	struct ibv_wc wc;
	bool quiet;

	do {
		quiet = atomic_load(&t.quiet);
		while (vb_cq_poll(t.cq, 1, &wc) == 1) {
			t.disordered |= wc.wr_id <= t.last;
			t.last = wc.wr_id;
			if (wc.status == IBV_WC_SUCCESS)
				t.received++;
			else
				t.flushed++;
		}
		sched_yield();
	} while (!quiet);
	return NULL;
}

/* Between any two changes something is received. */
static void cycle(void)
{
	static const enum ibv_wq_state states[] = {IBV_WQS_ERR, IBV_WQS_RESET, IBV_WQS_RDY};

	for (unsigned i = 0; i < CYCLES; i++) {
		uint64_t before = atomic_load(&t.received);

		while (atomic_load(&t.received) == before)
			sched_yield();
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(wq_state_set(t.wq, states[k]), 0);
	}
}

static void run(uint32_t flags)
{
	pthread_t threads[3];

	memset(&t, 0, sizeof(t));
	t.cq = make_cq(CQE, NULL);
	t.wq = make_wq(t.cq, flags);
	t.mr = make_mr();
	assert_int_equal(wq_state_set(t.wq, IBV_WQS_RDY), 0);
	assert_int_equal(pthread_create(&threads[0], NULL, carry, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, feed, NULL), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, drain, NULL), 0);
	cycle();
	atomic_store(&t.done, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_false(t.disordered);
	assert_true(t.received + t.flushed <= t.posted);
	assert_false(vb_cq_is_broken(t.cq));

	/* What it was when it was new. */
	assert_int_equal(wq_state_set(t.wq, IBV_WQS_RESET), 0);
	assert_int_equal(wq_state_set(t.wq, IBV_WQS_RDY), 0);
	assert_empty(t.cq);
	for (uint32_t i = 0; i < WR_MAX; i++)
		assert_int_equal(post(t.wq, t.mr, i, BUFFER_BYTES), 0);
	for (uint32_t i = 0; i < WR_MAX; i++) {
		struct frame frame;

		frame_make(&frame, 1, 2);
		give(t.wq, &frame, 0);
		assert_int_equal(taken(t.cq, t.wq, IBV_WC_SUCCESS).wc.wr_id, i);
	}
	drop_wq(t.wq);
	assert_int_equal(vb_mr_dereg(t.mr), 0);
	drop_cq(t.cq);
}

NIC_TEST(test_all_at_once)
{
	side_use_segment(&fix);
	run(0);
}

NIC_TEST(test_all_at_once_with_frames_that_wait)
{
	side_use_segment(&fix);
	run(IBV_WQ_FLAGS_DELAY_DROP);
}
