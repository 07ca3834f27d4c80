/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"
#include "skip.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/*
 * Waiting for events, by the dozen and in all ways that programs have: whoever sleeps is woken,
 * whoever else wakes, leaves, polls, is interrupted or cancelled. Messages come from another
 * process. A wait that does not end is a failure, and there is no other clock in here.
 */

/* A connection with a channel of its own. */
struct line {
	struct ibv_comp_channel *channel;
	struct vp_pair p;
};

static void line_open(struct line *line, struct vp *peer)
{
	struct vt_options opt = { .type = IBV_QPT_RC };

	opt.channel = line->channel = ibv_create_comp_channel(vt.ctx);
	assert_non_null(line->channel);
	vp_pair_open(&line->p, peer, &opt);
}

static void line_close(struct line *line)
{
	vp_pair_close(&line->p);
	assert_int_equal(ibv_destroy_comp_channel(line->channel), 0);
}

static void arm(struct line *line)
{
	assert_int_equal(ibv_req_notify_cq(line->p.a.cq, 0), 0);
}

/* A message from there, for which an event comes here if its CQ is armed. */
static void ring(struct line *line)
{
	assert_int_equal(vt_recv_at(&line->p.a, 1, 0, 64), 0);
	vp_send(&line->p, 2, 8);
	vp_expect(&line->p, 2, IBV_WC_SUCCESS);
}

/* Take the event, which is there or will come, and the completion behind it. */
static void answer(struct line *line)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(line->channel, &cq, &context), 0);
	assert_ptr_equal(cq, line->p.a.cq);
	ibv_ack_cq_events(cq, 1);
	vt_expect(line->p.a.cq, 1, IBV_WC_SUCCESS);
}

/* --- threads that wait --- */

struct waiter {
	pthread_t thread;
	struct ibv_comp_channel *channel;
	sem_t again; /* wait (once more) */
	sem_t done;  /* an event came, or the wait ended otherwise */
	_Atomic bool end, waits;
	int rc, err;
	struct ibv_cq *cq;
};

static void *wait_on_demand(void *arg)
{
	struct waiter *waiter = arg;
	void *context;

	for (;;) {
		while (sem_wait(&waiter->again))
			;
		if (atomic_load(&waiter->end))
			return NULL;
		atomic_store(&waiter->waits, true);
		waiter->rc = ibv_get_cq_event(waiter->channel, &waiter->cq, &context);
		waiter->err = errno;
		atomic_store(&waiter->waits, false);
		if (waiter->rc == 0)
			ibv_ack_cq_events(waiter->cq, 1);
		sem_post(&waiter->done);
	}
}

static void waiter_begin(struct waiter *waiter, struct ibv_comp_channel *channel)
{
	*waiter = (struct waiter){ .channel = channel };
	sem_init(&waiter->again, 0, 1);
	sem_init(&waiter->done, 0, 0);
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_on_demand, waiter), 0);
}

static void waiter_again(struct waiter *waiter)
{
	sem_post(&waiter->again);
}

static bool waiter_is_done(struct waiter *waiter)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += VT_WAIT_MS / 1000;
	return sem_timedwait(&waiter->done, &until) == 0;
}

static void expect_woken(struct waiter *waiter, struct line *line)
{
	if (!waiter_is_done(waiter))
		fail_msg("a thread sleeps on, and its event is there");
	assert_int_equal(waiter->rc, 0);
	assert_ptr_equal(waiter->cq, line->p.a.cq);
	vt_expect(line->p.a.cq, 1, IBV_WC_SUCCESS);
}

/* Between waits. */
static void waiter_end(struct waiter *waiter)
{
	atomic_store(&waiter->end, true);
	sem_post(&waiter->again);
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	sem_destroy(&waiter->again);
	sem_destroy(&waiter->done);
}

/* Until the thread is inside, as far as one can tell; it may be about to fall asleep. */
static void expect_waiting(struct waiter *waiter)
{
	while (!atomic_load(&waiter->waits))
		vt_sleep_ms(1);
	vt_sleep_ms(2);
}

/* --- several threads --- */

