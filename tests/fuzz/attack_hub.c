/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * attack_hub SEED= N= [T=] [BUT=]: speaks to the hub of this network namespace out of turn, in N
 * steps: all messages in all orders, right, and wrong in any place, with descriptors that do not
 * belong there or become something else later; stops to read, hangs up half, dies by the hand of a
 * signal. It ends with status 0, and 1 if the hub has died. What else has to be so afterwards,
 * tests/fuzz/attack_hub.sh looks at.
 *
 * It leaves out what any process of the user may ask for, as it might kill: that the hub stops
 * although clients are there, and that others' devices fail.
 *
 * Words for BUT=: claim, slots that are others'; store, the memory of XRC domains; keeper, to hand
 * in another, and to use its ends for something else; life: the hub may die, by others' hands.
 *
 * A message of a new type needs a row in `kinds`; one that has none is made of random octets.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "attack.h"
#include "attack_letters.h"
#include "base/check.h"
#include "base/ring.h"
#include "hub/channel.h"
#include "hub/program.h"
#include "hub/ask/query.h"

enum {
	CONNS = 48,
	LOOT = 96,  /* descriptors that the hub gave us */
	OWN = 24,   /* slots: so many at most are leased at a time, by each process */
	CHILDREN = 4,
	CHILD_STEPS = 60,
	FDS_MAX = 8, /* of one message, more than any may have */
	OCTETS_MAX = 70000,
	NOBODYS = 900, /* slots from here on are not lent while this runs */
	FILES_MAX = 600,
};

enum zoo { PIPE_IN, PIPE_OUT, STREAM, STREAM_TOO, PACKETS, PACKETS_TOO, UDP, TCP, NULLS, FOLDER,
	   EPOLL, EVENTS, PLAIN, SHORT, RING, EXPORT, BELL, SHRINKING, RECORDS, ZOO };

/* What a row of `kinds` says of a message's descriptors; 0: no more. */
enum fit { NO_MORE, FIT_KEEPER, FIT_STORE, FIT_RING, FIT_SOCKET, FIT_EXPORT, FIT_NAME,
	   FIT_RECORDS };

static struct {
	int conn[CONNS];
	int zoo[ZOO];
	int loot[LOOT];
	struct {
		unsigned slot; /* 0: none */
		int name_fd, udp_fd;
	} own[OWN];
	pid_t child[CHILDREN];
	pid_t hub;
	bool is_child;
} we;

/* --- what happened last, for whoever has to find out --- */

static struct {
	const char *what;
	unsigned detail;
} last[32];
static unsigned last_n;

static void note(const char *what, unsigned detail)
{
	last[last_n % VB_ARRAY_LEN(last)].what = what;
	last[last_n++ % VB_ARRAY_LEN(last)].detail = detail;
}

static _Noreturn void hub_is_gone(const char *how)
{
	fprintf(stderr, "the last steps, the latest first:");
	for (unsigned i = 1; i <= VB_ARRAY_LEN(last) && i <= last_n; i++)
		fprintf(stderr, " %s %u;", last[(last_n - i) % VB_ARRAY_LEN(last)].what,
			last[(last_n - i) % VB_ARRAY_LEN(last)].detail);
	fputc('\n', stderr);
	attack_fail("the hub, pid %d, is gone: %s", (int)we.hub, how);
}

/* --- descriptors --- */

static void pair_make(int type, enum zoo first)
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, &we.zoo[first]))
		attack_fail("socketpair: %s", strerror(errno));
}

