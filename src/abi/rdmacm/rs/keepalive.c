/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/keepalive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "abi/rdmacm/rs/flow.h"
#include "run/process/signals.h"

#define NS_PER_S 1000000000ull

enum { IDLE_S = 7200 };

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* by the monotonic clock */
	bool is_ready, runs;
	pid_t pid; /* the child of a fork has no thread */
	TAILQ_HEAD(, vb_rs_stream) streams;
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* What the system does for TCP. */
static unsigned system_idle_s(void)
{
	int fd = open("/proc/sys/net/ipv4/tcp_keepalive_time", O_RDONLY | O_CLOEXEC);
	char text[16];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	unsigned long value = 0;

	if (fd >= 0)
		close(fd);
	if (n > 0) {
		text[n] = 0;
		value = strtoul(text, NULL, 10);
	}
	return value > 0 && value <= INT32_MAX ? (unsigned)value : IDLE_S;
}

unsigned vb_rs_keepalive_idle_s(const struct vb_rs *rs)
{
	return rs->options.keep_idle_s ? rs->options.keep_idle_s : system_idle_s();
}

static void ask(struct vb_rs_stream *s)
{
	const uint32_t name = vb_rs_msg(VB_RS_CONTROL, VB_RS_KEEPALIVE);

	pthread_mutex_lock(&s->lock);
	if (s->phase == VB_RS_CONNECTED) {
		vb_rs_turn(s);
		if (s->phase == VB_RS_CONNECTED && s->out.controls < VB_RS_CONTROLS) {
			s->out.controls++;
			vb_rs_write(s, NULL, 0, name, false, 0, 0);
		}
	}
	pthread_mutex_unlock(&s->lock);
}

/* Asks those whose time has come; when the next one's comes, or 0. */
static uint64_t round_make(uint64_t now_ns)
{
	struct vb_rs_stream *s;
	uint64_t next_ns = 0;

	TAILQ_FOREACH(s, &service.streams, keepalive.link) {
		if (s->keepalive.due_ns <= now_ns) {
			ask(s);
			s->keepalive.due_ns = now_ns + NS_PER_S * vb_rs_keepalive_idle_s(&s->rs);
		}
		if (!next_ns || s->keepalive.due_ns < next_ns)
			next_ns = s->keepalive.due_ns;
	}
	return next_ns;
}

static void *run(void *unused)
{
	struct timespec until;
	uint64_t next_ns;

	pthread_mutex_lock(&service.mutex);
	for (;;) {
		next_ns = round_make(vb_rs_now_ns());
		if (!next_ns)
			break;
		until.tv_sec = (time_t)(next_ns / NS_PER_S);
		until.tv_nsec = (long)(next_ns % NS_PER_S);
		pthread_cond_timedwait(&service.changed, &service.mutex, &until);
	}
	service.runs = false;
	pthread_mutex_unlock(&service.mutex);
	return unused;
}

static void service_prepare(void)
{
	pthread_condattr_t attr;

	if (service.pid != getpid()) {
		service.pid = getpid();
		service.runs = false;
		TAILQ_INIT(&service.streams);
		pthread_condattr_init(&attr);
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		pthread_cond_init(&service.changed, &attr);
		pthread_condattr_destroy(&attr);
	}
}

static int service_start(void)
{
	sigset_t before;
	pthread_t thread;
	int rc;

	if (service.runs)
		return 0;
	vb_signals_defer(&before);
	rc = pthread_create(&thread, NULL, run, NULL);
	vb_signals_restore(&before);
	if (rc)
		return rc;
	pthread_detach(thread);
	service.runs = true;
	return 0;
}

int vb_rs_keepalive_set(struct vb_rs_stream *s, bool on)
{
	int rc = 0;

	if (!on && !s->keepalive.is_on)
		return 0;
	pthread_mutex_lock(&service.mutex);
	service_prepare();
	if (on)
		rc = service_start();
	if (!rc && on != s->keepalive.is_on) {
		if (on)
			TAILQ_INSERT_TAIL(&service.streams, s, keepalive.link);
		else
			TAILQ_REMOVE(&service.streams, s, keepalive.link);
		s->keepalive.is_on = on;
	}
	s->keepalive.due_ns = vb_rs_now_ns() + NS_PER_S * vb_rs_keepalive_idle_s(&s->rs);
	pthread_cond_signal(&service.changed);
	pthread_mutex_unlock(&service.mutex);
	return rc;
}
