/* SPDX-License-Identifier: BSD-2-Clause */
/* A modelled network: its text, its ports in virtual time, and what becomes of frames. */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "group.h"
#include "link/around/net.h"
#include "link/around/net_ports.h"
#include "mock_link.h"

enum { FRAME_BYTES = 48, LINE_BYTES = FRAME_BYTES + 66, HOSTS = 16 };

/* A frame takes 114 ms: no test is that slow. */
#define SLOW "rate=8kbit"

static struct vb_path path_between(uint8_t from, uint8_t to)
{
	return (struct vb_path){
		.src = { [10] = 0xff, 0xff, 10, 0, 0, from },
		.dst = { [10] = 0xff, 0xff, 10, 0, 0, to },
		.hop_limit = 64,
	};
}

/* Each test has a network of its own. */
static char *own_name(const char *test)
{
	static char name[VB_PARTS_NAME_BYTES];

	snprintf(name, sizeof(name), "%.8s-%d", test, (int)getpid());
	return name;
}

static bool file_is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/shm/verbatim-net.%u.%s", (unsigned)geteuid(), name);
	return access(path, F_OK) == 0;
}

/* --- the text --- */

TEST(net_text_is_read_exactly)
{
	static const struct {
		const char *text;
		struct vb_net net;
	} cases[] = {
		{ "delay=2us", { .delay_ns = 2000, .queue_bytes = 65536 } },
		{ "rate=8kbit", { .rate = 8000, .queue_bytes = 65536 } },
		{ "rate=10Gbit", { .rate = 10000000000, .queue_bytes = 1250000 } },
		{ "rate=1000Gbit,queue=1MiB", { .rate = 1000000000000, .queue_bytes = 1 << 20 } },
		{ "rate=10Mbit,delay=80ms,jitter=5ms,queue=300B,ecn=64KiB,name=lab-2,seed=3",
		  { .rate = 10000000,
		    .delay_ns = 80000000,
		    .jitter_ns = 5000000,
		    .queue_bytes = 300,
		    .ecn_bytes = 65536,
		    .ecn = true,
		    .seed = 3,
		    .name = "lab-2" } },
		{ "ecn=0B", { .ecn = true, .queue_bytes = 65536 } },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		char why[VB_PARTS_WHY_BYTES] = "?";
		struct vb_net net;

		assert_int_equal(vb_net_parse(&net, cases[i].text, why), 0);
		assert_string_equal(why, "");
		assert_memory_equal(&net, &cases[i].net, sizeof(net));
	}
}

TEST(other_text_is_refused_in_words)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "rate=10", "rate=10: a whole number and its unit (kbit, Mbit or Gbit) are "
			     "wanted, such as 10Gbit" },
		{ "rate=7kbit", "rate=7kbit: a rate is at least 8kbit and at most 1000Gbit" },
		{ "rate=1001Gbit", "rate=1001Gbit: a rate is at least 8kbit and at most 1000Gbit" },
		{ "rate=1.5Gbit", "rate=1.5Gbit: a whole number and its unit (kbit, Mbit or Gbit) "
				  "are wanted, such as 10Gbit" },
		{ "queue=5", "queue=5: a whole number and its unit (B, KiB or MiB) are wanted, "
			     "such as 64KiB" },
		{ "queue=1025MiB", "queue=1025MiB: a size is at most 1024MiB" },
		{ "name=", "name=: a name is wanted, of at most 31 letters, digits and '-'" },
		{ "name=../x", "name=../x: a name is wanted, of at most 31 letters, digits and "
			       "'-'" },
		{ "loss=1%", "there is no part of a network 'loss'. Parts: rate, delay, jitter, "
			     "queue, ecn, name, seed" },
		{ "delay", "delay: a value is wanted, such as delay=1ms" },
		{ "rate=1Gbit,rate=2Gbit", "rate is there twice" },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(cases); i++) {
		struct vb_net net = { .rate = 42 };
		char why[VB_PARTS_WHY_BYTES];

		assert_int_equal(vb_net_parse(&net, cases[i].text, why), EINVAL);
		assert_string_equal(why, cases[i].why);
		assert_int_equal(net.rate, 42);
	}
}

/* --- ports --- */

