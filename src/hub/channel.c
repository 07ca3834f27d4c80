/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/lock.h"
#include "hub/procs.h"
#include "hub/users.h"
#include "hub/words.h"

enum { BACKLOG = 1024 };

uint64_t vb_hub_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* "\0verbatim-<what>-<uid>-<protocol><more>" */
static socklen_t address_make(struct sockaddr_un *address, const char *what, uint32_t uid,
			      int protocol, const char *more)
{
	char *name = address->sun_path + 1;
	size_t room = sizeof(address->sun_path) - 1;
	int used;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	used = snprintf(name, room, "verbatim-%s-%u-%d%s", what, uid, protocol, more);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
}

/* Notes a failed call. Everyday errors are not noted: no listener, name in use, no room. */
static int failed(const char *call)
{
	bool daily = errno == ECONNREFUSED || errno == EADDRINUSE || errno == EAGAIN;

	return daily ? errno : vb_failed(errno, call);
}

static int socket_make(int *fd, int type)
{
	*fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return *fd < 0 ? vb_failed(errno, "socket") : 0;
}

static int name_take(int fd, const char *what, const char *more)
{
	struct sockaddr_un address;
	socklen_t bytes = address_make(&address, what, geteuid(), VB_HUB_PROTOCOL, more);

	return bind(fd, (struct sockaddr *)&address, bytes) ? failed("bind") : 0;
}

int vb_hub_listen(int *fd)
{
	int rc = socket_make(fd, SOCK_SEQPACKET);

	if (rc)
		return rc;
	rc = name_take(*fd, "hub", "");
	if (!rc && listen(*fd, BACKLOG))
		rc = vb_failed(errno, "listen");
	if (rc)
		close(*fd);
	return rc;
}

/* --- leases --- */

int vb_hub_watch_make(int *fd)
{
	return socket_make(fd, SOCK_DGRAM);
}

/* Gets an address as the kernel stores it, octet by octet, family included. */
static bool address_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *),
		       struct sockaddr_un *address, socklen_t *bytes)
{
	memset(address, 0, sizeof(*address));
	*bytes = sizeof(*address);
	return !get(fd, (struct sockaddr *)address, bytes) && *bytes <= sizeof(*address);
}

static int watch_point(int watch_fd, int name_fd)
{
	struct sockaddr_un name;
	socklen_t bytes;

	if (!address_of(name_fd, getsockname, &name, &bytes))
		return vb_failed(errno, "getsockname");
	/* Nothing ever arrives there: neither from the watch nor from other processes. */
	if (shutdown(name_fd, SHUT_RD))
		return vb_failed(errno, "shutdown");
	return connect(watch_fd, (struct sockaddr *)&name, bytes) ? vb_failed(errno, "connect") : 0;
}

int vb_hub_name_make(int *fd, unsigned slot, int watch_fd)
{
	uint64_t letters;
	char more[40];
	int rc = socket_make(fd, SOCK_DGRAM);

	if (rc)
		return rc;
	do {
		if (getrandom(&letters, sizeof(letters), GRND_NONBLOCK) != sizeof(letters))
			letters = vb_hub_now_ns();
		snprintf(more, sizeof(more), "-%u-%016" PRIx64, slot, letters);
		rc = name_take(*fd, "slot", more);
	} while (rc == EADDRINUSE);
	if (!rc)
		rc = watch_point(watch_fd, *fd);
	if (rc)
		close(*fd);
	return rc;
}

