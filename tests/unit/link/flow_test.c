/* SPDX-License-Identifier: BSD-2-Clause */
/* A link's second socket, for what comes from one port: when there is one, and what it gets. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "udp_lib.h"

enum {
	SLOTS = 5,
	MADE = 3, /* of these, when a test begins */
	BYTES = 64,
	MANY = 1500,	 /* more in a row than it takes */
	IN_VAIN = 50,	 /* looks, until there really is nothing */
	OVER = 700000,	 /* looks after which a flow is over */
	BURST = 10,
};

static struct vb_link *slot[SLOTS];
static unsigned made;
static uint32_t sent, taken[SLOTS];

/* What others do between the bind(2) and the connect(2) of a socket: an errno for the latter. */
static int (*meanwhile)(void);

int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	int (*happens)(void) = meanwhile;

	meanwhile = NULL;
	errno = happens ? happens() : 0;
	return errno ? -1 : (int)syscall(SYS_connect, fd, to, bytes);
}

static int begin(void **state)
{
	struct vb_path any = path_make("127.0.0.1", "127.0.0.2");

	memset(taken, 0, sizeof(taken));
	sent = 0;
	all_are_wrong = false;
	if (!netns_enter())
		return group_lacks(NO_NETWORK_NAMESPACE);
	if (!slots_make(slot, MADE))
		return -1;
	made = MADE;
	/* Slot 0's link sends all; these are its sockets. */
	for (uint16_t to = 0; to < SLOTS; to++)
		assert_int_equal(slot[0]->ops->sport(slot[0], &any, to, VB_OURS), 0xc000 + to);
	any = path_make("::", "::1");
	assert_int_equal(slot[0]->ops->sport(slot[0], &any, 1, VB_OURS), 0xc001);
	return 0;
}

static int end(void **state)
{
	slots_destroy(slot, made);
	return 0;
}

#define FLOW_TEST(name) TEST_BETWEEN(name, begin, end)

static struct vb_path path_from(const char *src, const char *dst, uint16_t sport)
{
	struct vb_path path = path_make(src, dst);

	path.sport = sport;
	return path;
}

/* Frames are numbered. */
static void send_one(const struct vb_path *path, unsigned to)
{
	uint8_t data[BYTES] = {0};

	memcpy(data + 16, &sent, sizeof(sent));
	sent++;
	assert_int_equal(frame_send_to(slot[0], path, to, data, sizeof(data)), 0);
}

/* Take what has come to a slot: from that path, for that slot, and in the order of sending. */
static unsigned take(unsigned at, const struct vb_path *path, unsigned to)
{
	struct vb_frame frames[64];
	unsigned got = 0;

	for (unsigned vain = 0; vain < IN_VAIN; vain++) {
		unsigned n = vb_link_rx(slot[at], frames, 64);

		for (unsigned i = 0; i < n; i++) {
			uint32_t number;

			memcpy(&number, frames[i].data + 16, sizeof(number));
			assert_true(number >= taken[at]);
			taken[at] = number;
			assert_int_equal(frames[i].bytes, BYTES);
			assert_int_equal(frame_slot(frames[i].data), to);
			assert_memory_equal(frames[i].path.src, path->src, VB_GID_BYTES);
			assert_memory_equal(frames[i].path.dst, path->dst, VB_GID_BYTES);
			assert_int_equal(frames[i].path.sport, path->sport);
			assert_int_equal(frames[i].path.hop_limit, VB_UDP_HOP_LIMIT_DEFAULT);
		}
		got += n;
		if (n)
			vain = 0;
	}
	return got;
}

static void send_and_take(const struct vb_path *path, unsigned to, unsigned count)
{
	unsigned got = 0;

	for (unsigned i = 0; i < count; i++) {
		send_one(path, to);
		if (i % 16 == 15)
			got += take(to, path, to);
	}
	got += take(to, path, to);
	assert_int_equal(got, count);
}

static bool has_flow(unsigned at)
{
	return slot[at]->ops->rx_fd(slot[at], 1) >= 0;
}

static struct vb_path flow_make(void)
{
	struct vb_path path = path_from("127.0.0.2", "127.0.0.1", 0xc001);

	send_and_take(&path, 1, MANY);
	assert_true(has_flow(1));
	return path;
}

/* --- tests --- */

FLOW_TEST(many_in_a_row_make_one)
{
	struct vb_path path;

	assert_int_equal(slot[1]->ops->rx_fd(slot[1], 2), -1);
	assert_false(has_flow(1));
	path = flow_make();
	send_and_take(&path, 1, MANY);
}

FLOW_TEST(ipv6_makes_one_too)
{
	struct vb_path path = path_from("::1", "::1", 0xc001);

	send_and_take(&path, 1, MANY);
	assert_true(has_flow(1));
	send_and_take(&path, 1, MANY);
}

