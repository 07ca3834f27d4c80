/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/repoll/repoll.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/rdmacm/device.h"
#include "base/check.h"
#include "base/fd.h"
#include "base/fd_table.h"
#include "run/process/eventfd.h"

enum {
	NEWS = 64,     /* of so many sockets at once */
	VAIN_LOOKS = 16, /* so often in a row, before one waits for a socket's news */
	RECENT = 16,   /* of so many unlisted ones the news are seen before a descriptor tells */
};

#define SOCKET_EVENTS (EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP)

struct set;

/* An rsocket in a set, by one of its names. */
struct member {
	struct vb_rs_watch watch;
	struct set *set;
	struct vb_rs *rs;
	int name;
	struct member *twin; /* the same rsocket by another name, added before; NULL: none */
	struct epoll_event asked;
	TAILQ_ENTRY(member) link;
	bool is_listed;
	bool is_off; /* EPOLLONESHOT: told once */
	bool is_out; /* removed. Who does that is likely to add it again */
	unsigned vain;
	int fds[2]; /* in the set's news, of the first of twins; -1: none */
};

TAILQ_HEAD(members, member);

/*
 * A socket is listed as long as it may have something to tell, and is then looked at. What is not
 * listed makes one of its descriptors readable once it has (vb_rs_type.look() with arm); these are
 * in an epoll of the set's own, `news`, whose descriptor is in the application's, with
 * VB_RS_SET_DATA. News are edges (EPOLLET), so that what nobody asked for wakes nobody twice.
 */
struct set {
	LIST_ENTRY(set) link;
	int epfd;    /* the application's */
	int news_fd;
	int wake_fd; /* in the news: written when another thread has taken a socket's news */
	int shown_fd; /* beside the news: readable while there is something to tell; -1: none */
	bool is_shown;
	unsigned turns;
	atomic_uint waiting; /* threads that sleep, or are about to */
	/* Held while members are looked at, come or go. A socket's lock is taken within it. */
	pthread_mutex_t walking;
	struct vb_fd_table members;	/* by their sockets' numbers: the last of twins */
	unsigned count;
	struct member *recent[RECENT]; /* a ring: those that were listed last */
	unsigned recent_at;
	/* Taken within a socket's lock. */
	pthread_mutex_t listing;
	struct members listed;
	unsigned listed_count;
};

static struct {
	pthread_mutex_t mutex; /* before any set's */
	bool minds_forks;
	LIST_HEAD(, set) all;
	struct vb_fd_table table; /* by their epfd */
} sets = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The set that this thread walks: it need not be woken. */
static __thread struct set *walked __attribute__((tls_model("initial-exec")));

/* The kernel's own: epoll_wait() may be librspreload's, which would ask us. */
static int kernel_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return (int)syscall(SYS_epoll_pwait, epfd, events, max, timeout, NULL, 0);
}

static struct set *set_of(int epfd)
{
	return vb_fd_table_at(&sets.table, epfd);
}

/* --- the list --- */

static void list(struct member *m)
{
	struct set *set = m->set;

	pthread_mutex_lock(&set->listing);
	if (!m->is_listed) {
		TAILQ_INSERT_TAIL(&set->listed, m, link);
		m->is_listed = true;
		set->listed_count++;
	}
	pthread_mutex_unlock(&set->listing);
}

static void unlist(struct member *m)
{
	struct set *set = m->set;

	pthread_mutex_lock(&set->listing);
	if (m->is_listed) {
		TAILQ_REMOVE(&set->listed, m, link);
		m->is_listed = false;
		set->listed_count--;
	}
	pthread_mutex_unlock(&set->listing);
}

static struct member *listed_first(struct set *set)
{
	struct member *m;

	pthread_mutex_lock(&set->listing);
	m = TAILQ_FIRST(&set->listed);
	pthread_mutex_unlock(&set->listing);
	return m;
}

