/* SPDX-License-Identifier: BSD-2-Clause */
/* "Any thread may call any function": verbs are thread-safe, objects shared or not. */
#include <pthread.h>

#include "verbs.h"

enum { THREADS = 4, MESSAGES = 300 };

static struct ibv_qp *pairs[THREADS][2];

static int setup(void **state)
{
	verbs_begin(&v);
	for (int i = 0; i < THREADS; i++)
		verbs_pair(&v, pairs[i]);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < THREADS; i++) {
		ibv_destroy_qp(pairs[i][0]);
		ibv_destroy_qp(pairs[i][1]);
	}
	verbs_end(&v);
	return 0;
}

#define THREADS_TEST(name) TEST_BETWEEN(name, setup, teardown)

static void run(void *(*body)(void *))
{
	pthread_t threads[THREADS];
	void *failure;

	for (intptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failure);
		assert_null(failure);
	}
}

/* --- each thread has a context of its own, and all that is in it --- */

static void *alone(void *arg)
{
	struct verbs own;
	struct ibv_qp *qp[2];

	verbs_begin(&own);
	verbs_pair(&own, qp);
	for (int i = 0; i < MESSAGES; i++) {
		verbs_post_recv(&own, qp[1], 1, 64, 64);
		verbs_post_send(&own, qp[0], 2, 0, 8, IBV_SEND_SIGNALED);
		verbs_wait(own.cq, IBV_WC_SUCCESS);
		verbs_wait(own.cq, IBV_WC_SUCCESS);
	}
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	verbs_end(&own);
	return NULL;
}

THREADS_TEST(threads_with_contexts_of_their_own)
{
	run(alone);
}

/* --- all threads poll one CQ, and post on whatever a completion is of --- */

static _Atomic int completions, of_pair[THREADS];

/* A message is done when both its completions were polled, in whatever order, by whomever. */
static void go_on(uint32_t qpn)
{
	for (int i = 0; i < THREADS; i++) {
		int seen;

		if (pairs[i][0]->qp_num != qpn && pairs[i][1]->qp_num != qpn)
			continue;
		seen = ++of_pair[i];
		if (seen % 2 || seen == 2 * MESSAGES)
			return;
		verbs_post_recv(&v, pairs[i][1], 0, 1024 + 64 * i, 64);
		verbs_post_send(&v, pairs[i][0], 0, 0, 8, IBV_SEND_SIGNALED);
	}
}

static void *together(void *arg)
{
	struct ibv_qp **qp = pairs[(intptr_t)arg];
	time_t end = time(NULL) + VERBS_WAIT_S;
	struct ibv_wc wc;

	verbs_post_recv(&v, qp[1], 0, 1024 + 64 * (intptr_t)arg, 64);
	verbs_post_send(&v, qp[0], 0, 0, 8, IBV_SEND_SIGNALED);
	while (completions < 2 * THREADS * MESSAGES && time(NULL) < end) {
		if (ibv_poll_cq(v.cq, 1, &wc) != 1)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			return "status";
		go_on(wc.qp_num);
		completions++;
	}
	return completions < 2 * THREADS * MESSAGES ? "time" : NULL;
}

THREADS_TEST(threads_that_share_a_cq)
{
	completions = 0;
	for (int i = 0; i < THREADS; i++)
		of_pair[i] = 0;
	run(together);
	assert_int_equal(completions, 2 * THREADS * MESSAGES);
}

/* --- objects come and go while others work --- */

static void *come_and_go(void *arg)
{
	if (arg == NULL)
		return alone(arg);
	for (int i = 0; i < MESSAGES / 10; i++) {
		struct ibv_comp_channel *channel = ibv_create_comp_channel(v.context);
		struct ibv_cq *cq = ibv_create_cq(v.context, 8, NULL, channel, 0);
		struct ibv_qp *qp = verbs_qp(&v, IBV_QPT_RC);
		struct ibv_mr *mr = ibv_reg_mr(v.pd, v.buffer, 64, IBV_ACCESS_LOCAL_WRITE);

		if (!channel || !cq || !mr)
			return "create";
		verbs_connect(&v, qp, qp->qp_num);
		if (ibv_dereg_mr(mr) || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) ||
		    ibv_destroy_comp_channel(channel))
			return "destroy";
	}
	return NULL;
}

THREADS_TEST(objects_come_and_go)
{
	run(come_and_go);
}

/* --- a thread is cancelled; verbs are no cancellation points, so none dies within one --- */

static void *poll_and_post(void *arg)
{
	struct ibv_qp **qp = arg;
	struct ibv_wc wc;

	for (;;) {
		verbs_post_recv(&v, qp[1], 0, 64, 64);
		verbs_post_send(&v, qp[0], 0, 0, 8, IBV_SEND_SIGNALED);
		for (int done = 0; done < 2;)
			done += ibv_poll_cq(v.cq, 1, &wc) == 1;
		pthread_testcancel();
	}
	return NULL;
}

static void *__attribute__((unused)) wait_for_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(arg, &cq, &context);
	return NULL;
}

THREADS_TEST(threads_may_be_cancelled)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(v.context);
	pthread_t thread;
	void *result;

#ifdef __SANITIZE_ADDRESS__
	/* Its runtime takes the unwound stack of a cancelled thread for one in use. */
	ibv_destroy_comp_channel(channel);
	SKIP("a sanitizer does not understand cancelled threads");
#endif
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, poll_and_post, pairs[0]);
		usleep(1000 * (i % 5));
		pthread_cancel(thread);
		pthread_join(thread, &result);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
#ifndef __SANITIZE_THREAD__
	/* It does not watch what a thread does that is cancelled in poll(): locks, among others. */
	pthread_create(&thread, NULL, wait_for_event, channel);
	usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
#endif
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	run(alone);
}
