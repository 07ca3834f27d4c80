/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TAPE_OBJECTS_H
#define VB_TAPE_OBJECTS_H

/* The objects of a replay, by the addresses that they had when they were recorded. One thread. */

#include <stdint.h>

enum vb_object_kind {
	VB_OBJECT_NONE,
	VB_OBJECT_CTX,
	VB_OBJECT_PD,
	VB_OBJECT_TD,
	VB_OBJECT_MR,
	VB_OBJECT_MW,
	VB_OBJECT_AH,
	VB_OBJECT_CHANNEL,
	VB_OBJECT_CQ,
	VB_OBJECT_SRQ,
	VB_OBJECT_QP,
};

struct vb_object {
	uint64_t was; /* its address in the record */
	enum vb_object_kind kind;
	void *is;	 /* the object */
	uint32_t number; /* the order in which they were made */
	uint32_t state;	 /* of a QP, as it was last seen */
};

struct vb_objects {
	void *tree, *qps; /* tsearch(3); QPs, which are looked at often, are apart */
	uint32_t made;
};

/* A new object. Returns 0 or ENOMEM. */
int vb_object_add(struct vb_objects *objects, enum vb_object_kind kind, uint64_t was, void *is);

/* NULL: there is none of this kind. */
void *vb_object_find(const struct vb_objects *objects, enum vb_object_kind kind, uint64_t was);

/* It was destroyed. */
void vb_object_drop(struct vb_objects *objects, uint64_t was);

/* Calls this with each QP, in the order of their addresses. */
void vb_object_each_qp(const struct vb_objects *objects,
		       void (*look)(struct vb_object *object, void *arg), void *arg);

void vb_objects_free(struct vb_objects *objects);

#endif
