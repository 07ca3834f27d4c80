/* SPDX-License-Identifier: BSD-2-Clause */

/* The calls that wait for descriptors. */

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "abi/rdmacm/repoll/repoll.h"
#include "abi/rspreload/calls.h"
#include "abi/rspreload/migrate.h"
#include "abi/rspreload/use.h"
#include "base/check.h"

enum { FEW = 64 };

/* That a place is of one that is to be invited: an event that no socket has. */
#define GUEST POLLMSG

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

/* --- poll(2) --- */

static bool has_fronts(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (vb_front_of(fds[i].fd) || vb_front_is_set(fds[i].fd))
			return true;
	}
	return false;
}

/* What stands behind the fronts, in behind. Of those that are invited an invitation is awaited. */
static bool places_fill(struct pollfd *behind, const struct pollfd *fds, nfds_t count)
{
	bool has_rsockets = false;

	for (nfds_t i = 0; i < count; i++) {
		struct vb_front *front = vb_front_of(fds[i].fd);

		behind[i] = fds[i];
		behind[i].revents = 0;
		behind[i].fd = vb_use_awaited(fds[i].fd);
		if (vb_front_is_set(fds[i].fd))
			vb_front_set_show(fds[i].fd);
		if (front && front->state == VB_FRONT_ACTIVE)
			behind[i].events = POLLIN | POLLRDHUP | GUEST;
		has_rsockets |= behind[i].fd != fds[i].fd;
	}
	return has_rsockets;
}

/* How many of found are left: those that were invited have to be looked at anew. */
static int guests_pass(const struct pollfd *fds, nfds_t count, int found)
{
	for (nfds_t i = 0; i < count; i++) {
		struct vb_front *front = vb_front_of(fds[i].fd);

		if (!fds[i].revents || !(fds[i].events & GUEST))
			continue;
		if (front && front->state == VB_FRONT_ACTIVE)
			vb_migrate_await(fds[i].fd, front, 0);
		found--;
	}
	return found;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int places_poll(struct pollfd *fds, struct pollfd *behind, nfds_t count, int timeout)
{
	int64_t end_ms = timeout > 0 ? now_ms() + timeout : 0, left_ms = timeout;
	int found, left;

	for (;;) {
		found = places_fill(behind, fds, count)
				? VB_RS_CALL(poll(behind, count, (int)left_ms))
				: vb_real()->poll(behind, count, (int)left_ms);
		left = found > 0 ? guests_pass(behind, count, found) : found;
		if (left == found)
			return found;
		if (timeout > 0)
			left_ms = end_ms > now_ms() ? end_ms - now_ms() : 0;
	}
}

/* The same, with what stands behind the fronts. */
static int behind_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct pollfd few[FEW], *behind = count <= FEW ? few : calloc(count, sizeof(*behind));
	int found;

	if (!behind) {
		errno = ENOMEM;
		return -1;
	}
	found = places_poll(fds, behind, count, timeout);
	for (nfds_t i = 0; i < count && found >= 0; i++)
		fds[i].revents = behind[i].revents;
	if (behind != few)
		free(behind);
	return found;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	/* One of librdmacm's, which is to end as a signal has come. */
	if (vb_held.has_come && timeout) {
		errno = EINTR;
		return -1;
	}
	if (!has_fronts(fds, count))
		return vb_real()->poll(fds, count, timeout);
	return behind_poll(fds, count, timeout);
}

static int ms_of(const struct timespec *time)
{
	int64_t ms;

	if (!time)
		return -1;
	ms = (int64_t)time->tv_sec * 1000 + (time->tv_nsec + 999999) / 1000000;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/*
 * The mask holds while poll(2) is at work, though not from the very moment on as with the kernel's
 * call: a signal that comes just before it does not end it.
 */
static void mask_set(const sigset_t *mask, sigset_t *before)
{
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, before);
}

static void mask_restore(const sigset_t *mask, const sigset_t *before)
{
	int saved = errno;

	if (mask)
		pthread_sigmask(SIG_SETMASK, before, NULL);
	errno = saved;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t before;
	int found;

	if (!has_fronts(fds, count))
		return vb_real()->ppoll(fds, count, timeout, mask);
	mask_set(mask, &before);
	found = behind_poll(fds, count, ms_of(timeout));
	mask_restore(mask, &before);
	return found;
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
	vb_check(count <= room / sizeof(*fds));
	return poll(fds, count, timeout);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room)
{
	vb_check(count <= room / sizeof(*fds));
	return ppoll(fds, count, timeout, mask);
}

/* --- select(2) --- */

static bool is_in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static bool sets_have_fronts(int count, const fd_set *reads, const fd_set *writes,
			     const fd_set *others)
{
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		if ((vb_front_of(fd) || vb_front_is_set(fd)) &&
		    (is_in(reads, fd) || is_in(writes, fd) || is_in(others, fd)))
			return true;
	}
	return false;
}

