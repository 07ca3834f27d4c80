/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "hub_lib.h"
#include "hub/ask/samples.h"

/* The life of a client and of a lease, while the hub lives. */

enum { INDEX_SKIP = 256, NOBODY = 65534 };

HUB_TEST(the_first_client_starts_the_hub)
{
	struct vb_hub_client *client;
	struct vb_hub_summary summary;
	struct vb_hub_slot slot;

	assert_int_equal(hub_pid(), 0);
	client = client_open();
	assert_true(hub_summary(&summary));
	assert_int_equal(summary.clients, 1);
	assert_int_equal(summary.rows, 0);
	slot = slot_lease(client);
	assert_int_equal(slot.slot, 1);
	assert_true(fcntl(slot.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(slot.fd, F_GETFL) & O_NONBLOCK);
	assert_steering(&slot, 1);
	close(slot.fd);
	vb_hub_client_close(client);
}

static unsigned sigchlds;

static void on_sigchld(int signal)
{
	sigchlds++;
}

HUB_TEST(starting_it_leaves_no_trace_in_the_application)
{
	struct sigaction action = {.sa_handler = on_sigchld}, before;
	sigset_t mask_before, mask_after;
	struct vb_hub_client *client;

	sigaction(SIGCHLD, &action, &before);
	sigprocmask(SIG_SETMASK, NULL, &mask_before);
	client = client_open();
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	usleep(20000);
	assert_int_equal(sigchlds, 0);
	for (int signal = 1; signal < NSIG; signal++)
		assert_int_equal(sigismember(&mask_before, signal),
				 sigismember(&mask_after, signal));
	/* No child, neither one to wait for nor a zombie. */
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	sigaction(SIGCHLD, &before, NULL);
	vb_hub_client_close(client);
}

HUB_TEST(the_hub_takes_nothing_along)
{
	char path[64], target[256];
	struct vb_hub_client *client;
	int leak, pid;

	leak = open("/dev/zero", O_RDONLY);
	signal(SIGUSR1, SIG_IGN);
	client = client_open();
	pid = hub_pid();
	for (int fd = 0; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		assert_string_not_equal(target, "/dev/zero");
		if (fd < 3)
			assert_string_equal(target, "/dev/null");
	}
	snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	assert_int_equal(readlink(path, target, sizeof(target)), 1);
	assert_int_equal(getsid(pid) == getsid(0), 0);
	/* Neither what we ignore ends it, nor a hangup. */
	assert_int_equal(kill(pid, SIGHUP), 0);
	usleep(10000);
	assert_int_equal(hub_pid(), pid);
	signal(SIGUSR1, SIG_DFL);
	close(leak);
	vb_hub_client_close(client);
}

HUB_TEST(slots_are_steered_to)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot[40];

	client = client_open();
	for (unsigned i = 0; i < 40; i++) {
		slot[i] = slot_lease(client);
		assert_int_equal(slot[i].slot, i + 1);
	}
	assert_steering(slot, 40);
	slots_close(slot, 40);
	vb_hub_client_close(client);
}

HUB_TEST(a_returned_slot_is_drained_and_its_indices_go_on)
{
	struct vb_hub_client *client, *other;
	struct vb_hub_slot slot, again;
	uint32_t number;
	unsigned got;

	other = client_open();
	client = client_open();
	slot = slot_lease(client);
	vb_hub_client_mark(client, slot.slot, 16300);
	assert_int_equal(datagram_send(slot.fd, "::1", slot.slot, 1), 0);
	close(slot.fd);
	vb_hub_client_close(client);
	again = slot_lease(other);
	assert_int_equal(again.slot, slot.slot);
	assert_int_equal(again.next_index, (16300 + INDEX_SKIP) % 16384);
	assert_false(datagram_take(again.fd, &got, &number));
	assert_steering(&again, 1);
	close(again.fd);
	vb_hub_client_close(other);
}

static void lease_and_wait(int told_fd, void *arg)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot;

	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	child_check(!vb_hub_client_lease(client, &slot));
	vb_hub_client_mark(client, slot.slot, 1000);
	child_check(write(told_fd, &slot.slot, sizeof(slot.slot)) == sizeof(slot.slot));
}

