/* SPDX-License-Identifier: BSD-2-Clause */

/* Numbers duplicated and closed, and their flags. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/front.h"

enum { PEEK_BYTES = 1 << 14 };

/* --- closed --- */

int close(int fd)
{
	return vb_front_drop(fd) ? 0 : vb_real()->close(fd);
}

int close_range(unsigned first, unsigned last, int flags)
{
	if (!vb_real()->close_range) {
		errno = ENOSYS;
		return -1;
	}
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		vb_front_drop_range(first, last);
	return vb_real()->close_range(first, last, flags);
}

void closefrom(int first)
{
	vb_front_drop_range(first < 0 ? 0 : (unsigned)first, ~0u);
	vb_real()->closefrom(first);
}

/* --- all of them closed, by the process's end --- */

void _exit(int status)
{
	if (vb_rsockets && vb_rsockets->vb_rs_leave && vb_front_is_owner())
		vb_rsockets->vb_rs_leave();
	vb_real()->_exit(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}

/* --- duplicated --- */

/* made: a new number for what fd is, or -1. */
static int shared(int fd, int made)
{
	struct vb_front *front = vb_front_of(fd);

	if (made < 0)
		return made;
	if (front)
		vb_front_share(front, made);
	return made;
}

int dup(int fd)
{
	return shared(fd, vb_real()->dup(fd));
}

/* The number to was another file's until now, perhaps. */
static int replaced(int fd, int to, int made)
{
	if (made < 0 || fd == to)
		return made;
	vb_front_drop(to);
	return shared(fd, made);
}

int dup2(int fd, int to)
{
	return replaced(fd, to, vb_real()->dup2(fd, to));
}

int dup3(int fd, int to, int flags)
{
	return replaced(fd, to, vb_real()->dup3(fd, to, flags));
}

/* --- flags --- */

static void flags_copy(int fd)
{
	int rs = vb_front_rs(fd);

	if (rs >= 0)
		VB_RS_CALL(fcntl(rs, F_SETFL, vb_real()->fcntl(fd, F_GETFL) & O_NONBLOCK));
}

/* The front has the flags; the rsocket hears of them. */
static int flagged(int fd, int command, int rc)
{
	if (rc >= 0 && command == F_SETFL)
		flags_copy(fd);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return shared(fd, rc);
	return rc;
}

int fcntl(int fd, int command, ...)
{
	va_list list;
	void *arg;

	va_start(list, command);
	arg = va_arg(list, void *);
	va_end(list);
	return flagged(fd, command, vb_real()->fcntl(fd, command, arg));
}

int fcntl64(int fd, int command, ...)
{
	va_list list;
	void *arg;

	va_start(list, command);
	arg = va_arg(list, void *);
	va_end(list);
	return flagged(fd, command, vb_real()->fcntl64(fd, command, arg));
}

/* How much can be read at once: not more than we look at, but something if there is something. */
static int octets_tell(int rs, int *told)
{
	char octets[PEEK_BYTES];
	ssize_t n = VB_RS_CALL(recv(rs, octets, sizeof(octets), MSG_PEEK | MSG_DONTWAIT));

	*told = n > 0 ? (int)n : 0;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	int rs = vb_front_rs(fd), rc;
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (rs >= 0 && request == FIONREAD)
		return octets_tell(rs, arg);
	rc = vb_real()->ioctl(fd, request, arg);
	if (!rc && request == FIONBIO)
		flags_copy(fd);
	return rc;
}
