/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_HUB_LIB_H
#define VB_TESTS_HUB_LIB_H

/*
 * A real verbatimd per test, started by the client as always, in a network namespace of the test's
 * own. It leaves by itself soon after the test's last client.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "group.h"
#include "hub/channel.h"
#include "hub/client.h"
#include "hub/client_requests.h"
#include "hub/program.h"
#include "hub/ask/query.h"
#include "netns.h"

#define MS_NS 1000000ull

enum { HUB_IDLE_MS = 300, PORT = 4791 };

/* verbatimd of the build that this test belongs to, BUILD/tests/unit/TEST. */
static inline void hub_settings(void)
{
	char self[PATH_MAX], hub[PATH_MAX + 16], idle[16];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	vb_check(n > 0);
	self[n] = 0;
	for (unsigned up = 0; up < 3; up++)
		*strrchr(self, '/') = 0;
	snprintf(hub, sizeof(hub), "%s/verbatimd", self);
	snprintf(idle, sizeof(idle), "%d", HUB_IDLE_MS);
	setenv("VERBATIM_HUB", hub, 1);
	setenv("VERBATIM_HUB_IDLE_MS", idle, 1);
}

/* False: the test is skipped. */
static inline bool hub_ready(void)
{
	bool there = netns_enter();

	if (there)
		hub_settings();
	else
		group_lacks(NO_NETWORK_NAMESPACE);
	return there;
}

static inline int hub_setup(void **state)
{
	hub_ready();
	return 0;
}

#define HUB_TEST(name) TEST_AFTER(name, hub_setup)

static inline struct vb_hub_client *client_open(void)
{
	struct vb_hub_client *client;

	assert_int_equal(vb_hub_client_open(&client, NULL, NULL, NULL), 0);
	return client;
}

static inline struct vb_hub_slot slot_lease(struct vb_hub_client *client)
{
	struct vb_hub_slot slot;

	assert_int_equal(vb_hub_client_lease(client, &slot), 0);
	assert_in_range(slot.slot, 1, 1023);
	assert_in_range(slot.next_index, 0, 16383);
	return slot;
}

/* What a progress thread does, for a while. */
static inline void turn_for(struct vb_hub_client *client, unsigned ms)
{
	uint64_t end_ns = vb_hub_now_ns() + ms * MS_NS;

	while (vb_hub_now_ns() < end_ns) {
		struct pollfd pollfd = {vb_hub_client_fd(client), POLLIN, 0};

		if (poll(&pollfd, 1, 5) > 0)
			vb_hub_client_turn(client);
	}
}

/* What a hub answers, if there is one. */
static inline bool hub_summary(struct vb_hub_summary *summary)
{
	struct vb_hub_row *rows;

	if (vb_hub_status_read(summary, &rows))
		return false;
	free(rows);
	return true;
}

/* Of whoever listens, whether it serves or not; 0 if nobody does. */
static inline pid_t hub_pid(void)
{
	pid_t pid = 0;
	int fd;

	if (vb_hub_connect(&fd))
		return 0;
	vb_hub_peer_check(fd, &pid);
	close(fd);
	return pid;
}

/* kill -9, and wait until its sockets are closed. */
static inline void hub_kill(void)
{
	pid_t pid = hub_pid();

	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	for (unsigned i = 0; i < 1000 && hub_pid() == pid; i++)
		usleep(1000);
}

/* Ask the hub to leave, and wait until it has. */
static inline void hub_stop(void)
{
	unsigned clients;
	pid_t pid;

	vb_hub_stop(true, &clients, &pid);
	for (unsigned i = 0; i < 1000 && hub_pid(); i++)
		usleep(1000);
}

/* Lease a slot and tell no hub whose it is, as somebody does who is stopped: its name. */
static inline int slot_hold(unsigned *slot)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_LEASE);
	int fds[VB_HUB_FDS_MAX], fd;
	unsigned n;

	vb_hub_program_self(&msg.lease.program);
	vb_check(!vb_hub_connect(&fd) && !vb_hub_send(fd, &msg, NULL, 0));
	vb_check(!vb_hub_recv_by(fd, &msg, fds, &n, vb_hub_now_ns() + 10000 * MS_NS));
	vb_check(msg.type == VB_HUB_GRANT && n == VB_HUB_GRANT_FDS);
	close(fd);
	close(fds[0]);
	*slot = msg.grant.slot;
	return fds[1];
}

/* Send one datagram that names a slot and carries a number. 0 or an errno. */
static inline int datagram_send(int fd, const char *address, unsigned slot, uint32_t number)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	uint8_t data[16] = {0};

	data[5] = (uint8_t)(slot >> 2);
	data[6] = (uint8_t)(slot << 6);
	memcpy(data + 12, &number, sizeof(number));
	if (inet_pton(AF_INET6, address, &to.sin6_addr) != 1) {
		memset(to.sin6_addr.s6_addr + 10, 0xff, 2);
		inet_pton(AF_INET, address, to.sin6_addr.s6_addr + 12);
	}
	if (sendto(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) < 0)
		return errno;
	return 0;
}

/* Take one datagram; false if none waits. */
static inline bool datagram_take(int fd, unsigned *slot, uint32_t *number)
{
	uint8_t data[16];

	if (recv(fd, data, sizeof(data), MSG_DONTWAIT) != sizeof(data))
		return false;
	*slot = (unsigned)data[5] << 2 | data[6] >> 6;
	memcpy(number, data + 12, sizeof(*number));
	return true;
}

/* Every socket gets what names its slot, by every kind of address, and nothing else. */
static inline void assert_steering(const struct vb_hub_slot *slot, unsigned n)
{
	static const char *const addresses[] = {"127.0.0.1", "127.1.2.3", "::1"};
	uint32_t number = 0;
	unsigned got = 0;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned a = 0; a < VB_ARRAY_LEN(addresses); a++)
			assert_int_equal(datagram_send(slot[(i + 1) % n].fd, addresses[a],
						       slot[i].slot, a),
					 0);
	}
	for (unsigned i = 0; i < n; i++) {
		for (unsigned a = 0; a < VB_ARRAY_LEN(addresses); a++) {
			assert_true(datagram_take(slot[i].fd, &got, &number));
			assert_int_equal(got, slot[i].slot);
			assert_int_equal(number, a);
		}
		assert_false(datagram_take(slot[i].fd, &got, &number));
	}
}

static inline void slots_close(struct vb_hub_slot *slot, unsigned n)
{
	while (n--)
		close(slot[n].fd);
}

/*
 * Run a part of a test in a child process. cmocka's assertions do not reach the parent: the child
 * reports by its exit status.
 */
static inline pid_t child_start(void (*part)(void *), void *arg)
{
	pid_t pid = fork();

	vb_check(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		part(arg);
		_exit(0);
	}
	return pid;
}

/* One that goes on until it is killed, once it has told this; told_fd is where to write that to. */
static inline pid_t child_tells(void (*part)(int told_fd, void *arg), void *arg, void *told,
				size_t bytes)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	vb_check(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		part(ends[1], arg);
		pause();
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], told, bytes), bytes);
	close(ends[0]);
	return pid;
}

static inline void child_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static inline void assert_child_ok(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child: a failed expectation ends it with the line's number. */
#define child_check(cond)                                                           \
	do {                                                                        \
		if (!(cond)) {                                                      \
			fprintf(stderr, "# child: line %d: %s\n", __LINE__, #cond); \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

#endif