HUB_TEST(a_killed_clients_slots_are_free_again)
{
	struct vb_hub_client *client;
	struct vb_hub_slot mine[2];

	client = client_open();
	mine[0] = slot_lease(client);
	for (unsigned i = 0; i < 10; i++) {
		uint16_t theirs;
		pid_t pid = child_tells(lease_and_wait, NULL, &theirs, sizeof(theirs));

		assert_int_equal(theirs, mine[0].slot + 1);
		child_kill(pid);
		mine[1] = slot_lease(client);
		assert_int_equal(mine[1].slot, theirs);
		assert_int_equal(mine[1].next_index, 1000 + INDEX_SKIP);
		assert_steering(mine, 2);
		close(mine[1].fd);
		/* Give both back: the next child is to find the same. */
		close(mine[0].fd);
		vb_hub_client_close(client);
		client = client_open();
		mine[0] = slot_lease(client);
	}
	close(mine[0].fd);
	vb_hub_client_close(client);
}

struct race {
	int start, done;
};

static void race(void *arg)
{
	struct race *race = arg;
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
	char octet;

	child_check(read(race->start, &octet, 1) == 0);
	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	child_check(!vb_hub_client_lease(client, &slot));
	child_check(write(race->done, &slot.slot, sizeof(slot.slot)) == sizeof(slot.slot));
	pause();
}

HUB_TEST(clients_that_race_to_start_it_get_one_hub)
{
	enum { RACERS = 8 };
	int start[2], done[2];
	struct race arg;
	pid_t pid[RACERS];
	bool seen[RACERS + 1] = {false};

	assert_int_equal(pipe(start), 0);
	assert_int_equal(pipe(done), 0);
	arg = (struct race){start[0], done[1]};
	for (unsigned i = 0; i < RACERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			close(start[1]);
			race(&arg);
		}
	}
	close(start[1]);
	for (unsigned i = 0; i < RACERS; i++) {
		uint16_t slot;

		assert_int_equal(read(done[0], &slot, sizeof(slot)), sizeof(slot));
		assert_in_range(slot, 1, RACERS);
		assert_false(seen[slot]);
		seen[slot] = true;
	}
	for (unsigned i = 0; i < RACERS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	close(start[0]);
	close(done[0]);
	close(done[1]);
}

HUB_TEST(an_idle_hub_leaves)
{
	struct vb_hub_client *client;
	pid_t pid;

	client = client_open();
	pid = hub_pid();
	usleep(2 * HUB_IDLE_MS * 1000);
	assert_int_equal(hub_pid(), pid);
	vb_hub_client_close(client);
	/* Asking keeps it up, too. */
	for (unsigned i = 0; i < 20 && hub_pid(); i++)
		usleep(2 * HUB_IDLE_MS * 1000);
	assert_int_equal(hub_pid(), 0);
	client = client_open();
	assert_int_not_equal(hub_pid(), pid);
	vb_hub_client_close(client);
}

HUB_TEST(all_slots_can_be_had_and_no_more)
{
	struct rlimit limit = {4096, 4096}, before;
	struct vb_hub_client *client;
	struct vb_hub_slot *slot;
	int spare[8], rc;
	unsigned n = 0;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &before);
	limit.rlim_max = before.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		SKIP("no more than %d descriptors", (int)before.rlim_max);
	slot = calloc(1024, sizeof(*slot));
	for (unsigned i = 0; i < VB_ARRAY_LEN(spare); i++)
		spare[i] = dup(STDIN_FILENO);
	client = client_open();
	while (!(rc = vb_hub_client_lease(client, &slot[n])))
		n++;
	assert_int_equal(rc, ENOSPC);
	assert_int_equal(n, 1023);
	assert_steering(slot + 1000, 23);
	/* All of them go over to the next hub, whatever this process's limit on descriptors is. */
	for (unsigned i = 0; i < VB_ARRAY_LEN(spare); i++)
		close(spare[i]);
	limit.rlim_cur = 1024;
	setrlimit(RLIMIT_NOFILE, &limit);
	pid = hub_pid();
	hub_kill();
	for (unsigned i = 0; i < 100 && (!hub_pid() || hub_pid() == pid); i++)
		turn_for(client, 20);
	assert_int_equal(vb_hub_client_lease(client, &slot[0]), ENOSPC);
	slots_close(slot, n);
	vb_hub_client_close(client);
	free(slot);
	setrlimit(RLIMIT_NOFILE, &before);
	/* A thousand descriptors in flight would be in the way of the next test. */
	hub_stop();
}

static void open_with_few_descriptors(void *arg)
{
	struct rlimit few = {64, 64};
	struct vb_hub_client *client;

	child_check(!setrlimit(RLIMIT_NOFILE, &few));
	child_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
}

