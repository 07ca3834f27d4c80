/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <sys/resource.h>

#include "reach_lib.h"

/* How processes reach each other's slots: who gets which descriptors, and who does not. */

PARTIES(two_clients_reach_each_other)
{
	struct vb_hub_summary summary;
	struct vb_hub_row *rows;

	assert_reaches(a, b, 1);
	assert_reaches(b, a, 2);
	assert_reaches(b, a, 3);
	assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
	assert_int_equal(summary.rings, 3);
	assert_int_equal(summary.rows, 2);
	assert_int_equal(rows[0].shm, 1);
	free(rows);
}

HUB_TEST(who_wants_it_is_asked_of_both)
{
	static const enum consent consents[] = {NOTHING, NO, YES};
	struct vb_hub_summary summary;
	struct vb_hub_row *rows;

	for (unsigned i = 0; i < 9; i++) {
		enum consent one = consents[i / 3], other = consents[i % 3];
		int expected = one == YES && other == YES ? 0 : EOPNOTSUPP;

		a = party_open(one);
		b = party_open(other);
		assert_int_equal(reach_rc(a, b->slot.slot), expected);
		assert_int_equal(reach_rc(b, a->slot.slot), expected);
		turn_for(a->client, 10);
		assert_int_equal(a->got_n, expected ? 0 : 1);
		assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
		assert_int_equal(rows[0].shm, one == YES);
		assert_int_equal(rows[1].shm, other == YES);
		free(rows);
		party_close(a);
		party_close(b);
	}
}

HUB_TEST(what_is_nobodys_or_our_own_is_not_reached)
{
	struct vb_hub_peer peer;
	uint64_t start_ns;
	unsigned gone;

	a = party_open(YES);
	b = party_open(YES);
	gone = b->slot.slot;
	start_ns = vb_hub_now_ns();
	assert_int_equal(reach_rc(a, a->slot.slot), EINVAL);
	assert_int_equal(reach_rc(a, 1023), ENOENT);
	/* From a slot that nobody has. */
	assert_int_equal(reach_by(a, 1023, b->slot.slot, a->export_fd, &peer), EINVAL);
	close(b->slot.fd);
	b->slot = slot_lease(a->client);
	assert_int_equal(reach_rc(a, b->slot.slot), EINVAL);
	party_close(b);
	assert_int_equal(reach_rc(a, gone), ENOENT);
	assert_true(vb_hub_now_ns() - start_ns < 900 * MS_NS);
	party_close(a);
}

PARTIES(rings_wait_for_a_turn)
{
	/* More than the client keeps, but not so many more that the socket is full. */
	enum { ROUNDS = 4, RINGS = 25 };
	struct pollfd pollfd = {.events = POLLIN};
	struct vb_hub_peer peer;

	pollfd.fd = vb_hub_client_fd(b->client);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	for (unsigned i = 0; i < ROUNDS * RINGS; i++) {
		assert_int_equal(reach(a, b->slot.slot, i, &peer), 0);
		peer_close(&peer);
		if (i % RINGS == RINGS - 1)
			lease_slowly(b);
	}
	assert_int_equal(b->got_n, 0);
	assert_int_equal(reach_rc(b, a->slot.slot), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_true(wait_got(b, ROUNDS * RINGS));
	for (unsigned i = 0; i < ROUNDS * RINGS; i++)
		assert_true(file_is(b->got[i].ring_fd, "ring", i));
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_true(wait_got(a, 1));
}

/* As it is asked again when a hub dies before it has answered. */
PARTIES(a_ring_comes_once)
{
	int fds[] = {ring_make(1), ring_make(2)};
	struct vb_hub_peer peer;

	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(reach_by(a, a->slot.slot, b->slot.slot, fds[i % 2], &peer), 0);
		assert_peer(&peer, b);
		peer_close(&peer);
	}
	turn_for(b->client, 50);
	assert_int_equal(b->got_n, 2);
	assert_true(file_is(b->got[0].ring_fd, "ring", 1));
	assert_true(file_is(b->got[1].ring_fd, "ring", 2));
	close(fds[0]);
	close(fds[1]);
}

