/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VIEW_NEXT_H
#define VB_ABI_VIEW_NEXT_H

/*
 * The functions that ours stand in front of: the C library's, or another preloaded library's. Any
 * thread, before main() too.
 */

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define VB_NEXT(name) __typeof__(name) *name;
struct vb_next {
#include "abi/view/next.def"
};
#undef VB_NEXT
#pragma GCC diagnostic pop

/* Looked up at the first call. */
const struct vb_next *vb_next(void);

/* Of a function whose name ends in 64 only the name differs from its brother's. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(off_t) == sizeof(off64_t) &&
		       sizeof(struct dirent) == sizeof(struct dirent64) &&
		       sizeof(struct statfs) == sizeof(struct statfs64) &&
		       sizeof(struct statvfs) == sizeof(struct statvfs64) &&
		       sizeof(glob_t) == sizeof(glob64_t),
	       "a machine with two kinds of file functions");

#endif