HUB_TEST(a_hub_with_few_descriptors_has_few_slots)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot[32];
	unsigned n = 0;
	int rc;

	assert_child_ok(child_start(open_with_few_descriptors, NULL));
	client = client_open();
	while (!(rc = vb_hub_client_lease(client, &slot[n])))
		n++;
	assert_int_equal(rc, ENOSPC);
	assert_int_equal(n, 15);
	assert_steering(slot, n);
	slots_close(slot, n);
	vb_hub_client_close(client);
}

HUB_TEST(the_hub_tells_who_holds_what)
{
	struct vb_hub_summary summary;
	struct vb_hub_client *client;
	struct vb_hub_slot slot[40];
	struct vb_hub_row *rows;
	char name[] = "tab\t tester";

	program_invocation_short_name = name;
	client = client_open();
	for (unsigned i = 0; i < 40; i++)
		slot[i] = slot_lease(client);
	vb_hub_client_mark(client, slot[7].slot, 77);
	assert_int_equal(vb_hub_status_read(&summary, &rows), 0);
	assert_int_equal(summary.clients, 1);
	assert_int_equal(summary.leases, 40);
	assert_int_equal(summary.rows, 40);
	assert_in_range(summary.sockets, 41, 64);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(rows[i].slot, i + 1);
		assert_int_equal(rows[i].pid, getpid());
		assert_string_equal(rows[i].program.comm, "tab? tester");
	}
	assert_int_equal(rows[7].next_index, 77);
	free(rows);
	slots_close(slot, 40);
	vb_hub_client_close(client);
	program_invocation_short_name = program_invocation_name;
}

HUB_TEST(it_stops_when_asked)
{
	struct vb_hub_client *client;
	unsigned clients;
	pid_t pid, stopped = 0;

	assert_int_equal(vb_hub_stop(false, &clients, &stopped), ECONNREFUSED);
	client = client_open();
	pid = hub_pid();
	assert_int_equal(vb_hub_stop(false, &clients, &stopped), EBUSY);
	assert_int_equal(clients, 1);
	assert_int_equal(hub_pid(), pid);
	assert_int_equal(vb_hub_stop(true, &clients, &stopped), 0);
	assert_int_equal(stopped, pid);
	for (unsigned i = 0; i < 1000 && (!hub_pid() || hub_pid() == pid); i++)
		turn_for(client, 20);
	assert_int_not_equal(hub_pid(), pid);
	assert_int_not_equal(hub_pid(), 0);
	vb_hub_client_close(client);
}

static unsigned told_to_fail;

static void on_fatal(void *arg)
{
	told_to_fail++;
}

/* Each time it is asked for, whoever has the device open hears of it in a turn. */
HUB_TEST(a_client_is_told_to_fail)
{
	struct vb_hub_client *client;

	client = client_open();
	vb_hub_client_receivers(client, &(struct vb_hub_receivers){.fatal = on_fatal});
	told_to_fail = 0;
	assert_int_equal(vb_hub_fail((uint32_t)getppid(), vb_hub_pid_ns()), ESRCH);
	for (unsigned times = 1; times <= 3; times++) {
		struct pollfd poller = {vb_hub_client_fd(client), POLLIN, 0};

		assert_int_equal(vb_hub_fail((uint32_t)getpid(), vb_hub_pid_ns()), 0);
		while (told_to_fail < times) {
			assert_int_equal(poll(&poller, 1, 5000), 1);
			vb_hub_client_turn(client);
		}
		assert_int_equal(poll(&poller, 1, 0), 0);
	}
	slot_lease(client);
	assert_int_equal(told_to_fail, 3);
	vb_hub_client_close(client);
	assert_int_equal(vb_hub_fail((uint32_t)getpid(), vb_hub_pid_ns()), ESRCH);
}

static unsigned asked_how;
static uint32_t asked_to_measure_s;

static void on_sample(void *arg, int answer_fd, uint32_t measure_s)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_SAMPLED);

	vb_hub_program_self(&msg.sample.taken.program);
	asked_how++;
	asked_to_measure_s = measure_s;
	/* Any file will do, here. */
	if (!measure_s)
		assert_int_equal(vb_hub_send(answer_fd, &msg, &answer_fd, VB_HUB_SAMPLE_FDS), 0);
}

static _Atomic bool sampling;

static void *sample_turn(void *client)
{
	while (sampling)
		turn_for(client, 5);
	return NULL;
}

