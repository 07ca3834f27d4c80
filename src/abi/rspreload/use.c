/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/use.h"

#include <fcntl.h>

#include "abi/rspreload/migrate.h"

static bool is_nonblocking(int fd, int flags)
{
	return (flags & MSG_DONTWAIT) || (vb_real()->fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* What is set at the front is as well. */
static struct timeval time_of(int fd, int name)
{
	struct timeval time = {0};
	socklen_t bytes = sizeof(time);

	vb_real()->getsockopt(fd, SOL_SOCKET, name, &time, &bytes);
	return time;
}

bool vb_use_restarts(int fd, int name)
{
	struct timeval time = time_of(fd, name);

	return vb_held.ran_restarting && !vb_held.ran_ending && !time.tv_sec && !time.tv_usec;
}

/* How long a call is to wait; -1: without end. */
static int timeout_ms(int fd, short events, int flags)
{
	struct timeval time;

	if (is_nonblocking(fd, flags))
		return 0;
	time = time_of(fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
	return time.tv_sec || time.tv_usec
		       ? (int)(time.tv_sec * 1000 + (time.tv_usec + 999) / 1000) : -1;
}

/* 0, or an errno. */
static int migrate(int fd, struct vb_front *front, short events, int flags)
{
	if (front->state == VB_FRONT_PASSIVE)
		vb_migrate_invite(fd, front);
	if (front->state != VB_FRONT_ACTIVE)
		return 0;
	return vb_migrate_await(fd, front, timeout_ms(fd, events, flags));
}

int vb_use(int fd, short events, int flags)
{
	struct vb_front *front = vb_front_of(fd);
	int rc;

	if (__builtin_expect(!front, 1))
		return VB_USE_KERNEL;
	rc = front->state > VB_FRONT_LISTENING ? migrate(fd, front, events, flags) : 0;
	if (!rc)
		return front->rs;
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
