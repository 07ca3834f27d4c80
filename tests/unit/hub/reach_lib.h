/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_REACH_LIB_H
#define VB_TESTS_REACH_LIB_H

/* Clients that reach each other's slots, with exports and rings that say whose they are. */

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "hub/client_internal.h"
#include "hub/client_reach.h"
#include "hub_lib.h"

enum { GOT_MAX = 1000, TEXT_BYTES = 24 };

struct got {
	uint16_t from, to;
	int ring_fd;
	struct vb_hub_peer peer;
};

/* A client, as a process has one, with what it offers. */
struct party {
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
	int token_fd;
	int export_fd;
	_Atomic unsigned got_n;
	struct got got[GOT_MAX];
	_Atomic unsigned answers; /* to what it asked; the last one: */
	int answer;
	struct vb_hub_peer answerer;
	pthread_t turner;
	atomic_bool turns;
};

enum consent { NOTHING, NO, YES };

/* Files that say whose they are. */
static inline void file_mark(int fd, const char *what, unsigned number)
{
	char text[TEXT_BYTES] = "";

	snprintf(text, sizeof(text), "%s %u", what, number);
	vb_check(pwrite(fd, text, sizeof(text), 0) == sizeof(text));
}

static inline bool file_is(int fd, const char *what, unsigned number)
{
	char text[TEXT_BYTES] = "", is[TEXT_BYTES] = "";

	snprintf(text, sizeof(text), "%s %u", what, number);
	return pread(fd, is, sizeof(is), 0) == sizeof(is) && !memcmp(text, is, sizeof(is));
}

static inline int ring_make(unsigned number)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	vb_check(fd >= 0);
	file_mark(fd, "ring", number);
	return fd;
}

static inline void on_ring(void *arg, uint16_t from, uint16_t to, int ring_fd,
			   const struct vb_hub_peer *peer)
{
	struct party *party = arg;
	unsigned n = atomic_load(&party->got_n);

	vb_check(n < GOT_MAX);
	party->got[n] = (struct got){from, to, ring_fd, *peer};
	atomic_store(&party->got_n, n + 1);
}

static inline void on_answer(void *arg, uint16_t from, uint16_t to,
			     struct vb_hub_ring_files *files, int rc,
			     const struct vb_hub_peer *peer)
{
	struct party *party = arg;

	party->answer = rc;
	party->answerer = *peer;
	if (!rc) {
		party->answerer.line_fd = files->line_fd;
		files->line_fd = -1;
	}
	atomic_fetch_add(&party->answers, 1);
}

static const struct vb_hub_answers party_answers = {on_answer, NULL};

static inline void peer_close(const struct vb_hub_peer *peer)
{
	close(peer->line_fd);
	close(peer->export_fd);
}

static inline void got_close(struct party *party)
{
	for (unsigned i = 0; i < party->got_n; i++) {
		close(party->got[i].ring_fd);
		peer_close(&party->got[i].peer);
	}
	party->got_n = 0;
}

static inline void line_make(int ends[2])
{
	vb_check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
}

static inline void offer_make(struct party *party, struct vb_hub_offer *offer)
{
	int ends[2];

	line_make(ends);
	close(ends[1]);
	party->token_fd = ends[0];
	party->export_fd = memfd_create("export", MFD_CLOEXEC);
	vb_check(party->export_fd >= 0);
	*offer = (struct vb_hub_offer){party->token_fd, party->export_fd, true};
}

static inline struct party *party_open(enum consent consent)
{
	struct party *party = calloc(1, sizeof(*party));
	struct vb_hub_offer offer;

	offer_make(party, &offer);
	offer.shm = consent == YES;
	vb_check(!vb_hub_client_open(&party->client, consent == NOTHING ? NULL : &offer, on_ring,
				     party));
	vb_hub_client_on_answers(party->client, &party_answers);
	vb_check(!vb_hub_client_lease(party->client, &party->slot));
	file_mark(party->export_fd, "export", party->slot.slot);
	return party;
}

static inline void *turn_always(void *arg)
{
	struct party *party = arg;

	while (atomic_load(&party->turns))
		turn_for(party->client, 5);
	return NULL;
}

static inline void party_turner_start(struct party *party)
{
	atomic_store(&party->turns, true);
	vb_check(!pthread_create(&party->turner, NULL, turn_always, party));
}

static inline void party_close(struct party *party)
{
	if (atomic_exchange(&party->turns, false))
		pthread_join(party->turner, NULL);
	got_close(party);
	close(party->slot.fd);
	vb_hub_client_close(party->client);
	close(party->token_fd);
	close(party->export_fd);
	free(party);
}