/* Those that answer are told from those that do not, which nobody waits for once all have. */
HUB_TEST(who_watches_hears_from_all_clients)
{
	static const uint64_t second_ns = 1000000000;
	struct vb_hub_client *client;
	struct vb_hub_said *said;
	unsigned count, silent;
	pthread_t thread;

	assert_int_equal(vb_hub_sample(0, second_ns, &said, &count, &silent), ECONNREFUSED);
	client = client_open();
	vb_hub_client_receivers(client, &(struct vb_hub_receivers){.sample = on_sample});
	asked_how = 0;
	/* It has no turn. */
	assert_int_equal(vb_hub_sample(7, second_ns / 100, &said, &count, &silent), 0);
	assert_int_equal(count, 0);
	assert_int_equal(silent, 1);
	vb_hub_said_free(said, count);
	sampling = true;
	assert_int_equal(pthread_create(&thread, NULL, sample_turn, client), 0);
	assert_int_equal(vb_hub_sample(0, 60 * second_ns, &said, &count, &silent), 0);
	assert_int_equal(count, 1);
	assert_int_equal(silent, 0);
	assert_int_equal(said[0].pid, getpid());
	vb_hub_said_free(said, count);
	/* It takes the question, and does not answer. */
	assert_int_equal(vb_hub_sample(7, 60 * second_ns, &said, &count, &silent), 0);
	assert_int_equal(count, 0);
	assert_int_equal(silent, 1);
	vb_hub_said_free(said, count);
	sampling = false;
	pthread_join(thread, NULL);
	assert_int_equal(asked_how, 3);
	assert_int_equal(asked_to_measure_s, 7);
	vb_hub_client_close(client);
}

static ino_t inode_of(int fd)
{
	struct stat stat;

	assert_int_equal(fstat(fd, &stat), 0);
	close(fd);
	return stat.st_ino;
}

HUB_TEST(whoever_asks_gets_the_memory_of_the_domains)
{
	struct vb_hub_client *client;
	int fd, other;

	assert_int_equal(vb_hub_domains_read(&fd), ECONNREFUSED);
	client = client_open();
	assert_int_equal(vb_hub_client_store(client, &fd), 0);
	assert_int_equal(vb_hub_domains_read(&other), 0);
	assert_int_equal(inode_of(fd), inode_of(other));
	vb_hub_client_close(client);
}

HUB_TEST(nonsense_costs_the_connection_and_nothing_else)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_MARK);
	struct vb_hub_client *client;
	struct pollfd pollfd = {.events = POLLIN};
	char octet;
	pid_t pid;

	client = client_open();
	pid = hub_pid();
	msg.mark.slot = 5;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(vb_hub_connect(&pollfd.fd), 0);
		if (i == 0) /* a client's word from a stranger */
			assert_int_equal(vb_hub_send(pollfd.fd, &msg, NULL, 0), 0);
		if (i == 1) /* a hub's word */
			msg = vb_hub_msg_make(VB_HUB_WELCOME);
		if (i == 2) /* a cut one */
			assert_int_equal(send(pollfd.fd, &msg, 7, 0), 7);
		if (i == 1 || i == 3) /* the same with descriptors */
			assert_int_equal(vb_hub_send(pollfd.fd, &msg, (int[]){0, 1}, 2), 0);
		assert_int_equal(poll(&pollfd, 1, 2000), 1);
		assert_int_equal(recv(pollfd.fd, &octet, 1, 0), 0);
		close(pollfd.fd);
	}
	assert_int_equal(hub_pid(), pid);
	vb_hub_client_close(client);
}

HUB_TEST(without_verbatimd_there_is_enoent)
{
	struct vb_hub_client *client;

	setenv("VERBATIM_HUB", "/nonexistent/verbatimd", 1);
	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), ENOENT);
	setenv("VERBATIM_HUB", "/dev/null", 1);
	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), ENOENT);
}

HUB_TEST(a_strangers_port_is_eaddrinuse)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct vb_hub_client *client;
	int fd, on = 1;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Even one that would let us join. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), EADDRINUSE);
	close(fd);
	client = client_open();
	vb_hub_client_close(client);
}

