/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "group.h"
#include "link/around/fault.h"
#include "link/around/fault_parse.h"
#include "mock_link.h"

enum { FRAMES = 100000, FRAME_BYTES = 48, THREADS = 4 };

static const struct vb_path path = {.dst = {[15] = 1}, .hop_limit = 64};

/* --- the text --- */

TEST(fault_text_is_read_exactly)
{
	static const struct {
		const char *text;
		struct vb_fault fault;
	} cases[] = {
		{"loss=1%", {.loss = 10000000}},
		{"loss=100%", {.loss = 1000000000}},
		{"loss=0%", {0}},
		{"dup=0.1%", {.dup = 1000000}},
		{"reorder=5.25%", {.reorder = 52500000}},
		{"corrupt=0.0000001%", {.corrupt = 1}},
		{"delay=1ms", {.delay_ns = 1000000}},
		{"delay=10s", {.delay_ns = 10000000000}},
		{"delay=250us", {.delay_ns = 250000}},
		{"delay=7ns", {.delay_ns = 7}},
		{"seed=0", {.seeded = true}},
		{"seed=18446744073709551615", {.seed = UINT64_MAX, .seeded = true}},
		{"seed=7,corrupt=0.1%,loss=1%,dup=1%,reorder=5%,delay=2us",
		 {.loss = 10000000,
		  .dup = 10000000,
		  .reorder = 50000000,
		  .corrupt = 1000000,
		  .delay_ns = 2000,
		  .seed = 7,
		  .seeded = true}},
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		char why[VB_FAULT_WHY_BYTES] = "?";
		struct vb_fault fault;

		assert_int_equal(vb_fault_parse(&fault, cases[i].text, why), 0);
		assert_string_equal(why, "");
		assert_int_equal(fault.loss, cases[i].fault.loss);
		assert_int_equal(fault.dup, cases[i].fault.dup);
		assert_int_equal(fault.reorder, cases[i].fault.reorder);
		assert_int_equal(fault.corrupt, cases[i].fault.corrupt);
		assert_true(fault.delay_ns == cases[i].fault.delay_ns);
		assert_true(fault.seed == cases[i].fault.seed);
		assert_int_equal(fault.seeded, cases[i].fault.seeded);
	}
}

TEST(other_text_is_refused)
{
	static const char *const texts[] = {
		"",
		",",
		"loss",
		"loss=",
		"loss=1",
		"loss=%",
		"loss=1%,",
		",loss=1%",
		"loss=1%,,dup=1%",
		"loss=1% ",
		" loss=1%",
		"loss =1%",
		"Loss=1%",
		"loss=-1%",
		"loss=+1%",
		"loss=101%",
		"loss=100.1%",
		"loss=1.%",
		"loss=.5%",
		"loss=1.00000000%",
		"loss=1e0%",
		"loss=1%%",
		"loss=1%,loss=1%",
		"loss=99999999999999999999%",
		"delay=1",
		"delay=ms",
		"delay=1m",
		"delay=11s",
		"delay=10000000001ns",
		"delay=18446744073709551616ns",
		"delay=18446744073709551615s",
		"seed=",
		"seed=-1",
		"seed=0x7",
		"seed=18446744073709551616",
		"rate=1%",
		"loss=1%;dup=1%",
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(texts); i++) {
		struct vb_fault fault = {.loss = 42};
		char why[VB_FAULT_WHY_BYTES] = "";

		if (vb_fault_parse(&fault, texts[i], why) != EINVAL)
			fail_msg("'%s' was accepted", texts[i]);
		assert_int_equal(fault.loss, 42);
		assert_string_not_equal(why, "");
	}
}

#define FAULTS	   "Faults: loss, dup, reorder, corrupt, delay, seed"
#define PERCENTAGE "a percentage such as 1% is wanted"
#define PERCENT_MAX "a percentage is at most 100%, with at most 7 digits behind the point"
#define DURATION   "a whole number and its unit (ns, us, ms or s) are wanted, such as 250us"
#define SEED	   "a number is wanted, of decimal digits alone"
#define SEED_MAX   "a seed is at most 18446744073709551615"

