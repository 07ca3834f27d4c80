/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_LATER_H
#define VB_NIC_LATER_H

/*
 * Who wants to run later: a queue of nodes. A node is part of the QP that waits; whoever owns the
 * queue says for what (room in a ring, pacing, the end of a batch), and guards it. What waits for a
 * time is in the heap instead (timer.h).
 *
 * A node that is zero is in no queue. A queue is filled from one end, always the same.
 */

#include <stdbool.h>
#include <stddef.h>

struct vb_later {
	struct vb_later *next; /* VB_LATER_END: it is the last; NULL: it is in no queue */
};

/* What stands behind the last of a queue. */
#define VB_LATER_END ((struct vb_later *)1)

struct vb_later_queue {
	struct vb_later *first;	 /* VB_LATER_END: nobody waits */
	struct vb_later **end;	 /* of a queue that is filled from behind: where the next goes */
};

#define VB_LATER_EMPTY ((struct vb_later_queue){ .first = VB_LATER_END })

static inline bool vb_later_is_in(const struct vb_later *node)
{
	return node->next != NULL;
}

static inline bool vb_later_is_empty(const struct vb_later_queue *queue)
{
	return queue->first == VB_LATER_END;
}

/* Behind all others. The node is in no queue. */
static inline void vb_later_put(struct vb_later_queue *queue, struct vb_later *node)
{
	if (vb_later_is_empty(queue))
		queue->end = &queue->first;
	node->next = VB_LATER_END;
	*queue->end = node;
	queue->end = &node->next;
}

/* Before all others, of which none is written: their QPs need not be locked. */
static inline void vb_later_put_first(struct vb_later_queue *queue, struct vb_later *node)
{
	node->next = queue->first;
	queue->first = node;
}

/* The first, which is taken out. The queue is not empty. */
static inline struct vb_later *vb_later_take(struct vb_later_queue *queue)
{
	struct vb_later *node = queue->first;

	queue->first = node->next;
	node->next = NULL;
	return node;
}

/* Take it out, wherever it stands in this queue; false: it is in none. */
static inline bool vb_later_drop(struct vb_later_queue *queue, struct vb_later *node)
{
	struct vb_later **at = &queue->first;

	if (!vb_later_is_in(node))
		return false;
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	if (queue->end == &node->next)
		queue->end = at;
	node->next = NULL;
	return true;
}

#endif