vp_peer_test(threads_with_channels_of_their_own)
{
	enum { LINES = 4, ROUNDS = 2000 };
	struct vp_order ponged = { .what = VP_PONGED };
	struct vp_pong pong[LINES];
	pthread_t thread[LINES];
	struct line line[LINES];

	for (unsigned i = 0; i < LINES; i++) {
		struct vp_order begin = { .what = VP_PONG, .count = ROUNDS };

		line_open(&line[i], peer);
		vt_recv(&line[i].p.a, 0);
		vp_recv(&line[i].p, 0, 0, 64);
		begin.end = line[i].p.end;
		vp_do(peer, &begin);
		pong[i] = (struct vp_pong){ .end = &line[i].p.a, .channel = line[i].channel,
					    .count = ROUNDS, .serves = true };
		assert_int_equal(pthread_create(&thread[i], NULL, vp_pong, &pong[i]), 0);
	}
	for (unsigned i = 0; i < LINES; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_true(pong[i].good);
	}
	assert_int_equal(vp_do(peer, &ponged).rc, LINES);
	for (unsigned i = 0; i < LINES; i++)
		line_close(&line[i]);
}

/* One gets its event and goes away to compute; the others' events come all the same. */
vp_peer_test(who_wakes_leaves_the_others_awake)
{
	enum { LINES = 3, ROUNDS = 60 };
	struct waiter waiter[LINES];
	struct line line[LINES];

	for (unsigned i = 0; i < LINES; i++) {
		line_open(&line[i], peer);
		arm(&line[i]);
		waiter_begin(&waiter[i], line[i].channel);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* In any order; the last of them has nobody left who turns the NIC. */
		for (unsigned i = 0; i < LINES; i++) {
			unsigned n = (i * (1 + round % 2) + round / 2) % LINES;

			ring(&line[n]);
			expect_woken(&waiter[n], &line[n]);
		}
		for (unsigned i = 0; i < LINES; i++) {
			arm(&line[i]);
			waiter_again(&waiter[i]);
			if (round % 3 == 0)
				expect_waiting(&waiter[i]);
		}
	}
	for (unsigned i = 0; i < LINES; i++) {
		ring(&line[i]);
		expect_woken(&waiter[i], &line[i]);
		waiter_end(&waiter[i]);
		line_close(&line[i]);
	}
}

