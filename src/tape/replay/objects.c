/* SPDX-License-Identifier: BSD-2-Clause */
#include "tape/replay/objects.h"

#include <errno.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct vb_object *one = a, *other = b;

	return (one->was > other->was) - (one->was < other->was);
}

static struct vb_object *find(void *const *tree, uint64_t was)
{
	const struct vb_object key = { .was = was };
	struct vb_object **found = tfind(&key, tree, compare);

	return found ? *found : NULL;
}

int vb_object_add(struct vb_objects *objects, enum vb_object_kind kind, uint64_t was, void *is)
{
	struct vb_object *object;

	vb_object_drop(objects, was);
	object = calloc(1, sizeof(*object));
	if (!object)
		return ENOMEM;
	*object = (struct vb_object){
		.was = was, .kind = kind, .is = is, .number = ++objects->made,
	};
	if (tsearch(object, kind == VB_OBJECT_QP ? &objects->qps : &objects->tree, compare))
		return 0;
	free(object);
	return ENOMEM;
}

void *vb_object_find(const struct vb_objects *objects, enum vb_object_kind kind, uint64_t was)
{
	const struct vb_object *object =
		find(kind == VB_OBJECT_QP ? &objects->qps : &objects->tree, was);

	return object && object->kind == kind ? object->is : NULL;
}

static void drop(void **tree, uint64_t was)
{
	struct vb_object *object = find(tree, was);

	if (!object)
		return;
	tdelete(object, tree, compare);
	free(object);
}

void vb_object_drop(struct vb_objects *objects, uint64_t was)
{
	drop(&objects->tree, was);
	drop(&objects->qps, was);
}

struct each {
	void (*look)(struct vb_object *object, void *arg);
	void *arg;
};

static void look(const void *node, VISIT visit, void *arg)
{
	const struct each *each = arg;

	if (visit == postorder || visit == leaf)
		each->look(*(struct vb_object *const *)node, each->arg);
}

void vb_object_each_qp(const struct vb_objects *objects,
		       void (*what)(struct vb_object *object, void *arg), void *arg)
{
	struct each each = { what, arg };

	twalk_r(objects->qps, look, &each);
}

void vb_objects_free(struct vb_objects *objects)
{
	tdestroy(objects->tree, free);
	tdestroy(objects->qps, free);
	objects->tree = objects->qps = NULL;
}