static void zoo_make(void)
{
	if (pipe2(&we.zoo[PIPE_IN], O_CLOEXEC | O_NONBLOCK))
		attack_fail("pipe2: %s", strerror(errno));
	pair_make(SOCK_STREAM, STREAM);
	pair_make(SOCK_SEQPACKET, PACKETS);
	we.zoo[UDP] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	we.zoo[TCP] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	we.zoo[NULLS] = open("/dev/null", O_RDWR | O_CLOEXEC);
	we.zoo[FOLDER] = open("/", O_RDONLY | O_CLOEXEC);
	we.zoo[EPOLL] = epoll_create1(EPOLL_CLOEXEC);
	we.zoo[EVENTS] = eventfd(0, EFD_CLOEXEC);
	we.zoo[PLAIN] = attack_memory(1 << 16, false);
	we.zoo[SHORT] = attack_memory(100, true);
	we.zoo[RING] = attack_memory(sizeof(struct vb_ring_area), true);
	we.zoo[EXPORT] = attack_export_make();
	we.zoo[BELL] = eventfd(0, EFD_CLOEXEC);
	we.zoo[SHRINKING] = attack_memory(sizeof(struct vb_ring_area), false);
	we.zoo[RECORDS] = attack_records_make();
}

static void replace(int *at, int fd)
{
	if (*at >= 0)
		close(*at);
	*at = fd;
}

static int any_fd(uint64_t *rng)
{
	unsigned place = attack_below(rng, 2 * ZOO), loot = attack_below(rng, LOOT);

	if (place < ZOO || we.loot[loot] < 0)
		return we.zoo[place % ZOO];
	return we.loot[loot];
}

/* The name of that slot, if it is ours. */
static int name_of(unsigned slot)
{
	for (unsigned i = 0; i < OWN; i++)
		if (slot && we.own[i].slot == slot)
			return we.own[i].name_fd;
	return -1;
}

/* Our own, of that kind and for that slot; or anything. */
static int fitting_fd(uint64_t *rng, enum fit fit, unsigned slot)
{
	unsigned own = attack_below(rng, OWN);
	bool other = attack_one_in(rng, 6);
	int any = any_fd(rng);

	if (other)
		return any;
	switch (fit) {
	case FIT_RING:
		return we.zoo[RING];
	case FIT_SOCKET:
		return we.zoo[STREAM];
	case FIT_EXPORT:
		return we.zoo[EXPORT];
	case FIT_NAME:
		if (name_of(slot) >= 0)
			return name_of(slot);
		return we.own[own].slot ? we.own[own].name_fd : any;
	case FIT_KEEPER:
		return we.zoo[PACKETS];
	case FIT_STORE:
		return we.zoo[PLAIN];
	case FIT_RECORDS:
		return we.zoo[RECORDS];
	case NO_MORE:
		break;
	}
	return any;
}

/* --- messages --- */

/* A slot of ours; one that nobody has, if we have none. */
static uint32_t own_slot(uint64_t *rng)
{
	unsigned place = attack_below(rng, OWN), nobodys = attack_below(rng, 100);

	return we.own[place].slot ? we.own[place].slot : NOBODYS + nobodys;
}

/* Anybody's: the first ones are those of others who came before us. */
static uint32_t any_slot(uint64_t *rng)
{
	uint32_t few = attack_below(rng, 8), more = attack_below(rng, 1100), own = own_slot(rng);
	unsigned which = attack_below(rng, 8);

	return which < 4 ? few : which < 7 ? own : more;
}

/* To say that a slot is ours. */
static uint32_t claimed_slot(uint64_t *rng)
{
	uint32_t own = own_slot(rng), any = any_slot(rng);

	return attack_one_in(rng, 2) && !attack_leaves_out("claim") ? any : own;
}

static void fill_program(struct vb_hub_program *program, uint64_t *rng)
{
	vb_hub_program_self(program);
	if (attack_one_in(rng, 4))
		memset(program->comm, (int)attack_below(rng, 256), sizeof(program->comm));
	if (attack_one_in(rng, 8))
		memset(program->host, (int)attack_below(rng, 256), sizeof(program->host));
	if (attack_one_in(rng, 8))
		program->pid = (uint32_t)vb_prng_next(rng);
}

static void fill_hello(struct vb_hub_msg *msg, uint64_t *rng)
{
	fill_program(&msg->hello.program, rng);
	msg->hello.ports = attack_one_in(rng, 4) ? attack_below(rng, 10) : 0;
}

static void fill_lease(struct vb_hub_msg *msg, uint64_t *rng)
{
	fill_program(&msg->lease.program, rng);
}