TEST(refusal_says_what_is_wanted)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"loss=1", "loss=1: " PERCENTAGE},
		{"dup=1%,loss=1", "loss=1: " PERCENTAGE},
		{"loss=1,dup=1%", "loss=1: " PERCENTAGE},
		{"corrupt=", "corrupt=: " PERCENTAGE},
		{"loss=.5%", "loss=.5%: " PERCENTAGE},
		{"loss=1.%", "loss=1.%: " PERCENTAGE},
		{"loss=-1%", "loss=-1%: " PERCENTAGE},
		{"loss=1%;dup=1%", "loss=1%;dup=1%: " PERCENTAGE},
		{"loss", "loss: a value is wanted, such as loss=1%"},
		{"delay,loss=1%", "delay: a value is wanted, such as delay=1ms"},
		{"seed", "seed: a value is wanted, such as seed=7"},
		{"loss=101%", "loss=101%: " PERCENT_MAX},
		{"loss=100.1%", "loss=100.1%: " PERCENT_MAX},
		{"loss=1.00000000%", "loss=1.00000000%: " PERCENT_MAX},
		{"dup=99999999999999999999%", "dup=99999999999999999999%: " PERCENT_MAX},
		{"delay=1", "delay=1: " DURATION},
		{"delay=1m", "delay=1m: " DURATION},
		{"delay=0.5ms", "delay=0.5ms: " DURATION},
		{"delay=11s", "delay=11s: a delay is at most 10s"},
		{"delay=10000000001ns", "delay=10000000001ns: a delay is at most 10s"},
		{"delay=18446744073709551616us",
		 "delay=18446744073709551616us: a delay is at most 10s"},
		{"seed=-1", "seed=-1: " SEED},
		{"seed=0x7", "seed=0x7: " SEED},
		{"seed=18446744073709551616", "seed=18446744073709551616: " SEED_MAX},
		{"los=1%", "there is no fault 'los'; did you mean 'loss'? " FAULTS},
		{"Delay=1ms", "there is no fault 'Delay'; did you mean 'delay'? " FAULTS},
		{"loss=1%, dup=1%", "there is no fault ' dup'; did you mean 'dup'? " FAULTS},
		{"rate=1%", "there is no fault 'rate'. " FAULTS},
		{"much", "there is no fault 'much'. " FAULTS},
		{"loss=1%,loss=2%", "loss is there twice"},
		{"", "a part is empty; there is one comma between two parts"},
		{"loss=1%,", "a part is empty; there is one comma between two parts"},
		{"loss=1%,,dup=1%", "a part is empty; there is one comma between two parts"},
		{"lo\nss=1%", "there is no fault 'lo?ss'; did you mean 'loss'? " FAULTS},
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		char why[VB_FAULT_WHY_BYTES];
		struct vb_fault fault;

		assert_int_equal(vb_fault_parse(&fault, cases[i].text, why), EINVAL);
		assert_string_equal(why, cases[i].why);
	}
}

/* --- what happens to frames --- */

static struct vb_link *fault_over(struct mock_link *mock, const char *text)
{
	struct vb_link *link;

	assert_int_equal(vb_link_fault_create(&link, &mock->link, text), 0);
	return link;
}

static void number_put(uint8_t data[FRAME_BYTES], uint32_t number)
{
	memset(data, 0, FRAME_BYTES);
	memcpy(data, &number, sizeof(number));
}

static uint32_t number_of(const struct mock_sent *sent)
{
	uint32_t number;

	memcpy(&number, sent->data, sizeof(number));
	return number;
}

static void numbers_send(struct vb_link *link, unsigned n)
{
	uint8_t data[FRAME_BYTES];

	for (unsigned i = 0; i < n; i++) {
		number_put(data, i);
		assert_int_equal(frame_send(link, &path, data, sizeof(data)), 0);
	}
}

/* Within 5 standard deviations of a binomial distribution's mean. */
static void assert_about(uint64_t count, double chance, double n)
{
	double mean = n * chance, off = (double)count - mean;

	if (off * off > 25 * mean)
		fail_msg("%llu of %.0f for a chance of %g", (unsigned long long)count, n, chance);
}

