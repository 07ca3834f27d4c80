/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/process/eventfd.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "run/process/cancel.h"

int vb_eventfd_create(void)
{
	return eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
}

void vb_eventfd_signal(int fd)
{
	int cancel = vb_cancel_defer();
	uint64_t one = 1;
	ssize_t done;

	/* The write fails only if the application closed the fd, and then nobody waits. */
	done = write(fd, &one, sizeof(one));
	(void)done;
	vb_cancel_restore(cancel);
}

void vb_eventfd_unsignal(int fd)
{
	int cancel = vb_cancel_defer();
	uint64_t one;
	struct iovec iov = { &one, sizeof(one) };
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	ssize_t done;

	/*
	 * The application may read between our poll and our read, so one call does both. Kernels
	 * before 5.8 do not support it for an eventfd: they run that risk.
	 */
	done = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
	if (done < 0 && errno == EOPNOTSUPP && poll(&poller, 1, 0) == 1)
		done = read(fd, &one, sizeof(one));
	vb_cancel_restore(cancel);
}

bool vb_eventfd_take(int fd)
{
	uint64_t one;

	return read(fd, &one, sizeof(one)) == sizeof(one);
}
