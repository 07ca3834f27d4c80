/* SPDX-License-Identifier: BSD-2-Clause */

/* Why something failed, in words: only what was noted, and nothing guessed from an errno. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/failure.h"
#include "group.h"
#include "hub/words.h"

static char text[512];

static const char *words(int error)
{
	return vb_failure_words(text, sizeof(text), error);
}

TEST(an_errno_alone_is_not_explained)
{
	vb_failed(EBUSY, "something else");
	for (int error = 1; error < 134; error++) {
		/* strerror() uses its memory again where it knows no such errno. */
		const char *said = words(error);

		if (error != EBUSY)
			assert_string_equal(said, strerror(error));
	}
}

TEST(the_call_is_named)
{
	assert_int_equal(vb_failed(EACCES, "execve"), EACCES);
	assert_string_equal(words(EACCES), "execve: Permission denied");
	vb_failed(EPERM, "timerfd_create");
	assert_string_equal(words(EPERM),
			    "timerfd_create: Operation not permitted; a seccomp filter (of a "
			    "container or a sandbox) may refuse this call");
	vb_failed(EAGAIN, "clone");
	assert_string_equal(words(EAGAIN), "clone: Resource temporarily unavailable; RLIMIT_NPROC "
					   "or a cgroup's pids.max may be reached");
	vb_failed(EAGAIN, "getrandom");
	assert_string_equal(words(EAGAIN), "getrandom: Resource temporarily unavailable");
}

TEST(the_limit_is_what_it_is)
{
	struct rlimit before, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){.rlim_cur = 33, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	vb_failed(EMFILE, "socket");
	assert_string_equal(words(EMFILE), "socket: no descriptor left: RLIMIT_NOFILE is 33; raise "
					   "it: ulimit -n");
	setrlimit(RLIMIT_NOFILE, &before);
}

TEST(what_is_explained_is_left_as_it_is)
{
	vb_failed_words(EPERM, "taken by uid %d", 7);
	assert_string_equal(words(EPERM), "taken by uid 7");
}

static void *other(void *arg)
{
	struct vb_failure *failure = arg;

	vb_failed(EIO, "read");
	*failure = *vb_failure_of(EIO);
	return NULL;
}

TEST(threads_have_their_own)
{
	struct vb_failure failure;
	pthread_t thread;

	vb_failed(EPERM, "bind");
	assert_int_equal(pthread_create(&thread, NULL, other, &failure), 0);
	pthread_join(thread, NULL);
	assert_null(vb_failure_of(EIO));
	assert_string_equal(vb_failure_of(EPERM)->text, "bind");
	assert_int_equal(vb_failed_as(&failure), EIO);
	assert_string_equal(words(EIO), "read: Input/output error");
	assert_null(vb_failure_of(0));
}

TEST(long_words_are_cut)
{
	char what[2 * VB_FAILURE_BYTES];

	memset(what, 'x', sizeof(what) - 1);
	what[sizeof(what) - 1] = 0;
	vb_failed(EIO, what);
	assert_int_equal(strlen(vb_failure_of(EIO)->text), VB_FAILURE_BYTES - 1);
}
