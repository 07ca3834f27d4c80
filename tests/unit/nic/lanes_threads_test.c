/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Threads on different QPs of two NICs that meet in rings: nothing is lost, and nobody touches what
 * another one is at. The latter is for ThreadSanitizer to say.
 */
#include <pthread.h>
#include <time.h>

#include "base/prng.h"
#include "lanes_fixture.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 300, CHURNS = 60, LIVES = 8 };
#else
enum { ROUNDS = 3000, CHURNS = 600, LIVES = 40 };
#endif

enum { WORKERS = 4, CHURNERS = 2, AREA_BYTES = 1 << 17, THREADS_MAX = 16 };

static _Atomic bool stop;
static pthread_t threads[THREADS_MAX];
static unsigned threads_n;

static void start(void *(*body)(void *), uintptr_t arg)
{
	assert_true(threads_n < THREADS_MAX);
	assert_int_equal(pthread_create(&threads[threads_n++], NULL, body, (void *)arg), 0);
}

/*
 * Lets others run. Not by sched_yield: that waits for the time slices of whatever else the machine
 * does, at every turn.
 */
static void step_aside(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

static void join_from(unsigned first)
{
	while (threads_n > first)
		pthread_join(threads[--threads_n], NULL);
}

/* As a device's own thread does: look, sleep, wake, and see to the clock. */
static void *progress(void *arg)
{
	struct side *s = &side[(uintptr_t)arg];

	while (!atomic_load(&stop)) {
		vb_nic_lanes_scan(s->nic);
		if (vb_nic_asleep(s->nic))
			step_aside();
		vb_nic_awake(s->nic);
		atomic_fetch_add(&fake_ns, 10000);
		vb_nic_turn(s->nic);
	}
	return NULL;
}

/* --- traffic --- */

struct pair {
	struct side *s, *t; /* which may be the same */
	struct vb_cq *cq[2];
	struct vb_qp *a, *b;
	uint32_t at; /* both sides' memory from there on is ours */
};

static struct vb_cq *cq_make(struct side *s)
{
	struct vb_cq *cq;

	vb_check(!vb_cq_create(s->ctx, 1024, NULL, 0, NULL, &cq));
	return cq;
}

static void pair_open(struct pair *p, enum ibv_qp_type type)
{
	p->cq[0] = cq_make(p->s);
	p->cq[1] = cq_make(p->t);
	p->a = qp_make_on(p->s, type, p->cq[0], NULL);
	p->b = qp_make_on(p->t, type, p->cq[1], NULL);
	qp_connect(p->a, p->b);
}

static void pair_close(struct pair *p)
{
	drop_qp(p->a);
	drop_qp(p->b);
	drop_cq(p->cq[0]);
	drop_cq(p->cq[1]);
}

static void wait_wc(struct pair *p, unsigned end, uint64_t wr_id)
{
	struct ibv_wc wc;

	while (vb_cq_poll(p->cq[end], 1, &wc) == 0) {
		/* Whoever we wait for may be waiting for this very processor. */
		if (!(vb_nic_lanes_poll(p->s->nic) + vb_nic_lanes_poll(p->t->nic)))
			step_aside();
	}
	vb_check(wc.wr_id == wr_id && wc.status == IBV_WC_SUCCESS);
}

static void post(struct pair *p, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = sge_of(p->s, p->at, bytes);
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = opcode, .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)p->t->mem + p->at + AREA_BYTES / 2;
	wr.wr.rdma.rkey = p->t->mr->ibv.rkey;
	vb_check(!vb_qp_post_send(p->a, &wr, &bad));
}

/* One after another: what is sent arrives, whole. */
static void ping(struct pair *p, uint64_t *rng, uint64_t round)
{
	static const uint32_t sizes[] = { 0, 2, 40, 64, 4096, 32768, 40000 };
	uint32_t bytes = sizes[vb_prng_next(rng) % VB_ARRAY_LEN(sizes)];
	uint8_t *from = p->s->mem + p->at, *to = p->t->mem + p->at + AREA_BYTES / 2;

	memset(from, (int)round, bytes);
	switch (vb_prng_next(rng) % 3) {
	case 0:
		qp_recv(p->t, p->b, round, p->at + AREA_BYTES / 2, bytes);
		post(p, IBV_WR_SEND, round, bytes);
		wait_wc(p, 1, round);
		break;
	case 1:
		post(p, IBV_WR_RDMA_WRITE, round, bytes);
		break;
	default:
		memset(to, (int)round + 1, bytes);
		post(p, IBV_WR_RDMA_READ, round, bytes);
	}
	wait_wc(p, 0, round);
	vb_check(!bytes || (from[0] == to[0] && from[bytes - 1] == to[bytes - 1]));
}

