/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/udp_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "link/udp_socket.h"
#include "link/udp_address.h"

struct vb_udp_group {
	struct vb_udp_group *next;
	uint8_t gid[VB_GID_BYTES];
	/* the interface, if the group is limited to it; 0: joined at any number of interfaces */
	uint32_t scope;
	int fd;
};

void vb_udp_groups_init(struct vb_udp_groups *groups)
{
	vb_lock_init(&groups->lock, VB_RANK_UDP_GROUPS);
	atomic_store(&groups->epoll_fd, -1);
	groups->list = NULL;
}

/* RFC 4291 2.7: the fourth half octet of an IPv6 group is its scope. */
static bool has_scope(const uint8_t gid[VB_GID_BYTES])
{
	enum { INTERFACE = 1, LINK = 2 };
	unsigned scope = gid[1] & 0xf;

	return !vb_gid_is_ipv4(gid) && (scope == INTERFACE || scope == LINK);
}

static int epoll_make(struct vb_udp_groups *groups)
{
	int fd;

	if (vb_udp_groups_fd(groups) >= 0)
		return 0;
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return errno;
	atomic_store(&groups->epoll_fd, fd);
	return 0;
}

static struct vb_udp_group *find(const struct vb_udp_groups *groups,
				 const uint8_t gid[VB_GID_BYTES], uint32_t scope)
{
	struct vb_udp_group *group = groups->list;

	while (group && (group->scope != scope || memcmp(group->gid, gid, VB_GID_BYTES) != 0))
		group = group->next;
	return group;
}

/* IP_ADD_MEMBERSHIP in ip(7), for either family. */
static int join_at(int fd, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	bool ipv4 = vb_gid_is_ipv4(gid);
	struct group_req request = { .gr_interface = ifindex };
	union vb_udp_address address;
	socklen_t bytes = 0;

	vb_udp_address_set(&address, &bytes, ipv4 ? AF_INET : AF_INET6, gid, 0, 0);
	memcpy(&request.gr_group, &address, bytes);
	if (!setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &request,
			sizeof(request)))
		return 0;
	return errno == EADDRINUSE ? 0 : errno; /* EADDRINUSE: it is a member already */
}

static int group_make(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES],
		      uint32_t scope, uint32_t ifindex)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct vb_udp_group *group = calloc(1, sizeof(*group));
	int rc;

	if (!group)
		return ENOMEM;
	rc = vb_udp_socket_group(&group->fd, gid, scope);
	if (rc) {
		free(group);
		return rc;
	}
	event.data.fd = group->fd;
	rc = join_at(group->fd, gid, ifindex);
	if (!rc && epoll_ctl(vb_udp_groups_fd(groups), EPOLL_CTL_ADD, group->fd, &event))
		rc = errno;
	if (rc) {
		vb_fd_close(&group->fd);
		free(group);
		return rc;
	}
	memcpy(group->gid, gid, VB_GID_BYTES);
	group->scope = scope;
	group->next = groups->list;
	groups->list = group;
	return 0;
}

int vb_udp_groups_join(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES],
		       uint32_t ifindex)
{
	uint32_t scope = has_scope(gid) ? ifindex : 0;
	struct vb_udp_group *group;
	int rc;

	vb_lock_take(&groups->lock);
	group = find(groups, gid, scope);
	rc = epoll_make(groups);
	if (!rc)
		rc = group ? join_at(group->fd, gid, ifindex)
			   : group_make(groups, gid, scope, ifindex);
	vb_lock_drop(&groups->lock);
	return rc;
}

void vb_udp_groups_leave(struct vb_udp_groups *groups, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_udp_group **at = &groups->list, *group;

	vb_lock_take(&groups->lock);
	while ((group = *at)) {
		if (memcmp(group->gid, gid, VB_GID_BYTES) != 0) {
			at = &group->next;
			continue;
		}
		*at = group->next;
		/* A forked child may keep the socket open a moment longer: the set must not. */
		epoll_ctl(vb_udp_groups_fd(groups), EPOLL_CTL_DEL, group->fd, NULL);
		vb_fd_close(&group->fd);
		free(group);
	}
	vb_lock_drop(&groups->lock);
}

int vb_udp_groups_ready(const struct vb_udp_groups *groups)
{
	struct epoll_event event;
	/* System call without libc, where it is a cancellation point (udp_rx.c). */
	long n = syscall(SYS_epoll_pwait, vb_udp_groups_fd(groups), &event, 1, 0, NULL, 8);

	return n == 1 ? event.data.fd : -1;
}

void vb_udp_groups_close(struct vb_udp_groups *groups)
{
	int fd = atomic_exchange(&groups->epoll_fd, -1);

	for (struct vb_udp_group *group = groups->list; group; group = group->next)
		vb_fd_close(&group->fd);
	if (fd >= 0)
		close(fd);
}

void vb_udp_groups_fini(struct vb_udp_groups *groups)
{
	struct vb_udp_group *group;

	while ((group = groups->list)) {
		groups->list = group->next;
		free(group);
	}
	vb_lock_fini(&groups->lock);
}