/* Whoever is about to sleep looks after it has said so. */
static void wake(struct set *set)
{
	if (set->waiting || set->shown_fd >= 0)
		vb_eventfd_signal(set->wake_fd);
}

/* With the socket's lock. */
static void woken(struct vb_rs_watch *watch)
{
	struct member *m = vb_container_of(watch, struct member, watch);

	list(m);
	if (walked != m->set)
		wake(m->set);
}

static void walk(struct set *set)
{
	pthread_mutex_lock(&set->walking);
	walked = set;
}

static void halt(struct set *set)
{
	walked = NULL;
	pthread_mutex_unlock(&set->walking);
}

/* --- members. The set is walked. --- */

/* True: another one is watched now. */
static bool fd_watch(struct member *m, int *watched, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = m->rs->fd};
	int before = *watched;

	if (before == fd)
		return false;
	if (*watched >= 0)
		epoll_ctl(m->set->news_fd, EPOLL_CTL_DEL, *watched, NULL);
	*watched = fd >= 0 && !epoll_ctl(m->set->news_fd, EPOLL_CTL_ADD, fd, &event) ? fd : -1;
	return *watched != before;
}

/* They change as a connection comes to be, which is true then. */
static bool fds_watch(struct member *m)
{
	int fds[2] = {-1, -1};
	bool changed = false;

	while (m->twin)
		m = m->twin;
	m->rs->type->fds(m->rs, fds);
	for (unsigned i = 0; i < VB_ARRAY_LEN(fds); i++)
		changed |= fd_watch(m, &m->fds[i], fds[i]);
	return changed;
}

static int member_add(struct set *set, struct vb_rs *rs, int name, const struct epoll_event *event)
{
	struct member *m = calloc(1, sizeof(*m)), *twin = vb_fd_table_at(&set->members, rs->fd);
	int rc = m ? vb_fd_table_put(&set->members, rs->fd, m) : ENOMEM;

	if (rc) {
		free(m);
		return rc;
	}
	m->set = set;
	m->rs = rs;
	m->name = name;
	m->twin = twin;
	m->asked = *event;
	m->fds[0] = m->fds[1] = -1;
	m->watch.rs = rs;
	m->watch.wake = woken;
	set->count++;
	fds_watch(m);
	rs->type->watch(rs, &m->watch);
	list(m);
	return 0;
}

static void member_free(struct member *m)
{
	struct set *set = m->set;

	m->rs->type->unwatch(m->rs, &m->watch);
	for (unsigned i = 0; i < VB_ARRAY_LEN(m->fds); i++)
		fd_watch(m, &m->fds[i], -1);
	for (unsigned i = 0; i < RECENT; i++) {
		if (set->recent[i] == m)
			set->recent[i] = NULL;
	}
	set->count--;
	unlist(m);
	free(m);
}

/* All that a socket is, by whatever name. */
static void twins_free(struct set *set, int fd)
{
	struct member *m = vb_fd_table_take(&set->members, fd), *twin;

	for (; m; m = twin) {
		twin = m->twin;
		member_free(m);
	}
}

static struct member *member_of(struct set *set, const struct vb_rs *rs, int name)
{
	struct member *m = vb_fd_table_at(&set->members, rs->fd);

	while (m && m->name != name)
		m = m->twin;
	return m;
}

/* --- sets --- */