static void fill_mark(struct vb_hub_msg *msg, uint64_t *rng)
{
	msg->mark.slot = claimed_slot(rng);
	msg->mark.next_index = attack_below(rng, VB_HUB_INDICES + 2);
}

static void fill_nothing(struct vb_hub_msg *msg, uint64_t *rng)
{
}

static void fill_stop(struct vb_hub_msg *msg, uint64_t *rng)
{
	msg->stop.force = attack_below(rng, 2) * attack_below(rng, 1000);
}

static void fill_offer(struct vb_hub_msg *msg, uint64_t *rng)
{
	msg->offer.shm = !attack_one_in(rng, 4);
	msg->offer.why = attack_below(rng, VB_HUB_LINK_WHYS + 1);
}

static void fill_reach(struct vb_hub_msg *msg, uint64_t *rng)
{
	msg->reach.from = claimed_slot(rng);
	msg->reach.to = any_slot(rng);
}

static void fill_fail(struct vb_hub_msg *msg, uint64_t *rng)
{
	struct vb_hub_program self;

	vb_hub_program_self(&self);
	msg->fail.pid = self.pid;
	msg->fail.pid_ns = attack_one_in(rng, 2) ? self.pid_ns : vb_prng_next(rng);
}

static void fill_link(struct vb_hub_msg *msg, uint64_t *rng)
{
	msg->link.from = claimed_slot(rng);
	msg->link.to = any_slot(rng);
	msg->link.why = attack_below(rng, VB_HUB_LINK_WHYS + 1);
	msg->link.there = attack_below(rng, 3);
	msg->link.error = attack_below(rng, 200);
}

static void fill_who(struct vb_hub_msg *msg, uint64_t *rng)
{
	msg->who.slot = any_slot(rng);
}

static void fill_bind(struct vb_hub_msg *msg, uint64_t *rng)
{
	attack_bind_fill(msg, rng, claimed_slot(rng));
}

static void fill_unbind(struct vb_hub_msg *msg, uint64_t *rng)
{
	attack_unbind_fill(msg, rng, claimed_slot(rng));
}

static void fill_mad(struct vb_hub_msg *msg, uint64_t *rng)
{
	attack_mad_fill(msg, rng, claimed_slot(rng), any_slot(rng));
}

static const struct kind {
	const char *word;
	unsigned weight;
	void (*fill)(struct vb_hub_msg *, uint64_t *rng);
	enum fit fds[FDS_MAX];
} kinds[VB_HUB_TYPES] = {
	/* clang-format off */
	[VB_HUB_HELLO]   = {"hello",   8, fill_hello,   {FIT_KEEPER, FIT_KEEPER, FIT_STORE}},
	[VB_HUB_MARK]    = {"mark",    8, fill_mark,    {FIT_NAME}},
	[VB_HUB_LEASE]   = {"lease",   6, fill_lease,   {NO_MORE}},
	[VB_HUB_STATUS]  = {"status",  2, fill_nothing, {NO_MORE}},
	[VB_HUB_STOP]    = {"stop",    1, fill_stop,    {NO_MORE}},
	[VB_HUB_OFFER]   = {"offer",   8, fill_offer,   {FIT_SOCKET, FIT_EXPORT}},
	[VB_HUB_REACH]   = {"reach",   8, fill_reach,   {FIT_RING, FIT_SOCKET, FIT_NAME}},
	[VB_HUB_FAIL]    = {"fail",    1, fill_fail,    {NO_MORE}},
	[VB_HUB_CAPTURE] = {"capture", 2, fill_fail,    {FIT_SOCKET}},
	[VB_HUB_DOMAINS] = {"domains", 1, fill_nothing, {NO_MORE}},
	[VB_HUB_NOTED]   = {"noted",   1, fill_nothing, {NO_MORE}},
	[VB_HUB_LINK]    = {"link",    3, fill_link,    {NO_MORE}},
	[VB_HUB_WHO]     = {"who",     3, fill_who,     {NO_MORE}},
	[VB_HUB_CM]      = {"cm",      1, fill_nothing, {NO_MORE}},
	[VB_HUB_BIND]    = {"bind",    4, fill_bind,    {FIT_NAME}},
	[VB_HUB_UNBIND]  = {"unbind",  2, fill_unbind,  {NO_MORE}},
	[VB_HUB_MAD]     = {"mad",     4, fill_mad,     {NO_MORE}},
	[VB_HUB_RECORDS] = {"records", 2, fill_nothing, {FIT_RECORDS}},
	/* clang-format on */
};

