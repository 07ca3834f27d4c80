/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/slots.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "daemon/domains.h"
#include "hub/words.h"
#include "link/udp.h"

/* One message of the keeper: the number of its first slot, and a chunk of sockets. */
union control {
	struct cmsghdr header;
	uint8_t octets[CMSG_SPACE(VB_SLOTS_CHUNK * sizeof(int))];
};

static void fds_close(const int *fds, unsigned n)
{
	while (n--)
		close(fds[n]);
}

static int chunk_make(int fds[VB_SLOTS_CHUNK])
{
	for (unsigned i = 0; i < VB_SLOTS_CHUNK; i++) {
		int rc = vb_udp_socket_create(&fds[i]);

		if (rc) {
			fds_close(fds, i);
			return rc;
		}
	}
	return 0;
}

static int chunk_keep(int keeper, uint32_t first, const int fds[VB_SLOTS_CHUNK])
{
	struct iovec iov = {&first, sizeof(first)};
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(VB_SLOTS_CHUNK * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, VB_SLOTS_CHUNK * sizeof(int));
	if (sendmsg(keeper, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return vb_failed(errno, "sendmsg");
	return 0;
}

/* Bind what waits for it, in order. Those behind a failure stay for the next time. */
static int bind_made(struct vb_slots *slots)
{
	while (slots->bound < slots->made) {
		int fd = slots->fd[slots->bound], rc = 0;

		if (!vb_udp_socket_bound(fd)) {
			if (slots->bound == 0)
				rc = vb_udp_socket_steer(fd);
			if (!rc)
				rc = vb_udp_socket_bind(fd);
		}
		if (rc)
			return rc;
		slots->bound++;
	}
	return 0;
}

/* The other half of our descriptors is for connections. */
static unsigned slots_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return VB_HUB_SLOTS_MAX;
	return (unsigned)vb_min_u64(limit.rlim_cur / 2, VB_HUB_SLOTS_MAX);
}

int vb_slots_grow(struct vb_slots *slots)
{
	int fds[VB_SLOTS_CHUNK], rc;

	if (slots->bound < slots->made)
		return bind_made(slots);
	if (slots->made + VB_SLOTS_CHUNK > VB_HUB_SLOTS_MAX)
		return vb_failed_words(ENOSPC, "all %d slots are taken", VB_HUB_SLOTS_MAX - 1);
	if (slots->made + VB_SLOTS_CHUNK > slots_max())
		return vb_failed_words(ENOSPC,
				       "all slots are taken that there is room for: RLIMIT_NOFILE "
				       "of verbatimd is too low for more than %u",
				       slots->made ? slots->made - 1 : 0);
	rc = chunk_make(fds);
	if (rc)
		return rc;
	rc = chunk_keep(slots->keeper[0], slots->made, fds);
	if (rc) {
		fds_close(fds, VB_SLOTS_CHUNK);
		return rc;
	}
	memcpy(&slots->fd[slots->made], fds, sizeof(fds));
	slots->made += VB_SLOTS_CHUNK;
	return bind_made(slots);
}

int vb_slots_create(struct vb_slots *slots)
{
	int rc;

	slots->made = slots->bound = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, slots->keeper))
		return vb_failed(errno, "socketpair");
	rc = vb_domains_make(&slots->store, &slots->keeper[VB_HUB_KEEPER_STORE]);
	if (!rc)
		rc = vb_slots_grow(slots);
	/* It is not that all slots are taken: we may not have descriptors enough for any. */
	return rc == ENOSPC ? vb_failed(EMFILE, "sockets for slots") : rc;
}

static bool socket_is(int fd, int domain, int other_domain, int type)
{
	int is_domain = 0, is_type = 0;
	socklen_t bytes = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &is_domain, &bytes) &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &is_type, &bytes) && is_type == type &&
	       (is_domain == domain || is_domain == other_domain);
}

/*
 * Look at the next message of the keeper without taking it: descriptors of our own for what it
 * carries. 0, EAGAIN after the last, EPROTO.
 */
static int chunk_peek(int keeper, uint32_t first, int fds[VB_SLOTS_CHUNK])
{
	uint32_t number;
	struct iovec iov = {&number, sizeof(number)};
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t bytes = recvmsg(keeper, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cmsg = bytes < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	bool ok;
	unsigned n;

	if (bytes < 0)
		return errno;
	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return EPROTO;
	n = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(cmsg), n * sizeof(int));
	ok = bytes == sizeof(number) && number == first && n == VB_SLOTS_CHUNK &&
	     !(msg.msg_flags & MSG_CTRUNC);
	for (unsigned i = 0; ok && i < n; i++)
		ok = socket_is(fds[i], AF_INET6, AF_INET, SOCK_DGRAM);
	if (!ok)
		fds_close(fds, n);
	return ok ? 0 : EPROTO;
}

int vb_slots_adopt(struct vb_slots *slots, const int keeper[VB_HUB_KEEPER_FDS])
{
	struct vb_xrc_store *store;
	int start = 0, rc = 0;

	slots->made = slots->bound = 0;
	if (!socket_is(keeper[0], AF_UNIX, AF_UNIX, SOCK_SEQPACKET) ||
	    !socket_is(keeper[1], AF_UNIX, AF_UNIX, SOCK_SEQPACKET) ||
	    setsockopt(keeper[1], SOL_SOCKET, SO_PEEK_OFF, &start, sizeof(start)))
		return EPROTO;
	store = vb_domains_adopt(keeper[VB_HUB_KEEPER_STORE]);
	if (!store)
		return EPROTO;
	while (!rc && slots->made < VB_HUB_SLOTS_MAX) {
		rc = chunk_peek(keeper[1], slots->made, &slots->fd[slots->made]);
		if (!rc)
			slots->made += VB_SLOTS_CHUNK;
	}
	if ((rc && rc != EAGAIN) || !slots->made) {
		fds_close(slots->fd, slots->made);
		slots->made = 0;
		return EPROTO;
	}
	slots->store = store;
	memcpy(slots->keeper, keeper, sizeof(slots->keeper));
	/* Sockets that were not bound yet are bound now or when they are needed. */
	bind_made(slots);
	return 0;
}
