/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/filter.h>
#include <pthread.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "hub_lib.h"

/* What happens when the hub dies: no datagram is lost, none goes astray, nothing is forgotten. */

enum { INDEX_SKIP = 256 };

static void wait_for_hub_other_than(struct vb_hub_client *client, pid_t old)
{
	for (unsigned i = 0; i < 300; i++) {
		pid_t pid;

		turn_for(client, 10);
		pid = hub_pid();
		if (pid && pid != old)
			return;
	}
	fail_msg("no new hub");
}

HUB_TEST(a_dead_hub_is_replaced_and_told_what_we_hold)
{
	struct vb_hub_summary summary;
	struct vb_hub_client *client;
	struct vb_hub_slot slot[20];
	struct vb_hub_row *rows;
	char comm[VB_HUB_COMM_BYTES];
	pid_t pid;

	client = client_open();
	for (unsigned i = 0; i < 18; i++)
		slot[i] = slot_lease(client);
	vb_hub_client_mark(client, slot[3].slot, 3333);
	/* Whoever turns is a thread with a name of its own; the hub is told the program's. */
	prctl(PR_SET_NAME, "turner");
	vb_hub_comm_copy(comm, program_invocation_short_name);
	for (unsigned i = 0; i < 5; i++) {
		pid = hub_pid();
		hub_kill();
		assert_steering(slot, 18);
		wait_for_hub_other_than(client, pid);
		assert_steering(slot, 18);
	}
	turn_for(client, 50);
	assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
	assert_int_equal(summary.clients, 1);
	assert_int_equal(summary.rows, 18);
	assert_int_equal(rows[3].slot, slot[3].slot);
	assert_int_equal(rows[3].next_index, 3333);
	assert_int_equal(rows[3].pid, getpid());
	assert_string_equal(rows[3].program.comm, comm);
	free(rows);
	slot[18] = slot_lease(client);
	slot[19] = slot_lease(client);
	assert_int_equal(slot[18].slot, 19);
	assert_steering(slot, 20);
	slots_close(slot, 20);
	vb_hub_client_close(client);
}

HUB_TEST(a_lease_starts_the_next_hub_if_it_must)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot[2];

	client = client_open();
	slot[0] = slot_lease(client);
	hub_kill();
	slot[1] = slot_lease(client);
	assert_int_equal(slot[1].slot, 2);
	assert_steering(slot, 2);
	slots_close(slot, 2);
	vb_hub_client_close(client);
}

enum { TRAFFIC_SLOTS = 3, TRAFFIC_DATAGRAMS = 60000, TRAFFIC_KILLS = 5 };

static void send_traffic(void *arg)
{
	const struct vb_hub_slot *to = arg;
	struct vb_hub_client *client;
	struct vb_hub_slot slot;

	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	child_check(!vb_hub_client_lease(client, &slot));
	for (uint32_t i = 0; i < TRAFFIC_DATAGRAMS; i++) {
		const char *address = i / TRAFFIC_SLOTS % 2 ? "127.0.0.1" : "::1";

		child_check(!datagram_send(slot.fd, address, to[i % TRAFFIC_SLOTS].slot, i));
		if (i % 64 == 0)
			vb_hub_client_turn(client);
		if (i % 256 == 0)
			usleep(1000);
	}
}

HUB_TEST(killed_under_traffic_it_costs_no_datagram)
{
	struct vb_hub_slot slot[TRAFFIC_SLOTS];
	unsigned got, kills = 0, received = 0;
	uint32_t number, next[TRAFFIC_SLOTS];
	struct vb_hub_client *client;
	uint64_t end_ns, kill_ns;
	pid_t sender;

	client = client_open();
	for (unsigned i = 0; i < TRAFFIC_SLOTS; i++) {
		slot[i] = slot_lease(client);
		next[i] = i;
	}
	sender = child_start(send_traffic, slot);
	kill_ns = vb_hub_now_ns();
	end_ns = kill_ns + 20000 * MS_NS;
	while (received < TRAFFIC_DATAGRAMS && vb_hub_now_ns() < end_ns) {
		for (unsigned i = 0; i < TRAFFIC_SLOTS; i++) {
			for (; datagram_take(slot[i].fd, &got, &number); received++) {
				assert_int_equal(got, slot[i].slot);
				assert_int_equal(number, next[i]);
				next[i] += TRAFFIC_SLOTS;
			}
		}
		turn_for(client, 1);
		if (kills < TRAFFIC_KILLS && vb_hub_now_ns() > kill_ns && hub_pid()) {
			hub_kill();
			kills++;
			kill_ns = vb_hub_now_ns() + 40 * MS_NS;
		}
	}
	assert_int_equal(received, TRAFFIC_DATAGRAMS);
	/* All, unless the machine is busy and hubs start slowly. */
	assert_in_range(kills, 1, TRAFFIC_KILLS);
	assert_child_ok(sender);
	assert_steering(slot, TRAFFIC_SLOTS);
	slots_close(slot, TRAFFIC_SLOTS);
	vb_hub_client_close(client);
}

