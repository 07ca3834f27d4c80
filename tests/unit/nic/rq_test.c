/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive queues of QPs, and what several threads may do to receive queues at once. */
#include <pthread.h>
#include <sched.h>

#include "nic/queue/rq.h"
#include "nic_fixture.h"

enum { DEPTH = 8, POSTERS = 2, PER_POSTER = 20000 };

static int post(struct vb_rq *rq, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = count }, *bad;

	return vb_rq_post(rq, &wr, &bad);
}

NIC_TEST(requests_come_out_as_they_went_in)
{
	struct vb_rq rq;
	struct vb_recv recv;
	uint64_t in = 0, out = 0;

	vb_rq_init(&rq, DEPTH - 1, 2);
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 1 + round % (DEPTH - 1); i++, in++) {
			struct ibv_sge sge[2] = { { in, 10, 1 }, { in + 1, (uint32_t)in, 2 } };

			assert_int_equal(post(&rq, in, sge, (int)(in % 3)), 0);
			assert_int_equal(vb_rq_count(&rq), in + 1 - out);
		}
		for (; out < in; out++) {
			const uint32_t bytes[] = { 0, 10, 10 + (uint32_t)out };

			assert_true(vb_rq_take(&rq, &recv));
			assert_int_equal(recv.wr_id, out);
			assert_int_equal(recv.sge_count, out % 3);
			assert_int_equal(recv.bytes, bytes[out % 3]);
			if (recv.sge_count == 2)
				assert_int_equal(recv.sge[1].addr, out + 1);
		}
		assert_false(vb_rq_take(&rq, &recv));
		assert_int_equal(vb_rq_count(&rq), 0);
	}
	vb_rq_fini(&rq);
}

NIC_TEST(as_many_fit_as_was_asked_for)
{
	struct vb_rq rq;
	struct vb_recv recv;

	vb_rq_init(&rq, DEPTH - 3, 1);
	for (unsigned i = 0; i < DEPTH - 3; i++)
		assert_int_equal(post(&rq, i, NULL, 0), 0);
	assert_int_equal(post(&rq, 99, NULL, 0), ENOMEM);
	assert_true(vb_rq_take(&rq, &recv));
	assert_int_equal(post(&rq, 99, NULL, 0), 0);
	vb_rq_empty(&rq);
	assert_int_equal(vb_rq_count(&rq), 0);
	assert_false(vb_rq_take(&rq, &recv));
	vb_rq_fini(&rq);
	vb_rq_init(&rq, 0, 0);
	assert_int_equal(post(&rq, 1, NULL, 0), ENOMEM);
	vb_rq_fini(&rq);
}

/* Thousands of idle QPs shall be small. */
NIC_TEST(a_queue_has_no_memory_before_its_first_post)
{
	struct vb_cq *cq = make_cq(8, NULL);
	struct vb_qp *qp = make_qp(IBV_QPT_RC, cq, NULL);
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 2, .opcode = IBV_WR_SEND }, *bad_send;

	bring(qp, IBV_QPS_RTS);
	assert_null(qp->recv.own_rq.ring);
	assert_null(qp->req.sq.ring);
	assert_int_equal(vb_qp_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(vb_qp_post_send(qp, &send, &bad_send), 0);
	assert_non_null(qp->recv.own_rq.ring);
	assert_non_null(qp->req.sq.ring);
	drop_qp(qp);
	drop_cq(cq);
}

/* --- threads --- */

static struct vb_rq shared_rq;
static struct vb_srq *srq;

/* wr_id: the poster's number above its own count. */
static void *post_many(void *arg)
{
	struct vb_rq *rq = srq ? &srq->rq : &shared_rq;
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;

	for (uint64_t i = 0; i < PER_POSTER; i++) {
		struct ibv_sge sge = { base + i, (uint32_t)i, 7 };

		while (post(rq, base + i, &sge, 1) == ENOMEM)
			sched_yield();
	}
	return NULL;
}

/* Whole, and in order after what came from the same poster before. */
static void check_taken(const struct vb_recv *recv, uint64_t *next)
{
	uint64_t poster = recv->wr_id >> 32, n = recv->wr_id & UINT32_MAX;

	vb_check(poster < POSTERS && n >= next[poster]);
	next[poster] = n + 1;
	vb_check(recv->sge_count == 1 && recv->sge[0].addr == recv->wr_id &&
		 recv->sge[0].length == n && recv->bytes == n);
}

