/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of a UDP link, over loopback: who gets what is sent to one, and for how long. */
#include <errno.h>
#include <poll.h>

#include "udp_lib.h"

enum { SLOTS = 4, FRAMES_MAX = 256, BYTES = 64, GROUP_FD = VB_LINK_RX_FDS_MAX - 1, QUIET_MS = 50,
       WAIT_MS = 5000 };

static struct vb_link *slot[SLOTS];
static uint32_t lo;

static int start(void **state)
{
	if (!netns_enter())
		return group_lacks(NO_NETWORK_NAMESPACE);
	lo = if_nametoindex("lo");
	return slots_make(slot, SLOTS) ? 0 : -1;
}

static int end(void **state)
{
	slots_destroy(slot, SLOTS);
	return 0;
}

#define GROUP_TEST(name) TEST_BETWEEN(name, start, end)

static int join(unsigned i, const char *address)
{
	uint8_t gid[VB_GID_BYTES];

	gid_set(gid, address);
	return slot[i]->ops->join(slot[i], gid, lo);
}

static void leave(unsigned i, const char *address)
{
	uint8_t gid[VB_GID_BYTES];

	gid_set(gid, address);
	slot[i]->ops->leave(slot[i], gid);
}

/* From slot 0, to the QPN that means all of a group; its slot is the last one there may be. */
static void cast(const char *address, uint8_t tag)
{
	struct vb_path path = path_make("127.0.0.1", address);
	uint8_t data[BYTES] = { [0] = 0x64, [7] = 0xff, [8] = tag };

	path.ifindex = lo;
	path.hop_limit = 9;
	assert_int_equal(slot[0]->ops->sport(slot[0], &path, 1023, VB_OURS), VB_UDP_PORT);
	assert_int_equal(frame_send_to(slot[0], &path, 1023, data, sizeof(data)), 0);
}

/* The frames that come to a slot, until it is quiet. */
static unsigned receive(unsigned i, struct vb_frame *frames, int ms)
{
	unsigned all = 0, n;

	for (;;) {
		struct pollfd fds[VB_LINK_RX_FDS_MAX];

		for (unsigned k = 0; k < VB_LINK_RX_FDS_MAX; k++)
			fds[k] = (struct pollfd){ slot[i]->ops->rx_fd(slot[i], k), POLLIN, 0 };
		if (poll(fds, VB_LINK_RX_FDS_MAX, ms) <= 0)
			return all;
		n = vb_link_rx(slot[i], frames + all, FRAMES_MAX - all);
		all += n;
		ms = n ? 0 : ms;
	}
}

static void expect_frame(unsigned i, const char *address, uint8_t tag)
{
	struct vb_frame frames[FRAMES_MAX];
	uint8_t gid[VB_GID_BYTES];

	assert_int_equal(receive(i, frames, WAIT_MS), 1);
	assert_int_equal(frames[0].bytes, BYTES);
	assert_int_equal(frames[0].data[8], tag);
	assert_int_equal(frames[0].path.hop_limit, 9);
	assert_int_equal(frames[0].path.sport, VB_UDP_PORT);
	gid_set(gid, address);
	assert_memory_equal(frames[0].path.dst, gid, VB_GID_BYTES);
	gid_set(gid, "127.0.0.1");
	assert_memory_equal(frames[0].path.src, gid, VB_GID_BYTES);
}

static void expect_nothing(unsigned i)
{
	struct vb_frame frames[FRAMES_MAX];

	assert_int_equal(receive(i, frames, QUIET_MS), 0);
}

GROUP_TEST(each_link_that_joined_gets_it_once)
{
	assert_int_equal(slot[1]->ops->rx_fd(slot[1], GROUP_FD), -1);
	assert_int_equal(join(1, "239.1.1.1"), 0);
	assert_int_equal(join(2, "239.1.1.1"), 0);
	assert_int_equal(join(2, "239.1.1.1"), 0);
	assert_int_equal(join(3, "239.1.1.2"), 0);
	cast("239.1.1.1", 5);
	expect_frame(1, "239.1.1.1", 5);
	expect_frame(2, "239.1.1.1", 5);
	expect_nothing(3);
	expect_nothing(0);
	cast("239.1.1.2", 6);
	expect_frame(3, "239.1.1.2", 6);
	expect_nothing(1);
}

GROUP_TEST(who_has_left_gets_nothing)
{
	leave(1, "239.1.1.1"); /* without having joined */
	assert_int_equal(join(1, "239.1.1.1"), 0);
	assert_int_equal(join(1, "239.1.1.2"), 0);
	cast("239.1.1.1", 1);
	leave(1, "239.1.1.1");
	expect_nothing(1);
	cast("239.1.1.1", 2);
	expect_nothing(1);
	cast("239.1.1.2", 3);
	expect_frame(1, "239.1.1.2", 3);
	assert_int_equal(join(1, "239.1.1.1"), 0);
	cast("239.1.1.1", 4);
	expect_frame(1, "239.1.1.1", 4);
}

