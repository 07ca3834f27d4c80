/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/rdmacm/device.h"
#include "base/check.h"
#include "base/fd_table.h"
#include "run/process/eventfd.h"
#include "run/progress.h"
#include "wire/rs.h"

/* --- defaults --- */

struct vb_rs_sizes vb_rs_defaults = {
	.send_bytes = 1 << 17,
	.receive_bytes = 1 << 17,
	.sends = 384,
	.receives = 384,
	.inline_bytes = 64,
};
unsigned vb_rs_polling_us = 10, vb_rs_wake_up_ms = 5000;

#define FOLDER "/etc/rdma/rsocket/"

/* A file with one number in it (rsocket(7)). What cannot be read leaves the default. */
static const struct setting {
	const char *path;
	uint32_t *value;
	uint32_t least, most;
} settings[] = {
	{FOLDER "mem_default", &vb_rs_defaults.receive_bytes, 2, 1u << 28},
	{FOLDER "wmem_default", &vb_rs_defaults.send_bytes, 1 << 12, 1u << 28},
	{FOLDER "sqsize_default", &vb_rs_defaults.sends, 1, 0xfffe},
	{FOLDER "rqsize_default", &vb_rs_defaults.receives, 1, 0xfffe},
	{FOLDER "inline_default", &vb_rs_defaults.inline_bytes, 0, 0xfffe},
	{FOLDER "iomap_size", &vb_rs_defaults.maps, 0, 0xfffe},
	{FOLDER "polling_time", &vb_rs_polling_us, 0, 1000000},
	{FOLDER "wake_up_interval", &vb_rs_wake_up_ms, 1, 1000000},
};

static void setting_read(const struct setting *setting)
{
	int fd = open(setting->path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	unsigned long value;

	if (fd >= 0)
		close(fd);
	if (n <= 0 || text[0] < '0' || text[0] > '9')
		return;
	text[n] = 0;
	value = strtoul(text, NULL, 10);
	*setting->value = (uint32_t)vb_max_u64(vb_min_u64(value, setting->most), setting->least);
}

static void settings_read(void)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(settings); i++)
		setting_read(&settings[i]);
	vb_rs_defaults.maps = vb_rs_maps_round(vb_rs_defaults.maps);
}


/* --- the table --- */

static struct vb_fd_table table;

/* Held by who walks through the table while other threads run: nothing leaves it meanwhile. */
static pthread_mutex_t stay = PTHREAD_MUTEX_INITIALIZER;

int vb_rs_insert(struct vb_rs *rs)
{
	return vb_fd_table_put(&table, rs->fd, rs);
}

void vb_rs_remove(struct vb_rs *rs)
{
	pthread_mutex_lock(&stay);
	vb_fd_table_take(&table, rs->fd);
	pthread_mutex_unlock(&stay);
}

struct vb_rs *vb_rs_of(int fd)
{
	return vb_fd_table_at(&table, fd);
}

static struct vb_rs *from(int fd)
{
	return vb_fd_table_from(&table, fd);
}

bool vb_rs_each(bool (*visit)(struct vb_rs *rs))
{
	bool all = true;

	if (pthread_mutex_trylock(&stay))
		return false;
	for (struct vb_rs *rs = from(0); rs; rs = from(rs->fd + 1))
		all &= visit(rs);
	pthread_mutex_unlock(&stay);
	return all;
}

/* --- once --- */

static void orphans_make(void)
{
	/* A thread of the parent may have it. */
	pthread_mutex_init(&stay, NULL);
	for (struct vb_rs *rs = from(0); rs; rs = from(rs->fd + 1))
		rs->type->orphan(rs);
}

static void begin(void)
{
	settings_read();
	pthread_atfork(NULL, NULL, orphans_make);
}

void vb_rs_configure(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
}

/* --- what both types do --- */

void vb_rs_watches_wake(struct vb_rs_watches *watches)
{
	struct vb_rs_watch *watch;

	LIST_FOREACH(watch, watches, link) {
		if (watch->wake)
			watch->wake(watch);
		else
			vb_eventfd_signal(watch->wake_fd);
	}
}

void vb_rs_watches_end(struct vb_rs_watches *watches)
{
	struct vb_rs_watch *watch;

	vb_rs_watches_wake(watches);
	while (!LIST_EMPTY(watches)) {
		watch = LIST_FIRST(watches);
		LIST_REMOVE(watch, link);
		watch->rs = NULL;
	}
}

uint64_t vb_rs_wait_end_ns(const struct vb_rs *rs, int flags, const struct timeval *time)
{
	if ((rs->flags & O_NONBLOCK) || (flags & MSG_DONTWAIT))
		return 0;
	if (!time->tv_sec && !time->tv_usec)
		return VB_RS_FOREVER;
	return vb_rs_now_ns() + (uint64_t)time->tv_sec * 1000000000u +
	       (uint64_t)time->tv_usec * 1000u;
}

int vb_rs_left_ms(uint64_t end_ns)
{
	uint64_t now_ns;

	if (end_ns == VB_RS_FOREVER)
		return -1;
	now_ns = vb_rs_now_ns();
	return now_ns < end_ns ? (int)vb_min_u64((end_ns - now_ns + 999999) / 1000000, INT32_MAX)
			       : 0;
}

/* The next place, of at most n octets; steps over it. */
static char *place_next(struct vb_rs_data *data, size_t *n)
{
	char *at;

	while (data->at == data->iov->iov_len) {
		data->iov++;
		data->at = 0;
	}
	at = (char *)data->iov->iov_base + data->at;
	*n = vb_min_u64(*n, data->iov->iov_len - data->at);
	data->at += *n;
	data->left -= *n;
	return at;
}

void vb_rs_gather(void *to, struct vb_rs_data *data, size_t n)
{
	while (n) {
		size_t step = n;
		const char *from = place_next(data, &step);

		memcpy(to, from, step);
		to = (char *)to + step;
		n -= step;
	}
}

void vb_rs_scatter(struct vb_rs_data *data, const void *from, size_t n)
{
	while (n) {
		size_t step = n;
		char *to = place_next(data, &step);

		memcpy(to, from, step);
		from = (const char *)from + step;
		n -= step;
	}
}

uint64_t vb_rs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void vb_rs_drive(void)
{
	if (!vb_cma_is_gone())
		vb_progress_poll(vb_cma_run());
}

int vb_rs_sleep(struct vb_awaited *awaited)
{
	if (awaited->timeout_ms < 0 || awaited->timeout_ms > (int)vb_rs_wake_up_ms)
		awaited->timeout_ms = (int)vb_rs_wake_up_ms;
	if (vb_cma_is_gone())
		return poll(awaited->fds, awaited->count, awaited->timeout_ms);
	return vb_await_poll(vb_cma_run(), awaited);
}
