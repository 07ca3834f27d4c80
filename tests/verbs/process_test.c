/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads and processes: many QPs at once, one object from many threads, and fork(). */

enum { THREADS = 4, MESSAGES = 500 };

/* ThreadSanitizer kills a child that begins a thread, unless it is told not to. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static bool poll_one(struct ibv_cq *cq, uint64_t *wr_id)
{
	uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;
	struct ibv_wc wc;
	int got;

	do
		got = ibv_poll_cq(cq, 1, &wc);
	while (!got && vt_now_ms() < end_ms);
	*wr_id = wc.wr_id;
	return got == 1 && wc.status == IBV_WC_SUCCESS;
}

/* cmocka's assertions belong to the main thread; the others bring an answer home. */
struct worker {
	struct vt_pair p;
	unsigned seed;
	bool good;
};

static bool write_and_read(struct worker *w, uint64_t i)
{
	uint32_t bytes = (uint32_t)((i * 613 + w->seed * 97) % 20000) + 1;
	struct ibv_send_wr *bad;
	struct vt_wr wr;
	uint64_t id;

	vt_fill(w->p.a.buf, bytes, w->seed + (unsigned)i);
	vt_wr(&wr, i & 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, &w->p.a, &w->p.b, bytes);
	wr.wr.wr_id = i;
	if (!(i & 1)) {
		struct ibv_sge sge = { (uintptr_t)w->p.b.buf, 20000, w->p.b.mr->lkey };
		struct ibv_recv_wr recv = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad_recv;

		if (ibv_post_recv(w->p.b.qp, &recv, &bad_recv))
			return false;
	}
	if (ibv_post_send(w->p.a.qp, &wr.wr, &bad) || !poll_one(w->p.a.cq, &id) || id != i)
		return false;
	if (!(i & 1) && (!poll_one(w->p.b.cq, &id) || id != i))
		return false;
	return vt_is_filled(w->p.b.buf, bytes, w->seed + (unsigned)i);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	w->good = true;
	for (uint64_t i = 0; i < MESSAGES && w->good; i++)
		w->good = write_and_read(w, i);
	return NULL;
}

vt_test(threads_with_qps_of_their_own)
{
	static struct worker workers[THREADS];
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].seed = i;
		vt_pair_open(&workers[i].p, NULL);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_true(workers[i].good);
		vt_pair_close(&workers[i].p);
	}
}

/* --- one CQ, one QP, one SRQ from several threads --- */

struct shared {
	struct vt_pair p;
	_Atomic int posted, sent, received;
	_Atomic bool failed;
};

static void *post_on_shared_qp(void *arg)
{
	struct shared *s = arg;

	while (!atomic_load(&s->failed) && atomic_fetch_add(&s->posted, 1) < THREADS * MESSAGES) {
		struct ibv_sge sge = { (uintptr_t)s->p.b.buf, 64, s->p.b.mr->lkey };
		struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
		struct ibv_send_wr *bad;
		struct vt_wr w;
		int err;

		do
			err = ibv_post_srq_recv(s->p.b.srq, &recv, &bad_recv);
		while (err == ENOMEM && !sched_yield());
		vt_wr(&w, IBV_WR_SEND, &s->p.a, &s->p.b, 32);
		w.wr.sg_list = &w.sge;
		while (!err) {
			err = ibv_post_send(s->p.a.qp, &w.wr, &bad);
			if (err != ENOMEM)
				break;
			err = sched_yield();
		}
		if (err)
			atomic_store(&s->failed, true);
	}
	return NULL;
}

static void *poll_shared_cqs(void *arg)
{
	struct shared *s = arg;
	uint64_t end_ms = vt_now_ms() + 3 * VT_WAIT_MS;
	struct ibv_wc wc[4];

	while (!atomic_load(&s->failed) && vt_now_ms() < end_ms &&
	       (atomic_load(&s->sent) < THREADS * MESSAGES ||
		atomic_load(&s->received) < THREADS * MESSAGES)) {
		for (int side = 0; side < 2; side++) {
			int got = ibv_poll_cq(side ? s->p.b.cq : s->p.a.cq, 4, wc);

			for (int i = 0; i < got; i++)
				if (wc[i].status != IBV_WC_SUCCESS)
					atomic_store(&s->failed, true);
			if (got > 0)
				atomic_fetch_add(side ? &s->received : &s->sent, got);
		}
	}
	return NULL;
}

vt_test(threads_that_share_everything)
{
	struct vt_options opt = { .type = IBV_QPT_RC, .srq = true };
	pthread_t thread[THREADS];
	static struct shared s;

	memset(&s, 0, sizeof(s));
	vt_pair_open(&s.p, &opt);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						i & 1 ? post_on_shared_qp : poll_shared_cqs, &s),
				 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_false(atomic_load(&s.failed));
	assert_int_equal(atomic_load(&s.sent), THREADS * MESSAGES);
	assert_int_equal(atomic_load(&s.received), THREADS * MESSAGES);
	vt_pair_close(&s.p);
}

