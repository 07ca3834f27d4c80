/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/resource.h>

#include "descriptors.h"
#include "reach_lib.h"

/* Who reaches whom when somebody dies, sleeps, is silent or has run out of something. */

/* A process that can be reached, until it is killed. */
static void live(int told_fd, void *arg)
{
	struct party *party = party_open(YES);

	child_check(write(told_fd, &party->slot.slot, 2) == 2);
	for (;;) {
		turn_for(party->client, 100);
		got_close(party);
	}
}

HUB_TEST(a_line_is_cut_when_its_process_dies)
{
	struct pollfd pollfd = {.events = 0};
	struct vb_hub_peer peer;
	struct party *party;
	uint16_t slot;
	pid_t pid;

	pid = child_tells(live, NULL, &slot, 2);
	party = party_open(YES);
	assert_int_equal(reach(party, slot, 1, &peer), 0);
	assert_int_equal(peer.pid, pid);
	pollfd.fd = peer.line_fd;
	assert_int_equal(poll(&pollfd, 1, 20), 0);
	/* The hub has passed on the end that is not ours, and kept none. */
	kill(pid, SIGSTOP);
	assert_int_equal(poll(&pollfd, 1, 20), 0);
	kill(pid, SIGKILL);
	assert_int_equal(poll(&pollfd, 1, 1000), 1);
	assert_true(pollfd.revents & POLLHUP);
	waitpid(pid, NULL, 0);
	assert_int_equal(reach_rc(party, slot), ENOENT);
	peer_close(&peer);
	party_close(party);
}

/* One that asks, and is killed anywhere in between. */
static void ask_always(void *arg)
{
	unsigned to = *(unsigned *)arg;
	struct party *party = party_open(YES);

	for (;;) {
		reach_rc(party, to);
		vb_hub_client_turn(party->client);
		got_close(party);
	}
}

PARTIES(the_killed_disturb_nobody)
{
	unsigned to, rings;
	uint16_t slot;

	to = a->slot.slot;
	for (unsigned i = 0; i < 40; i++) {
		pid_t asker = child_start(ask_always, &to);
		pid_t target = child_tells(live, NULL, &slot, 2);
		unsigned n = 0;
		int rc = 0;

		/* Whom we reach dies while we do, and somebody who reaches us. */
		for (; !rc; n++) {
			rc = reach_rc(a, slot);
			if (n == i)
				kill(target, SIGKILL);
			if (n == i / 2)
				kill(asker, SIGKILL);
			vb_hub_client_turn(a->client);
			got_close(a);
		}
		assert_int_equal(rc, ENOENT);
		waitpid(asker, NULL, 0);
		waitpid(target, NULL, 0);
	}
	turn_for(a->client, 20);
	rings = a->got_n;
	assert_int_equal(reach_rc(b, a->slot.slot), 0);
	assert_true(wait_got(a, rings + 1));
}

PARTIES(a_new_hub_learns_it_all_again)
{
	struct party *c;

	c = party_open(NO);
	assert_reaches(a, b, 1);
	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = hub_pid();

		hub_kill();
		/* What was handed out before lives on. */
		assert_peer(&b->got[0].peer, a);
		party_turner_start(b);
		party_turner_start(c);
		/* Nobody turns for the one who asks, nor has anybody waited for a hub. */
		assert_int_equal(reach_rc(a, c->slot.slot), EOPNOTSUPP);
		assert_int_equal(reach_rc(a, b->slot.slot), 0);
		atomic_store(&b->turns, false);
		atomic_store(&c->turns, false);
		pthread_join(b->turner, NULL);
		pthread_join(c->turner, NULL);
		assert_true(wait_got(b, 2));
		assert_int_not_equal(hub_pid(), pid);
		assert_reaches(a, b, 10 + i);
	}
	party_close(c);
}

/* The rings that the hub had handed out when it died are in the sockets of those they are for. */
PARTIES(a_dying_hubs_last_rings_arrive)
{
	enum { RINGS = 30 };
	pid_t pid;
	int fd;

	for (unsigned i = 0; i < RINGS; i++)
		assert_int_equal(reach_rc(a, b->slot.slot), 0);
	/* It dies without having read what we say, which makes an error of our next recv(2). */
	pid = hub_pid();
	kill(pid, SIGSTOP);
	vb_hub_client_mark(b->client, b->slot.slot, 1);
	kill(pid, SIGKILL);
	while (!vb_hub_connect(&fd)) {
		close(fd);
		usleep(1000);
	}
	assert_true(wait_got(b, RINGS));
	turn_for(b->client, 100);
	assert_reaches(a, b, 1);
}

/* Whoever does not take his rings gets no more, and those that he got are not lost. */
PARTIES(one_who_never_turns_is_not_reached_for_ever)
{
	uint64_t start_ns;
	unsigned n = 0;
	int rc;

	do {
		start_ns = vb_hub_now_ns();
		rc = reach_rc(a, b->slot.slot);
		n += !rc;
	} while (!rc && n < GOT_MAX);
	assert_int_equal(rc, ETIMEDOUT);
	assert_in_range(vb_hub_now_ns() - start_ns, 2900 * MS_NS, 25000 * MS_NS);
	assert_in_range(n, 32, 100);
	assert_int_equal(reach_rc(b, a->slot.slot), 0);
	assert_true(wait_got(b, n));
	assert_reaches(a, b, 1);
}