static void hold_two_slots(int told_fd, void *arg)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot[2];

	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	child_check(!vb_hub_client_lease(client, &slot[0]));
	child_check(!vb_hub_client_lease(client, &slot[1]));
	child_check(write(told_fd, "x", 1) == 1);
	for (;;)
		turn_for(client, 1000);
}

static bool hub_knows(unsigned clients, unsigned rows)
{
	struct vb_hub_summary summary;

	for (unsigned i = 0; i < 200; i++) {
		if (hub_summary(&summary) && summary.clients == clients && summary.rows == rows)
			return true;
		usleep(10000);
	}
	return false;
}

HUB_TEST(many_clients_meet_again_in_one_hub)
{
	enum { CLIENTS = 6 };
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
	pid_t pid[CLIENTS];

	for (unsigned i = 0; i < CLIENTS; i++)
		pid[i] = child_tells(hold_two_slots, NULL, &(char){0}, 1);
	for (unsigned i = 0; i < 10; i++) {
		pid_t old = hub_pid();

		hub_kill();
		assert_true(hub_knows(CLIENTS, 2 * CLIENTS));
		assert_int_not_equal(hub_pid(), old);
	}
	/* The next one to come gets none of theirs. */
	client = client_open();
	slot = slot_lease(client);
	assert_int_equal(slot.slot, 2 * CLIENTS + 1);
	assert_steering(&slot, 1);
	/* Hub and some clients at once. */
	kill(hub_pid(), SIGKILL);
	for (unsigned i = 0; i < 3; i++)
		child_kill(pid[i]);
	turn_for(client, 300);
	assert_true(hub_knows(CLIENTS - 3 + 1, 2 * (CLIENTS - 3) + 1));
	assert_steering(&slot, 1);
	for (unsigned i = 3; i < CLIENTS; i++)
		child_kill(pid[i]);
	close(slot.fd);
	vb_hub_client_close(client);
}

static void open_in_vain(void *arg)
{
	struct vb_hub_client *client;

	/* The hub says so; it would be ETIMEDOUT if we had given up on it. */
	vb_hub_client_forget(arg);
	child_check(vb_hub_client_open(&client, NULL, NULL, NULL) == EADDRINUSE);
}

HUB_TEST(no_slot_is_made_while_the_keeper_is_missing)
{
	struct vb_hub_client *client, *other;
	struct vb_hub_slot slot[2];

	client = client_open();
	slot[0] = slot_lease(client);
	hub_kill();
	/* We sleep, as a stopped process does: a newcomer finds the port taken and nobody there. */
	assert_child_ok(child_start(open_in_vain, client));
	turn_for(client, 600);
	other = client_open();
	slot[1] = slot_lease(other);
	assert_int_equal(slot[1].slot, 2);
	assert_steering(slot, 2);
	slots_close(slot, 2);
	vb_hub_client_close(client);
	vb_hub_client_close(other);
}

static void *turn_late(void *client)
{
	usleep(100000);
	turn_for(client, 100);
	return NULL;
}

static void open_soon(void *arg)
{
	struct vb_hub_client *client;

	vb_hub_client_forget(arg);
	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	vb_hub_client_close(client);
}