/* What a receiver may well do at once. */
static void on_ring_reach_back(void *arg, uint16_t from, uint16_t to, int ring_fd,
			       const struct vb_hub_peer *peer)
{
	struct party *party = arg;
	struct vb_hub_slot more;

	on_ring(arg, from, to, ring_fd, peer);
	vb_hub_client_turn(party->client);
	vb_hub_client_mark(party->client, to, 5);
	vb_check(!vb_hub_client_lease(party->client, &more));
	close(more.fd);
	vb_check(!reach_rc(party, from));
}

HUB_TEST(a_receiver_may_call_us_back)
{
	struct vb_hub_offer offer;

	a = party_open(YES);
	b = calloc(1, sizeof(*b));
	offer_make(b, &offer);
	assert_int_equal(vb_hub_client_open(&b->client, &offer, on_ring_reach_back, b), 0);
	vb_hub_client_on_answers(b->client, &party_answers);
	b->slot = slot_lease(b->client);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(reach_rc(a, b->slot.slot), 0);
	assert_true(wait_got(b, 3));
	assert_true(wait_got(a, 3));
	party_close(a);
	party_close(b);
}

/* A slot can be reached from the moment that its lease returns. */
PARTIES(a_slot_is_known_as_soon_as_it_is_leased)
{
	enum { SLOTS = 200 };
	struct vb_hub_slot slot;

	party_turner_start(b);
	for (unsigned i = 0; i < SLOTS; i++) {
		slot = slot_lease(b->client);
		assert_int_equal(reach_rc(a, slot.slot), 0);
		close(slot.fd);
	}
	party_close(b);
	/* All of that is over now, and somebody else's. */
	b = party_open(YES);
	assert_int_equal(reach_rc(a, slot.slot), ENOENT);
	assert_reaches(a, b, 1);
}

HUB_TEST(nonsense_reaches_nobody)
{
	struct vb_hub_msg offer = vb_hub_msg_make(VB_HUB_OFFER);
	struct vb_hub_msg ask = vb_hub_msg_make(VB_HUB_REACH);
	struct vb_hub_msg hello = vb_hub_msg_make(VB_HUB_HELLO);
	struct pollfd pollfd = {.events = POLLIN};
	struct party *party;
	int fds[VB_HUB_FDS_MAX] = {0}, name_fd;
	unsigned slot;
	char octet;
	pid_t pid;

	party = party_open(YES);
	pid = hub_pid();
	name_fd = slot_hold(&slot);
	ask.reach.from = party->slot.slot;
	ask.reach.to = slot;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vb_hub_connect(&pollfd.fd), 0);
		if (i == 0) /* an offer without a hello */
			assert_int_equal(vb_hub_send(pollfd.fd, &offer, fds, 2), 0);
		if (i == 1) /* two questions at once */
			assert_int_equal(vb_hub_send(pollfd.fd, &ask, fds, VB_HUB_REACH_FDS), 0);
		if (i == 2) /* a question where only news belong */
			assert_int_equal(vb_hub_send(pollfd.fd, &hello, NULL, 0), 0);
		if (i > 0)
			vb_hub_send(pollfd.fd, &ask, fds, VB_HUB_REACH_FDS);
		for (ssize_t n = 1; n > 0;) {
			assert_int_equal(poll(&pollfd, 1, 500), 1);
			n = recv(pollfd.fd, &octet, 1, 0);
		}
		close(pollfd.fd);
	}
	assert_int_equal(hub_pid(), pid);
	close(name_fd);
	party_close(party);
}

/* In a PID namespace of its own: it sees its own processes, the hub's says nothing there. */
static void live_elsewhere(void *arg)
{
	struct party *party;
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID))
		_exit(77);
	pid = fork();
	if (pid) {
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	party = party_open(YES);
	child_check(getpid() == 1);
	child_check(write(*(int *)arg, &party->slot.slot, 2) == 2);
	child_check(wait_got(party, 1));
	child_check(party->got[0].peer.pid == 0);
	_exit(0);
}

HUB_TEST(a_pid_means_what_it_says_here)
{
	struct vb_hub_peer peer;
	struct party *party;
	uint16_t slot;
	int pipes[2];
	pid_t pid;

	party = party_open(YES);
	assert_int_equal(pipe(pipes), 0);
	pid = child_start(live_elsewhere, &pipes[1]);
	close(pipes[1]);
	if (read(pipes[0], &slot, 2) != 2) {
		waitpid(pid, NULL, 0);
		close(pipes[0]);
		party_close(party);
		SKIP("this system lets us make no PID namespace");
	}
	assert_int_equal(reach(party, slot, 1, &peer), 0);
	assert_true(peer.pid > (uint32_t)pid);
	assert_child_ok(pid);
	peer_close(&peer);
	close(pipes[0]);
	party_close(party);
}