/* They wait in the slot's socket when it begins, and come before what waits in its own. */
FLOW_TEST(it_begins_behind_what_came_before)
{
	struct vb_path path = path_from("127.0.0.2", "127.0.0.1", 0xc001);
	struct vb_frame frame;

	send_and_take(&path, 1, 900);
	for (unsigned i = 0; i < 300; i++)
		send_one(&path, 1);
	for (unsigned i = 0; i < 150; i++)
		assert_int_equal(vb_link_rx(slot[1], &frame, 1), 1);
	assert_true(has_flow(1));
	for (unsigned i = 0; i < 100; i++)
		send_one(&path, 1);
	assert_int_equal(take(1, &path, 1), 250);
}

FLOW_TEST(others_come_as_ever)
{
	struct vb_path one, other = path_from("127.0.0.3", "127.0.0.1", 0xc001);

	one = flow_make();
	for (unsigned i = 0; i < 200; i++) {
		send_and_take(&one, 1, 1);
		send_and_take(&other, 1, 1);
	}
	send_and_take(&other, 1, 100);
	send_and_take(&one, 1, 100);
}

/* Socket and slot find each other by their places in a group (udp_socket.c). */
static void slot_add(void)
{
	int fd;

	assert_int_equal(vb_udp_socket_create(&fd), 0);
	assert_int_equal(vb_udp_socket_bind(fd), 0);
	assert_int_equal(vb_link_udp_create(&slot[made++], fd, any_is_right), 0);
}

static void expect_slots_in_their_places(const char *src, const char *dst)
{
	struct vb_path path = path_from(src, dst, VB_UDP_PORT);

	for (unsigned to = 0; to < made; to++)
		send_and_take(&path, to, 10);
}

FLOW_TEST(slots_stay_where_they_are)
{
	flow_make();
	slot_add();
	expect_slots_in_their_places("127.0.0.2", "127.0.0.1");
	slot[1]->ops->forget(slot[1]);
	slot[1]->ops->destroy(slot[1]);
	slot[1] = slot[--made];
	expect_slots_in_their_places("127.0.0.2", "127.0.0.1");
}

/* The hub binds as many as it likes at that moment, and what is sent to any of them arrives. */
static int slots_are_bound(void)
{
	struct vb_path ipv4 = path_from("127.0.0.2", "127.0.0.1", VB_UDP_PORT);
	struct vb_path ipv6 = path_from("::1", "::1", VB_UDP_PORT);

	while (made < SLOTS)
		slot_add();
	for (unsigned to = 2; to < SLOTS; to++) {
		send_one(&ipv4, to);
		assert_int_equal(take(to, &ipv4, to), 1);
		send_one(&ipv6, to);
		assert_int_equal(take(to, &ipv6, to), 1);
	}
	return 0;
}

static int slots_are_bound_and_it_fails(void)
{
	slots_are_bound();
	return ENETUNREACH;
}

FLOW_TEST(slots_that_are_bound_meanwhile_are_in_their_places)
{
	static const struct {
		const char *src, *dst;
		int (*meanwhile)(void);
	} rows[] = {
		{ "127.0.0.2", "127.0.0.1", slots_are_bound },
		{ "127.0.0.2", "127.0.0.1", slots_are_bound_and_it_fails },
		{ "::1", "::1", slots_are_bound },
		{ "::1", "::1", slots_are_bound_and_it_fails },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_path path = path_from(rows[i].src, rows[i].dst, 0xc001);

		slots_destroy(slot, made);
		assert_int_equal(begin(state), 0);
		meanwhile = rows[i].meanwhile;
		send_and_take(&path, 1, MANY);
		assert_int_equal(made, SLOTS);
		assert_int_equal(has_flow(1), rows[i].meanwhile == slots_are_bound);
		expect_slots_in_their_places("127.0.0.2", "127.0.0.1");
		expect_slots_in_their_places("::1", "::1");
	}
}

FLOW_TEST(two_by_turns_make_none)
{
	struct vb_path one = path_from("127.0.0.2", "127.0.0.1", 0xc001);
	struct vb_path other = path_from("127.0.0.3", "127.0.0.1", 0xc001);

	for (unsigned i = 0; i < MANY; i++) {
		send_and_take(&one, 1, 1);
		send_and_take(&other, 1, 1);
	}
	assert_false(has_flow(1));
}

FLOW_TEST(ports_that_do_not_name_the_slot_make_none)
{
	const struct vb_path path[] = {
		path_from("127.0.0.2", "127.0.0.1", 0xc002),
		path_from("127.0.0.2", "127.0.0.1", VB_UDP_PORT),
	};

	for (unsigned i = 0; i < 2; i++)
		send_and_take(&path[i], 1, 2 * MANY);
	assert_false(has_flow(1));
}

