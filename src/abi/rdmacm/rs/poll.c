/* SPDX-License-Identifier: BSD-2-Clause */

/* rpoll() and rselect(), over rsockets and other descriptors. */

#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/rs/socket.h"
#include "base/check.h"
#include "base/fd.h"
#include "run/process/eventfd.h"

/* What a sleeper looks at: one place to be woken by, two for each descriptor, and the driver's. */
struct sleeper {
	nfds_t count;
	struct pollfd *fds;
	struct vb_rs_watch *watches;
	int wake_fd;
};

/* By which a thread is woken: made when it first sleeps, closed when it ends. */
static struct {
	pthread_once_t once;
	pthread_key_t key;
} wakers = {.once = PTHREAD_ONCE_INIT};

struct waker {
	int fd;
	pid_t pid; /* the child of a fork needs its own */
};

/* --- looking --- */

/* Many at once, through a copy without the rsockets among them. -1 with errno. */
static int look_at_others(struct pollfd *fds, nfds_t count)
{
	struct pollfd batch[64];
	nfds_t of[64], n = 0;
	int total = 0, found;

	for (nfds_t i = 0; i < count; i++) {
		if (!vb_rs_of(fds[i].fd)) {
			fds[i].revents = 0;
			of[n] = i;
			batch[n++] = fds[i];
		}
		if (n < VB_ARRAY_LEN(batch) && i + 1 < count)
			continue;
		found = poll(batch, n, 0);
		if (found < 0)
			return -1;
		total += found;
		for (; n; n--)
			fds[of[n - 1]].revents = batch[n - 1].revents;
	}
	return total;
}

static bool has_others(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd >= 0 && !vb_rs_of(fds[i].fd))
			return true;
	}
	return false;
}

/* How many have something, or -1 with errno. */
static int look(struct pollfd *fds, nfds_t count, bool others, bool arm)
{
	int found = 0;

	if (others) {
		found = look_at_others(fds, count);
		if (found < 0)
			return -1;
	}
	vb_rs_drive();
	for (nfds_t i = 0; i < count; i++) {
		struct vb_rs *rs = vb_rs_of(fds[i].fd);

		if (!rs) {
			if (!others)
				fds[i].revents = 0;
			continue;
		}
		/* Once one has something nobody sleeps. */
		fds[i].revents = rs->type->look(rs, fds[i].events, arm && !found);
		found += fds[i].revents != 0;
	}
	return found;
}

/* --- sleeping --- */

static void waker_free(void *arg)
{
	struct waker *waker = arg;

	vb_fd_close(&waker->fd);
	free(waker);
}

static void wakers_begin(void)
{
	pthread_key_create(&wakers.key, waker_free);
}

/* This thread's descriptor, or -1 with errno. */
static int wake_fd_get(void)
{
	struct waker *waker;
	pid_t pid = getpid();

	pthread_once(&wakers.once, wakers_begin);
	waker = pthread_getspecific(wakers.key);
	if (!waker) {
		waker = malloc(sizeof(*waker));
		if (!waker)
			return -1;
		*waker = (struct waker){.fd = -1};
		pthread_setspecific(wakers.key, waker);
	}
	if (waker->pid != pid) {
		vb_fd_close(&waker->fd);
		*waker = (struct waker){vb_eventfd_create(), pid};
	}
	return waker->fd;
}

static int sleeper_make(struct sleeper *sleeper, const struct pollfd *fds, nfds_t count)
{
	*sleeper = (struct sleeper){
		.count = count,
		.fds = calloc(1 + 2 * count + VB_AWAIT_PLACES, sizeof(*sleeper->fds)),
		.watches = calloc(count + 1, sizeof(*sleeper->watches)),
		.wake_fd = wake_fd_get(),
	};
	if (!sleeper->fds || !sleeper->watches || sleeper->wake_fd < 0)
		return errno;
	for (nfds_t i = 0; i < count; i++) {
		struct vb_rs *rs = vb_rs_of(fds[i].fd);

		sleeper->watches[i].wake_fd = sleeper->wake_fd;
		sleeper->watches[i].rs = rs;
		if (rs)
			rs->type->watch(rs, &sleeper->watches[i]);
	}
	return 0;
}

static void sleeper_free(struct sleeper *sleeper)
{
	for (nfds_t i = 0; sleeper->watches && i < sleeper->count; i++) {
		struct vb_rs *rs = sleeper->watches[i].rs;

		if (rs)
			rs->type->unwatch(rs, &sleeper->watches[i]);
	}
	free(sleeper->fds);
	free(sleeper->watches);
}