/* Many clients in one process: too many to keep what they get. */
enum { MANY = 100, ASKERS = 4 };

/* The party comes first: party_close() frees it. */
struct one_of_many {
	struct party party;
	uint8_t reached_by[VB_HUB_SLOTS_MAX];
	_Atomic unsigned rings;
};

static struct one_of_many *many[MANY];
static atomic_bool many_turn;

static void on_ring_count(void *arg, uint16_t from, uint16_t to, int ring_fd,
			  const struct vb_hub_peer *peer)
{
	struct one_of_many *one = arg;

	vb_check(to == one->party.slot.slot);
	vb_check(file_is(ring_fd, "ring", (unsigned)from << 10 | to));
	vb_check(file_is(peer->export_fd, "export", from));
	one->reached_by[from]++;
	atomic_fetch_add(&one->rings, 1);
	close(ring_fd);
	peer_close(peer);
}

static struct one_of_many *one_open(void)
{
	struct one_of_many *one = calloc(1, sizeof(*one));
	struct party *party = &one->party;
	struct vb_hub_offer offer;

	offer_make(party, &offer);
	vb_check(!vb_hub_client_open(&party->client, &offer, on_ring_count, one));
	vb_hub_client_on_answers(party->client, &party_answers);
	vb_check(!vb_hub_client_lease(party->client, &party->slot));
	file_mark(party->export_fd, "export", party->slot.slot);
	return one;
}

static void *many_turn_always(void *arg)
{
	while (atomic_load(&many_turn)) {
		struct pollfd pollfd[MANY];

		for (unsigned i = 0; i < MANY; i++)
			pollfd[i] =
				(struct pollfd){vb_hub_client_fd(many[i]->party.client), POLLIN, 0};
		poll(pollfd, MANY, 5);
		for (unsigned i = 0; i < MANY; i++) {
			if (pollfd[i].revents)
				vb_hub_client_turn(many[i]->party.client);
		}
	}
	return NULL;
}

static void *reach_all(void *arg)
{
	for (unsigned i = *(unsigned *)arg; i < MANY; i += ASKERS) {
		for (unsigned k = 0; k < MANY; k++) {
			struct party *from = &many[i]->party, *to = &many[k]->party;
			unsigned number = (unsigned)from->slot.slot << 10 | to->slot.slot;
			struct vb_hub_peer peer;

			if (i == k)
				continue;
			vb_check(!reach(from, to->slot.slot, number, &peer));
			vb_check(file_is(peer.export_fd, "export", to->slot.slot));
			peer_close(&peer);
		}
	}
	return NULL;
}

HUB_TEST(many_reach_all_others)
{
	unsigned number[ASKERS], total = 0;
	pthread_t asker[ASKERS], turner;
	struct rlimit limit, before;

	getrlimit(RLIMIT_NOFILE, &before);
	limit = (struct rlimit){2048, before.rlim_max};
	if (before.rlim_cur < limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &limit))
		SKIP("no more than %d descriptors", (int)before.rlim_max);
	for (unsigned i = 0; i < MANY; i++)
		many[i] = one_open();
	atomic_store(&many_turn, true);
	pthread_create(&turner, NULL, many_turn_always, NULL);
	for (unsigned i = 0; i < ASKERS; i++) {
		number[i] = i;
		pthread_create(&asker[i], NULL, reach_all, &number[i]);
	}
	for (unsigned i = 0; i < ASKERS; i++)
		pthread_join(asker[i], NULL);
	for (unsigned i = 0; i < 1000 && total < MANY * (MANY - 1); i++) {
		total = 0;
		usleep(5000);
		for (unsigned k = 0; k < MANY; k++)
			total += atomic_load(&many[k]->rings);
	}
	atomic_store(&many_turn, false);
	pthread_join(turner, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		for (unsigned k = 0; k < MANY; k++)
			assert_int_equal(many[i]->reached_by[many[k]->party.slot.slot], i != k);
	}
	for (unsigned i = 0; i < MANY; i++)
		party_close(&many[i]->party);
	setrlimit(RLIMIT_NOFILE, &before);
	/* A hundred sockets more than the next test expects. */
	hub_stop();
}