/* Many at once, so that the ring is full. */
static void flood(struct pair *p)
{
	for (unsigned i = 0; i < 40; i++)
		post(p, IBV_WR_RDMA_WRITE, i, 32768);
	for (unsigned i = 0; i < 40; i++)
		wait_wc(p, 0, i);
}

static void *work(void *arg)
{
	uintptr_t number = (uintptr_t)arg;
	struct pair p = { .s = &side[0], .t = &side[number != 0],
			  .at = (uint32_t)number * AREA_BYTES };
	uint64_t rng = number + 1;

	pair_open(&p, IBV_QPT_RC);
	for (unsigned round = 0; round < ROUNDS; round++) {
		ping(&p, &rng, round);
		if (round % 100 == 0)
			flood(&p);
	}
	pair_close(&p);
	return NULL;
}

/* QPs that come and go, some with work outstanding and some that wait for room. */
static void *churn(void *arg)
{
	uintptr_t number = (uintptr_t)arg;
	struct pair p = { .s = &side[number % 2], .t = &side[(number + 1) % 2],
			  .at = (uint32_t)number * AREA_BYTES };
	uint64_t rng = number;

	for (unsigned i = 0; i < CHURNS; i++) {
		pair_open(&p, i % 3 ? IBV_QPT_RC : IBV_QPT_UC);
		if (i % 3)
			ping(&p, &rng, i);
		for (unsigned k = 0; i % 2 && k < 30; k++)
			post(&p, IBV_WR_RDMA_WRITE, k, 32768);
		/* Most are destroyed as they are. */
		if (i % 5 == 0)
			vb_check(!qp_step(p.a, IBV_QPS_RESET, 0));
		pair_close(&p);
	}
	return NULL;
}

/* Datagrams to two who read now and then, one of them in our own process. */
static void *shout(void *arg)
{
	struct vb_cq *cq[2] = { cq_make(&side[0]), cq_make(&side[1]) };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_sge sge = sge_of(&side[0], 0, 8);
	struct ibv_wc wc;
	struct vb_ah *ah;

	memcpy(attr.grh.dgid.raw, own_gid, VB_GID_BYTES);
	vb_check(!vb_ah_create(side[0].pd, &attr, &ah));
	for (unsigned i = 0; i < CHURNS; i++) {
		struct vb_qp *a = qp_make_on(&side[0], IBV_QPT_UD, cq[0], NULL);
		struct vb_qp *b[2] = { qp_make_on(&side[0], IBV_QPT_UD, cq[0], NULL),
				       qp_make_on(&side[1], IBV_QPT_UD, cq[1], NULL) };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED }, *bad;

		qp_connect(a, b[0]);
		qp_ready(b[1], 0);
		wr.wr.ud.ah = &ah->ibv;
		wr.wr.ud.remote_qkey = QKEY;
		for (unsigned k = 0; k < 2 * VB_RING_SLOTS; k++) {
			wr.wr.ud.remote_qpn = b[k / 50 % 2]->ibv.qp.qp_num;
			vb_check(!vb_qp_post_send(a, &wr, &bad));
		}
		while (vb_cq_poll(cq[0], 1, &wc))
			vb_check(wc.status == IBV_WC_SUCCESS);
		drop_qp(a);
		drop_qp(b[0]);
		drop_qp(b[1]);
	}
	vb_check(!vb_ah_destroy(ah));
	drop_cq(cq[0]);
	drop_cq(cq[1]);
	return NULL;
}

/* Regions that come and go. */
static void *registrate(void *arg)
{
	struct side *s = &side[(uintptr_t)arg % 2];

	while (!atomic_load(&stop)) {
		struct vb_mr *mr;

		vb_check(!vb_mr_reg(s->pd, s->mem, 4096, (uintptr_t)s->mem,
				    IBV_ACCESS_LOCAL_WRITE, &mr));
		vb_check(!vb_mr_dereg(mr));
	}
	return NULL;
}