TEST(loss_and_dup_are_as_often_as_told)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "loss=2%,dup=3%,seed=1");
	struct vb_fault_counts counts;

	numbers_send(link, FRAMES);
	vb_link_fault_counts(link, &counts);
	assert_about(counts.lost, 0.02, FRAMES);
	assert_about(counts.duplicated, 0.03 * 0.98, FRAMES);
	assert_int_equal(counts.frames, FRAMES);
	assert_int_equal(mock->sent_n, FRAMES - counts.lost + counts.duplicated);
	link->ops->destroy(link);
}

TEST(corruption_flips_one_to_three_bits_anywhere)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "corrupt=100%,seed=2");
	uint8_t zero[FRAME_BYTES] = {0}, touched[FRAME_BYTES] = {0};

	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(frame_send(link, &path, zero, sizeof(zero)), 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		unsigned bits = 0;

		for (unsigned k = 0; k < FRAME_BYTES; k++) {
			bits += (unsigned)__builtin_popcount(mock->sent[i].data[k]);
			touched[k] |= mock->sent[i].data[k];
		}
		/* Two flips of one bit cancel out: rarely none is left. */
		assert_true(bits <= VB_FAULT_FLIPPED_BITS_MAX);
	}
	for (unsigned k = 0; k < FRAME_BYTES; k++)
		assert_int_equal(touched[k], 0xff);
	link->ops->destroy(link);
}

TEST(reordered_frames_are_overtaken_by_few)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "reorder=5%,seed=3");
	struct vb_frame frame;
	struct vb_fault_counts counts;
	unsigned late = 0;
	uint8_t *seen;
	uint32_t highest = 0;

	numbers_send(link, FRAMES);
	usleep(5000);
	vb_link_rx(link, &frame, 1);
	assert_int_equal(mock->sent_n, FRAMES);
	seen = calloc(FRAMES, 1);
	for (unsigned i = 0; i < FRAMES; i++) {
		uint32_t number = number_of(&mock->sent[i]);

		assert_false(seen[number]);
		seen[number] = 1;
		late += number < highest;
		/* Of those that overtake it, some may be late themselves and count again. */
		if (number < highest)
			assert_true(highest - number < 8 * VB_FAULT_OVERTAKERS_MAX);
		else
			highest = number;
	}
	free(seen);
	vb_link_fault_counts(link, &counts);
	assert_about(counts.reordered, 0.05, FRAMES);
	assert_true(late > FRAMES / 50);
	link->ops->destroy(link);
}

TEST(a_seed_decides_every_frames_fate)
{
	static const char *const texts[] = {
		"loss=1%,dup=1%,corrupt=1%,seed=7",
		"loss=1%,dup=1%,corrupt=1%,seed=7",
		"loss=1%,dup=1%,corrupt=1%,seed=8",
		"loss=1%,seed=7",
	};
	struct mock_link *mock[4];
	struct vb_link *link[4];
	unsigned missing[4] = {0};

	for (unsigned i = 0; i < 4; i++) {
		mock[i] = mock_create();
		link[i] = fault_over(mock[i], texts[i]);
		numbers_send(link[i], 20000);
	}
	assert_int_equal(mock[0]->sent_n, mock[1]->sent_n);
	assert_memory_equal(mock[0]->sent, mock[1]->sent,
			    mock[0]->sent_n * sizeof(struct mock_sent));
	assert_memory_not_equal(mock[0]->sent, mock[2]->sent, 20000 * sizeof(struct mock_sent));
	/* The other parts do not change which frames are lost. */
	for (unsigned i = 0; i < 4; i++) {
		struct vb_fault_counts counts;

		vb_link_fault_counts(link[i], &counts);
		missing[i] = (unsigned)counts.lost;
		link[i]->ops->destroy(link[i]);
	}
	assert_int_equal(missing[0], missing[3]);
}

TEST(delayed_frames_come_on_time_and_in_order)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "delay=20ms,seed=1");
	struct timespec now;
	struct vb_frame frame;
	uint64_t before_ns, due_ns;

	assert_true(link->ops->deadline_ns(link) == UINT64_MAX);
	clock_gettime(CLOCK_MONOTONIC, &now);
	before_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	numbers_send(link, 100);
	due_ns = link->ops->deadline_ns(link);
	assert_true(due_ns >= before_ns + 20000000 && due_ns < before_ns + 2000000000);
	vb_link_rx(link, &frame, 1);
	assert_int_equal(mock->sent_n, 0);
	usleep(60000);
	vb_link_rx(link, &frame, 1);
	assert_int_equal(mock->sent_n, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(number_of(&mock->sent[i]), i);
	assert_true(link->ops->deadline_ns(link) == UINT64_MAX);
	link->ops->destroy(link);
}

