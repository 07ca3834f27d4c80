/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/use.h"

#include <errno.h>
#include <fcntl.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/migrate.h"

static bool is_nonblocking(int fd, int flags)
{
	return (flags & MSG_DONTWAIT) || (vb_real()->fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* 0, or an errno. timeout_ms: the socket's own. */
static int migrate(int fd, struct vb_front *front, int flags, int timeout_ms)
{
	if (front->state == VB_FRONT_PASSIVE)
		vb_migrate_invite(fd, front);
	if (front->state != VB_FRONT_ACTIVE)
		return 0;
	if (is_nonblocking(fd, flags))
		timeout_ms = 0;
	else if (!timeout_ms)
		timeout_ms = -1;
	return vb_migrate_await(fd, front, timeout_ms);
}

/* The same, of one that is an rsocket. */
static int in_time(int fd, int rs, short events, int flags, int timeout_ms)
{
	struct pollfd awaited = {.fd = rs, .events = events};
	int found;

	if (!timeout_ms || is_nonblocking(fd, flags))
		return 0;
	found = vb_rsockets->poll(&awaited, 1, timeout_ms);
	return found < 0 ? errno : found ? 0 : EAGAIN;
}

int vb_use(int fd, short events, int flags)
{
	struct vb_front *front = vb_front_of(fd);
	int rs, rc = 0, timeout_ms;

	if (__builtin_expect(!front, 1))
		return VB_USE_KERNEL;
	timeout_ms = events == POLLIN ? front->receive_ms : front->send_ms;
	if (front->state > VB_FRONT_LISTENING)
		rc = migrate(fd, front, flags, timeout_ms);
	rs = front->rs;
	if (!rc && rs >= 0)
		rc = in_time(fd, rs, events, flags, timeout_ms);
	if (!rc)
		return rs;
	errno = rc;
	return VB_USE_FAILED;
}

int vb_use_awaited(int fd)
{
	struct vb_front *front = vb_front_of(fd);

	if (!front)
		return fd;
	/* Its peer waits to be invited. */
	if (front->state == VB_FRONT_PASSIVE)
		vb_migrate_invite(fd, front);
	return front->rs >= 0 ? front->rs : fd;
}
