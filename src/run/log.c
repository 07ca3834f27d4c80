/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/cancel.h"

enum { LINE_BYTES_MAX = 512 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int log_fd = -1;

static void open_log(void)
{
	const char *where = secure_getenv("VERBATIM_LOG");

	if (!where || !*where)
		return;
	if (strcmp(where, "stderr") == 0)
		log_fd = STDERR_FILENO;
	else
		log_fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void vb_log(const char *format, ...)
{
	int cancel = vb_cancel_defer(), saved = errno;
	char line[LINE_BYTES_MAX];
	int head, body;
	va_list args;

	pthread_once(&once, open_log);
	if (log_fd >= 0) {
		head = snprintf(line, sizeof(line), "verbatim[%d]: ", (int)getpid());
		va_start(args, format);
		body = vsnprintf(line + head, sizeof(line) - head - 1, format, args);
		va_end(args);
		if (body > (int)sizeof(line) - head - 2)
			body = sizeof(line) - head - 2;
		if (body >= 0) {
			line[head + body] = '\n';
			/* One write, so that lines of several processes do not mix. */
			if (write(log_fd, line, head + body + 1) < 0)
				log_fd = -1;
		}
	}
	vb_cancel_restore(cancel);
	errno = saved;
}
