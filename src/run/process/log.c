/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/refusal.h"
#include "run/process/cancel.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int log_fd = -1;
static bool hints;
static atomic_bool given[VB_HINTS];
static _Thread_local char *kept;

/* The file that stderr was when we were loaded: a program may close it and open one of its own. */
static struct stat stderr_file;
static bool has_stderr;

static void __attribute__((constructor)) look_at_stderr(void)
{
	has_stderr = fstat(STDERR_FILENO, &stderr_file) == 0;
}

static bool is_stderr_still(void)
{
	struct stat now;

	return has_stderr && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == stderr_file.st_dev &&
	       now.st_ino == stderr_file.st_ino;
}

static bool is_set(const char *setting, const char *value)
{
	const char *text = secure_getenv(setting);

	return text && strcmp(text, value) == 0;
}

static void open_log(void)
{
	const char *where = secure_getenv("VERBATIM_LOG");

	hints = is_set("VERBATIM_HINTS", "stderr");
	if (!where || !*where)
		return;
	if (is_set("VERBATIM_LOG", "stderr"))
		log_fd = STDERR_FILENO;
	else
		log_fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (log_fd >= 0)
		vb_refusals_want(true);
}

void vb_log_open(void)
{
	int saved = errno;

	pthread_once(&once, open_log);
	errno = saved;
}

/* A pipe whose reader has left must not end the program: the signal of such a write is taken. */
static bool write_quietly(int fd, const char *line, size_t bytes)
{
	const struct timespec at_once = {0};
	sigset_t pipes, before, pending;
	bool is_written;

	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipes, &before);
	is_written = write(fd, line, bytes) >= 0;
	if (!is_written && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipes, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_written;
}

/* A single write, so that lines of several processes do not mix. */
static bool line_write(int fd, const char *text)
{
	char line[VB_LOG_LINE_BYTES + 32];
	int bytes = snprintf(line, sizeof(line), "verbatim[%d]: %s\n", (int)getpid(), text);

	return write_quietly(fd, line, bytes);
}

static void hint_give(enum vb_hint hint, const char *text)
{
	/* If the log goes to stderr, the line is there already. */
	if (!hints || log_fd == STDERR_FILENO || atomic_exchange(&given[hint], true))
		return;
	if (is_stderr_still())
		line_write(STDERR_FILENO, text);
}

static void log_line(const char *text)
{
	if (kept)
		snprintf(kept, VB_LOG_LINE_BYTES, "%s", text);
	if (log_fd >= 0 && !line_write(log_fd, text))
		log_fd = -1;
}

/* Where a line goes. */
struct plan {
	bool logged;
	enum vb_hint hint; /* VB_HINTS: none */
};

static void __attribute__((format(printf, 2, 0)))
say(struct plan plan, const char *format, va_list args)
{
	int cancel = vb_cancel_defer(), saved = errno;
	char text[VB_LOG_LINE_BYTES];

	pthread_once(&once, open_log);
	if (vsnprintf(text, sizeof(text), format, args) >= 0) {
		if (plan.logged)
			log_line(text);
		if (plan.hint < VB_HINTS)
			hint_give(plan.hint, text);
	}
	vb_cancel_restore(cancel);
	errno = saved;
}

void vb_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say((struct plan){ true, VB_HINTS }, format, args);
	va_end(args);
}

bool vb_log_is_on(void)
{
	pthread_once(&once, open_log);
	return log_fd >= 0;
}

void vb_log_hint(enum vb_hint hint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say((struct plan){ true, hint }, format, args);
	va_end(args);
}

void vb_hint(enum vb_hint hint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say((struct plan){ false, hint }, format, args);
	va_end(args);
}

void vb_log_keep(char line[VB_LOG_LINE_BYTES])
{
	kept = line;
}
