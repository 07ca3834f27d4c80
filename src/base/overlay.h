/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_OVERLAY_H
#define VB_BASE_OVERLAY_H

/*
 * Where a path leads if one tree of files, the upper, lies over another, the lower: an entry of the
 * upper hides one of the lower with its name, but folders that both have show the entries of both.
 * Links are followed here, name by name, since one tree's may lead into the other's. Any thread,
 * and signal handlers: no allocation, nothing kept, no errno.
 */

#include <stdbool.h>

enum {
	VB_OVERLAY_CHARS = 1024,   /* of a path, its end counting */
	VB_OVERLAY_LINKS_MAX = 40, /* that are followed, as path_resolution(7) has it for Linux */
};

struct vb_overlay {
	/*
	 * What a tree has at an absolute path without a link before its last name: 0, with the text
	 * of a link in target (VB_OVERLAY_CHARS), or "" if it is something else; or a positive
	 * errno value as readlink(2) has it. "PATH/." is there if PATH is a folder.
	 */
	int (*look)(void *host, bool is_upper, const char *path, char *target);
	void *host;
};

enum vb_overlay_has {
	VB_OVERLAY_NOTHING,
	VB_OVERLAY_LOWER,
	VB_OVERLAY_UPPER,
	VB_OVERLAY_BOTH, /* a folder of the upper tree, and something in the lower */
};

struct vb_overlay_walk {
	/* Absolute; without ".", "..", and links before the last name. */
	char path[VB_OVERLAY_CHARS];
	enum vb_overlay_has has;
	int error;	 /* VB_OVERLAY_NOTHING: why, as the kernel says it */
	bool is_folder;	 /* of the upper tree */
	bool is_link;	 /* of the upper tree, at the end of the path and not followed */
	bool is_slashed; /* the path ends in a slash, so only a folder will do */
	/* What is not in the upper tree was reached through it: the lower alone leads elsewhere. */
	bool is_detour;
};

/*
 * Walks an absolute path. A link at its end is followed if wanted, or if a slash stands behind it.
 * Returns 0, and then only the last name may be missing; else a positive errno value: ENOENT,
 * ENOTDIR, ELOOP, ENAMETOOLONG or what look() said. A path that is too long for us may not be for
 * the kernel.
 */
int vb_overlay_walk(const struct vb_overlay *overlay, const char *path, bool follow,
		    struct vb_overlay_walk *walk);

#endif
