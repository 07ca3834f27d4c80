/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_MOUNT_H
#define VB_VIEW_MOUNT_H

/*
 * Shows this process, and what it executes, a tree (files.h) at /dev and /sys, in a mount namespace
 * of its own. The process has one thread, and keeps its uid, gid and working directory.
 *
 * Who may not mount needs a user namespace first, which costs it setuid programs and the names of
 * other users. All programs of a user share one (user_ns_fd), since the kernel lets no process
 * reach the memory of one in another.
 */

#include <stdbool.h>

/* What failed, for words. */
enum vb_view_step {
	VB_VIEW_STEP_NONE,
	VB_VIEW_STEP_USER,	/* to enter a user namespace */
	VB_VIEW_STEP_NAMESPACE, /* to have a mount namespace */
	VB_VIEW_STEP_MOUNT,	/* to mount in it */
};

/* May this process have a mount namespace without a user namespace? */
bool vb_view_mount_is_free(void);

/*
 * Returns 0; or an errno, and *step is set. The namespaces that were entered until then remain, and
 * in the last step a part of the view may. user_ns_fd -1: none is needed.
 */
int vb_view_mount(const char *root, int user_ns_fd, enum vb_view_step *step);

/* Is this tree shown already? */
bool vb_view_mount_is_shown(const char *root);

/*
 * Makes a user namespace in which the effective uid and gid are themselves, and nobody is in. *fd
 * keeps it. Returns 0 or an errno.
 */
int vb_view_user_ns_make(int *fd);

#endif