static bool queue_one(struct vb_net_ports *ports, const uint8_t *gid, enum vb_net_ways way,
		      uint64_t at_ns, uint64_t takes_ns, uint64_t most_ns, uint64_t *before_ns,
		      uint64_t *done_ns)
{
	const struct vb_net_load load = {
		.at_ns = at_ns, .takes_ns = takes_ns, .frames = 1, .bytes = 100,
	};

	return vb_net_way_queue(vb_net_ports_way(ports, gid, way), &load, most_ns, before_ns,
				done_ns);
}

TEST(a_port_sends_one_after_the_other)
{
	const char *name = own_name("ports");
	const struct vb_path path = path_between(1, 2);
	struct vb_net_ports *here, *there;
	uint64_t before_ns, done_ns;

	assert_int_equal(vb_net_ports_open(&here, name), 0);
	assert_int_equal(vb_net_ports_open(&there, name), 0);
	/* By two processes, ten at once; the next waits until all have left. */
	for (unsigned i = 0; i < 10; i++) {
		assert_true(queue_one(i % 2 ? here : there, path.dst, VB_NET_DOWN, 1000,
					       100, 10000, &before_ns, &done_ns));
		assert_int_equal(before_ns, 100 * i);
		assert_int_equal(done_ns, 1100 + 100 * i);
	}
	/* More than 900 are before it: nothing is queued. */
	assert_false(queue_one(here, path.dst, VB_NET_DOWN, 1000, 100, 900, &before_ns,
					&done_ns));
	assert_int_equal(before_ns, 1000);
	assert_true(queue_one(here, path.dst, VB_NET_DOWN, 1500, 100, 900, &before_ns,
				       &done_ns));
	assert_int_equal(done_ns, 2100);
	/* What comes to an idle port leaves at once. */
	assert_true(queue_one(there, path.dst, VB_NET_DOWN, 5000, 100, 0, &before_ns,
				       &done_ns));
	assert_int_equal(done_ns, 5100);
	/* The other direction, and another address, are ports of their own. */
	assert_true(queue_one(here, path.dst, VB_NET_UP, 1000, 100, 0, &before_ns,
				       &done_ns));
	assert_true(queue_one(here, path.src, VB_NET_DOWN, 1000, 100, 0, &before_ns,
				       &done_ns));
	/* Both see what is counted. */
	assert_int_equal(vb_net_ports_way(there, path.dst, VB_NET_DOWN)->frames, 12);
	assert_int_equal(vb_net_ports_way(here, path.dst, VB_NET_DOWN)->bytes, 1200);
	assert_int_equal(vb_net_ports_way(here, path.dst, VB_NET_DOWN)->most_ns, 900);
	assert_int_equal(vb_net_ports_way(here, path.src, VB_NET_UP)->frames, 0);
	vb_net_ports_close(here);
	assert_true(file_is_there(name));
	vb_net_ports_close(there);
	assert_false(file_is_there(name));
}

/* A process that is killed leaves the file, and what its queue was. */
TEST(what_the_dead_queued_holds_nobody_up)
{
	const char *name = own_name("dead");
	const struct vb_path path = path_between(1, 2);
	struct vb_net_ports *heir, *other;
	uint64_t before_ns, done_ns;
	pid_t dead = fork();

	if (dead == 0) {
		if (vb_net_ports_open(&heir, name) == 0)
			queue_one(heir, path.dst, VB_NET_DOWN, 1000, 1000000, 0, &before_ns,
				  &done_ns);
		_exit(0);
	}
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	assert_true(file_is_there(name));
	assert_int_equal(vb_net_ports_open(&heir, name), 0);
	assert_true(queue_one(heir, path.dst, VB_NET_DOWN, 1000, 100, 0, &before_ns, &done_ns));
	/* The living keep what they have. */
	assert_int_equal(vb_net_ports_open(&other, name), 0);
	assert_false(queue_one(other, path.dst, VB_NET_DOWN, 1000, 100, 0, &before_ns, &done_ns));
	assert_int_equal(before_ns, 100);
	vb_net_ports_close(other);
	vb_net_ports_close(heir);
	assert_false(file_is_there(name));
}

