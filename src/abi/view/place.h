/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VIEW_PLACE_H
#define VB_ABI_VIEW_PLACE_H

/*
 * Where a path of the program leads: to the folder ROOT that VERBATIM_VIEW_ROOT names, whose tree
 * lies over the real one, or to where it leads without us. Without that variable there is one path
 * of ours, /dev/infiniband/uverbs0. Any thread, and signal handlers.
 *
 * A function of the program's asks first whether the path is near to ours, by its text alone. If it
 * is not, the next function gets the call as it is.
 */

#include <stdbool.h>

#include "base/overlay.h"

enum {
	VB_VIEW_ROOT_CHARS = 1024, /* of ROOT, its end counting; a longer one is none */
	VB_VIEW_PLACE_CHARS = VB_VIEW_ROOT_CHARS + VB_OVERLAY_CHARS,
};

struct vb_view_place {
	struct vb_overlay_walk walk; /* where it leads in the view */
	char path[VB_VIEW_PLACE_CHARS];
};

/* The path, which may be NULL, may lead to what is ours or to a folder that lists it. */
bool vb_view_is_near(int dirfd, const char *path);

/*
 * The path to give to the next function instead. Sets *dirfd to AT_FDCWD if that is another path;
 * one of ours in /dev that is no folder is what its link in ROOT says, or /dev/null. NULL: there is
 * no such path, and errno says why. Else errno stays.
 */
const char *vb_view_place(int *dirfd, const char *path, bool follow, struct vb_view_place *place);

/* It leads to ROOT; what place has is valid only if the answer was another path. */
static inline bool vb_view_is_ours(const struct vb_view_place *place)
{
	return place->walk.has == VB_OVERLAY_UPPER;
}

/* From now on calls by a folder's descriptor may be near. */
void vb_view_folder_opened(int fd);

/* The process may have another current folder. */
void vb_view_cwd_changed(void);

/*
 * The path in the view of an open folder: 0, or an errno value. Sets *in_root if the folder is
 * ROOT's.
 */
int vb_view_fd_path(int fd, char path[VB_OVERLAY_CHARS], bool *in_root);

/* The path as ROOT has it: path itself, of so many octets, unless the text begins with ROOT. */
const char *vb_view_path_shown(const char *text, unsigned chars);

/* The path in ROOT of a path in the view; false: there is no ROOT, or it is too long. */
bool vb_view_root_path(const char *path, char out[VB_VIEW_PLACE_CHARS]);

#endif