HUB_TEST(whoever_asks_a_new_hub_waits_until_it_knows)
{
	struct vb_hub_summary summary;
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
	struct vb_hub_row *rows;
	pthread_t turner;
	pid_t starter;
	int memory;

	client = client_open();
	slot = slot_lease(client);
	for (unsigned i = 0; i < 2; i++) {
		hub_kill();
		starter = child_start(open_soon, client);
		while (!hub_pid())
			usleep(1000);
		assert_int_equal(pthread_create(&turner, NULL, turn_late, client), 0);
		if (i == 0) {
			assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
			assert_int_equal(summary.rows, 1);
			assert_int_equal(rows[0].slot, slot.slot);
			free(rows);
		} else {
			assert_int_equal(vb_hub_domains_read(&memory), 0);
			close(memory);
		}
		pthread_join(turner, NULL);
		assert_child_ok(starter);
	}
	close(slot.fd);
	vb_hub_client_close(client);
}

/* A client that gets to it late, and goes on until it is told to stop. */
struct late {
	struct vb_hub_client *client;
	_Atomic bool stop;
};

static void *turn_late_and_on(void *arg)
{
	struct late *late = arg;

	usleep(100000);
	while (!late->stop)
		turn_for(late->client, 10);
	return NULL;
}

/* Its client lives, and starts the next one when it gets to it. */
HUB_TEST(whoever_asks_between_two_hubs_waits_for_the_next)
{
	struct vb_hub_summary summary;
	struct late late = {0};
	struct vb_hub_slot slot;
	struct vb_hub_row *rows;
	pthread_t turner;

	late.client = client_open();
	slot = slot_lease(late.client);
	hub_kill();
	assert_int_equal(pthread_create(&turner, NULL, turn_late_and_on, &late), 0);
	assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
	assert_int_equal(summary.rows, 1);
	free(rows);
	late.stop = true;
	pthread_join(turner, NULL);
	close(slot.fd);
	vb_hub_client_close(late.client);
	hub_stop();
	assert_int_equal(vb_hub_status_read(&summary, &rows), ECONNREFUSED);
}

static void kill_at_random(void *arg)
{
	srand(1);
	vb_hub_client_forget(arg);
	for (;;) {
		struct vb_hub_summary summary;

		/* One that has not got its sockets yet makes no slots, and tells nothing. */
		if (!hub_summary(&summary)) {
			usleep(1000);
			continue;
		}
		usleep((unsigned)rand() % 80000);
		kill((pid_t)summary.pid, SIGKILL);
	}
}

HUB_TEST(killed_while_it_makes_slots_it_mixes_up_none)
{
	enum { SLOTS = 200 };
	struct vb_hub_slot slot[SLOTS];
	struct vb_hub_client *client;
	pid_t killer;

	client = client_open();
	killer = child_start(kill_at_random, client);
	for (unsigned i = 0; i < SLOTS; i++) {
		slot[i] = slot_lease(client);
		turn_for(client, 5);
	}
	kill(killer, SIGKILL);
	waitpid(killer, NULL, 0);
	assert_steering(slot, SLOTS);
	slots_close(slot, SLOTS);
	vb_hub_client_close(client);
}

static int store_make(void)
{
	int fd = memfd_create("store", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, 1 << 26), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

/* As a hub leaves it that is killed between making a chunk of sockets and binding the last. */
static void sockets_make(int keeper[VB_HUB_KEEPER_FDS], unsigned chunks, unsigned bound)
{
	struct sock_filter code[] = {{0x28, 0, 0, 5}, {0x74, 0, 0, 6}, {0x16, 0, 0, 0}};
	struct sock_fprog program = {3, code};
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	enum { CHUNK = 8 };
	int fd[2 * CHUNK], on = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper), 0);
	/* More than enough for what is to lie there, of which nothing does yet. */
	keeper[2] = store_make();
	for (uint32_t i = 0; i < CHUNK * chunks; i++) {
		union {
			struct cmsghdr header;
			char octets[CMSG_SPACE(sizeof(fd))];
		} control = {.header = {CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS}};
		uint32_t first = i - (CHUNK - 1);
		struct iovec iov = {&first, sizeof(first)};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = &control,
				     .msg_controllen = sizeof(control)};

		fd[i % CHUNK] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		setsockopt(fd[i % CHUNK], SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
		if (i == 0)
			assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF,
						    &program, sizeof(program)),
					 0);
		if (i < bound)
			assert_int_equal(bind(fd[i % CHUNK], (struct sockaddr *)&address,
					      sizeof(address)),
					 0);
		assert_int_equal(vb_hub_watch_make(&fd[CHUNK + i % CHUNK]), 0);
		if (i % CHUNK != CHUNK - 1)
			continue;
		memcpy(CMSG_DATA(&control.header), fd, sizeof(fd));
		assert_int_equal(sendmsg(keeper[0], &msg, 0), (int)sizeof(first));
		for (unsigned k = 0; k < 2 * CHUNK; k++)
			close(fd[k]);
	}
}

