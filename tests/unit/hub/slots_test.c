/* SPDX-License-Identifier: BSD-2-Clause */

/* Slots: who holds them, whatever others do; what becomes of datagrams for those nobody holds. */
#include <sys/resource.h>
#include <sys/un.h>

#include "hub/users.h"
#include "hub_lib.h"

enum { STRANGER = 65534, MANY = 40, DATAGRAMS = 50 };

/* --- strangers, and names --- */

static struct sockaddr_un name_make(const char *text, socklen_t *bytes)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	*bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1);
	*bytes += (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s", text);
	return name;
}

static int name_bind(const char *text, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	socklen_t bytes;
	struct sockaddr_un name = name_make(text, &bytes);

	vb_check(fd >= 0);
	if (!bind(fd, (struct sockaddr *)&name, bytes))
		return fd;
	close(fd);
	return -1;
}

/* Names of slots that can be guessed, or have been seen, of sockets of any type. */
static void stranger_run(int told_fd, void *arg)
{
	static const int types[] = {SOCK_DGRAM, SOCK_STREAM, SOCK_SEQPACKET};
	uint32_t uid = geteuid();
	char text[64];

	vb_check(!setgid(STRANGER) && !setuid(STRANGER));
	for (unsigned i = 0; i < VB_ARRAY_LEN(types); i++) {
		for (unsigned slot = 0; slot < VB_HUB_SLOTS_MAX; slot++) {
			snprintf(text, sizeof(text), "verbatim-slot-%u-%d-%u", uid,
				 VB_HUB_PROTOCOL, slot);
			if (name_bind(text, types[i]) < 0 && errno == EMFILE)
				_exit(1);
		}
	}
	vb_check(write(told_fd, "", 1) == 1);
}

static pid_t stranger_start(void)
{
	return child_tells(stranger_run, NULL, &(char){0}, 1);
}

static void limit_raise_for_names(void)
{
	struct rlimit limit;

	vb_check(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	vb_check(!setrlimit(RLIMIT_NOFILE, &limit));
}

static void assert_many_are_lent(struct vb_hub_client *client)
{
	struct vb_hub_slot slot[MANY];

	for (unsigned i = 0; i < MANY; i++)
		slot[i] = slot_lease(client);
	assert_steering(slot, MANY);
	slots_close(slot, MANY);
}

TEST(strangers_take_no_slot)
{
	struct vb_hub_client *client;
	pid_t stranger;

	if (geteuid() || vb_users_nobody())
		SKIP("only root is two users");
	limit_raise_for_names();
	/* Before there is a hub ... */
	stranger = stranger_start();
	client = client_open();
	assert_many_are_lent(client);
	vb_hub_client_close(client);
	child_kill(stranger);
	hub_stop();
	/* ... and beside one, which then has a next one. */
	client = client_open();
	stranger = stranger_start();
	assert_many_are_lent(client);
	hub_kill();
	assert_many_are_lent(client);
	vb_hub_client_close(client);
	child_kill(stranger);
}

static bool name_of(int fd, struct sockaddr_un *name, socklen_t *bytes)
{
	*bytes = sizeof(*name);
	return !getsockname(fd, (struct sockaddr *)name, bytes);
}

/* A socket of the same name, where that is free: in another network namespace. */
static int name_forge(const struct sockaddr_un *name, socklen_t bytes)
{
	int fds[2], fd = -1;
	union {
		struct cmsghdr header;
		uint8_t octets[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {(char[1]){0}, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	pid_t pid;

	vb_check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	pid = fork();
	if (!pid) {
		vb_check(!unshare(CLONE_NEWNET));
		fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		vb_check(!bind(fd, (const struct sockaddr *)name, bytes));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		vb_check(sendmsg(fds[0], &msg, 0) == 1);
		_exit(0);
	}
	vb_check(recvmsg(fds[1], &msg, MSG_CMSG_CLOEXEC) == 1);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	return fd;
}

TEST(a_lease_is_one_descriptor_and_no_other)
{
	struct sockaddr_un name;
	int watch, other_watch, lease, other, copy, forged;
	socklen_t bytes;

	assert_int_equal(vb_hub_watch_make(&watch), 0);
	assert_int_equal(vb_hub_watch_make(&other_watch), 0);
	assert_false(vb_hub_watch_sees(watch));
	assert_int_equal(vb_hub_name_make(&lease, 5, watch), 0);
	assert_int_equal(vb_hub_name_make(&other, 5, other_watch), 0);
	assert_true(vb_hub_watch_sees(watch));
	copy = dup(lease);
	assert_true(vb_hub_watch_sees_this(watch, lease));
	assert_true(vb_hub_watch_sees_this(watch, copy));
	assert_false(vb_hub_watch_sees_this(watch, other));
	assert_false(vb_hub_watch_sees_this(watch, watch));
	assert_false(vb_hub_watch_sees_this(watch, STDIN_FILENO));
	assert_true(name_of(lease, &name, &bytes));
	forged = name_forge(&name, bytes);
	assert_false(vb_hub_watch_sees_this(watch, forged));
	close(forged);
	/* Whatever its holder does with it, it is his. */
	assert_int_equal(connect(lease, (struct sockaddr *)&name, bytes), 0);
	assert_true(vb_hub_watch_sees(watch));
	assert_int_equal(shutdown(lease, SHUT_RDWR), 0);
	assert_true(vb_hub_watch_sees(watch));
	close(lease);
	assert_true(vb_hub_watch_sees(watch));
	close(copy);
	assert_false(vb_hub_watch_sees(watch));
	/* Nobody takes it up again. */
	forged = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(forged, (struct sockaddr *)&name, bytes), 0);
	assert_false(vb_hub_watch_sees(watch));
	assert_false(vb_hub_watch_sees_this(watch, forged));
	assert_int_equal(vb_hub_name_make(&lease, 5, watch), 0);
	assert_true(vb_hub_watch_sees_this(watch, lease));
	assert_false(vb_hub_watch_sees_this(watch, forged));
	close(forged);
	close(lease);
	close(other);
	close(watch);
	close(other_watch);
}

TEST(a_stranger_s_mail_does_not_arrive)
{
	int watch, lease, fd;
	struct sockaddr_un name;
	socklen_t bytes;

	assert_int_equal(vb_hub_watch_make(&watch), 0);
	assert_int_equal(vb_hub_name_make(&lease, 1, watch), 0);
	assert_true(name_of(lease, &name, &bytes));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&name,
				bytes),
			 -1);
	assert_true(vb_hub_watch_sees(watch));
	close(fd);
	close(lease);
	close(watch);
}

/* --- datagrams for nobody --- */

/* What waits in the sockets at the port, in octets of the kernel's memory. */
static unsigned long octets_waiting(void)
{
	FILE *table = fopen("/proc/thread-self/net/udp6", "re");
	unsigned long all = 0;
	char line[512];

	vb_check(table != NULL);
	while (fgets(line, sizeof(line), table)) {
		unsigned long waiting;
		unsigned port;

		if (sscanf(line, " %*[0-9]: %*[0-9A-Fa-f]:%x %*s %*s %*[0-9A-Fa-f]:%lx", &port,
			   &waiting) == 2 &&
		    port == PORT)
			all += waiting;
	}
	fclose(table);
	return all;
}

static void datagrams_send(unsigned slot)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned i = 0; i < DATAGRAMS; i++)
		assert_int_equal(datagram_send(fd, "::1", slot, i), 0);
	close(fd);
}