/* As somebody else: our hub does not talk to him, and he cannot pass for it. */
static void be_nobody(void *arg)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct vb_hub_client *client;
	int fd, n = snprintf(address.sun_path + 1, 64, "verbatim-hub-0-%d", VB_HUB_PROTOCOL);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (unsigned)n);
	char octet;

	child_check(!setgid(NOBODY) && !setuid(NOBODY));
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (!connect(fd, (struct sockaddr *)&address, bytes)) {
		child_check(recv(fd, &octet, 1, 0) <= 0);
		child_check(vb_hub_client_open(&client, NULL, NULL, NULL) == EADDRINUSE);
		return;
	}
	child_check(!bind(fd, (struct sockaddr *)&address, bytes) && !listen(fd, 1));
	child_check(write(*(int *)arg, "x", 1) == 1);
	pause();
}

static void descriptors_allow(rlim_t number)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = number;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* One descriptor more each time, until there are enough: EMFILE it is at every step before. */
HUB_TEST(too_few_descriptors_are_emfile)
{
	struct vb_hub_client *before, *client = NULL;
	struct vb_hub_slot slot;
	struct rlimit limit;
	rlim_t number;
	int free_fd, rc;

	before = client_open();
	getrlimit(RLIMIT_NOFILE, &limit);
	free_fd = fcntl(0, F_DUPFD, 3);
	close(free_fd);
	number = (rlim_t)free_fd;
	do {
		descriptors_allow(number++);
		rc = vb_hub_client_open(&client, NULL, NULL, NULL);
		descriptors_allow(limit.rlim_cur);
		assert_true(rc == 0 || rc == EMFILE);
	} while (rc);
	assert_true(number > (rlim_t)free_fd + 1);
	number -= 3;
	do {
		descriptors_allow(number++);
		rc = vb_hub_client_lease(client, &slot);
		descriptors_allow(limit.rlim_cur);
		assert_true(rc == 0 || rc == EMFILE);
	} while (rc);
	close(slot.fd);
	vb_hub_client_close(client);
	vb_hub_client_close(before);
}

HUB_TEST(other_users_are_kept_apart)
{
	struct vb_hub_client *client;
	int pipes[2], status;
	char octet;
	pid_t pid;

	/* In a user namespace of our own there is nobody else; and /root is closed to others. */
	pid = fork();
	if (pid == 0)
		_exit(setuid(NOBODY) || access(getenv("VERBATIM_HUB"), X_OK));
	waitpid(pid, &status, 0);
	if (status)
		SKIP("an ordinary user cannot reach this build");
	client = client_open();
	assert_int_equal(pipe(pipes), 0);
	assert_child_ok(child_start(be_nobody, &pipes[1]));
	vb_hub_client_close(client);
	hub_stop();
	pid = child_start(be_nobody, &pipes[1]);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &octet, 1), 1);
	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), EPERM);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
}

HUB_TEST(a_forked_child_that_forgets_disturbs_nobody)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot, other;
	int pipes[2], forgotten[2];
	char octet;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(forgotten), 0);
	client = client_open();
	slot = slot_lease(client);
	pid = fork();
	if (pid == 0) {
		vb_hub_client_forget(client);
		close(slot.fd);
		close(pipes[1]);
		child_check(write(forgotten[1], "x", 1) == 1);
		child_check(read(pipes[0], &octet, 1) == 1);
		_exit(0);
	}
	assert_int_equal(read(forgotten[0], &octet, 1), 1);
	assert_steering(&slot, 1);
	vb_hub_client_turn(client);
	other = slot_lease(client);
	assert_int_not_equal(other.slot, slot.slot);
	close(other.fd);
	close(slot.fd);
	vb_hub_client_close(client);
	/* The child lives, and holds nothing. */
	client = client_open();
	other = slot_lease(client);
	assert_int_equal(other.slot, slot.slot);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_child_ok(pid);
	close(other.fd);
	vb_hub_client_close(client);
	close(pipes[0]);
	close(pipes[1]);
	close(forgotten[0]);
	close(forgotten[1]);
}

static void *lease_many(void *client)
{
	for (unsigned i = 0; i < 20; i++) {
		struct vb_hub_slot slot;

		if (vb_hub_client_lease(client, &slot))
			return client;
		vb_hub_client_mark(client, slot.slot, slot.next_index + 1);
		vb_hub_client_turn(client);
		close(slot.fd);
	}
	return NULL;
}

HUB_TEST(threads_may_lease_at_once)
{
	struct vb_hub_summary summary;
	struct vb_hub_client *client;
	pthread_t thread[4];

	client = client_open();
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, lease_many, client);
	for (unsigned i = 0; i < 4; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	assert_true(hub_summary(&summary));
	assert_int_equal(summary.rows, 80);
	vb_hub_client_close(client);
}