/* What poll(2) is to look at. */
static void places_fill(struct sleeper *sleeper, const struct pollfd *fds)
{
	struct pollfd *place = sleeper->fds;

	*place++ = (struct pollfd){.fd = sleeper->wake_fd, .events = POLLIN};
	for (nfds_t i = 0; i < sleeper->count; i++, place += 2) {
		struct vb_rs *rs = vb_rs_of(fds[i].fd);
		int of[2] = {fds[i].fd, -1};

		if (rs)
			rs->type->fds(rs, of);
		place[0] = (struct pollfd){.fd = of[0], .events = rs ? POLLIN : fds[i].events};
		place[1] = (struct pollfd){.fd = of[1], .events = POLLIN};
	}
}

static void news_take(struct sleeper *sleeper, const struct pollfd *fds)
{
	const struct pollfd *place = sleeper->fds + 1;

	if (sleeper->fds[0].revents)
		vb_eventfd_unsignal(sleeper->wake_fd);
	for (nfds_t i = 0; i < sleeper->count; i++, place += 2) {
		struct vb_rs *rs = vb_rs_of(fds[i].fd);

		if (rs && (place[0].revents || place[1].revents || rs->type->has_news(rs)))
			rs->type->news(rs);
	}
}

static bool has_news(void *arg)
{
	const struct sleeper *sleeper = arg;

	for (nfds_t i = 0; i < sleeper->count; i++) {
		struct vb_rs *rs = sleeper->watches[i].rs;

		if (rs && rs->type->has_news(rs))
			return true;
	}
	return false;
}

static int sleep_until(struct sleeper *sleeper, struct pollfd *fds, nfds_t count, bool others,
		       uint64_t end_ns)
{
	struct vb_awaited awaited = {sleeper->fds, 1 + 2 * (unsigned)count, 0, has_news, sleeper};
	int found;

	for (;;) {
		found = look(fds, count, others, true);
		if (found)
			return found;
		awaited.timeout_ms = vb_rs_left_ms(end_ns);
		if (!awaited.timeout_ms)
			return 0;
		places_fill(sleeper, fds);
		if (vb_rs_sleep(&awaited) < 0)
			return -1;
		news_take(sleeper, fds);
	}
}

static int look_and_sleep(struct pollfd *fds, nfds_t count, int timeout)
{
	uint64_t begin_ns = vb_rs_now_ns();
	uint64_t end_ns = timeout < 0 ? VB_RS_FOREVER : begin_ns + 1000000ull * (unsigned)timeout;
	bool others = has_others(fds, count);
	struct sleeper sleeper;
	int found, rc;

	do {
		found = look(fds, count, others, false);
		if (found || !timeout)
			return found;
	} while (vb_rs_now_ns() - begin_ns < 1000ull * vb_rs_polling_us);
	rc = sleeper_make(&sleeper, fds, count);
	found = rc ? vb_cma_result(rc) : sleep_until(&sleeper, fds, count, others, end_ns);
	rc = errno;
	sleeper_free(&sleeper);
	errno = rc;
	return found;
}

int rpoll(struct pollfd *fds, nfds_t count, int timeout)
{
	int errno_before = errno, found = look_and_sleep(fds, count, timeout);

	if (found >= 0)
		errno = errno_before;
	return found;
}

/* --- sets --- */

static bool is_in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t sets_read(struct pollfd *fds, int nfds, const fd_set *reads, const fd_set *writes,
			const fd_set *others)
{
	nfds_t count = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = (short)((is_in(reads, fd) ? POLLIN : 0) |
				       (is_in(writes, fd) ? POLLOUT : 0) |
				       (is_in(others, fd) ? POLLPRI : 0));

		if (events)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	return count;
}

/* A descriptor stays in the set if it was there and has one of the events. */
static int set_write(fd_set *set, const struct pollfd *fds, nfds_t count, short asked, short told)
{
	int found = 0;

	if (!set)
		return 0;
	FD_ZERO(set);
	for (nfds_t i = 0; i < count; i++) {
		if (!(fds[i].events & asked) || !(fds[i].revents & told))
			continue;
		FD_SET(fds[i].fd, set);
		found++;
	}
	return found;
}

static int timeout_ms(const struct timeval *timeout)
{
	uint64_t ms;

	if (!timeout)
		return -1;
	ms = (uint64_t)timeout->tv_sec * 1000 + ((uint64_t)timeout->tv_usec + 999) / 1000;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static int is_closed(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL)
			return EBADF;
	}
	return 0;
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	    struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count;
	int found;

	if (nfds < 0 || nfds > FD_SETSIZE || (timeout && timeout->tv_sec < 0))
		return vb_cma_result(EINVAL);
	count = sets_read(fds, nfds, readfds, writefds, exceptfds);
	found = rpoll(fds, count, timeout_ms(timeout));
	if (found > 0 && is_closed(fds, count))
		return vb_cma_result(EBADF);
	if (found < 0)
		return -1;
	return set_write(readfds, fds, count, POLLIN, POLLIN | POLLHUP | POLLERR) +
	       set_write(writefds, fds, count, POLLOUT, POLLOUT | POLLERR) +
	       set_write(exceptfds, fds, count, POLLPRI, POLLPRI | POLLERR | POLLHUP);
}