static int epfd_add(int epfd, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = {.events = events, .data.u64 = data};

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

/* 0 or an errno. */
static int set_open(struct set *set)
{
	int rc;

	set->news_fd = epoll_create1(EPOLL_CLOEXEC);
	if (set->news_fd < 0)
		return errno;
	set->wake_fd = vb_eventfd_create();
	if (set->wake_fd < 0)
		return errno;
	rc = epfd_add(set->epfd, set->news_fd, EPOLLIN, VB_RS_SET_DATA);
	if (rc)
		return rc;
	return epfd_add(set->news_fd, set->wake_fd, EPOLLIN | EPOLLET, (uint64_t)set->wake_fd);
}

static void set_free(struct set *set)
{
	vb_fd_close(&set->news_fd);
	vb_fd_close(&set->wake_fd);
	vb_fd_close(&set->shown_fd);
	pthread_mutex_destroy(&set->walking);
	pthread_mutex_destroy(&set->listing);
	vb_fd_table_free(&set->members);
	free(set);
}

/* They are the parent's, whose threads may have been at work on them. */
static void forget_in_child(void)
{
	struct set *set;

	pthread_mutex_init(&sets.mutex, NULL);
	LIST_FOREACH(set, &sets.all, link)
		vb_fd_table_take(&sets.table, set->epfd);
	LIST_INIT(&sets.all);
	walked = NULL;
}

/* With the mutex of all. NULL with errno. */
static struct set *set_make(int epfd)
{
	struct set *set = calloc(1, sizeof(*set));
	int rc;

	if (!set)
		return NULL;
	set->epfd = epfd;
	set->news_fd = set->wake_fd = set->shown_fd = -1;
	pthread_mutex_init(&set->walking, NULL);
	pthread_mutex_init(&set->listing, NULL);
	TAILQ_INIT(&set->listed);
	rc = set_open(set);
	if (!rc)
		rc = vb_fd_table_put(&sets.table, epfd, set);
	if (rc) {
		set_free(set);
		errno = rc;
		return NULL;
	}
	if (!sets.minds_forks)
		sets.minds_forks = !pthread_atfork(NULL, NULL, forget_in_child);
	LIST_INSERT_HEAD(&sets.all, set, link);
	return set;
}

bool vb_rs_set_close(int epfd)
{
	struct set *set;

	pthread_mutex_lock(&sets.mutex);
	set = vb_fd_table_take(&sets.table, epfd);
	if (set) {
		LIST_REMOVE(set, link);
		walk(set);
		for (int fd = 0; set->count; fd++)
			twins_free(set, fd);
		halt(set);
		set_free(set);
		close(epfd);
	}
	pthread_mutex_unlock(&sets.mutex);
	return set;
}

void vb_rs_sets_forget(struct vb_rs *rs)
{
	struct set *set;

	if (LIST_EMPTY(&sets.all))
		return;
	pthread_mutex_lock(&sets.mutex);
	LIST_FOREACH(set, &sets.all, link) {
		walk(set);
		twins_free(set, rs->fd);
		halt(set);
	}
	pthread_mutex_unlock(&sets.mutex);
}

int repoll_create(int flags)
{
	vb_rs_configure();
	return epoll_create1(flags);
}

static int change(struct set *set, struct vb_rs *rs, int name, int op,
		  const struct epoll_event *event)
{
	struct member *m = member_of(set, rs, name);

	if (op == EPOLL_CTL_ADD && !m)
		return member_add(set, rs, name, event);
	if (m && m->is_out == (op != EPOLL_CTL_ADD))
		m = NULL;
	if (!m)
		return op == EPOLL_CTL_ADD ? EEXIST : ENOENT;
	m->is_out = op == EPOLL_CTL_DEL;
	if (m->is_out)
		return 0;
	m->asked = *event;
	m->is_off = false;
	list(m);
	return 0;
}

int vb_rs_set_ctl(int epfd, int op, int fd, int name, struct epoll_event *event)
{
	struct vb_rs *rs = vb_rs_of(fd);
	struct set *set;
	bool is_new;
	int rc;

	if (!rs)
		return epoll_ctl(epfd, op, fd, event);
	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return vb_cma_result(EINVAL);
	if (!event && op != EPOLL_CTL_DEL)
		return vb_cma_result(EFAULT);
	pthread_mutex_lock(&sets.mutex);
	set = set_of(epfd);
	is_new = !set;
	if (is_new)
		set = set_make(epfd);
	if (!set) {
		pthread_mutex_unlock(&sets.mutex);
		return -1;
	}
	walk(set);
	rc = change(set, rs, name, op, event);
	/* Whoever sleeps shall look at it; in the kernel, if it has not been a set before. */
	if (is_new)
		vb_eventfd_signal(set->wake_fd);
	else if (!rc && op != EPOLL_CTL_DEL)
		wake(set);
	halt(set);
	pthread_mutex_unlock(&sets.mutex);
	return vb_cma_result(rc);
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return vb_rs_set_ctl(epfd, op, fd, fd, event);
}

int vb_rs_set_show(int epfd)
{
	struct set *set = set_of(epfd);
	int rc = 0;

	if (!set || set->shown_fd >= 0)
		return 0;
	walk(set);
	if (set->shown_fd < 0) {
		set->shown_fd = vb_eventfd_create();
		rc = set->shown_fd < 0 ? errno
				       : epfd_add(epfd, set->shown_fd, EPOLLIN, VB_RS_SET_DATA);
	}
	/* Whoever is told now looks what there is. */
	vb_eventfd_signal(set->wake_fd);
	halt(set);
	return vb_cma_result(rc);
}

/* --- looking. The set is walked. --- */

/* So that others, who look at the set's descriptor, see as much as who waits in it. */
static void show(struct set *set)
{
	bool has = set->listed_count;

	if (set->shown_fd < 0 || has == set->is_shown)
		return;
	set->is_shown = has;
	if (has)
		vb_eventfd_signal(set->shown_fd);
	else
		vb_eventfd_unsignal(set->shown_fd);
}

static void news_take(struct member *m)
{
	m->rs->type->news(m->rs);
	for (m = vb_fd_table_at(&m->set->members, m->rs->fd); m; m = m->twin)
		list(m);
}

/* Of those whose descriptors tell something. */
static void all_news_take(struct set *set)
{
	struct epoll_event news[NEWS];
	int n = kernel_wait(set->news_fd, news, NEWS, 0);

	for (int i = 0; i < n; i++) {
		struct member *m = vb_fd_table_at(&set->members, news[i].data.fd);

		if (m)
			news_take(m);
	}
}

/* NULL: there is none. */
static struct member *recent_with_news(const struct set *set)
{
	for (unsigned i = 0; i < RECENT; i++) {
		struct member *m = set->recent[i];

		if (m && !m->is_listed && m->rs->type->has_news(m->rs))
			return m;
	}
	return NULL;
}

static void recent_news_take(struct set *set)
{
	struct member *m;

	while ((m = recent_with_news(set)))
		news_take(m);
}

/* Its descriptors will tell. */
static void leave(struct member *m)
{
	struct set *set = m->set;

	m->vain = 0;
	for (unsigned i = 0; i < RECENT; i++) {
		if (set->recent[i] == m)
			return;
	}
	set->recent[set->recent_at++ % RECENT] = m;
}

/*
 * What it has to tell, if anything; afterwards it is listed if it may have more. An edge is what
 * comes later and makes a descriptor readable: so that is armed before one looks, and what comes in
 * between is told twice.
 */
static uint32_t member_look(struct member *m, bool arm)
{
	short wanted = (short)(m->asked.events & SOCKET_EVENTS), events = 0;
	bool edges = m->asked.events & EPOLLET;
	struct vb_rs *rs = m->rs;

	if (edges && rs->type->has_news(rs))
		news_take(m);
	unlist(m);
	if (m->is_off || m->is_out)
		return 0;
	arm = !edges && (arm || ++m->vain >= VAIN_LOOKS);
	/* What was not connected yet at the first look was not armed. */
	do {
		if (edges)
			rs->type->look(rs, 0, true);
		events |= rs->type->look(rs, wanted, arm);
	} while (fds_watch(m) && edges);
	if (events)
		m->vain = 0;
	m->is_off = events && (m->asked.events & EPOLLONESHOT);
	if (edges || (arm && !events))
		leave(m);
	else if (!m->is_off)
		list(m);
	return (uint32_t)(uint16_t)events;
}

static int members_look(struct set *set, struct epoll_event *events, int max, bool arm)
{
	unsigned left = set->listed_count;
	struct member *m;
	int found = 0;

	while (left-- && found < max && (m = listed_first(set))) {
		events[found].events = member_look(m, arm);
		events[found].data = m->asked.data;
		found += events[found].events != 0;
	}
	return found;
}

/* How much room others get: while sockets are listed, not all. */
static int room_of_others(struct set *set, int max)
{
	if (!set->listed_count)
		return max;
	return max > 1 ? max / 2 : (int)(set->turns++ & 1);
}

/* What there is, or -1 with errno. arm: what comes later makes epfd readable. */
static int look(struct set *set, struct epoll_event *events, int max, bool arm)
{
	int room = room_of_others(set, max), found = 0;

	if (room) {
		found = kernel_wait(set->epfd, events, room, 0);
		if (found < 0)
			return -1;
	}
	walk(set);
	vb_rs_drive();
	if (vb_rs_set_event_remove(events, &found))
		all_news_take(set);
	recent_news_take(set);
	/* Once there is something nobody sleeps. */
	arm = (arm || set->shown_fd >= 0) && !found;
	found += members_look(set, events + found, max - found, arm);
	show(set);
	halt(set);
	return found;
}

/* --- sleeping --- */

static bool has_news(void *arg)
{
	struct set *set = arg;
	bool has;

	walk(set);
	has = recent_with_news(set);
	halt(set);
	return has;
}

static int sleep_for(struct set *set, int timeout_ms)
{
	struct pollfd fds[1 + VB_AWAIT_PLACES] = {{.fd = set->epfd, .events = POLLIN}};
	struct vb_awaited awaited = {fds, 1, timeout_ms, has_news, set};

	return vb_rs_sleep(&awaited);
}

/* What is left of the time, at least 1 until it is over. */
static int left_ms(uint64_t begin_ns, int timeout)
{
	uint64_t gone_ms = (vb_rs_now_ns() - begin_ns) / 1000000;

	if (timeout < 0)
		return -1;
	return gone_ms < (uint64_t)timeout ? timeout - (int)gone_ms : 0;
}

static int doze(struct set *set, struct epoll_event *events, int max, uint64_t begin_ns,
		int timeout)
{
	int found, left;

	for (;;) {
		found = look(set, events, max, true);
		left = found ? 0 : left_ms(begin_ns, timeout);
		if (!left)
			return found;
		if (sleep_for(set, left) < 0)
			return -1;
	}
}

static int wait_on(struct set *set, struct epoll_event *events, int max, int timeout)
{
	uint64_t begin_ns = vb_rs_now_ns();
	int found;

	do {
		found = look(set, events, max, false);
		if (found || !timeout)
			return found;
	} while (set->listed_count && vb_rs_now_ns() - begin_ns < 1000ull * vb_rs_polling_us);
	atomic_fetch_add(&set->waiting, 1);
	found = doze(set, events, max, begin_ns, timeout);
	atomic_fetch_sub(&set->waiting, 1);
	return found;
}

/* It may become a set meanwhile. */
static int plain_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	int found = kernel_wait(epfd, events, max, timeout);

	/* Of a set that a forked child has inherited the event is all that it sees. */
	if (found > 0 && vb_rs_set_event_remove(events, &found) && !found && set_of(epfd))
		return repoll_wait(epfd, events, max, timeout);
	return found;
}

int repoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	struct set *set = set_of(epfd);

	if (!set)
		return plain_wait(epfd, events, max, timeout);
	if (max <= 0)
		return vb_cma_result(EINVAL);
	if (!events)
		return vb_cma_result(EFAULT);
	return wait_on(set, events, max, timeout);
}
