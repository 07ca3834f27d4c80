/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_FILES_H
#define VB_VIEW_FILES_H

/*
 * A tree (tree.h) as files below a folder, ROOT, which programs are shown (mount.h), or by which
 * the preloaded library answers. One thread writes; who reads a file meanwhile gets the old content
 * or the new one, whole.
 */

#include <limits.h>

#include "view/tree.h"

struct vb_view_root {
	char path[PATH_MAX];
	int fd; /* locked (flock) as long as the process lives, which says that it does */
};

/* The folder in which roots are made. ENOENT: this user may write nowhere. */
int vb_view_base(char path[PATH_MAX]);

/*
 * Makes an empty folder with a name of its own, and removes those of this user's keepers that were
 * killed, unless a process still sees them. Returns 0 or an errno.
 */
int vb_view_root_make(struct vb_view_root *root);

/* Removes it and all that is in it. */
void vb_view_root_remove(struct vb_view_root *root);

/* Writes what differs from what is there. Returns 0 or an errno. */
int vb_view_files_write(const struct vb_view_root *root, const struct vb_view_device *devices,
			unsigned count);

/* Writes one entry: a tree's, or a counter. arg: the root. */
int vb_view_file_write(void *arg, const struct vb_view_entry *entry);

#endif