static const struct kind unknown = {"unknown", 1, attack_any_fill, {NO_MORE}};

static const struct kind *kind_of(unsigned type)
{
	return type < VB_HUB_TYPES && kinds[type].word ? &kinds[type] : &unknown;
}

static unsigned any_type(uint64_t *rng)
{
	unsigned all = 0, at, type;

	for (type = 1; type < VB_HUB_TYPES; type++)
		all += kind_of(type)->weight;
	at = attack_below(rng, all);
	for (type = 1; at >= kind_of(type)->weight; type++)
		at -= kind_of(type)->weight;
	return type;
}

struct letter {
	struct vb_hub_msg msg;
	size_t bytes;
	int fds[FDS_MAX];
	unsigned fds_n;
};

static void letter_make(struct letter *letter, uint64_t *rng, unsigned type)
{
	const struct kind *kind = kind_of(type);

	letter->msg = vb_hub_msg_make((enum vb_hub_type)type);
	kind->fill(&letter->msg, rng);
	letter->bytes = vb_hub_msg_bytes(type);
	letter->fds_n = 0;
	while (letter->fds_n < FDS_MAX && kind->fds[letter->fds_n]) {
		/* The slot that a message is about stands first in it. */
		letter->fds[letter->fds_n] =
			fitting_fd(rng, kind->fds[letter->fds_n], letter->msg.mark.slot);
		letter->fds_n++;
	}
}

/* A hub that is new has no other way to know whose the sockets are than to be told. */
static bool is_left_out(const struct letter *letter)
{
	return letter->msg.type == VB_HUB_HELLO && letter->fds_n == VB_HUB_KEEPER_FDS &&
	       attack_leaves_out("keeper");
}

static void letter_spoil(struct letter *letter, uint64_t *rng)
{
	uint8_t *octets = (uint8_t *)&letter->msg;
	unsigned how = attack_below(rng, 6), at = attack_below(rng, (unsigned)letter->bytes);
	uint32_t bit = attack_below(rng, 8), value = (uint32_t)vb_prng_next(rng);

	switch (how) {
	case 0:
		letter->bytes = attack_below(rng, sizeof(letter->msg) + 1);
		break;
	case 1:
		letter->bytes += attack_below(rng, 9) - 4;
		break;
	case 2:
		octets[at] ^= (uint8_t)(1 << bit);
		break;
	case 3:
		memcpy(octets + at / 4 * 4, &value, sizeof(value));
		break;
	case 4:
		letter->msg.type = (uint16_t)attack_below(rng, VB_HUB_TYPES + 2);
		break;
	default:
		letter->fds_n = attack_below(rng, FDS_MAX);
		for (unsigned i = 0; i < letter->fds_n; i++)
			letter->fds[i] = any_fd(rng);
	}
	if (letter->bytes > sizeof(letter->msg))
		letter->bytes = sizeof(letter->msg);
}

/* What the user may ask for, and what the suite wants to be left out: by chance neither. */
static bool may_be_said(const struct letter *letter)
{
	struct vb_hub_program self;
	struct vb_hub_msg msg;

	if (vb_hub_msg_parse(&msg, &letter->msg, letter->bytes, letter->fds_n))
		return true;
	if (is_left_out(letter))
		return false;
	vb_hub_program_self(&self);
	if (msg.type == VB_HUB_STOP)
		return !msg.stop.force;
	if (msg.type == VB_HUB_FAIL)
		return msg.fail.pid == self.pid || msg.fail.pid_ns != self.pid_ns;
	if (attack_leaves_out("claim") && (msg.type == VB_HUB_MARK || msg.type == VB_HUB_REACH)) {
		/* The slot stands first in both. */
		for (unsigned i = 0; i < OWN; i++)
			if (we.own[i].slot == msg.mark.slot)
				return true;
		return msg.mark.slot >= NOBODYS;
	}
	return true;
}

