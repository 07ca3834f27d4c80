/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FAILURE_H
#define VB_BASE_FAILURE_H

/*
 * A note for users beside an errno: what failed. The function that sees a call fail leaves the note
 * and returns the errno: return vb_failed(errno, "memfd_create"). The function that reports the
 * errno to the user asks for the note. Each thread has one note, its last.
 */

#include <stdbool.h>

enum { VB_FAILURE_BYTES = 384 };

struct vb_failure {
	int error;
	/* text also says why; otherwise it only names the call or thing that failed */
	bool explained;
	char text[VB_FAILURE_BYTES]; /* NUL-terminated */
};

/* Notes that this call, or this thing, failed with error. Returns error. */
int vb_failed(int error, const char *what);

/* Notes a complete explanation of error. Returns error. */
int vb_failed_because(int error, const char *why);

/* Repeats a note of another thread. Returns its errno. */
int vb_failed_as(const struct vb_failure *failure);

/* The note left with this error; NULL if the last note is about another error. */
const struct vb_failure *vb_failure_of(int error);

#endif
