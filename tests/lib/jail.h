/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_JAIL_H
#define VB_TESTS_JAIL_H

/*
 * A process as in another container of a pod: of the same user, in the same network namespace, in
 * PID, mount and IPC namespaces of its own.
 */

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "netns.h"

#define NO_JAIL "this system lets us make no PID namespace"

enum { JAIL_NONE = 77 };

/* Send a descriptor, and take one. */
static inline void jail_fd_send(int to, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec octet = {"", 1};
	struct msghdr message = {.msg_iov = &octet,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	vb_check(sendmsg(to, &message, MSG_NOSIGNAL) == 1);
}

static inline int jail_fd_take(int from)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char octet;
	struct iovec piece = {&octet, 1};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int fd;

	vb_check(recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static inline bool jail_enter(void)
{
	const int own = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (!unshare(own))
		return true;
	if (unshare(CLONE_NEWUSER | own))
		return false;
	netns_file_write("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!netns_file_write("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	netns_file_write("/proc/self/gid_map", map);
	return true;
}

/* Runs the part there, and exits with 0 after it. 0: this system lets us make no such place. */
static inline pid_t jail_start(void (*part)(void *), void *arg)
{
	int pipes[2], status;
	char good = 0;
	pid_t pid, inner;

	vb_check(!pipe(pipes));
	pid = fork();
	vb_check(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		good = jail_enter();
		vb_check(write(pipes[1], &good, 1) == 1);
		if (!good)
			_exit(JAIL_NONE);
		inner = fork();
		if (inner == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			part(arg);
			_exit(0);
		}
		/* What it has inherited is to be closed when its victim closes it. */
		close_range(0, ~0u, 0);
		vb_check(inner > 0 && waitpid(inner, &status, 0) == inner);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	close(pipes[1]);
	vb_check(read(pipes[0], &good, 1) == 1);
	close(pipes[0]);
	if (good)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

#endif
