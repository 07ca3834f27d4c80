/* SPDX-License-Identifier: BSD-2-Clause */
/* Which source port frames to a slot have, and what becomes of it where there is none to be had. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "link/udp_senders.h"
#include "udp_lib.h"

enum { SLOTS = 3, THREADS = 4, FDS_MAX = 4096 };

static struct vb_link *slot[SLOTS];
/* Two addresses of this host's, so that this counts as another host. */
static struct vb_path path;

static int group_create(void **state)
{
	if (!netns_enter())
		return group_lacks(NO_NETWORK_NAMESPACE);
	if (!slots_make(slot, SLOTS))
		return -1;
	path = path_make("127.0.0.1", "127.0.0.2");
	*state = slot;
	return 0;
}

static int group_destroy(void **state)
{
	if (*state)
		slots_destroy(slot, SLOTS);
	return 0;
}

#define GROUP_TEST(name) TEST_BETWEEN(name, group_create, group_destroy)

static uint16_t sport_for(enum vb_whom whom, unsigned to)
{
	return slot[1]->ops->sport(slot[1], &path, (uint16_t)to, whom);
}

static uint16_t sport(unsigned from, unsigned to)
{
	return slot[from]->ops->sport(slot[from], &path, (uint16_t)to, VB_OURS);
}

static unsigned fds_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < FDS_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* One frame from slot 1 to slot 2: the port that it came from. */
static unsigned sport_seen(void)
{
	struct pollfd pollfd = {slot[2]->ops->rx_fd(slot[2], 0), POLLIN, 0};
	struct vb_frame frames[4];
	uint8_t data[64] = {0};

	assert_int_equal(frame_send_to(slot[1], &path, 2, data, sizeof(data)), 0);
	poll(&pollfd, 1, 1000);
	assert_int_equal(vb_link_rx(slot[2], frames, 4), 1);
	assert_memory_equal(frames[0].path.src, path.src, VB_GID_BYTES);
	assert_memory_equal(frames[0].path.dst, path.dst, VB_GID_BYTES);
	return frames[0].path.sport;
}

