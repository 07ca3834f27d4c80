/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_SHOW_H
#define VB_VIEW_SHOW_H

/* Shows a program that is about to be executed /dev and /sys with our devices (docs/view.md). */

#include <limits.h>

#include "base/words.h"
#include "view/mount.h"

enum vb_view_show {
	VB_VIEW_SHOW_AUTO,
	VB_VIEW_SHOW_MOUNT,   /* in a mount namespace */
	VB_VIEW_SHOW_PRELOAD, /* by a library that redirects paths */
	VB_VIEW_SHOW_NONE,
};

/* Their names: "auto" ... */
extern const struct vb_words vb_view_show_names;

struct vb_view_shown {
	enum vb_view_show by; /* never AUTO */
	char root[PATH_MAX]; /* "" by NONE */
	/* Why not by MOUNT, if that was tried; and why not at all, if that was. */
	int mount_error, error;
	enum vb_view_step mount_step;
};

/*
 * By the way that is wanted, or by one that loses the program nothing that it has without a view.
 * The environment and, by MOUNT, this process's namespaces have changed then; the caller preloads
 * the library by PRELOAD. Returns 0; or an errno if a way other than AUTO is impossible.
 */
int vb_view_show(enum vb_view_show wanted, const char *library, struct vb_view_shown *shown);

/*
 * "to enter a user namespace: Operation not permitted; ..." Returns text. In this thread, after
 * vb_view_show(), since without a step that is what was noted there.
 */
const char *vb_view_show_why(char *text, size_t bytes, enum vb_view_step step, int error);

#endif