TEST(waiting_frames_are_bounded)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "delay=10s");
	struct vb_fault_counts counts;

	numbers_send(link, VB_FAULT_HELD_MAX + 10);
	vb_link_fault_counts(link, &counts);
	assert_int_equal(counts.overflowed, 10);
	link->ops->destroy(link);
}

TEST(errors_of_the_link_below_come_through)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "dup=1%,seed=1");
	uint8_t data[FRAME_BYTES] = {0};

	mock->error = EAGAIN;
	assert_int_equal(frame_send(link, &path, data, sizeof(data)), EAGAIN);
	mock->error = ENETUNREACH;
	assert_int_equal(frame_send(link, &path, data, sizeof(data)), ENETUNREACH);
	assert_int_equal(mock->sent_n, 0);
	link->ops->destroy(link);
}

TEST(bursts_are_taken_apart)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "loss=0%");
	uint8_t data[250];
	struct iovec iov[] = {{data, 60}, {data + 60, 90}, {data + 150, 50}, {data + 200, 50}};
	struct vb_burst burst = {
		.path = path,
		.slot = 9,
		.frames = 3,
		.frame_bytes = 100,
		.last_bytes = 50,
		.iovcnt = 4,
		.iov = iov,
	};

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(link->ops->burst_frames_max(link), 1);
	assert_int_equal(vb_link_tx(link, &burst), 0);
	assert_int_equal(mock->sent_n, 3);
	assert_int_equal(mock->sent[0].bytes, 100);
	assert_int_equal(mock->sent[2].bytes, 50);
	assert_int_equal(mock->sent[2].slot, 9);
	assert_memory_equal(mock->sent[1].data, data + 100, MOCK_FRAME_MAX);
	link->ops->destroy(link);
}

static void *send_many(void *link)
{
	uint8_t data[FRAME_BYTES] = {0};

	for (unsigned i = 0; i < FRAMES / THREADS; i++) {
		if (frame_send(link, &path, data, sizeof(data)))
			return link;
	}
	return NULL;
}

TEST(threads_may_send_at_once)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "loss=10%,dup=10%,reorder=10%,corrupt=10%");
	struct vb_fault_counts counts;
	pthread_t thread[THREADS];
	struct vb_frame frame;

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, send_many, link);
	for (unsigned i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	usleep(5000);
	vb_link_rx(link, &frame, 1);
	vb_link_fault_counts(link, &counts);
	assert_int_equal(counts.frames, FRAMES);
	assert_int_equal(mock->sent_n,
			 FRAMES - counts.lost + counts.duplicated - counts.overflowed);
	link->ops->destroy(link);
}

TEST(the_rest_is_the_inner_links)
{
	bool destroyed = false;
	struct mock_link *mock = mock_create();
	struct vb_link *link = fault_over(mock, "loss=1%");
	struct vb_frame frames[4];

	mock->destroyed = &destroyed;
	mock->rx_n = 3;
	mock->rx.bytes = 99;
	assert_int_equal(vb_link_rx(link, frames, 4), 3);
	assert_int_equal(frames[2].bytes, 99);
	assert_int_equal(link->ops->rx_fd(link, 0), 42);
	assert_int_equal(link->ops->frame_bytes_max(link, &path), 4242);
	assert_int_equal(link->ops->sport(link, &path, 7, VB_OURS), 5007);
	assert_int_equal(link->ops->sport(link, &path, 7, VB_STRANGER), 5207);
	assert_int_equal(link->ops->sport_choose(link, &path, 7, 600), 607);
	assert_int_equal(link->ops->join(link, path.dst, 3), 0);
	assert_int_equal(mock->joined, 3);
	link->ops->leave(link, path.dst);
	assert_int_equal(mock->joined, 0);
	assert_true(link->ops->deliver(link, &frames[2]));
	assert_ptr_equal(mock->delivered, &frames[2]);
	link->ops->forget(link);
	assert_true(mock->forgotten);
	link->ops->destroy(link);
	assert_true(destroyed);
}
