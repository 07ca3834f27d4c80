/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/channel.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

enum { BACKLOG = 1024 };

const char *vb_hub_error_text(int error)
{
	static const struct {
		int error;
		const char *text;
	} rows[] = {
		{EADDRINUSE,
		 "UDP port 4791 is taken here, by another user or the kernel's rdma_rxe"},
		{EPERM, "its name is taken by another user"},
		{ENOENT, "there is no verbatimd to start"},
		{EMFILE, "RLIMIT_NOFILE is too low"},
		{EFBIG, "RLIMIT_FSIZE is too low"},
		{ETIMEDOUT, "it does not answer"},
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		if (rows[i].error == error)
			return rows[i].text;
	}
	return strerror(error);
}

uint64_t vb_hub_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* "\0verbatim-<what>-<uid>-<protocol>[-<number>]" */
static socklen_t address_make(struct sockaddr_un *address, const char *what, int number)
{
	char *name = address->sun_path + 1;
	size_t room = sizeof(address->sun_path) - 1;
	int used;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (number < 0)
		used = snprintf(name, room, "verbatim-%s-%u-%d", what, geteuid(), VB_HUB_PROTOCOL);
	else
		used = snprintf(name, room, "verbatim-%s-%u-%d-%d", what, geteuid(),
				VB_HUB_PROTOCOL, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
}

static int name_take(int *fd, const char *what, int number)
{
	struct sockaddr_un address;
	socklen_t bytes = address_make(&address, what, number);

	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	if (bind(*fd, (struct sockaddr *)&address, bytes)) {
		int rc = errno;

		close(*fd);
		return rc;
	}
	return 0;
}

int vb_hub_listen(int *fd)
{
	int rc = name_take(fd, "hub", -1);

	if (rc)
		return rc;
	if (listen(*fd, BACKLOG)) {
		rc = errno;
		close(*fd);
	}
	return rc;
}

int vb_hub_slot_name_take(int *fd, unsigned slot)
{
	return name_take(fd, "slot", (int)slot);
}

int vb_hub_peer_check(int fd, pid_t *pid)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes))
		return EPERM;
	*pid = cred.pid;
	return cred.uid == geteuid() ? 0 : EPERM;
}

int vb_hub_connect(int *fd)
{
	struct sockaddr_un address;
	socklen_t bytes = address_make(&address, "hub", -1);
	pid_t pid;
	int rc = 0;

	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	if (connect(*fd, (struct sockaddr *)&address, bytes))
		rc = errno;
	if (!rc)
		rc = vb_hub_peer_check(*fd, &pid);
	if (rc)
		close(*fd);
	return rc;
}

union control {
	struct cmsghdr header;
	uint8_t octets[CMSG_SPACE(VB_HUB_FDS_MAX * sizeof(int))];
};

int vb_hub_send(int fd, const struct vb_hub_msg *msg, const int *fds, unsigned n)
{
	struct iovec iov = {(void *)msg, vb_hub_msg_bytes(msg->type)};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;

	if (n) {
		memset(&control, 0, sizeof(control));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
	}
	if (sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return errno == EINTR ? EAGAIN : errno;
	return 0;
}

static unsigned fds_take(struct msghdr *header, int fds[VB_HUB_FDS_MAX])
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(header);
	unsigned n;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(cmsg), n * sizeof(int));
	return n;
}

int vb_hub_recv(int fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n)
{
	uint8_t data[sizeof(struct vb_hub_msg)];
	struct iovec iov = {data, sizeof(data)};
	union control control;
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const int flags = MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
	ssize_t bytes = recvmsg(fd, &header, flags);
	int rc;

	/* The other end died before it had read us; what it had said stands behind that. */
	if (bytes < 0 && errno == ECONNRESET)
		bytes = recvmsg(fd, &header, flags);
	*n = 0;
	if (bytes == 0)
		return ECONNRESET;
	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR ? EAGAIN : ECONNRESET;
	/* The kernel closes what found no room; what did is ours to close. */
	*n = fds_take(&header, fds);
	if (!(header.msg_flags & MSG_CTRUNC))
		recv(fd, NULL, 0, MSG_DONTWAIT);
	if (header.msg_flags & MSG_CTRUNC)
		rc = EMFILE;
	else if (header.msg_flags & MSG_TRUNC)
		rc = EPROTO;
	else
		rc = vb_hub_msg_parse(msg, data, (size_t)bytes, *n);
	while (rc && *n)
		close(fds[--*n]);
	return rc;
}

void vb_hub_wait(int fd, uint64_t deadline_ns)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	uint64_t now = vb_hub_now_ns();

	while (now < deadline_ns) {
		struct timespec left = {(time_t)((deadline_ns - now) / 1000000000u),
					(long)((deadline_ns - now) % 1000000000u)};

		if (ppoll(&pollfd, 1, &left, NULL) > 0)
			return;
		now = vb_hub_now_ns();
	}
}

int vb_hub_recv_by(int fd, struct vb_hub_msg *msg, int fds[VB_HUB_FDS_MAX], unsigned *n,
		   uint64_t deadline_ns)
{
	for (;;) {
		int rc = vb_hub_recv(fd, msg, fds, n);

		if (rc != EAGAIN)
			return rc;
		if (vb_hub_now_ns() >= deadline_ns)
			return ETIMEDOUT;
		vb_hub_wait(fd, deadline_ns);
	}
}
