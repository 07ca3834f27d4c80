/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_KNOWN_H
#define VB_ABI_VERBS_KNOWN_H

/*
 * Which objects exist. A kernel identifies an object by its handle, and answers ENOENT for one that
 * it never gave out or that is destroyed: so do control verbs here. They look up the address before
 * they read the object, which may be freed. Then they check that its `context` and `handle`, which
 * the application can overwrite, are unchanged. Posting and polling do not check.
 *
 * Any thread. For the files of abi/verbs.
 */

#include <infiniband/verbs.h>

enum vb_known_kind {
	VB_KNOWN_CONTEXT,
	VB_KNOWN_PD,
	VB_KNOWN_TD,
	VB_KNOWN_MR,
	VB_KNOWN_MW,
	VB_KNOWN_DM,
	VB_KNOWN_CHANNEL,
	VB_KNOWN_CQ,
	VB_KNOWN_SRQ,
	VB_KNOWN_QP,
	VB_KNOWN_AH,
	VB_KNOWN_XRCD,
	VB_KNOWN_WQ,
	VB_KNOWN_TABLE,
	VB_KNOWN_FLOW,
	VB_KNOWN_COUNTERS,
	VB_KNOWN_DMAH,
	VB_KNOWN_BUF,
	VB_KNOWN_COMP_CNTR,
	VB_KNOWN_KINDS
};

/* From here on the application has the object. */
void vb_known_add(enum vb_known_kind kind, const void *object);

/* Returns 0 or ENOENT. */
int vb_known(enum vb_known_kind kind, const void *object);

/* The same for an optional object: 0 for NULL as well. */
static inline int vb_known_or_null(enum vb_known_kind kind, const void *object)
{
	return object ? vb_known(kind, object) : 0;
}

/*
 * The same before destroying an object: returns 0 to one thread only. That thread then reports the
 * result: rc is 0 if the object is gone, and is returned.
 */
int vb_known_end(enum vb_known_kind kind, const void *object);
int vb_known_ended(enum vb_known_kind kind, const void *object, int rc);

/*
 * Somebody who is told of each object: after it was made, before it is destroyed, and after that.
 * One for the process, before threads are started (abi/check).
 */
struct vb_known_watch {
	void (*made)(enum vb_known_kind kind, const void *object);
	void (*ending)(enum vb_known_kind kind, const void *object);
	void (*ended)(enum vb_known_kind kind, const void *object);
};
void vb_known_watch(const struct vb_known_watch *watch);

#endif