/* False: it cannot be said now, or nobody is there. */
static bool letter_send(int fd, const struct letter *letter)
{
	union {
		struct cmsghdr header;
		uint8_t octets[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {(void *)&letter->msg, letter->bytes};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

	if (!may_be_said(letter))
		return true;
	if (letter->fds_n) {
		memset(&control, 0, sizeof(control));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(letter->fds_n * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(letter->fds_n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), letter->fds, letter->fds_n * sizeof(int));
	}
	return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* --- steps --- */

/* Connections that are not there, or not any more, are made: each step has one. */
static int *conn_get(uint64_t *rng)
{
	int *conn = &we.conn[attack_below(rng, CONNS)];
	struct pollfd pollfd = {.fd = *conn};
	pid_t pid;
	int rc;

	if (*conn >= 0 && !(poll(&pollfd, 1, 0) == 1 && pollfd.revents & POLLHUP))
		return conn;
	replace(conn, -1);
	rc = vb_hub_connect(conn);
	if (rc)
		*conn = -1;
	if (attack_leaves_out("life"))
		return conn;
	if (rc && rc != EAGAIN)
		hub_is_gone(strerror(rc));
	if (!rc && (vb_hub_peer_check(*conn, &pid) || pid != we.hub))
		hub_is_gone("another listens by its name");
	return conn;
}

static void say(uint64_t *rng)
{
	unsigned type = any_type(rng);
	int *conn = conn_get(rng);
	struct letter letter;

	note(kind_of(type)->word, type);
	letter_make(&letter, rng, type);
	letter_send(*conn, &letter);
}

static void babble(uint64_t *rng)
{
	unsigned type = any_type(rng), times = 1 + attack_below(rng, 3);
	int *conn = conn_get(rng);
	struct letter letter;

	letter_make(&letter, rng, type);
	while (times--)
		letter_spoil(&letter, rng);
	note("spoilt", letter.msg.type);
	letter_send(*conn, &letter);
}

/* A client as it should be, who has said all that a client says: others can reach it. */
static void settle(uint64_t *rng)
{
	int *conn = conn_get(rng);
	struct letter letter;

	note("settle", 0);
	letter_make(&letter, rng, VB_HUB_HELLO);
	vb_hub_program_self(&letter.msg.hello.program);
	letter.fds_n = 0;
	letter_send(*conn, &letter);
	letter_make(&letter, rng, VB_HUB_OFFER);
	letter.msg.offer.shm = 1;
	letter.msg.offer.why = 0;
	letter_send(*conn, &letter);
	for (unsigned i = 0; i < OWN; i++) {
		letter_make(&letter, rng, VB_HUB_MARK);
		letter.msg.mark.slot = we.own[i].slot;
		letter.msg.mark.next_index = attack_below(rng, VB_HUB_INDICES);
		letter.fds[0] = we.own[i].name_fd;
		if (we.own[i].slot)
			letter_send(*conn, &letter);
	}
}

static void repeat(uint64_t *rng)
{
	unsigned type = any_type(rng), times = attack_below(rng, 300);
	int *conn = conn_get(rng);
	struct letter letter;

	note("repeat", type);
	letter_make(&letter, rng, type);
	while (times-- && letter_send(*conn, &letter))
		;
}

static void loot_keep(uint64_t *rng, const struct vb_hub_msg *msg, const int *fds, unsigned n)
{
	unsigned place = attack_below(rng, OWN);

	if (msg->type == VB_HUB_GRANT && n == VB_HUB_GRANT_FDS) {
		replace(&we.own[place].udp_fd, fds[0]);
		replace(&we.own[place].name_fd, fds[1]);
		we.own[place].slot = msg->grant.slot;
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		bool keep = msg->type != VB_HUB_WELCOME || i == VB_HUB_KEEPER_STORE ||
			    !attack_leaves_out("keeper");

		if (keep)
			replace(&we.loot[attack_below(rng, LOOT)], fds[i]);
		else
			close(fds[i]);
	}
}

static void listen_to(uint64_t *rng, int timeout_ms)
{
	int *conn = conn_get(rng), fds[VB_HUB_FDS_MAX];
	struct pollfd pollfd = {.fd = *conn, .events = POLLIN};
	uint64_t keep = vb_prng_next(rng);
	struct vb_hub_msg msg;
	unsigned n;
	int rc;

	note("listen", 0);
	while (*conn >= 0 && poll(&pollfd, 1, timeout_ms) == 1) {
		rc = vb_hub_recv(*conn, &msg, fds, &n);
		if (rc == ECONNRESET)
			replace(conn, -1);
		if (rc)
			return;
		loot_keep(&keep, &msg, fds, n);
		timeout_ms = 0;
	}
}

static void listen_now(uint64_t *rng)
{
	listen_to(rng, 0);
}

/* An answer of the hub's is there at once, or never. */
static void listen_long(uint64_t *rng)
{
	listen_to(rng, 20);
}

/* A question on a connection of its own, and its answer. */
static void ask(uint64_t *rng, enum vb_hub_type type)
{
	uint64_t same = *rng, again = *rng;
	struct letter letter;

	note("ask", type);
	replace(conn_get(&same), -1);
	letter_make(&letter, &same, type);
	letter_send(*conn_get(rng), &letter);
	listen_long(&again);
}

static void ask_any(uint64_t *rng)
{
	static const enum vb_hub_type types[] = {VB_HUB_REACH, VB_HUB_REACH, VB_HUB_REACH,
						 VB_HUB_LEASE, VB_HUB_LEASE, VB_HUB_WHO,
						 VB_HUB_DOMAINS, VB_HUB_CM};

	ask(rng, types[attack_below(rng, VB_ARRAY_LEN(types))]);
}

static void hang_up(uint64_t *rng)
{
	replace(conn_get(rng), -1);
	note("hang up", 0);
}

static void hang_up_half(uint64_t *rng)
{
	static const int how[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
	int *conn = conn_get(rng);

	shutdown(*conn, how[attack_below(rng, 3)]);
	note("shutdown", 0);
}

static void octets_send(uint64_t *rng)
{
	static uint8_t octets[OCTETS_MAX];
	unsigned bytes = attack_below(rng, attack_one_in(rng, 2) ? 300 : OCTETS_MAX);
	int *conn = conn_get(rng);

	for (unsigned i = 0; i < bytes && i < 600; i++)
		octets[i] = (uint8_t)vb_prng_next(rng);
	note("octets", bytes);
	(void)!send(*conn, octets, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void lease_drop(uint64_t *rng)
{
	unsigned place = attack_below(rng, OWN);

	note("drop", we.own[place].slot);
	replace(&we.own[place].udp_fd, -1);
	replace(&we.own[place].name_fd, -1);
	we.own[place].slot = 0;
}

/* What was given away becomes something else behind the other's back. */
static void turn_bad(uint64_t *rng)
{
	unsigned which = attack_below(rng, 6), bytes = attack_below(rng, 2 * OCTETS_MAX);
	uint8_t octets[256];

	memset(octets, (int)which * 41, sizeof(octets));
	note("turn bad", which);
	switch (which) {
	case 0:
		(void)!ftruncate(we.zoo[SHRINKING], bytes);
		(void)!ftruncate(we.zoo[PLAIN], bytes);
		break;
	case 1:
		shutdown(we.zoo[STREAM + attack_below(rng, 2)], SHUT_RDWR);
		replace(&we.zoo[STREAM], -1);
		replace(&we.zoo[STREAM_TOO], -1);
		pair_make(SOCK_STREAM, STREAM);
		break;
	case 2:
		for (unsigned i = 0; i < 64; i++)
			(void)!send(we.zoo[STREAM_TOO], octets, sizeof(octets), MSG_DONTWAIT);
		break;
	case 3:
		replace(&we.zoo[RING], attack_memory(sizeof(struct vb_ring_area), true));
		replace(&we.zoo[EXPORT], attack_export_make());
		break;
	case 4:
		(void)!pwrite(we.zoo[attack_one_in(rng, 2) ? RING : EXPORT], octets,
			      sizeof(octets), attack_below(rng, 1 << 20));
		break;
	default:
		replace(&we.zoo[SHRINKING], attack_memory(sizeof(struct vb_ring_area), false));
	}
}

/* The memory of XRC domains is everybody's. */
static void store_spoil(uint64_t *rng)
{
	unsigned place = attack_below(rng, LOOT), bytes = 1 + attack_below(rng, 64);
	unsigned at = attack_below(rng, 1 << 20);
	uint8_t octets[64];

	for (unsigned i = 0; i < bytes; i++)
		octets[i] = (uint8_t)vb_prng_next(rng);
	if (attack_leaves_out("store"))
		return;
	note("store", place);
	if (attack_one_in(rng, 8))
		(void)!ftruncate(we.loot[place], at);
	else
		(void)!pwrite(we.loot[place], octets, bytes, at);
}

static void child_run(uint64_t *rng);

/* Another that does the same and is killed in the midst of it; or stopped first, for a while. */
static void child_make(uint64_t *rng)
{
	unsigned place = attack_below(rng, CHILDREN);
	uint64_t its = vb_prng_next(rng);
	bool stop = attack_one_in(rng, 2);
	pid_t *child = &we.child[place];

	if (we.is_child)
		return;
	note("child", place);
	if (*child > 0) {
		kill(*child, SIGKILL);
		waitpid(*child, NULL, 0);
		*child = 0;
		return;
	}
	*child = fork();
	if (*child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_run(&its);
		raise(stop ? SIGSTOP : SIGKILL);
		raise(SIGKILL);
	}
}

static const struct {
	void (*act)(uint64_t *rng);
	unsigned weight;
} steps[] = {
	{say, 30},	   {babble, 20},   {settle, 24},  {listen_now, 20},  {ask_any, 28},
	{repeat, 3},	   {hang_up, 6},   {octets_send, 3}, {hang_up_half, 3}, {lease_drop, 3},
	{turn_bad, 6},	   {store_spoil, 6}, {child_make, 2},
};

static void step(uint64_t *rng)
{
	unsigned all = 0, at, i = 0;

	for (unsigned k = 0; k < VB_ARRAY_LEN(steps); k++)
		all += steps[k].weight;
	for (at = attack_below(rng, all); at >= steps[i].weight; i++)
		at -= steps[i].weight;
	steps[i].act(rng);
}

static void child_run(uint64_t *rng)
{
	unsigned n = attack_below(rng, CHILD_STEPS);

	we.is_child = true;
	while (n--)
		step(rng);
}

static void begin(void)
{
	struct rlimit files = {FILES_MAX, FILES_MAX};
	int fd;

	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &files);
	memset(we.conn, -1, sizeof(we.conn));
	memset(we.loot, -1, sizeof(we.loot));
	for (unsigned i = 0; i < OWN; i++)
		we.own[i].name_fd = we.own[i].udp_fd = -1;
	zoo_make();
	if (vb_hub_connect(&fd) || vb_hub_peer_check(fd, &we.hub))
		attack_fail("there is no hub to attack");
	close(fd);
}

int main(int argc, char **argv)
{
	uint64_t i;

	attack_arguments(argv + 1, 20000);
	begin();
	for (i = 0; attack_goes_on(i); i++) {
		uint64_t rng = attack_round(i);

		step(&rng);
	}
	for (unsigned k = 0; k < CHILDREN; k++) {
		if (we.child[k] > 0) {
			kill(we.child[k], SIGKILL);
			waitpid(we.child[k], NULL, 0);
		}
	}
	printf("%llu steps\n", (unsigned long long)i);
	return 0;
}
