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
#include "hub/channel.h"
#include "hub/words.h"
#include "link/udp_socket.h"

enum {
	SLOT_FDS = 2, /* its socket, its watch */
	CHUNK_FDS = SLOT_FDS * VB_SLOTS_CHUNK,
};

/* A message in the keeper: the number of its first slot, a chunk of sockets, their watches. */
union control {
	struct cmsghdr header;
	uint8_t octets[CMSG_SPACE(CHUNK_FDS * sizeof(int))];
};

static void fds_close(const int *fds, unsigned n)
{
	while (n--)
		close(fds[n]);
}

/* No process has these slots yet, so nothing is let in. */
static int chunk_make(int fds[CHUNK_FDS])
{
	for (unsigned i = 0; i < CHUNK_FDS; i++) {
		bool watch = i >= VB_SLOTS_CHUNK;
		int rc = watch ? vb_hub_watch_make(&fds[i]) : vb_udp_socket_create(&fds[i]);

		if (rc) {
			fds_close(fds, i);
			return rc;
		}
		if (!watch)
			vb_udp_socket_shut(fds[i]);
	}
	return 0;
}

static void chunk_add(struct vb_slots *slots, const int fds[CHUNK_FDS])
{
	memcpy(&slots->fd[slots->made], fds, VB_SLOTS_CHUNK * sizeof(*fds));
	memcpy(&slots->watch[slots->made], fds + VB_SLOTS_CHUNK, VB_SLOTS_CHUNK * sizeof(*fds));
	memset(&slots->open[slots->made], 0, VB_SLOTS_CHUNK * sizeof(*slots->open));
	slots->made += VB_SLOTS_CHUNK;
}

static int chunk_keep(int keeper, uint32_t first, const int fds[CHUNK_FDS])
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
	control.header.cmsg_len = CMSG_LEN(CHUNK_FDS * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, CHUNK_FDS * sizeof(int));
	if (sendmsg(keeper, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return vb_failed(errno, "sendmsg");
	return 0;
}

/* Binds the unbound sockets, in order. Those after a failure wait for the next call. */
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
		/* The hub's own slot is never leased: it receives what is for no slot. */
		if (slots->bound == 0)
			vb_udp_socket_open(fd);
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
	return (unsigned)vb_min_u64(limit.rlim_cur / 2 / SLOT_FDS, VB_HUB_SLOTS_MAX);
}

/*
 * Makes another chunk. Returns 0, ENOSPC (all exist, or as many as our descriptors allow), or an
 * errno.
 */
static int grow(struct vb_slots *slots)
{
	int fds[CHUNK_FDS], rc;

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
		fds_close(fds, CHUNK_FDS);
		return rc;
	}
	chunk_add(slots, fds);
	return bind_made(slots);
}

int vb_slots_create(struct vb_slots *slots)
{
	int rc;

	slots->made = slots->bound = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, slots->keeper))
		return vb_failed(errno, "socketpair");
	rc = vb_domains_make(&slots->domains, &slots->keeper[VB_HUB_KEEPER_STORE]);
	if (!rc)
		rc = grow(slots);
	/*
	 * At the start ENOSPC does not mean that all slots are taken: our descriptors do not
	 * suffice.
	 */
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
 * Peeks at the next message of the keeper: fds are copies of its descriptors. Returns 0, EAGAIN
 * after the last, EPROTO.
 */
static int chunk_peek(int keeper, uint32_t first, int fds[CHUNK_FDS])
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
	ok = bytes == sizeof(number) && number == first && n == CHUNK_FDS &&
	     !(msg.msg_flags & MSG_CTRUNC);
	for (unsigned i = 0; ok && i < VB_SLOTS_CHUNK; i++)
		ok = socket_is(fds[i], AF_INET6, AF_INET, SOCK_DGRAM) &&
		     socket_is(fds[VB_SLOTS_CHUNK + i], AF_UNIX, AF_UNIX, SOCK_DGRAM);
	if (!ok)
		fds_close(fds, n);
	return ok ? 0 : EPROTO;
}

/* Peeks at all messages of the keeper. Returns 0, or EPROTO if it is not a keeper. */
static int peek_all(struct vb_slots *slots, int keeper)
{
	int fds[CHUNK_FDS], rc = 0;

	while (!rc && slots->made < VB_HUB_SLOTS_MAX) {
		rc = chunk_peek(keeper, slots->made, fds);
		if (!rc)
			chunk_add(slots, fds);
	}
	if ((!rc || rc == EAGAIN) && slots->made)
		return 0;
	fds_close(slots->fd, slots->made);
	fds_close(slots->watch, slots->made);
	slots->made = 0;
	return EPROTO;
}

int vb_slots_adopt(struct vb_slots *slots, const int keeper[VB_HUB_KEEPER_FDS])
{
	int start = 0;

	slots->made = slots->bound = 0;
	if (!socket_is(keeper[0], AF_UNIX, AF_UNIX, SOCK_SEQPACKET) ||
	    !socket_is(keeper[1], AF_UNIX, AF_UNIX, SOCK_SEQPACKET) ||
	    setsockopt(keeper[1], SOL_SOCKET, SO_PEEK_OFF, &start, sizeof(start)) ||
	    vb_domains_adopt(&slots->domains, keeper[VB_HUB_KEEPER_STORE]))
		return EPROTO;
	if (peek_all(slots, keeper[1])) {
		vb_domains_drop(&slots->domains);
		return EPROTO;
	}
	memcpy(slots->keeper, keeper, sizeof(slots->keeper));
	/* Unbound sockets are bound now, or when they are needed. */
	bind_made(slots);
	/* The last hub may have opened any filter, so all count as open until checked. */
	for (unsigned slot = 1; slot < slots->bound; slot++)
		slots->open[slot] = true;
	vb_slots_shut(slots);
	return 0;
}

/* --- leases --- */

bool vb_slots_is_held(const struct vb_slots *slots, unsigned slot)
{
	if (!slots->made)
		return true;
	return slot < slots->bound && vb_hub_watch_sees(slots->watch[slot]);
}

bool vb_slots_lease_is(const struct vb_slots *slots, unsigned slot, int name_fd)
{
	return slot < slots->bound && vb_hub_watch_sees_this(slots->watch[slot], name_fd);
}

int vb_slots_lend(struct vb_slots *slots, unsigned *result, int *name_fd)
{
	unsigned slot = 1;
	int rc = 0;

	while (slot < slots->bound && vb_slots_is_held(slots, slot))
		slot++;
	while (!rc && slot >= slots->bound)
		rc = grow(slots);
	if (!rc)
		rc = vb_hub_name_make(name_fd, slot, slots->watch[slot]);
	if (rc)
		return rc;
	if (slots->open[slot])
		vb_udp_socket_shut(slots->fd[slot]);
	slots->open[slot] = true;
	vb_udp_socket_open(slots->fd[slot]);
	*result = slot;
	return 0;
}

void vb_slots_shut(struct vb_slots *slots)
{
	for (unsigned slot = 1; slot < slots->bound; slot++) {
		if (!slots->open[slot] || vb_slots_is_held(slots, slot))
			continue;
		vb_udp_socket_shut(slots->fd[slot]);
		slots->open[slot] = false;
	}
}
