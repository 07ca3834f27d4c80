/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/failure.h"

enum { NO_LIMIT = -1 };

/* What is known beyond strerror(): the limit that was reached, and what can be done. */
struct row {
	int error;
	int limit;	  /* printed for %llu, or NO_LIMIT */
	const char *what; /* for this call only; NULL: for any */
	const char *text; /* replaces strerror(); NULL: does not */
	const char *hint;
};

#define SECCOMP "; a seccomp filter (of a container or a sandbox) may refuse this call"
#define TASKS "; RLIMIT_NPROC or a cgroup's pids.max may be reached"

/* clang-format off */
static const struct row rows[] = {
	{ EMFILE, RLIMIT_NOFILE, NULL, "no descriptor left: RLIMIT_NOFILE is %llu",
	  "; raise it: ulimit -n" },
	{ ETOOMANYREFS, RLIMIT_NOFILE, NULL,
	  "this user has more descriptors on their way between processes than RLIMIT_NOFILE, "
	  "which is %llu", "; raise it: ulimit -n" },
	{ EFBIG,  RLIMIT_FSIZE,  NULL, "RLIMIT_FSIZE is %llu octets, which is too low",
	  "; raise it: ulimit -f" },
	{ EPERM,  NO_LIMIT, NULL, NULL, SECCOMP },
	{ ENOSYS, NO_LIMIT, NULL, NULL, SECCOMP },
	{ EAGAIN, NO_LIMIT, "clone", NULL, TASKS },
	{ EAGAIN, NO_LIMIT, "pthread_create", NULL, TASKS },
};
/* clang-format on */

static const struct row *row_find(int error, const char *what)
{
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		if (rows[i].error == error && (!rows[i].what || !strcmp(rows[i].what, what)))
			return &rows[i];
	}
	return NULL;
}

static unsigned long long limit_of(int resource)
{
	struct rlimit limit = {0};

	getrlimit((__rlimit_resource_t)resource, &limit);
	return limit.rlim_cur;
}

const char *vb_failure_words(char *text, size_t bytes, int error)
{
	const struct vb_failure *failure = vb_failure_of(error);
	const struct row *row;
	char why[192];

	if (!failure || failure->explained) {
		snprintf(text, bytes, "%s", failure ? failure->text : strerror(error));
		return text;
	}
	row = row_find(error, failure->text);
	if (row && row->limit != NO_LIMIT)
		snprintf(why, sizeof(why), row->text, limit_of(row->limit));
	else
		snprintf(why, sizeof(why), "%s", strerror(error));
	snprintf(text, bytes, "%s: %s%s", failure->text, why, row ? row->hint : "");
	return text;
}

int vb_failed_words(int error, const char *format, ...)
{
	char text[VB_FAILURE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return vb_failed_because(error, text);
}