static void *turn_soon(void *arg)
{
	usleep(200000);
	return turn_always(arg);
}

PARTIES(one_who_turns_late_is_reached_late)
{
	uint64_t ns = 0;
	unsigned n;

	atomic_store(&b->turns, true);
	assert_int_equal(pthread_create(&b->turner, NULL, turn_soon, b), 0);
	for (n = 0; n < 500 && ns < 20 * MS_NS; n++) {
		ns = vb_hub_now_ns();
		assert_int_equal(reach_rc(a, b->slot.slot), 0);
		ns = vb_hub_now_ns() - ns;
	}
	assert_in_range(n, 32, 100);
	for (unsigned i = 0; i < 1000 && atomic_load(&b->got_n) < n; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&b->got_n), n);
}

/* With no descriptor left: what was said to us is taken in above the soft limit. */
static void live_on_few_descriptors(int told_fd, void *arg)
{
	struct party *party = party_open(YES);
	struct rlimit limit;
	int free_fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	free_fd = fcntl(0, F_DUPFD, 3);
	close(free_fd);
	limit.rlim_cur = (rlim_t)free_fd;
	child_check(!setrlimit(RLIMIT_NOFILE, &limit));
	child_check(write(told_fd, &party->slot.slot, 2) == 2);
	child_check(wait_got(party, 5));
	for (unsigned i = 0; i < 5; i++)
		child_check(file_is(party->got[i].ring_fd, "ring", i));
	getrlimit(RLIMIT_NOFILE, &limit);
	child_check(limit.rlim_cur == (rlim_t)free_fd);
	_exit(0);
}

HUB_TEST(no_ring_is_lost_for_lack_of_descriptors)
{
	struct vb_hub_peer peer;
	struct rlimit limit;
	struct party *party;
	uint16_t slot;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 128)
		SKIP("no more than %d descriptors", (int)limit.rlim_max);
	pid = child_tells(live_on_few_descriptors, NULL, &slot, 2);
	party = party_open(YES);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(reach(party, slot, i, &peer), 0);
		peer_close(&peer);
	}
	assert_child_ok(pid);
	party_close(party);
}

static void *name_drop_soon(void *arg)
{
	usleep(200000);
	close(*(int *)arg);
	return NULL;
}

/* A slot of which the hub hears nothing, as after its restart from a process that is stopped. */
HUB_TEST(a_silent_holder_is_waited_for)
{
	struct party *party;
	uint64_t start_ns;
	pthread_t thread;
	unsigned slot;
	int fd;

	party = party_open(YES);
	fd = slot_hold(&slot);
	start_ns = vb_hub_now_ns();
	assert_int_equal(reach_rc(party, slot), ETIMEDOUT);
	assert_in_range(vb_hub_now_ns() - start_ns, 900 * MS_NS, 2500 * MS_NS);
	start_ns = vb_hub_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, name_drop_soon, &fd), 0);
	assert_int_equal(reach_rc(party, slot), ENOENT);
	assert_in_range(vb_hub_now_ns() - start_ns, 150 * MS_NS, 900 * MS_NS);
	pthread_join(thread, NULL);
	party_close(party);
}

HUB_TEST(no_descriptor_is_left_behind)
{
	struct party *keeper;
	unsigned before, hubs_before;
	pid_t pid;

	keeper = party_open(YES);
	pid = hub_pid();
	/* It closes the connection on which we asked for that. */
	usleep(50000);
	before = descriptors_of(getpid());
	hubs_before = descriptors_of(pid);
	for (unsigned i = 0; i < 5; i++) {
		a = party_open(i % 2 ? YES : NO);
		b = party_open(YES);
		reach_rc(a, b->slot.slot);
		reach_rc(a, 1023);
		reach_rc(b, a->slot.slot);
		/* One of them takes its rings, one has them in its socket, one in its queue. */
		wait_got(a, i % 2);
		reach_rc(keeper, b->slot.slot);
		if (i > 2)
			lease_slowly(b);
		party_close(a);
		party_close(b);
	}
	assert_int_equal(descriptors_of(getpid()), before);
	for (unsigned i = 0; i < 100 && descriptors_of(pid) != hubs_before; i++)
		usleep(1000);
	assert_int_equal(descriptors_of(pid), hubs_before);
	party_close(keeper);
}

PARTIES(a_forked_child_forgets_what_waits)
{
	pid_t pid;

	assert_int_equal(reach_rc(a, b->slot.slot), 0);
	lease_slowly(b);
	pid = fork();
	if (pid == 0) {
		unsigned before = descriptors_of(getpid());

		vb_hub_client_forget(b->client);
		/* epoll, two timers, wake, connection, keeper; two names; a ring, line, export */
		child_check(descriptors_of(getpid()) == before - 8 - 2 - 3);
		_exit(0);
	}
	assert_child_ok(pid);
	assert_true(wait_got(b, 1));
	assert_reaches(a, b, 1);
}