/* Frames for another slot from the port of a flow would miss that slot as long as it lasts. */
FLOW_TEST(a_frame_for_another_slot_ends_it)
{
	struct vb_path path;

	path = flow_make();
	send_one(&path, 2);
	assert_int_equal(take(1, &path, 2), 1);
	assert_false(has_flow(1));
	send_and_take(&path, 2, 10);
	send_and_take(&path, 1, 2 * MANY);
	assert_false(has_flow(1));
	/* But others may have one. */
	path = path_from("127.0.0.3", "127.0.0.1", 0xc001);
	send_and_take(&path, 1, MANY);
	assert_true(has_flow(1));
}

/* To 127.0.0.1 this host would speak as 127.0.0.1, and not as 127.0.0.2. */
FLOW_TEST(an_address_that_the_kernel_does_not_choose_has_none)
{
	struct vb_path path = path_from("127.0.0.1", "127.0.0.2", 0xc001);

	send_and_take(&path, 1, 2 * MANY);
	assert_false(has_flow(1));
	flow_make();
}

/* What anybody can send who does not even know the addresses. */
FLOW_TEST(junk_makes_none_and_ends_none)
{
	struct vb_path path = path_from("127.0.0.2", "127.0.0.1", 0xc001);

	all_are_wrong = true;
	send_and_take(&path, 1, 2 * MANY);
	assert_false(has_flow(1));
	all_are_wrong = false;
	flow_make();
	all_are_wrong = true;
	send_one(&path, 2);
	assert_int_equal(take(1, &path, 2), 1);
	assert_true(has_flow(1));
}

static void expect_flow_from(const char *address)
{
	struct sockaddr_in6 from;
	socklen_t bytes = sizeof(from);
	uint8_t gid[VB_GID_BYTES];

	gid_set(gid, address);
	assert_int_equal(getpeername(slot[1]->ops->rx_fd(slot[1], 1), (void *)&from, &bytes), 0);
	assert_memory_equal(&from.sin6_addr, gid, VB_GID_BYTES);
}

/* Anybody may make one who makes ICRCs; but there is one only, and it is for whom we know. */
FLOW_TEST(a_stranger_gives_way)
{
	struct vb_path known = path_from("127.0.0.2", "127.0.0.1", 0xc001);
	struct vb_path stranger = path_from("127.0.0.3", "127.0.0.1", 0xc001);
	struct vb_path back = path_make("127.0.0.1", "127.0.0.2");

	send_and_take(&stranger, 1, MANY);
	expect_flow_from("127.0.0.3");
	send_and_take(&known, 1, 2 * MANY);
	expect_flow_from("127.0.0.3");
	slot[1]->ops->sport(slot[1], &back, 9, VB_STRANGER);
	send_and_take(&known, 1, 2 * MANY);
	expect_flow_from("127.0.0.3");
	assert_int_equal(slot[1]->ops->sport(slot[1], &back, 9, VB_OURS), 0xc009);
	send_and_take(&known, 1, MANY);
	expect_flow_from("127.0.0.2");
	send_and_take(&stranger, 1, 2 * MANY);
	expect_flow_from("127.0.0.2");
}

FLOW_TEST(when_it_is_over_another_takes_its_place)
{
	struct vb_path path, other = path_from("127.0.0.3", "127.0.0.1", 0xc001);
	struct vb_frame frame;

	path = flow_make();
	send_and_take(&other, 1, MANY);
	for (unsigned i = 0; i < OVER; i++)
		assert_int_equal(vb_link_rx(slot[1], &frame, 1), 0);
	send_and_take(&other, 1, 2 * MANY);
	assert_true(has_flow(1));
	/* The first one's come to the slot's socket again. */
	send_and_take(&path, 1, MANY / 2);
	send_and_take(&other, 1, MANY);
}

FLOW_TEST(bursts_come_whole)
{
	static uint8_t data[BURST * BYTES];
	struct vb_path path;
	struct iovec iov = {data, sizeof(data)};
	struct vb_burst burst = {
		.slot = 1, .frames = BURST, .frame_bytes = BYTES, .last_bytes = BYTES, .iovcnt = 1,
		.iov = &iov,
	};

	path = flow_make();
	burst.path = path;
	for (unsigned i = 0; i < BURST; i++) {
		frame_slot_set(data + i * BYTES, 1);
		memcpy(data + i * BYTES + 16, &sent, sizeof(sent));
		sent++;
	}
	assert_int_equal(vb_link_tx(slot[0], &burst), 0);
	assert_int_equal(take(1, &path, 1), BURST);
}
