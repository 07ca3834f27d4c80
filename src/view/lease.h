/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_LEASE_H
#define VB_VIEW_LEASE_H

/*
 * What a program asks of the process that keeps its tree (keeper.h), and how that is started. One
 * keeper for each user, network namespace, folder that roots are in, and settings of devices.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { VB_VIEW_LISTEN_FD = 3 };

struct vb_view_lease {
	int fd; /* the connection */
	int user_ns_fd, user_ns_error; /* VB_FD_NONE: not wanted, or not to be had */
	char root[PATH_MAX];
};

/* Messages, over a SOCK_SEQPACKET socket: asked, answered (with user_ns_fd), settled. */
struct vb_view_asked {
	bool wants_user_ns;
};

struct vb_view_answered {
	int user_ns_error;
	char root[PATH_MAX];
};

struct vb_view_settled {
	uint64_t mount_ns; /* its inode number */
};

/*
 * Asks the keeper for the tree; starts one if none is there: this program's file, executed as
 * `verbatim keeper` with the socket at descriptor 3. From then on this process is a user, and so
 * is, when it has ended, what runs in its mount namespace or has VERBATIM_VIEW_ROOT in its
 * environment. Returns 0 with *lease, or an errno; noted.
 */
int vb_view_lease_take(struct vb_view_lease *lease, bool wants_user_ns);

/* Tells the keeper in which mount namespace we are now, and closes what is not needed any more. */
void vb_view_lease_settle(struct vb_view_lease *lease);

/* The inode number of a process's mount namespace; 0: not known. */
uint64_t vb_view_mount_ns(pid_t pid);

#endif