/* Take a port, as somebody who does not share it. */
static int port_take(uint16_t port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* --- tests --- */

GROUP_TEST(frames_leave_from_the_port_of_their_slot)
{
	static const char *const addresses[][2] = {{"127.0.0.1", "127.0.0.2"}, {"::", "::1"}};

	for (unsigned i = 0; i < 2; i++) {
		path = path_make(addresses[i][0], addresses[i][1]);
		assert_int_equal(sport(1, 2), 0xc002);
		path.sport = 0xc002;
		if (i == 1)
			gid_set(path.src, "::1");
		assert_int_equal(sport_seen(), 0xc002);
		path.sport = VB_UDP_PORT;
		assert_int_equal(sport_seen(), VB_UDP_PORT);
	}
	path = path_make("127.0.0.1", "127.0.0.2");
	assert_int_equal(sport(1, 0), 0xc000);
	assert_int_equal(sport(1, 1023), 0xc3ff);
	assert_int_equal(sport(1, 1024), VB_UDP_PORT);
}

GROUP_TEST(neighbours_share_a_port)
{
	assert_int_equal(sport(0, 2), 0xc002);
	assert_int_equal(sport(1, 2), 0xc002);
	path.sport = 0xc002;
	assert_int_equal(sport_seen(), 0xc002);
}

GROUP_TEST(what_stays_on_the_host_needs_no_port)
{
	unsigned fds;

	fds = fds_open();
	path = path_make("127.0.0.1", "127.0.0.1");
	assert_int_equal(sport(1, 2), VB_UDP_PORT);
	path = path_make("::1", "::1");
	assert_int_equal(sport(1, 2), VB_UDP_PORT);
	assert_int_equal(fds_open(), fds);
}

/* Its ICRC would be wrong. */
GROUP_TEST(a_port_that_was_not_told_is_not_replaced)
{
	uint8_t data[64] = {0};

	path.sport = 0xc002;
	assert_int_equal(frame_send_to(slot[1], &path, 2, data, sizeof(data)), EADDRNOTAVAIL);
	path.sport = 0xffff;
	assert_int_equal(frame_send_to(slot[1], &path, 2, data, sizeof(data)), EADDRNOTAVAIL);
}

GROUP_TEST(a_port_of_somebody_elses_is_done_without)
{
	unsigned fds;
	int fd;

	fds = fds_open();
	fd = port_take(0xc002);
	assert_int_equal(sport(1, 2), VB_UDP_PORT);
	close(fd);
	/* For good. */
	assert_int_equal(sport(1, 2), VB_UDP_PORT);
	assert_int_equal(sport_seen(), VB_UDP_PORT);
	assert_int_equal(fds_open(), fds);
	assert_int_equal(sport(0, 2), 0xc002);
}

GROUP_TEST(sockets_are_bounded)
{
	unsigned fds;

	fds = fds_open();
	for (unsigned to = 0; to < VB_UDP_SLOTS; to++)
		assert_int_equal(sport(1, to),
				 to < VB_UDP_SENDERS_MAX ? 0xc000 + to : VB_UDP_PORT);
	assert_int_equal(fds_open(), fds + VB_UDP_SENDERS_MAX + VB_UDP_COUNTED_MAX);
	assert_int_equal(sport(1, 7), 0xc007);
	slots_destroy(slot, SLOTS);
	*state = NULL;
	assert_int_equal(fds_open(), fds - SLOTS);
}

/* Who sends something, under whatever address and from whatever slot, takes nothing from others. */
GROUP_TEST(all_strangers_have_one_together)
{
	static const char *const addresses[][2] = {{"127.0.0.1", "127.0.0.2"}, {"::1", "::1"}};
	unsigned fds;

	assert_int_equal(sport_for(VB_STRANGER, 1), 0xbfff);
	fds = fds_open();
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned to = 0; to <= VB_UDP_SLOTS; to++) {
			path = path_make("127.0.0.1", "127.0.0.2");
			gid_set(path.src, addresses[i][0]);
			gid_set(path.dst, addresses[i][1]);
			path.dst[15] = (uint8_t)(2 + to % 100);
			/* To another address: what stays on one is not asked for. */
			assert_int_equal(sport_for(VB_STRANGER, to), 0xbfff);
		}
	}
	assert_int_equal(fds_open(), fds);
	for (unsigned i = 0; i < 2; i++) {
		path = path_make(i ? "::" : "127.0.0.1", addresses[i][1]);
		path.sport = 0xbfff;
		if (i)
			gid_set(path.src, "::1");
		assert_int_equal(sport_seen(), 0xbfff);
	}
	path = path_make("::", "::1");
	assert_int_equal(sport(1, 2), 0xc002);
	path = path_make("127.0.0.1", "127.0.0.2");
	assert_int_equal(sport(1, 2), 0xc002);
	/* Who is known has a port of his own for everything. */
	assert_int_equal(sport_for(VB_STRANGER, 2), 0xc002);
}

GROUP_TEST(guests_leave_room)
{
	unsigned fds;

	fds = fds_open();
	for (unsigned to = 0; to < VB_UDP_SLOTS; to++)
		assert_int_equal(sport_for(VB_GUEST, to),
				 to < VB_UDP_GUESTS_MAX ? 0xc000 + to : VB_UDP_PORT);
	assert_int_equal(fds_open(), fds + VB_UDP_GUESTS_MAX);
	path.sport = 0xc002;
	assert_int_equal(sport_seen(), 0xc002);
	/* That one could not have it is not what another has to do with. */
	for (unsigned to = VB_UDP_GUESTS_MAX; to < VB_UDP_SENDERS_MAX; to++)
		assert_int_equal(sport(1, to), 0xc000 + to);
	assert_int_equal(fds_open(), fds + VB_UDP_SENDERS_MAX + VB_UDP_COUNTED_MAX);
}

GROUP_TEST(the_other_half_of_the_descriptors_is_left)
{
	struct rlimit before, few;
	unsigned own = 0, fds;

	fds = fds_open();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned to = 0; to < VB_UDP_SLOTS; to++)
		own += sport(1, to) != VB_UDP_PORT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_in_range(own, 1, 32);
	assert_in_range(fds_open() - fds, own, 32);
	assert_int_equal(sport_seen(), VB_UDP_PORT);
}

