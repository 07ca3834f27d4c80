/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_CHECK_OBJECTS_H
#define VB_ABI_CHECK_OBJECTS_H

/* Objects: made, destroyed, left behind. Inside abi/check. */

#include "abi/check/state.h"

void vb_check_lock(void);
void vb_check_unlock(void);

/* From now on each object has a record. */
void vb_check_objects_watch(void);

/* In a forked child: those of its parent are not its own. */
void vb_check_objects_forget(void);

/* At the end of the program: reports those that are still there. Locked. */
void vb_check_objects_leaked(void);

/* --- locked --- */

/* The record of an object; NULL: there is none. */
struct vb_check_object *vb_check_find(enum vb_known_kind kind, const void *object);

/* The QP with this number. */
struct vb_check_object *vb_check_qp(uint32_t qpn);

/* The region with this lkey; NULL: there is none. */
const struct vb_check_region *vb_check_region(uint32_t lkey);

/* The object is one of our libraries'. */
void vb_check_own(const void *object);

/* Reads a region, after it was made or changed. */
void vb_check_region_read(struct vb_check_object *object);

/* "QP", "CQ"; for the words of a flaw. */
const char *vb_check_kind(enum vb_known_kind kind);

/* This thread is in a call that uses it, until _leave. */
void vb_check_enter(struct vb_check_object *object, const void *site);
void vb_check_leave(struct vb_check_object *object);

/* The place in the application of the call that we are in. */
const void *vb_check_here(void);

#endif