/* Room for packets: of a request without octets, for one. */
NIC_TEST(room_is_counted_in_packets)
{
	static const uint32_t bytes[] = { 0, 1, 1024, 1025, 4096 };
	static const uint32_t packets[] = { 1, 1, 1, 2, 4 };
	struct vb_rq rq;
	struct vb_recv recv;
	uint32_t sum = 0;

	vb_rq_init(&rq, 512, 1);
	assert_int_equal(vb_rq_packets(&rq, 1024), 0);
	for (unsigned i = 0; i < VB_ARRAY_LEN(bytes); i++) {
		struct ibv_sge sge = { 0, bytes[i], 0 };

		assert_int_equal(post(&rq, i, &sge, 1), 0);
		sum += packets[i];
		assert_int_equal(vb_rq_packets(&rq, 1024), sum);
	}
	for (unsigned i = 0; i < VB_ARRAY_LEN(bytes); i++) {
		assert_true(vb_rq_take(&rq, &recv));
		sum -= packets[i];
		assert_int_equal(vb_rq_packets(&rq, 1024), sum);
	}
	/* Of many, not all are looked at. */
	for (unsigned i = 0; i < 512; i++)
		assert_int_equal(post(&rq, i, NULL, 0), 0);
	assert_int_equal(vb_rq_packets(&rq, 1024), VB_CREDIT_RECVS_MAX);
	vb_rq_fini(&rq);
}

NIC_TEST(posters_and_a_taker_do_not_meet)
{
	pthread_t thread[POSTERS];
	uint64_t next[POSTERS] = { 0 };
	struct vb_recv recv;

	srq = NULL;
	vb_rq_init(&shared_rq, DEPTH, 1);
	for (uintptr_t i = 0; i < POSTERS; i++)
		pthread_create(&thread[i], NULL, post_many, (void *)i);
	for (unsigned n = 0; n < POSTERS * PER_POSTER;) {
		assert_true(vb_rq_count(&shared_rq) <= DEPTH);
		if (!vb_rq_take(&shared_rq, &recv)) {
			sched_yield();
			continue;
		}
		check_taken(&recv, next);
		n++;
	}
	for (unsigned i = 0; i < POSTERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(next[i], PER_POSTER);
	}
	vb_rq_fini(&shared_rq);
}

static _Atomic uint32_t taken;

static void *take_many(void *arg)
{
	uint64_t next[POSTERS] = { 0 };
	struct vb_recv recv;

	while (atomic_load(&taken) < POSTERS * PER_POSTER) {
		if (!vb_srq_take(srq, &recv)) {
			sched_yield();
			continue;
		}
		check_taken(&recv, next);
		atomic_fetch_add(&taken, 1);
	}
	return NULL;
}

/* And resized all the while. */
NIC_TEST(several_may_take_from_a_shared_queue)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	pthread_t poster[POSTERS], taker[2];
	struct ibv_srq_attr attr;

	assert_int_equal(vb_srq_create(fix.pd, &init, &srq), 0);
	atomic_store(&taken, 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&taker[i], NULL, take_many, NULL);
	for (uintptr_t i = 0; i < POSTERS; i++)
		pthread_create(&poster[i], NULL, post_many, (void *)i);
	for (uint32_t i = 0; atomic_load(&taken) < POSTERS * PER_POSTER; i++) {
		attr.max_wr = 1 + i % 64;
		vb_srq_modify(srq, &attr, IBV_SRQ_MAX_WR);
		assert_int_equal(vb_srq_query(srq, &attr), 0);
		sched_yield();
	}
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(poster[i], NULL);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(taker[i], NULL);
	assert_int_equal(atomic_load(&taken), POSTERS * PER_POSTER);
	drop_srq(srq);
	srq = NULL;
}

/* --- posting while the QP fails: what was posted is flushed, all of it --- */

enum { FAIL_ROUNDS = 300 };

static struct {
	struct vb_qp *qp;
	_Atomic bool failed;
	unsigned posted;
} failing;

static void *post_until_full(void *arg)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	/* After the QP has failed as well: what comes then is flushed at once. */
	for (unsigned i = 0; i < 1000; i++) {
		if (vb_qp_post_recv(failing.qp, &wr, &bad) == 0)
			failing.posted++;
		if (atomic_load(&failing.failed))
			break;
	}
	return NULL;
}

NIC_TEST(what_is_posted_while_a_qp_fails_is_flushed)
{
	struct vb_cq *cq = make_cq(2000, NULL);
	struct ibv_wc wc[64];

	for (unsigned round = 0; round < FAIL_ROUNDS; round++) {
		unsigned flushed = 0;
		pthread_t thread;
		int n;

		failing.qp = make_qp(IBV_QPT_RC, cq, NULL);
		failing.posted = 0;
		atomic_store(&failing.failed, false);
		bring(failing.qp, IBV_QPS_INIT);
		pthread_create(&thread, NULL, post_until_full, NULL);
		assert_int_equal(set_state(failing.qp, IBV_QPS_ERR), 0);
		atomic_store(&failing.failed, true);
		pthread_join(thread, NULL);
		while ((n = vb_cq_poll(cq, 64, wc)) > 0)
			flushed += (unsigned)n;
		assert_int_equal(flushed, failing.posted);
		drop_qp(failing.qp);
	}
	drop_cq(cq);
}