TEST(all_addresses_fit)
{
	struct vb_net_ports *ports;
	uint64_t before_ns, done_ns;

	assert_int_equal(vb_net_ports_open(&ports, own_name("many")), 0);
	for (unsigned i = 0; i < 2 * VB_NET_PORTS; i++) {
		uint8_t gid[VB_GID_BYTES] = { [14] = (uint8_t)(i >> 8), (uint8_t)i };

		assert_true(queue_one(ports, gid, VB_NET_UP, 1000, 1, UINT64_MAX,
					       &before_ns, &done_ns));
		assert_true(i >= VB_NET_PORTS || !before_ns);
	}
	vb_net_ports_close(ports);
}

/* --- frames --- */

static unsigned marks;

static void count_marks(void *arg, const struct vb_frame *frame)
{
	assert_ptr_equal(arg, &marks);
	marks++;
}

static struct vb_link *net_over(struct mock_link *mock, const char *text, const char *test)
{
	struct vb_link *link;
	char whole[256];

	snprintf(whole, sizeof(whole), "%s,name=%s", text, own_name(test));
	marks = 0;
	assert_int_equal(vb_link_net_create(&link, &mock->link, whole, count_marks, &marks), 0);
	return link;
}

static int send_sized(struct vb_link *link, uint8_t from, uint8_t number, uint32_t bytes)
{
	const struct vb_path path = path_between(from, 200);
	uint8_t data[4096 + 16] = { number };

	return frame_send(link, &path, data, bytes);
}

static int send_one(struct vb_link *link, uint8_t from, uint8_t number)
{
	return send_sized(link, from, number, FRAME_BYTES);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

TEST(a_sender_waits_for_its_own_port)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = net_over(mock, SLOW, "wait");
	unsigned sent = 0;

	while (send_sized(link, 1, (uint8_t)sent, 4096 + 16) == 0)
		sent++;
	/* One leaves, and one may wait. */
	assert_int_equal(sent, 2);
	/* Acknowledgements of another process do not wait until this one has nothing to send. */
	assert_int_equal(send_one(link, 1, 8), 0);
	assert_int_equal(send_sized(link, 1, 9, 4096 + 16), EAGAIN);
	assert_int_equal(mock->sent_n, 0);
	assert_true(link->ops->deadline_ns(link) < UINT64_MAX);
	link->ops->destroy(link);
}

/* What the port says of two frames that follow each other, so that no clock of ours matters. */
TEST(rates_are_exact)
{
	static const struct {
		const char *text;
		uint64_t rate;
	} rows[] = {
		{ "rate=1Mbit", 1000000 }, { "rate=10Mbit", 10000000 },
		{ "rate=100Mbit", 100000000 }, { "rate=1Gbit", 1000000000 },
		{ "rate=10Gbit", 10000000000 },
	};
	const struct vb_path path = path_between(1, 200);

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct mock_link *mock = mock_create();
		struct vb_link *link = net_over(mock, rows[i].text, "rates");
		uint64_t wanted_ns = (4112 + 66) * 8000000000 / rows[i].rate, took_ns;
		struct vb_net_ports *ports;
		struct vb_net_way *way;

		assert_int_equal(vb_net_ports_open(&ports, own_name("rates")), 0);
		way = vb_net_ports_way(ports, path.src, VB_NET_UP);
		/* Again if the first had left before the second came. */
		do {
			uint64_t first_ns, frames = way->frames;

			vb_link_net_flush(link);
			mock->sent_n = 0;
			while (send_sized(link, 1, 1, 4112) == EAGAIN)
				;
			first_ns = way->done_ns;
			while (send_sized(link, 1, 2, 4112) == EAGAIN)
				;
			assert_int_equal(way->frames, frames + 2);
			took_ns = way->done_ns - first_ns;
		} while (took_ns > wanted_ns + wanted_ns / 1000 + 1);
		assert_in_range(took_ns, wanted_ns - wanted_ns / 1000,
				wanted_ns + wanted_ns / 1000 + 1);
		vb_net_ports_close(ports);
		link->ops->destroy(link);
	}
}

