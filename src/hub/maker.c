/* SPDX-License-Identifier: BSD-2-Clause */
#include "hub/maker.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "hub/channel.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

enum { PID_FS = 0x50494446 }; /* since Linux 6.9; before, all pidfds have one inode */

/* A number that no other process ever has, in any namespace; 0: the kernel does not tell. */
static uint64_t process_of(int fd)
{
	socklen_t bytes = sizeof(int);
	int pidfd = VB_FD_NONE;
	struct statfs fs;
	struct stat st;
	uint64_t number = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes))
		return 0;
	if (!fstatfs(pidfd, &fs) && fs.f_type == PID_FS && !fstat(pidfd, &st))
		number = st.st_ino;
	vb_fd_close(&pidfd);
	return number;
}

/* The maker's PID here; 0: it has none, or this is not a unix socket. */
static pid_t pid_of(int fd)
{
	pid_t pid;

	return vb_hub_peer_check(fd, &pid) ? 0 : pid;
}

bool vb_hub_same_maker(int fd, int other_fd)
{
	uint64_t process = process_of(fd), other = process_of(other_fd);
	pid_t pid;

	if (process && other)
		return process == other;
	pid = pid_of(fd);
	return pid && pid == pid_of(other_fd);
}