/* Two that may be reached, for the whole test. */
static struct party *a, *b;

static inline int parties_begin(void **state)
{
	if (hub_ready()) {
		a = party_open(YES);
		b = party_open(YES);
	}
	return 0;
}

static inline int parties_end(void **state)
{
	party_close(a);
	party_close(b);
	return 0;
}

#define PARTIES(name) TEST_BETWEEN(name, parties_begin, parties_end)

/*
 * Ask through this ring, which stays the caller's, and wait for the answer, hearing the hub. Our
 * end of its line is in *peer then.
 */
static inline int reach_by(struct party *party, uint16_t from, uint16_t to, int ring_fd,
			   struct vb_hub_peer *peer)
{
	struct vb_hub_ring_files files = {.ring_fd = fcntl(ring_fd, F_DUPFD_CLOEXEC, 0)};
	int ends[2], rc;

	line_make(ends);
	files.line_fd = ends[0];
	files.far_fd = ends[1];
	rc = vb_hub_client_ask(party->client, from, to, &files);
	vb_hub_ring_files_close(&files);
	*peer = (struct vb_hub_peer){.line_fd = -1, .export_fd = -1};
	if (rc != EINPROGRESS)
		return rc;
	/* Rings are for a turn: nobody turns here. */
	while (vb_hub_client_await(party->client, from, to, vb_hub_now_ns() + MS_NS))
		vb_hub_news_wait(party->client, VB_FD_NONE, 0);
	*peer = party->answerer;
	return party->answer;
}

/* Reach with a ring that bears the number. */
static inline int reach(struct party *from, unsigned to, unsigned number, struct vb_hub_peer *peer)
{
	int fd = ring_make(number);
	int rc = reach_by(from, from->slot.slot, (uint16_t)to, fd, peer);

	close(fd);
	return rc;
}

/* The same, when only the answer counts. */
static inline int reach_rc(struct party *from, unsigned to)
{
	struct vb_hub_peer peer;
	int rc = reach(from, to, 0, &peer);

	if (!rc)
		peer_close(&peer);
	return rc;
}

static inline bool wait_got(struct party *party, unsigned n)
{
	for (unsigned i = 0; i < 1000 && atomic_load(&party->got_n) < n; i++)
		turn_for(party->client, 5);
	return atomic_load(&party->got_n) == n;
}

/* It is another's export, which says whose it is, and a line. */
static inline void assert_peer(const struct vb_hub_peer *peer, const struct party *other)
{
	assert_int_equal(peer->pid, getpid());
	assert_true(fcntl(peer->line_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(peer->export_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(file_is(peer->export_fd, "export", other->slot.slot));
}

/* These are the two ends of one line. */
static inline void assert_line(int one_fd, int other_fd)
{
	char octet;

	assert_int_equal(send(one_fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL), 1);
	assert_int_equal(recv(other_fd, &octet, 1, MSG_DONTWAIT), 1);
	assert_int_equal(recv(other_fd, &octet, 1, MSG_DONTWAIT), -1);
}

static inline void assert_reaches(struct party *from, struct party *to, unsigned number)
{
	struct vb_hub_peer peer;
	struct got *got;

	got_close(to);
	assert_int_equal(reach(from, to->slot.slot, number, &peer), 0);
	assert_peer(&peer, to);
	assert_true(wait_got(to, 1));
	got = &to->got[0];
	assert_line(peer.line_fd, got->peer.line_fd);
	peer_close(&peer);
	assert_int_equal(got->from, from->slot.slot);
	assert_int_equal(got->to, to->slot.slot);
	assert_true(file_is(got->ring_fd, "ring", number));
	assert_true(fcntl(got->ring_fd, F_GETFD) & FD_CLOEXEC);
	assert_peer(&got->peer, from);
}

static inline void *hub_continue_soon(void *pid)
{
	usleep(50000);
	kill(*(pid_t *)pid, SIGCONT);
	return NULL;
}

/* A call that has to listen to the hub for a while. */
static inline void lease_slowly(struct party *party)
{
	pid_t pid = hub_pid();
	struct vb_hub_slot slot;
	pthread_t thread;

	kill(pid, SIGSTOP);
	vb_check(!pthread_create(&thread, NULL, hub_continue_soon, &pid));
	slot = slot_lease(party->client);
	pthread_join(thread, NULL);
	close(slot.fd);
}

#endif