/* The hub hears that a connection has ended, and looks then: as often as it takes. */
static bool nothing_waits_soon(void)
{
	for (unsigned i = 0; i < 2000 && octets_waiting(); i++)
		usleep(5000);
	return !octets_waiting();
}

TEST(what_is_for_nobody_is_dropped)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot;

	client = client_open();
	slot = slot_lease(client);
	/* The first one is ours, and those behind it have been made and never lent. */
	datagrams_send(slot.slot);
	assert_true(octets_waiting() > 0);
	for (unsigned i = 0; i < DATAGRAMS; i++)
		recv(slot.fd, &(char){0}, 1, MSG_DONTWAIT);
	assert_int_equal(octets_waiting(), 0);
	for (unsigned i = 2; i < 8; i++)
		datagrams_send(i);
	assert_int_equal(octets_waiting(), 0);
	close(slot.fd);
	vb_hub_client_close(client);
}

/* A process that leases a slot and tells which, and does nothing more. */
static void hold(int told_fd, void *arg)
{
	struct vb_hub_client *client;
	unsigned slot;

	vb_check(!vb_hub_client_open(&client, NULL, NULL, NULL));
	slot = slot_lease(client).slot;
	vb_check(write(told_fd, &slot, sizeof(slot)) == sizeof(slot));
}

TEST(what_is_for_the_dead_is_dropped)
{
	struct vb_hub_client *client;
	unsigned dead;
	pid_t pid;

	client = client_open();
	pid = child_tells(hold, NULL, &dead, sizeof(dead));
	datagrams_send(dead);
	assert_true(octets_waiting() > 0);
	child_kill(pid);
	/* What it left goes, and what comes then finds nothing open. */
	assert_true(nothing_waits_soon());
	datagrams_send(dead);
	assert_int_equal(octets_waiting(), 0);
	vb_hub_client_close(client);
}

TEST(who_dies_without_a_hub_is_found_by_the_next)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
	unsigned dead;
	pid_t pid;

	client = client_open();
	pid = child_tells(hold, NULL, &dead, sizeof(dead));
	/* Who lives would start the next hub at once. */
	assert_int_equal(kill(pid, SIGSTOP), 0);
	hub_kill();
	child_kill(pid);
	datagrams_send(dead);
	assert_true(octets_waiting() > 0);
	slot = slot_lease(client);
	assert_true(nothing_waits_soon());
	if (slot.slot != dead)
		datagrams_send(dead);
	assert_int_equal(octets_waiting(), 0);
	close(slot.fd);
	vb_hub_client_close(client);
}

/* A hub that is new lets those who hold their slots go on. */
TEST(the_next_hub_shuts_nobody_out)
{
	struct vb_hub_client *client;
	struct vb_hub_slot slot[2];

	client = client_open();
	slot[0] = slot_lease(client);
	hub_kill();
	slot[1] = slot_lease(client);
	assert_steering(slot, 2);
	slots_close(slot, 2);
	vb_hub_client_close(client);
}

GROUP(hub_setup, NULL)
