/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FAILURE_H
#define VB_BASE_FAILURE_H

/*
 * What failed: a note beside an errno, for people. The function that sees a call fail leaves the
 * note and returns the errno as ever: return vb_failed(errno, "memfd_create"). Whoever tells people
 * of an errno asks for the note that was left with it. Each thread has one note, its last.
 */

#include <stdbool.h>

enum { VB_FAILURE_BYTES = 384 };

struct vb_failure {
	int error;
	bool explained; /* text says why as well; otherwise it is the call or thing that failed */
	char text[VB_FAILURE_BYTES]; /* NUL-terminated */
};

/* Note that this call, or this thing, failed with error. Returns error. */
int vb_failed(int error, const char *what);

/* Note what there is to say of error, as a whole. Returns error. */
int vb_failed_because(int error, const char *why);

/* Note again what another thread has noted. Returns its errno. */
int vb_failed_as(const struct vb_failure *failure);

/* The note that was left with this error; NULL if the last one is of another. */
const struct vb_failure *vb_failure_of(int error);

#endif