/* A number stays in its set if one of the events has come. */
static int set_keep(fd_set *set, const struct pollfd *fds, nfds_t count, short asked, short come)
{
	int kept = 0;

	for (nfds_t i = 0; set && i < count; i++) {
		if (!(fds[i].events & asked))
			continue;
		if (fds[i].revents & come)
			kept++;
		else
			FD_CLR(fds[i].fd, set);
	}
	return kept;
}

static int behind_select(int nfds, fd_set *reads, fd_set *writes, fd_set *others, int timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = 0;

	for (int fd = 0; fd < nfds && fd < FD_SETSIZE; fd++) {
		short events = (short)((is_in(reads, fd) ? POLLIN : 0) |
				       (is_in(writes, fd) ? POLLOUT : 0) |
				       (is_in(others, fd) ? POLLPRI : 0));

		if (events)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	if (behind_poll(fds, count, timeout) < 0)
		return -1;
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
	}
	return set_keep(reads, fds, count, POLLIN, POLLIN | POLLHUP | POLLERR) +
	       set_keep(writes, fds, count, POLLOUT, POLLOUT | POLLERR) +
	       set_keep(others, fds, count, POLLPRI, POLLPRI);
}

int select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout)
{
	struct timespec time;

	if (!sets_have_fronts(count, reads, writes, others))
		return vb_real()->select(count, reads, writes, others, timeout);
	if (timeout)
		time = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000};
	return behind_select(count, reads, writes, others, ms_of(timeout ? &time : NULL));
}

int pselect(int count, fd_set *reads, fd_set *writes, fd_set *others,
	    const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t before;
	int found;

	if (!sets_have_fronts(count, reads, writes, others))
		return vb_real()->pselect(count, reads, writes, others, timeout, mask);
	mask_set(mask, &before);
	found = behind_select(count, reads, writes, others, ms_of(timeout));
	mask_restore(mask, &before);
	return found;
}

/* --- epoll(7) --- */

/* Of one that is to migrate is known where it is a member, and what was asked for it. */
static int front_ctl(struct vb_front *front, int epfd, int op, int fd, struct epoll_event *event)
{
	int rc = vb_real()->epoll_ctl(epfd, op, fd, event);

	if (rc || front->state == VB_FRONT_PLAIN)
		return rc;
	front->epfd = op == EPOLL_CTL_DEL ? -1 : epfd;
	front->asked_fd = fd;
	if (op != EPOLL_CTL_DEL)
		front->asked = *event;
	return 0;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct vb_front *front = vb_front_of(fd);
	int behind, rc;

	if (!front) {
		if (op == EPOLL_CTL_ADD)
			vb_front_set_show(fd);
		return vb_real()->epoll_ctl(epfd, op, fd, event);
	}
	if (front->state == VB_FRONT_ACTIVE && vb_migrate_ctl(front, epfd, op, fd, event, &rc))
		return rc;
	behind = vb_use_awaited(fd);
	if (behind == fd || !vb_rsockets->vb_rs_set_ctl)
		return front_ctl(front, epfd, op, fd, event);
	rc = VB_RS_CALL(vb_rs_set_ctl(epfd, op, behind, fd, event));
	if (!rc)
		vb_front_set_mark(epfd);
	return rc;
}

/* The descriptor may be becoming a set meanwhile: its own event is none. */
static int found_plain(int epfd, struct epoll_event *events, int max, int timeout, int found)
{
	if (found <= 0 || !vb_rsockets || !vb_rs_set_event_remove(events, &found))
		return found;
	return found ? found : VB_RS_CALL(repoll_wait(epfd, events, max, timeout));
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	if (vb_front_is_set(epfd))
		return VB_RS_CALL(repoll_wait(epfd, events, max, timeout));
	return found_plain(epfd, events, max, timeout,
			   vb_real()->epoll_wait(epfd, events, max, timeout));
}

static int masked_wait(int epfd, struct epoll_event *events, int max, int timeout,
		       const sigset_t *mask)
{
	sigset_t before;
	int found;

	mask_set(mask, &before);
	found = VB_RS_CALL(repoll_wait(epfd, events, max, timeout));
	mask_restore(mask, &before);
	return found;
}

int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	if (vb_front_is_set(epfd))
		return masked_wait(epfd, events, max, timeout, mask);
	return found_plain(epfd, events, max, timeout,
			   vb_real()->epoll_pwait(epfd, events, max, timeout, mask));
}

int epoll_pwait2(int epfd, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	if (vb_front_is_set(epfd) || !vb_real()->epoll_pwait2)
		return epoll_pwait(epfd, events, max, ms_of(timeout), mask);
	return found_plain(epfd, events, max, ms_of(timeout),
			   vb_real()->epoll_pwait2(epfd, events, max, timeout, mask));
}