/* Of threads that share a channel each event wakes one; at the end each is woken once more. */
vp_peer_test(threads_that_share_a_channel)
{
	enum { THREADS = 3, ROUNDS = 90 };
	struct waiter waiter[THREADS];
	struct line line;

	line_open(&line, peer);
	for (unsigned i = 0; i < THREADS; i++)
		waiter_begin(&waiter[i], line.channel);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;
		unsigned i = 0;

		arm(&line);
		ring(&line);
		while (sem_trywait(&waiter[i].done)) {
			i = (i + 1) % THREADS;
			assert_true(vt_now_ms() < end_ms);
		}
		assert_int_equal(waiter[i].rc, 0);
		vt_expect(line.p.a.cq, 1, IBV_WC_SUCCESS);
		if (round + THREADS < ROUNDS)
			waiter_again(&waiter[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		waiter_end(&waiter[i]);
	line_close(&line);
}

/* The frames are taken in by one that polls: the sleeper hears of his all the same. */
vp_peer_test(who_polls_wakes_who_sleeps)
{
	struct waiter waiter;
	struct line line;
	struct vt_end other;
	struct vt_options opt = vt_options(NULL);

	line_open(&line, peer);
	vt_end_open(&other, &opt);
	arm(&line);
	waiter_begin(&waiter, line.channel);
	for (unsigned round = 0; round < 30; round++) {
		uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;
		struct ibv_wc wc;

		ring(&line);
		while (sem_trywait(&waiter.done)) {
			assert_int_equal(ibv_poll_cq(other.cq, 1, &wc), 0);
			assert_true(vt_now_ms() < end_ms);
		}
		vt_expect(line.p.a.cq, 1, IBV_WC_SUCCESS);
		arm(&line);
		waiter_again(&waiter);
	}
	ring(&line);
	expect_woken(&waiter, &line);
	waiter_end(&waiter);
	vt_end_close(&other);
	line_close(&line);
}

/* --- without waiting, and waiting in poll() --- */

static void nonblocking(struct line *line)
{
	int flags = fcntl(line->channel->fd, F_GETFL);

	assert_int_equal(fcntl(line->channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
}

vp_peer_test(poll_tells_of_events)
{
	struct line line;
	struct ibv_cq *cq;
	void *context;

	line_open(&line, peer);
	nonblocking(&line);
	for (unsigned round = 0; round < 50; round++) {
		arm(&line);
		assert_int_equal(ibv_get_cq_event(line.channel, &cq, &context), -1);
		assert_int_equal(errno, EAGAIN);
		ring(&line);
		assert_true(vt_readable(line.channel->fd, VT_WAIT_MS));
		answer(&line);
		assert_false(vt_readable(line.channel->fd, 0));
	}
	line_close(&line);
}

/* Once one way, once the other: who has waited in ibv_get_cq_event may wait in poll() next. */
vp_peer_test(ways_of_waiting_may_alternate)
{
	struct line line, quiet;

	line_open(&line, peer);
	line_open(&quiet, peer);
	nonblocking(&quiet);
	for (unsigned round = 0; round < 60; round++) {
		struct line *asked = round % 3 == 2 ? &quiet : &line;

		arm(asked);
		ring(asked);
		if (round % 3)
			assert_true(vt_readable(asked->channel->fd, VT_WAIT_MS));
		answer(asked);
	}
	line_close(&line);
	line_close(&quiet);
}

/* One sleeps in ibv_get_cq_event, another in poll(): both are woken. */
vp_peer_test(poll_beside_a_sleeper)
{
	struct line line, quiet;
	struct waiter waiter;

	line_open(&line, peer);
	line_open(&quiet, peer);
	nonblocking(&quiet);
	arm(&line);
	waiter_begin(&waiter, line.channel);
	for (unsigned round = 0; round < 50; round++) {
		arm(&quiet);
		ring(&quiet);
		assert_true(vt_readable(quiet.channel->fd, VT_WAIT_MS));
		answer(&quiet);
		if (round % 2) {
			ring(&line);
			expect_woken(&waiter, &line);
			arm(&line);
			waiter_again(&waiter);
		}
	}
	ring(&line);
	expect_woken(&waiter, &line);
	waiter_end(&waiter);
	line_close(&line);
	line_close(&quiet);
}

/* --- asynchronous events --- */

static void *wait_async(void *arg)
{
	struct ibv_async_event *event = arg;

	if (ibv_get_async_event(vt.ctx, event))
		event->event_type = IBV_EVENT_DEVICE_FATAL;
	else
		ibv_ack_async_event(event);
	return NULL;
}

/* Nobody polls, one thread waits for this, another for completions that do not come. */
vp_peer_test(asynchronous_events_come_meanwhile)
{
	struct vt_options opt = { .state = IBV_QPS_RTR };
	struct ibv_async_event event;
	struct waiter waiter;
	struct timespec until;
	struct vt_end end;
	struct line line;
	struct vp_pair p;
	pthread_t thread;

	line_open(&line, peer);
	arm(&line);
	waiter_begin(&waiter, line.channel);
	expect_waiting(&waiter);
	assert_int_equal(pthread_create(&thread, NULL, wait_async, &event), 0);
	/* A message for a QP in RTR: the connection is established. */
	vp_pair_make(&p, peer, NULL);
	end = p.a;
	vt_climb(end.qp, &opt, IBV_QPS_INIT, 0);
	opt = vt_options(&opt);
	vt_climb(end.qp, &opt, IBV_QPS_RTR, p.far_qp.qp_num);
	assert_int_equal(vp_far_connect(&p), 0);
	vt_recv(&end, 3);
	vp_send(&p, 4, 8);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += VT_WAIT_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	ring(&line);
	expect_woken(&waiter, &line);
	waiter_end(&waiter);
	vp_pair_close(&p);
	line_close(&line);
}

/* --- signals --- */

static _Atomic int handled;

static void handler(int signal)
{
	atomic_fetch_add(&handled, 1);
}

static void handle(int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	atomic_store(&handled, 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

/* signal(7): without SA_RESTART a wait ends with EINTR; and what came then is not lost. */
vp_peer_test(a_signal_ends_a_wait)
{
	struct waiter waiter;
	struct line line;

	handle(0);
	line_open(&line, peer);
	arm(&line);
	waiter_begin(&waiter, line.channel);
	for (unsigned round = 0; round < 20; round++) {
		uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;

		/* One that comes before it waits does not count. */
		do {
			assert_true(vt_now_ms() < end_ms);
			pthread_kill(waiter.thread, SIGUSR1);
			vt_sleep_ms(1);
		} while (sem_trywait(&waiter.done));
		assert_int_equal(waiter.rc, -1);
		assert_int_equal(waiter.err, EINTR);
		waiter_again(&waiter);
	}
	expect_waiting(&waiter);
	ring(&line);
	expect_woken(&waiter, &line);
	signal(SIGUSR1, SIG_DFL);
	waiter_end(&waiter);
	line_close(&line);
}

/* With SA_RESTART it goes on. */
vp_peer_test(a_signal_that_restarts_ends_nothing)
{
	struct waiter waiter;
	struct line line;

	handle(SA_RESTART);
	line_open(&line, peer);
	arm(&line);
	waiter_begin(&waiter, line.channel);
	for (unsigned round = 0; round < 10; round++) {
		expect_waiting(&waiter);
		for (unsigned i = 0; i < 5 || (i < VT_WAIT_MS && !atomic_load(&handled)); i++) {
			pthread_kill(waiter.thread, SIGUSR1);
			vt_sleep_ms(1);
		}
		assert_true(atomic_load(&handled) > 0);
		assert_int_not_equal(sem_trywait(&waiter.done), 0);
		ring(&line);
		expect_woken(&waiter, &line);
		arm(&line);
		waiter_again(&waiter);
	}
	ring(&line);
	expect_woken(&waiter, &line);
	signal(SIGUSR1, SIG_DFL);
	waiter_end(&waiter);
	line_close(&line);
}

/* --- cancellation --- */

/* ibv_get_cq_event is where a thread may be cancelled; the next waits, and is woken. */
vp_peer_test(a_wait_may_be_cancelled)
{
	struct waiter waiter, other;
	struct line line, second;
	void *result;

	/* A cancelled thread's stack is a fault to the one; the other sees no atomics there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer does not understand cancelled threads");
#endif
	line_open(&line, peer);
	line_open(&second, peer);
	arm(&line);
	arm(&second);
	waiter_begin(&other, second.channel);
	for (unsigned round = 0; round < 20; round++) {
		waiter_begin(&waiter, line.channel);
		if (round % 2)
			expect_waiting(&waiter);
		assert_int_equal(pthread_cancel(waiter.thread), 0);
		assert_int_equal(pthread_join(waiter.thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		ring(&second);
		expect_woken(&other, &second);
		arm(&second);
		waiter_again(&other);
	}
	waiter_begin(&waiter, line.channel);
	ring(&line);
	expect_woken(&waiter, &line);
	waiter_end(&waiter);
	ring(&second);
	expect_woken(&other, &second);
	waiter_end(&other);
	line_close(&line);
	line_close(&second);
}

/* --- a death --- */

/* Who sleeps is woken by the completion with which it is told. */
vp_test(a_death_wakes_who_sleeps)
{
	struct vp *peer = vp_start(NULL), *lives = vp_start(NULL);
	struct waiter waiter, other;
	struct line line, second;

	line_open(&line, peer);
	line_open(&second, lives);
	arm(&line);
	arm(&second);
	waiter_begin(&other, second.channel);
	expect_waiting(&other);
	waiter_begin(&waiter, line.channel);
	expect_waiting(&waiter);
	vt_send(&line.p.a, &line.p.b, 9);
	vp_kill(peer);
	assert_true(waiter_is_done(&waiter));
	assert_int_equal(waiter.rc, 0);
	vt_expect(line.p.a.cq, 9, IBV_WC_RETRY_EXC_ERR);
	waiter_end(&waiter);
	ring(&second);
	expect_woken(&other, &second);
	waiter_end(&other);
	line_close(&line);
	line_close(&second);
	vp_end(lives);
}
