/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group.h"
#include "hub/channel.h"
#include "descriptors.h"

/* What anybody of this user may send: nothing that the library itself would. */

enum { MORE = 8 };

static int ends[2];

static int setup(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int teardown(void **state)
{
	close(ends[0]);
	close(ends[1]);
	return 0;
}

#define CHANNEL_TEST(name) TEST_BETWEEN(name, setup, teardown)

static void send_with(const void *data, size_t bytes, unsigned fds)
{
	union {
		struct cmsghdr header;
		uint8_t octets[CMSG_SPACE(MORE * sizeof(int))];
	} control;
	struct iovec iov = {(void *)(uintptr_t)data, bytes};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(fds * sizeof(int)),
	};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(fds * sizeof(int));
	for (unsigned i = 0; i < fds; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &ends[0], sizeof(int));
	assert_int_equal(sendmsg(ends[0], &header, MSG_NOSIGNAL), bytes);
}

/* What comes, into memory that has no room for more descriptors than a message may have. */
static int receive(unsigned *n)
{
	struct {
		int fds[VB_HUB_FDS_MAX], behind;
	} memory = {.behind = 4711};
	struct vb_hub_msg msg;
	int rc = vb_hub_recv(ends[1], &msg, memory.fds, n);

	assert_int_equal(memory.behind, 4711);
	return rc;
}

CHANNEL_TEST(an_empty_message_leaves_no_descriptors)
{
	unsigned before = descriptors_of(getpid()), n;

	for (unsigned fds = 1; fds <= MORE; fds++) {
		send_with("", 0, fds);
		assert_int_not_equal(receive(&n), 0);
		assert_int_equal(n, 0);
		recv(ends[1], NULL, 0, MSG_DONTWAIT); /* if it was left there */
		assert_int_equal(descriptors_of(getpid()), before);
	}
}

CHANNEL_TEST(more_descriptors_than_any_message_has_are_refused)
{
	const struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_HELLO);
	unsigned before = descriptors_of(getpid()), n;

	for (unsigned fds = VB_HUB_FDS_MAX + 1; fds <= MORE; fds++) {
		send_with(&msg, vb_hub_msg_bytes(VB_HUB_HELLO), fds);
		assert_int_not_equal(receive(&n), 0);
		assert_int_equal(n, 0);
		recv(ends[1], NULL, 0, MSG_DONTWAIT);
		assert_int_equal(descriptors_of(getpid()), before);
	}
}

CHANNEL_TEST(the_end_is_the_end)
{
	unsigned n;

	shutdown(ends[0], SHUT_WR);
	assert_int_equal(receive(&n), ECONNRESET);
	assert_int_equal(n, 0);
}