LANES(all_at_once)
{
	unsigned waiting;

	atomic_store(&stop, false);
	start(progress, 0);
	start(progress, 1);
	start(registrate, 0);
	waiting = threads_n;
	/* The first is a NIC's exchange with itself. */
	for (unsigned i = 0; i < WORKERS; i++)
		start(work, i);
	for (unsigned i = 0; i < CHURNERS; i++)
		start(churn, WORKERS + i);
	start(shout, 0);
	join_from(waiting);
	atomic_store(&stop, true);
	join_from(0);
	settle();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(atomic_load(&side[i].nic->lanes.waiters), 0);
		assert_int_equal(atomic_load(&side[i].sent), 0);
		assert_int_equal(stat_of(&side[i], VB_STAT_RNR_NAKS_SENT), 0);
	}
}

/* --- a peer that dies while threads are at it --- */

static struct side *mortal;

static void *until_death(void *arg)
{
	struct pair p = { .s = &side[0], .t = mortal, .at = (uint32_t)(uintptr_t)arg * AREA_BYTES };
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	struct ibv_sge sge = sge_of(p.s, p.at, 32768);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	unsigned posted = 0, done = 0;
	bool failed = false;

	pair_open(&p, IBV_QPT_RC);
	wr.wr.rdma.remote_addr = (uintptr_t)p.t->mem + p.at;
	wr.wr.rdma.rkey = p.t->mr->ibv.rkey;
	while (!failed || done < posted) {
		if (!failed && posted - done < 100) {
			vb_check(!vb_qp_post_send(p.a, &wr, &bad));
			posted++;
		}
		if (!vb_nic_lanes_poll(p.s->nic))
			step_aside();
		while (vb_cq_poll(p.cq[0], 1, &wc) == 1) {
			done++;
			vb_check(wc.status == (failed ? IBV_WC_WR_FLUSH_ERR : wc.status));
			vb_check(wc.status != IBV_WC_WR_FLUSH_ERR || failed);
			failed |= wc.status == IBV_WC_RETRY_EXC_ERR;
		}
	}
	/* The mortal's own end is not for us to touch: only its process would. */
	drop_qp(p.a);
	drop_cq(p.cq[0]);
	atomic_fetch_add(&fake_ns, 1);
	return p.b;
}

/* The mortal's thread, which stops in the middle of it all. */
static void *live(void *arg)
{
	struct side *s = mortal;

	while (!atomic_load(&s->dead)) {
		if (!vb_nic_lanes_scan(s->nic))
			step_aside();
	}
	return NULL;
}

LANES(death_in_the_midst)
{
	for (unsigned round = 0; round < LIVES; round++) {
		struct vb_peer *peer;
		unsigned waiting;
		pthread_t thread;
		void *qp[3];

		/* All in the same slot; the sides before it are dead. */
		if (round % 16 == 0 && round) {
			lanes_end(NULL);
			lanes_begin(NULL);
		}
		mortal = side_make(SLOT_FIRST + 7, 1000 + round);
		atomic_store(&stop, false);
		start(progress, 0);
		waiting = threads_n;
		assert_int_equal(pthread_create(&thread, NULL, live, NULL), 0);
		for (uintptr_t i = 0; i < 3; i++)
			start(until_death, i);
		for (unsigned i = 0; i < 100 + 50 * round; i++)
			step_aside();
		while (!(peer = vb_peer_find(side[0].nic, side[0].slot, mortal->slot)))
			step_aside();
		/* All are connected, since who comes later reaches nobody. */
		while (atomic_load(&mortal->reaches) < 3)
			step_aside();
		for (unsigned i = 0; i < 50; i++)
			step_aside();
		side_die(mortal);
		pthread_join(thread, NULL);
		vb_peer_gone(peer);
		for (unsigned i = 0; i < 3; i++)
			pthread_join(threads[waiting + i], &qp[i]);
		threads_n = waiting;
		atomic_store(&stop, true);
		join_from(0);
		for (unsigned i = 0; i < 3; i++) {
			struct vb_qp *b = qp[i];
			struct vb_cq *cq = (struct vb_cq *)b->ibv.qp.send_cq;

			drop_qp(b);
			drop_cq(cq);
		}
		assert_int_equal(side[0].releases, round % 16 + 1);
	}
}