TEST(delays_are_exact)
{
	static const struct {
		const char *text;
		uint64_t least_ns, most_ns;
	} rows[] = {
		{ "delay=10us", 10000, 10000 }, { "delay=100us", 100000, 100000 },
		{ "delay=1ms", 1000000, 1000000 }, { "delay=100ms", 100000000, 100000000 },
		{ "delay=10ms,jitter=5ms", 10000000, 15000000 },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct mock_link *mock = mock_create();
		struct vb_link *link = net_over(mock, rows[i].text, "delays");
		uint64_t before_ns = clock_ns(), due_ns = UINT64_MAX;

		/* It may have left before we look, on a busy machine. */
		while (due_ns == UINT64_MAX) {
			vb_link_net_flush(link);
			mock->sent_n = 0;
			before_ns = clock_ns();
			assert_int_equal(send_one(link, 1, 0), 0);
			due_ns = link->ops->deadline_ns(link);
		}
		assert_in_range(due_ns, before_ns + rows[i].least_ns,
				clock_ns() + rows[i].most_ns);
		link->ops->destroy(link);
	}
}

TEST(frames_keep_their_order)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = net_over(mock, "delay=100us,jitter=10ms,seed=4", "order");
	struct vb_frame frame;

	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(send_one(link, 1, (uint8_t)i), 0);
	while (link->ops->deadline_ns(link) < UINT64_MAX)
		vb_link_rx(link, &frame, 1);
	assert_int_equal(mock->sent_n, 100);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(mock->sent[i].data[0], i);
		/* Without ecn nothing says that marks are heeded. */
		assert_int_equal(mock->sent[i].tclass, 0);
	}
	link->ops->destroy(link);
}

/* Two frames of each host come to one port at once. */
static struct vb_net_counts incast(struct mock_link *mock, struct vb_link *link)
{
	struct vb_net_counts counts;

	for (unsigned host = 1; host <= HOSTS; host++) {
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(send_one(link, (uint8_t)host, (uint8_t)i), 0);
	}
	vb_link_net_flush(link);
	vb_link_net_counts(link, &counts);
	assert_int_equal(counts.frames, 2 * HOSTS);
	assert_int_equal(mock->sent_n, counts.frames - counts.lost);
	return counts;
}

TEST(what_finds_a_full_queue_is_lost)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = net_over(mock, SLOW ",queue=500B", "full");
	struct vb_net_counts counts = incast(mock, link);

	/* The port sends two while the senders send theirs; about five more wait. */
	assert_in_range(counts.lost, 2 * HOSTS - 10, 2 * HOSTS - 5);
	assert_int_equal(counts.marked, 0);
	link->ops->destroy(link);
}

TEST(what_finds_a_long_queue_is_marked)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = net_over(mock, SLOW ",ecn=228B", "marks");
	struct vb_net_counts counts = incast(mock, link);
	unsigned marked = 0;

	for (unsigned i = 0; i < mock->sent_n; i++) {
		assert_in_range(mock->sent[i].tclass, 2, 3);
		marked += mock->sent[i].tclass == 3;
	}
	assert_int_equal(counts.lost, 0);
	assert_int_equal(marked, counts.marked);
	/* All but those that come before 912 octets wait, and a few of these. */
	assert_in_range(marked, 2 * HOSTS - 14, 2 * HOSTS - 4);
	link->ops->destroy(link);
}

TEST(marks_are_told_of)
{
	struct mock_link *mock = mock_create();
	struct vb_link *link = net_over(mock, "ecn=64KiB", "told");
	struct vb_frame frames[4];

	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		mock->rx = (struct vb_frame){ .path.tclass = (uint8_t)(0x20 | ecn), .bytes = 1 };
		mock->rx_n = 1;
		assert_int_equal(vb_link_rx(link, frames, 4), 1);
		assert_int_equal(marks, ecn == 3);
	}
	link->ops->destroy(link);
}

TEST(bursts_are_short_at_low_rates)
{
	static const struct {
		const char *text;
		unsigned most;
	} rows[] = {
		{ "delay=1us", VB_LINK_BURST_FRAMES_MAX }, { "rate=1Gbit", 1 },
		{ "rate=10Gbit", 3 }, { "rate=1000Gbit", VB_LINK_BURST_FRAMES_MAX },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct mock_link *mock = mock_create();
		struct vb_link *link = net_over(mock, rows[i].text, "burst");

		assert_int_equal(link->ops->burst_frames_max(link), rows[i].most);
		link->ops->destroy(link);
	}
}
