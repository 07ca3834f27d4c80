/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_HOST_H
#define VB_CM_HOST_H

/*
 * What the connection manager asks of whoever runs it, and what it tells. All of it is called from
 * within a function of ours, with the caller's lock held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "cm/record.h"
#include "cm/rules.h"
#include "wire/cm_msg.h"

struct vb_cm_id;

/* What our user hears. What is pointed to holds until the call returns. */
struct vb_cm_event {
	enum vb_cm_event_type type;
	const struct vb_cm_msg *msg; /* what has come, with all it says; NULL: nothing has */
	const struct vb_path *path;  /* by which it came */
	struct vb_cm_id *listener;   /* REQ, SIDR_REQ: whose */
};

struct vb_cm_host {
	void *arg;
	/*
	 * QP 1 to QP 1. What is lost is lost. The sport is the link's choice. What comes back comes
	 * later, even if it is for ourselves: nothing of ours is called in there.
	 */
	void (*send)(void *arg, const struct vb_path *path, const uint8_t mad[VB_MAD_BYTES]);
	/*
	 * Comes last: the id may be used in there for anything, to let go of it too. One that is
	 * new with a REQ or SIDR_REQ is our user's from here on, who sets its context.
	 */
	void (*event)(void *arg, struct vb_cm_id *id, const struct vb_cm_event *event);
	/*
	 * How well a listener fits a REQ or SIDR_REQ for its service id: 0 not at all, and of
	 * several the best one gets it. NULL: all do.
	 */
	unsigned (*fit)(void *arg, const struct vb_cm_id *listener, const struct vb_path *path,
			const struct vb_cm_msg *msg);
	/* Does what is sent so arrive, however late, if nobody dies? NULL: it may be lost. */
	bool (*is_sure)(void *arg, const struct vb_path *path);
	void *(*alloc)(void *arg, size_t bytes); /* zeros; or NULL */
	void (*release)(void *arg, void *memory);
	/* Room for an id's record, zeros; NULL: there is none. Both are NULL: no records. */
	struct vb_cm_record *(*lend)(void *arg);
	void (*take_back)(void *arg, struct vb_cm_record *record);
};

#endif
