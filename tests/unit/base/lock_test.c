/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "group.h"

/* More threads than the machine has cores for, so that holders are preempted. */
enum { THREADS = 8, ROUNDS = 20000 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void run_threads(pthread_t *thread, unsigned count, void *(*body)(void *), void *arg)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, body, arg), 0);
	for (unsigned i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

TEST(taken_is_taken)
{
	static vb_lock ready = VB_LOCK_INIT(VB_RANK_QP);
	vb_lock lock;

	assert_true(vb_lock_try(&ready));
	vb_lock_drop(&ready);
	vb_lock_init(&lock, VB_RANK_QP);
	assert_true(vb_lock_try(&lock));
	assert_false(vb_lock_try(&lock));
	vb_lock_drop(&lock);
	vb_lock_take(&lock);
	assert_false(vb_lock_try(&lock));
	vb_lock_drop(&lock);
	assert_true(vb_lock_try(&lock));
	vb_lock_drop(&lock);
	vb_lock_fini(&lock);
}

/* What the lock protects: two counts that are not atomic and always equal. */
static struct {
	vb_lock lock;
	uint64_t a, b;
} shared;

static void *count(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i % 3 || !vb_lock_try(&shared.lock))
			vb_lock_take(&shared.lock);
		if (shared.a++ != shared.b++)
			abort();
		vb_lock_drop(&shared.lock);
	}
	return NULL;
}

TEST(only_one_is_inside)
{
	pthread_t thread[THREADS];

	shared.a = shared.b = 0;
	vb_lock_init(&shared.lock, VB_RANK_QP);
	run_threads(thread, THREADS, count, NULL);
	assert_int_equal(shared.a, (uint64_t)THREADS * ROUNDS);
	assert_int_equal(shared.b, shared.a);
	vb_lock_fini(&shared.lock);
}

static void *hold_long(void *arg)
{
	for (unsigned i = 0; i < 20; i++) {
		vb_lock_take(&shared.lock);
		if (shared.a++ != shared.b++)
			abort();
		nap(300000); /* so that the others sleep, and sleep again */
		vb_lock_drop(&shared.lock);
	}
	return NULL;
}

TEST(sleepers_get_their_turn)
{
	pthread_t thread[THREADS];

	shared.a = shared.b = 0;
	vb_lock_init(&shared.lock, VB_RANK_QP);
	run_threads(thread, THREADS, hold_long, NULL);
	assert_int_equal(shared.a, THREADS * 20);
	vb_lock_fini(&shared.lock);
}

static void *take_once(void *arg)
{
	vb_lock_take(&shared.lock);
	vb_lock_drop(&shared.lock);
	return NULL;
}

/*
 * A sleeper that came just between the dropper's look and its drop: nobody wakes it, and it must
 * come by itself. The bound is generous, since the machine may have other things to do.
 */
TEST(a_lost_wake_up_costs_little)
{
	pthread_t thread;
	uint64_t dropped_ns;

	vb_lock_init(&shared.lock, VB_RANK_QP);
	vb_lock_take(&shared.lock);
	assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
	while (!atomic_load(&shared.lock.asleep))
		nap(100000);
	nap(1000000);
	dropped_ns = now_ns();
	atomic_store_explicit(&shared.lock.taken, 0, memory_order_release);
	pthread_join(thread, NULL);
	assert_true(now_ns() - dropped_ns < 1000 * (uint64_t)VB_LOCK_SLEEP_NS);
	vb_lock_drop(&shared.lock); /* the rest of it, as who counts what is held has it */
	vb_lock_fini(&shared.lock);
}

/* The last of two users destroys what both used: whoever dropped before must not touch it again. */
struct object {
	vb_lock lock;
	unsigned users;
};

static void *use_and_leave(void *arg)
{
	struct object *object = arg;
	bool last;

	vb_lock_take(&object->lock);
	last = --object->users == 0;
	vb_lock_drop(&object->lock);
	if (last) {
		vb_lock_fini(&object->lock);
		free(object);
	}
	return NULL;
}

TEST(a_lock_may_die_once_it_was_dropped)
{
	for (unsigned i = 0; i < 2000; i++) {
		struct object *object = malloc(sizeof(*object));
		pthread_t thread;

		assert_non_null(object);
		vb_lock_init(&object->lock, VB_RANK_QP);
		object->users = 2;
		assert_int_equal(pthread_create(&thread, NULL, use_and_leave, object), 0);
		use_and_leave(object);
		pthread_join(thread, NULL);
	}
}
