/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <unistd.h>

#include "group.h"

#include "capture/feed.h"

static struct vb_feed writer, reader;

static int make(void **state)
{
	int fd;

	if (vb_feed_make(&writer, &fd) || vb_feed_open(&reader, fd))
		return -1;
	return close(fd);
}

static int unmake(void **state)
{
	vb_feed_close(&writer);
	vb_feed_close(&reader);
	return 0;
}

#define FEED_TEST(name) TEST_BETWEEN(name, make, unmake)

static uint8_t octets[VB_FEED_BYTES + 1];

FEED_TEST(what_was_put_is_seen_and_taken)
{
	const uint8_t *at;

	assert_int_equal(vb_feed_look(&reader, &at), 0);
	assert_true(vb_feed_put(&writer, (const uint8_t *)"packet", 6));
	assert_int_equal(vb_feed_look(&reader, &at), 6);
	assert_memory_equal(at, "packet", 6);
	vb_feed_take(&reader, 2);
	assert_int_equal(vb_feed_look(&reader, &at), 4);
	assert_memory_equal(at, "cket", 4);
}

FEED_TEST(what_does_not_fit_is_refused_as_a_whole)
{
	const uint8_t *at;

	assert_false(vb_feed_put(&writer, octets, VB_FEED_BYTES + 1));
	assert_true(vb_feed_put(&writer, octets, VB_FEED_BYTES - 3));
	assert_false(vb_feed_put(&writer, octets, 4));
	assert_int_equal(vb_feed_look(&reader, &at), VB_FEED_BYTES - 3);
	vb_feed_take(&reader, 1);
	assert_true(vb_feed_put(&writer, octets, 4));
}

FEED_TEST(at_the_end_of_the_memory_it_goes_on_at_the_beginning)
{
	const uint8_t *at;

	assert_true(vb_feed_put(&writer, octets, VB_FEED_BYTES - 2));
	vb_feed_take(&reader, VB_FEED_BYTES - 2);
	assert_true(vb_feed_put(&writer, (const uint8_t *)"around", 6));
	assert_int_equal(vb_feed_look(&reader, &at), 2);
	assert_memory_equal(at, "ar", 2);
	vb_feed_take(&reader, 2);
	assert_int_equal(vb_feed_look(&reader, &at), 4);
	assert_memory_equal(at, "ound", 4);
}

FEED_TEST(a_reader_that_lies_only_harms_itself)
{
	static const uint64_t lies[] = {1, VB_FEED_BYTES, UINT64_MAX / 2};
	const uint8_t *at;

	for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		atomic_store(&reader.shared->tail, lies[i]);
		assert_false(vb_feed_put(&writer, octets, 1));
	}
	atomic_store(&reader.shared->tail, 0);
	atomic_store(&reader.shared->head, UINT64_MAX);
	assert_int_equal(vb_feed_look(&reader, &at), 0);
	assert_true(vb_feed_put(&writer, octets, 1));
}

enum { NUMBERS = 3000000 };

static void *numbers_put(void *arg)
{
	for (uint32_t i = 0; i < NUMBERS; i++) {
		while (!vb_feed_put(&writer, (const uint8_t *)&i, sizeof(i)))
			sched_yield();
	}
	return NULL;
}

FEED_TEST(two_threads_lose_nothing)
{
	uint32_t next = 0, number;
	const uint8_t *at;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, numbers_put, NULL), 0);
	while (next < NUMBERS) {
		size_t bytes = vb_feed_look(&reader, &at);

		for (size_t i = 0; i + sizeof(number) <= bytes; i += sizeof(number)) {
			memcpy(&number, at + i, sizeof(number));
			assert_int_equal(number, next++);
		}
		vb_feed_take(&reader, bytes);
		if (!bytes)
			sched_yield();
	}
	pthread_join(thread, NULL);
}