bool vb_hub_watch_sees(int watch_fd)
{
	/* EPIPE: it exists and does not read. EPERM: its holder has connected it elsewhere. */
	if (send(watch_fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	return errno != ECONNREFUSED && errno != ENOTCONN && errno != EDESTADDRREQ;
}

static bool option_is_same(int fd, int other_fd, int option)
{
	uint64_t value[2] = {0};
	socklen_t bytes[2] = {sizeof(value[0]), sizeof(value[1])};
	int rc = getsockopt(fd, SOL_SOCKET, option, &value[0], &bytes[0]);

	/* An older kernel does not tell the namespace. */
	if (rc && errno == ENOPROTOOPT && option == SO_NETNS_COOKIE)
		return true;
	return !rc && !getsockopt(other_fd, SOL_SOCKET, option, &value[1], &bytes[1]) &&
	       value[0] == value[1];
}

/*
 * Within one network namespace, two living sockets of one kind never share a name. So a socket of
 * the same name, kind and namespace is the same socket. The namespace must be compared: in another
 * one any process could make a socket with that name.
 */
bool vb_hub_watch_sees_this(int watch_fd, int name_fd)
{
	struct sockaddr_un seen, name;
	socklen_t seen_bytes, bytes;

	return vb_hub_watch_sees(watch_fd) && option_is_same(watch_fd, name_fd, SO_DOMAIN) &&
	       option_is_same(watch_fd, name_fd, SO_TYPE) &&
	       option_is_same(watch_fd, name_fd, SO_NETNS_COOKIE) &&
	       address_of(watch_fd, getpeername, &seen, &seen_bytes) &&
	       address_of(name_fd, getsockname, &name, &bytes) && bytes == seen_bytes &&
	       memcmp(&name, &seen, bytes) == 0;
}

/* --- who is there --- */

static int peer_credentials(int fd, struct ucred *cred)
{
	socklen_t bytes = sizeof(*cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &bytes))
		return vb_failed(errno, "getsockopt(SO_PEERCRED)");
	return 0;
}

int vb_hub_peer_check(int fd, pid_t *pid)
{
	struct ucred cred;
	int rc = peer_credentials(fd, &cred);

	if (rc)
		return rc;
	*pid = cred.pid;
	return cred.uid == geteuid() ? 0 : EPERM;
}

/* Notes that another user listens under the name of our hub. */
static int name_is_taken(const struct ucred *cred)
{
	char who[96];

	vb_users_words(who, sizeof(who), cred->uid, vb_users_nobody());
	return vb_failed_words(EPERM,
			       "the name of this user's hub, @verbatim-hub-%u-%d, is taken by %s "
			       "(pid %d)" VB_OWN_NETNS,
			       geteuid(), VB_HUB_PROTOCOL, who, (int)cred->pid);
}

bool vb_hub_is_stopped(int fd)
{
	struct ucred cred;

	return !peer_credentials(fd, &cred) && cred.pid && vb_procs_is_stopped(cred.pid);
}

int vb_hub_silent(int fd)
{
	struct ucred cred;

	if (peer_credentials(fd, &cred) || !cred.pid)
		return vb_failed_words(ETIMEDOUT, "the hub: it does not answer");
	return vb_failed_words(ETIMEDOUT, "the hub, pid %d: it does not answer%s", (int)cred.pid,
			       vb_hub_is_stopped(fd) ? ", because it is stopped" : "");
}

static int hub_connect(int *fd, uint32_t uid, int protocol)
{
	struct sockaddr_un address;
	socklen_t bytes = address_make(&address, "hub", uid, protocol, "");
	int rc = socket_make(fd, SOCK_SEQPACKET);

	if (rc)
		return rc;
	if (connect(*fd, (struct sockaddr *)&address, bytes)) {
		rc = failed("connect");
		close(*fd);
	}
	return rc;
}

int vb_hub_connect(int *fd)
{
	int rc = hub_connect(fd, geteuid(), VB_HUB_PROTOCOL);
	struct ucred cred;

	if (rc)
		return rc;
	rc = peer_credentials(*fd, &cred);
	if (!rc && cred.uid != geteuid())
		rc = name_is_taken(&cred);
	if (rc)
		close(*fd);
	return rc;
}

int vb_hub_who(uint32_t name_uid, int protocol, pid_t *pid, uint32_t *uid)
{
	struct ucred cred;
	int fd, rc = hub_connect(&fd, name_uid, protocol);

	if (rc)
		return rc;
	rc = peer_credentials(fd, &cred);
	close(fd);
	if (rc)
		return rc;
	*pid = cred.pid;
	*uid = cred.uid;
	return 0;
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
		return errno == EINTR ? EAGAIN : failed("sendmsg");
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
		/* Padding could make room for one descriptor more than fds has. */
		.msg_controllen = CMSG_LEN(VB_HUB_FDS_MAX * sizeof(int)),
	};
	const int flags = MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
	ssize_t bytes = recvmsg(fd, &header, flags);
	int rc;

	/* The other end died before it read our message. What it sent comes behind the error. */
	if (bytes < 0 && errno == ECONNRESET)
		bytes = recvmsg(fd, &header, flags);
	*n = 0;
	if (bytes < 0)
		return errno == EINTR ? EAGAIN : failed("recvmsg");
	/* The kernel closed the descriptors that found no room; the others are ours to close. */
	*n = fds_take(&header, fds);
	if (!(header.msg_flags & MSG_CTRUNC))
		recv(fd, NULL, 0, MSG_DONTWAIT);
	if (header.msg_flags & MSG_CTRUNC)
		rc = vb_failed(EMFILE, "recvmsg");
	else if (bytes == 0) /* or an empty message, with descriptors */
		rc = ECONNRESET;
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

		vb_lock_order_wait("a socket of the hub's");
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
			return vb_hub_silent(fd);
		vb_hub_wait(fd, deadline_ns);
	}
}
