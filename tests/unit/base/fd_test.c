/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int close_amid_a_fork(int fd);

#define close close_amid_a_fork
#include "base/fd.h"
#include "group.h"
#undef close

static int field;

static int number_of_a_file(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The number goes to a file of the application's, and there is a child: what does it close? */
static int close_amid_a_fork(int fd)
{
	int rc = close(fd), status = -1;
	int taken = number_of_a_file();
	pid_t child;

	assert_int_equal(taken, fd); /* the lowest that is free */
	child = fork();
	if (!child) {
		if (field != VB_FD_NONE)
			close(field);
		_exit(is_open(taken) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(taken);
	return rc;
}

TEST(a_child_takes_nothing_away)
{
	int fd = number_of_a_file();

	(void)state;
	field = fd;
	vb_fd_close(&field);
	assert_int_equal(field, VB_FD_NONE);
	assert_false(is_open(fd));
}

TEST(nothing_is_closed_twice)
{
	(void)state;
	field = VB_FD_NONE;
	errno = 0;
	vb_fd_close(&field);
	assert_int_equal(errno, 0);
	assert_int_equal(field, VB_FD_NONE);
}