/* The sockets of groups stand beside the slots' ones, in whose order the kernel must not err. */
GROUP_TEST(the_slots_get_what_is_theirs)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[BYTES] = { 0 };

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned to = 0; to < SLOTS; to++) {
			assert_int_equal(frame_send_to(slot[0], &path, to, data, BYTES), 0);
			assert_int_equal(receive(to, frames, WAIT_MS), 1);
			assert_int_equal(frame_slot(frames[0].data), to);
		}
		for (unsigned i = 0; i < SLOTS; i++) {
			expect_nothing(i);
			if (round == 0)
				assert_int_equal(join(i, "239.1.1.1"), 0);
			else
				leave(i, "239.1.1.1");
		}
	}
}

/* Neither may wait for an end of the other. */
GROUP_TEST(a_flood_of_either_leaves_the_other_its_turn)
{
	struct vb_path path = path_make("127.0.0.1", "127.0.0.1");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[BYTES] = { 0 };

	assert_int_equal(join(1, "239.1.1.1"), 0);
	for (unsigned flood = 0; flood < 2; flood++) {
		unsigned calls = 0, seen = 0;

		for (unsigned i = 0; i < 100; i++) {
			if (flood == 0)
				frame_send_to(slot[0], &path, 1, data, BYTES);
			else
				cast("239.1.1.1", 7);
		}
		if (flood == 0)
			cast("239.1.1.1", 7);
		else
			frame_send_to(slot[0], &path, 1, data, BYTES);
		for (; calls < 4 && !seen; calls++) {
			unsigned n = vb_link_rx(slot[1], frames, FRAMES_MAX);

			for (unsigned i = 0; i < n; i++)
				seen += (frame_slot(frames[i].data) == 1023) == (flood == 0);
		}
		assert_true(seen);
		receive(1, frames, QUIET_MS);
	}
}

GROUP_TEST(many_frames_in_one_go_arrive_one_by_one)
{
	enum { COUNT = 20 };
	struct vb_path path = path_make("127.0.0.1", "239.1.1.1");
	struct vb_frame frames[FRAMES_MAX];
	uint8_t data[COUNT * BYTES];
	struct iovec iov = { data, sizeof(data) };
	struct vb_burst burst = { .slot = 1023, .frames = COUNT, .frame_bytes = BYTES,
				  .last_bytes = BYTES, .iovcnt = 1, .iov = &iov };

	path.ifindex = lo;
	burst.path = path;
	for (unsigned i = 0; i < COUNT; i++)
		memset(data + i * BYTES, (int)i, BYTES);
	assert_int_equal(join(1, "239.1.1.1"), 0);
	assert_int_equal(vb_link_tx(slot[0], &burst), 0);
	assert_int_equal(receive(1, frames, WAIT_MS), COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(frames[i].bytes, BYTES);
		assert_int_equal(frames[i].data[3], i);
		assert_int_equal(frames[i].id_hint, i);
	}
}

GROUP_TEST(what_cannot_be_joined_is_told)
{
	uint8_t gid[VB_GID_BYTES];
	struct vb_path path;

	gid_set(gid, "239.1.1.1");
	assert_int_equal(slot[1]->ops->join(slot[1], gid, 12345), ENODEV);
	assert_int_equal(join(1, "239.1.1.1"), 0);
	assert_int_equal(slot[1]->ops->join(slot[1], gid, 12345), ENODEV);
	cast("239.1.1.1", 1);
	expect_frame(1, "239.1.1.1", 1);
	/* Groups of IPv6 can be joined at loopback, but there is no way to them from there. */
	assert_int_equal(join(1, "ff0e::1"), 0);
	assert_int_equal(join(1, "ff02::79"), 0);
	path = path_make("::1", "ff0e::1");
	path.ifindex = lo;
	assert_int_equal(slot[0]->ops->frame_bytes_max(slot[0], &path), 0);
	path = path_make("127.0.0.1", "239.1.1.1");
	path.ifindex = lo;
	assert_true(slot[0]->ops->frame_bytes_max(slot[0], &path) > 4096);
}

/* A child closes its descriptors; the parent's go on. */
GROUP_TEST(forgetting_closes_nothing_of_others)
{
	static struct vb_link *link; /* for good: nothing may be called after forget */
	uint8_t gid[VB_GID_BYTES];
	int fd, group_fd;

	gid_set(gid, "239.1.1.1");
	assert_int_equal(vb_udp_socket_create(&fd), 0);
	assert_int_equal(vb_udp_socket_bind(fd), 0);
	assert_int_equal(vb_link_udp_create(&link, fd, any_is_right), 0);
	assert_int_equal(link->ops->join(link, gid, lo), 0);
	assert_int_equal(join(2, "239.1.1.1"), 0);
	group_fd = link->ops->rx_fd(link, GROUP_FD);
	assert_true(group_fd >= 0);
	link->ops->forget(link);
	assert_int_equal(close(group_fd), -1);
	cast("239.1.1.1", 1);
	expect_frame(2, "239.1.1.1", 1);
}
