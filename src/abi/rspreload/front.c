/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rspreload/front.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/migrate.h"
#include "base/fd_table.h"

static struct vb_fd_table fronts;
static struct vb_fd_table sets;	/* each number's is itself */
static struct vb_fd_table shown; /* the same; stale ones do no harm */

/* Those that are not used stay, so that a thread that finds one amid a close() reads no rubbish. */
static struct {
	pthread_mutex_t mutex;
	struct vb_front *first;
} unused = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Whose the rsockets are. The child of a vfork() has our memory, and closes numbers of its own. */
static pid_t owner;

/* --- fork --- */

static void page_forget(vb_fd_slot *page)
{
	for (unsigned i = 0; i < VB_FD_PAGE; i++) {
		struct vb_front *front = page[i];

		if (front && (front->rs >= 0 || front->state == VB_FRONT_ACTIVE))
			page[i] = NULL;
	}
}

/* Rsockets are the parent's, as are connections that it has begun; what it accepted may be ours. */
static void forget_in_child(void)
{
	owner = getpid();
	pthread_mutex_init(&unused.mutex, NULL);
	vb_migrate_forget();
	for (unsigned i = 0; i < VB_FD_PAGES; i++) {
		if (fronts.pages[i])
			page_forget(fronts.pages[i]);
		for (unsigned k = 0; sets.pages[i] && k < VB_FD_PAGE; k++)
			sets.pages[i][k] = NULL;
	}
}

static void begin(void)
{
	owner = getpid();
	pthread_atfork(NULL, NULL, forget_in_child);
}

bool vb_front_is_owner(void)
{
	return owner == getpid();
}

/* --- fronts --- */

struct vb_front *vb_front_of(int fd)
{
	return vb_fd_table_at(&fronts, fd);
}

static struct vb_front *front_new(void)
{
	struct vb_front *front;

	vb_handlers_hold();
	pthread_mutex_lock(&unused.mutex);
	front = unused.first;
	if (front)
		unused.first = front->next_free;
	pthread_mutex_unlock(&unused.mutex);
	vb_handlers_release();
	return front ? front : malloc(sizeof(*front));
}

static void front_keep(struct vb_front *front)
{
	vb_handlers_hold();
	pthread_mutex_lock(&unused.mutex);
	front->next_free = unused.first;
	unused.first = front;
	pthread_mutex_unlock(&unused.mutex);
	vb_handlers_release();
}

int vb_front_make(int fd, int rs, enum vb_front_state state)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vb_front *front = front_new();
	int rc;

	pthread_once(&once, begin);
	if (!front)
		return ENOMEM;
	front->rs = rs;
	front->state = state;
	front->numbers = 1;
	front->is_end_told = false;
	front->epfd = front->asked_fd = -1;
	rc = vb_fd_table_put(&fronts, fd, front);
	if (rc)
		front_keep(front);
	return rc;
}

void vb_front_share(struct vb_front *front, int to)
{
	if (!vb_front_is_owner())
		return;
	atomic_fetch_add(&front->numbers, 1);
	if (vb_fd_table_put(&fronts, to, front))
		atomic_fetch_sub(&front->numbers, 1);
}

void vb_front_release(struct vb_front *front)
{
	int rs;

	if (atomic_fetch_sub(&front->numbers, 1) != 1) {
		if (front->state == VB_FRONT_ACTIVE)
			vb_migrate_wake();
		return;
	}
	rs = atomic_exchange(&front->rs, -1);
	if (rs >= 0)
		VB_RS_CALL(close(rs));
	front_keep(front);
}

bool vb_front_drop(int fd)
{
	struct vb_front *front = vb_front_of(fd);

	if ((!front && !vb_front_is_set(fd)) || !vb_front_is_owner())
		return false;
	front = vb_fd_table_take(&fronts, fd);
	if (front)
		vb_front_release(front);
	return vb_fd_table_take(&sets, fd) && !VB_RS_CALL(close(fd));
}

void vb_front_drop_range(unsigned first, unsigned last)
{
	for (unsigned page = first / VB_FD_PAGE; page < VB_FD_PAGES; page++) {
		unsigned fd = page * VB_FD_PAGE;

		for (unsigned i = 0; (fronts.pages[page] || sets.pages[page]) && i < VB_FD_PAGE;
		     i++, fd++) {
			if (fd >= first && fd <= last)
				vb_front_drop((int)fd);
		}
	}
}

void vb_front_fall(struct vb_front *front)
{
	int rs = atomic_exchange(&front->rs, -1);

	front->state = VB_FRONT_PLAIN;
	if (rs >= 0)
		VB_RS_CALL(close(rs));
}

/* --- sets --- */

void vb_front_set_mark(int epfd)
{
	vb_fd_table_put(&sets, epfd, &sets);
	if (vb_fd_table_at(&shown, epfd))
		VB_RS_CALL(vb_rs_set_show(epfd));
}

bool vb_front_is_set(int epfd)
{
	return vb_fd_table_at(&sets, epfd);
}

void vb_front_set_show(int fd)
{
	if (vb_front_is_set(fd))
		VB_RS_CALL(vb_rs_set_show(fd));
	else
		vb_fd_table_put(&shown, fd, &shown);
}