GROUP_TEST(a_forked_child_closes_them)
{
	unsigned fds;
	int status;
	pid_t pid;

	fds = fds_open();
	assert_int_equal(sport(1, 2), 0xc002);
	assert_int_equal(sport(2, 900), 0xc384);
	pid = fork();
	if (pid == 0) {
		for (unsigned i = 0; i < SLOTS; i++)
			slot[i]->ops->forget(slot[i]);
		_exit(fds_open() != fds - SLOTS);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	path.sport = 0xc002;
	assert_int_equal(sport_seen(), 0xc002);
}

/* One slot's, and one link's of this host: whoever receives them takes them for one flow. */
GROUP_TEST(a_port_that_is_chosen_is_nobody_elses)
{
	static const char *const addresses[][2] = {{"127.0.0.1", "127.0.0.2"}, {"::1", "::1"}};
	const struct vb_link_ops *ops;
	unsigned fds;
	int fd;

	ops = slot[1]->ops;
	for (unsigned i = 0; i < 2; i++) {
		path = path_make(addresses[i][0], addresses[i][1]);
		assert_int_equal(ops->sport_choose(slot[1], &path, 2, 55555), 0);
		path.sport = 55555;
		assert_int_equal(sport_seen(), 55555);
		fds = fds_open();
		assert_int_equal(ops->sport_choose(slot[1], &path, 2, 55555), 0);
		assert_int_equal(fds_open(), fds);
	}
	assert_int_equal(ops->sport_choose(slot[1], &path, 0, 55555), EADDRINUSE);
	assert_int_equal(ops->sport_choose(slot[0], &path, 2, 55555), EADDRINUSE);
	/* The slots' own are shared with others, and other things' are other things'. */
	assert_int_equal(ops->sport_choose(slot[1], &path, 2, 0xc002), EADDRINUSE);
	assert_int_equal(ops->sport_choose(slot[1], &path, 2, VB_UDP_PORT), EADDRINUSE);
	fd = port_take(55556);
	assert_int_equal(ops->sport_choose(slot[1], &path, 2, 55556), EADDRINUSE);
	close(fd);
	assert_int_equal(ops->sport_choose(slot[1], &path, 2, 55556), 0);
	for (unsigned i = 2; i < VB_UDP_CHOSEN_MAX; i++)
		assert_int_equal(ops->sport_choose(slot[1], &path, 2, (uint16_t)(55555 + i)), 0);
	assert_int_equal(ops->sport_choose(slot[1], &path, 2, 60000), ENOSPC);
}

GROUP_TEST(nothing_is_kept_that_is_sent_to_them)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(0xc002)};
	uint8_t data[64] = {0};
	int fd, other;

	assert_int_equal(vb_udp_socket_sender(&fd, AF_INET6, NULL, 0xc002, 64, false), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(other, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)),
			 sizeof(data));
	assert_int_equal(recv(fd, data, sizeof(data), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(other);
	close(fd);
}

static void *ask_for_all(void *arg)
{
	uintptr_t own = 0;

	for (unsigned to = 0; to < VB_UDP_SLOTS; to++)
		own += sport(1, to) != VB_UDP_PORT;
	return (void *)own;
}

GROUP_TEST(threads_may_ask_at_once)
{
	pthread_t thread[THREADS];
	unsigned fds;
	void *own;

	fds = fds_open();
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_for_all, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &own), 0);
		assert_int_equal((uintptr_t)own, VB_UDP_SENDERS_MAX);
	}
	assert_int_equal(fds_open(), fds + VB_UDP_SENDERS_MAX + VB_UDP_COUNTED_MAX);
}

/* A socket that is connected is told when nobody was there. That is no reason not to send again. */
TEST(an_earlier_refusal_keeps_nothing_from_leaving)
{
	uint8_t data[64] = {0};
	struct vb_link *link;
	int fd, listener;

	if (!netns_enter())
		SKIP(NO_NETWORK_NAMESPACE);
	assert_int_equal(vb_udp_socket_create(&fd), 0);
	assert_int_equal(vb_link_udp_create(&link, fd, any_is_right), 0);
	path = path_make("127.0.0.1", "127.0.0.2");
	path.sport = link->ops->sport(link, &path, 2, VB_OURS);
	assert_int_equal(path.sport, 0xc002);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(frame_send_to(link, &path, 2, data, sizeof(data)), 0);
	assert_int_equal(vb_udp_socket_create(&listener), 0);
	assert_int_equal(vb_udp_socket_bind(listener), 0);
	assert_int_equal(frame_send_to(link, &path, 2, data, sizeof(data)), 0);
	assert_int_equal(recv(listener, data, sizeof(data), 0), sizeof(data));
	close(listener);
	link->ops->destroy(link);
}