HUB_TEST(the_next_hub_finishes_what_was_begun)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_HELLO);
	struct vb_hub_client *client;
	struct vb_hub_slot slot[40];
	int keeper[VB_HUB_KEEPER_FDS], fd, rc;
	pid_t starter;

	sockets_make(keeper, 4, 19);
	/* Somebody starts a hub, which finds the port taken; then we come with the keeper. */
	starter = fork();
	if (starter == 0)
		_exit(vb_hub_client_open(&client, NULL, NULL, NULL) ? 1 : 0);
	do {
		usleep(1000);
		rc = vb_hub_connect(&fd);
	} while (rc == ECONNREFUSED);
	assert_int_equal(rc, 0);
	assert_int_equal(vb_hub_send(fd, &msg, keeper, VB_HUB_KEEPER_FDS), 0);
	assert_child_ok(starter);
	client = client_open();
	for (unsigned i = 0; i < 40; i++) {
		slot[i] = slot_lease(client);
		assert_int_equal(slot[i].slot, i + 1);
	}
	assert_steering(slot, 40);
	slots_close(slot, 40);
	vb_hub_client_close(client);
	close(fd);
	close(keeper[0]);
	close(keeper[1]);
	close(keeper[2]);
}

HUB_TEST(a_false_keeper_is_not_taken)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_HELLO);
	struct vb_hub_client *client;
	/* Magic and version, of a later one. */
	static const uint32_t later[] = {0x58524321, 99};
	int keeper[VB_HUB_KEEPER_FDS], pipes[2], unsealed, strange, fd, rc, n = 0;
	pid_t starter;

	sockets_make(keeper, 2, 16);
	assert_int_equal(pipe(pipes), 0);
	/* One that somebody can make shorter, while the hub looks at it. */
	unsealed = memfd_create("store", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(unsealed, 1 << 26), 0);
	strange = store_make();
	assert_int_equal(pwrite(strange, later, sizeof(later), 0), sizeof(later));
	starter = child_start(open_in_vain, NULL);
	do {
		usleep(1000);
		rc = vb_hub_connect(&fd);
		if (rc)
			continue;
		vb_hub_send(fd, &msg,
			    n % 4 == 0	 ? (int[]){pipes[0], pipes[1], keeper[2]}
			    : n % 4 == 1 ? (int[]){keeper[0], keeper[1], unsealed}
			    : n % 4 == 2 ? (int[]){keeper[0], keeper[1], strange}
					 : (int[]){fd, fd, fd},
			    VB_HUB_KEEPER_FDS);
		close(fd);
	} while (rc || n++ < 10);
	assert_child_ok(starter);
	close(keeper[0]);
	close(keeper[1]);
	close(keeper[2]);
	close(unsealed);
	close(strange);
	for (unsigned i = 0; i < 2; i++)
		close(pipes[i]);
	usleep(50000);
	client = client_open();
	vb_hub_client_close(client);
}

HUB_TEST(a_hub_that_hangs_holds_nobody_up)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
	uint64_t start_ns;
	pid_t pid;

	client = client_open();
	pid = hub_pid();
	kill(pid, SIGSTOP);
	start_ns = vb_hub_now_ns();
	vb_hub_client_turn(client);
	vb_hub_client_mark(client, 1, 1);
	assert_true(vb_hub_now_ns() - start_ns < 2900 * MS_NS);
	assert_int_equal(vb_hub_client_lease(client, &slot), ETIMEDOUT);
	/* One that only were slow would be waited for longer. */
	assert_in_range(vb_hub_now_ns() - start_ns, 2900 * MS_NS, 25000 * MS_NS);
	kill(pid, SIGCONT);
	/* What it granted meanwhile reached nobody, and is free. */
	usleep(50000);
	slot = slot_lease(client);
	assert_int_equal(slot.slot, 1);
	assert_int_equal(hub_pid(), pid);
	close(slot.fd);
	vb_hub_client_close(client);
}