/* Objects come and go in every thread. */
static void *make_and_break(void *arg)
{
	struct worker *w = arg;
	static uint8_t buf[4096];

	w->good = true;
	for (int i = 0; i < 200 && w->good; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(vt.ctx);
		struct ibv_cq *cq = ibv_create_cq(vt.ctx, 16, NULL, NULL, 0);
		struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), 0) : NULL;
		struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq,
						 .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
		struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;

		w->good = qp && mr && !ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) &&
			  !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd);
	}
	return NULL;
}

vt_test(objects_come_and_go_amid_traffic)
{
	static struct worker workers[THREADS];
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i += 2)
		vt_pair_open(&workers[i].p, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, i & 1 ? make_and_break : work,
						&workers[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_true(workers[i].good);
	}
	for (unsigned i = 0; i < THREADS; i += 2)
		vt_pair_close(&workers[i].p);
}

/* --- fork --- */

/* A WRITE of the parent's, checked; the child must not have disturbed it. */
static void parent_goes_on(struct vt_pair *p, unsigned seed)
{
	vt_fill(p->a.buf, 50000, seed);
	vt_do(IBV_WR_RDMA_WRITE, &p->a, &p->b, 50000, IBV_WC_SUCCESS);
	assert_true(vt_is_filled(p->b.buf, 50000, seed));
}

vt_pair_test(a_child_may_just_exit)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_not_equal(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	for (unsigned i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		parent_goes_on(p, i);
		vt_child_ended(child);
		parent_goes_on(p, i + 100);
	}
}

/* What it inherited is dead: calls fail, destroying does nothing, and nobody is disturbed. */
static int use_what_was_inherited(struct vt_pair *p)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 50000);
	if (!ibv_post_send(p->a.qp, &w.wr, &bad))
		return 1;
	if (ibv_poll_cq(p->a.cq, 1, &wc) > 0)
		return 2;
	if (ibv_alloc_pd(vt.ctx))
		return 3;
	if (ibv_destroy_qp(p->a.qp) || ibv_destroy_qp(p->b.qp) || ibv_dereg_mr(p->a.mr) ||
	    ibv_destroy_cq(p->a.cq) || ibv_dealloc_pd(vt.pd) || ibv_close_device(vt.ctx))
		return 4;
	return 0;
}

vt_pair_test(a_child_cannot_use_what_it_inherited)
{
	pid_t child;

	child = fork();
	if (!child)
		_exit(use_what_was_inherited(p));
	parent_goes_on(p, 1);
	vt_child_ended(child);
	parent_goes_on(p, 2);
}

/* The child opens the device for itself, and sends to itself. */
static int live_on_its_own(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	static uint8_t buf[2][20000];
	static struct worker w;

	vt.ctx = list ? ibv_open_device(list[0]) : NULL;
	if (!vt.ctx)
		return 1;
	ibv_free_device_list(list);
	vt.pd = ibv_alloc_pd(vt.ctx);
	if (!vt.pd)
		return 2;
	w.p.opt = vt_options(NULL);
	for (int i = 0; i < 2; i++) {
		struct vt_end *end = i ? &w.p.b : &w.p.a;
		struct ibv_qp_init_attr init = { .cap = { 8, 8, 1, 1, 0 },
						 .qp_type = IBV_QPT_RC };

		end->buf = buf[i];
		end->mr = ibv_reg_mr(vt.pd, buf[i], sizeof(buf[i]), VT_ALL_ACCESS);
		end->cq = ibv_create_cq(vt.ctx, 16, NULL, NULL, 0);
		init.send_cq = init.recv_cq = end->cq;
		end->qp = end->mr && end->cq ? ibv_create_qp(vt.pd, &init) : NULL;
		if (!end->qp)
			return 3;
	}
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = i ? w.p.b.qp : w.p.a.qp, *peer = i ? w.p.a.qp : w.p.b.qp;
		struct ibv_qp_attr attr;

		for (enum ibv_qp_state to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
			int mask = vt_attr(&attr, &w.p.opt, to, peer->qp_num);

			if (ibv_modify_qp(qp, &attr, mask))
				return 4;
		}
	}
	work(&w);
	return w.good ? 0 : 5;
}

vt_pair_test(a_child_may_open_its_own)
{
	pid_t child[2];

	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (!child[i])
			_exit(live_on_its_own());
	}
	for (unsigned i = 0; i < 50; i++)
		parent_goes_on(p, i);
	vt_child_ended(child[0]);
	vt_child_ended(child[1]);
	parent_goes_on(p, 77);
}
