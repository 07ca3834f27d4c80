/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/feed.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "link/shm.h"

_Static_assert(!(VB_FEED_BYTES & (VB_FEED_BYTES - 1)), "positions are masked");

int vb_feed_open(struct vb_feed *feed, int fd)
{
	void *memory;
	int rc = vb_shm_reserve(&memory, sizeof(*feed->shared));

	feed->head = 0;
	feed->shared = NULL;
	if (!rc) {
		rc = vb_shm_map(memory, fd, sizeof(*feed->shared), true);
		if (rc)
			vb_shm_unmap(memory, sizeof(*feed->shared));
		else
			feed->shared = memory;
	}
	return rc;
}

int vb_feed_make(struct vb_feed *feed, int *fd)
{
	int rc = vb_shm_create(fd, sizeof(*feed->shared));

	if (rc)
		return rc;
	rc = vb_feed_open(feed, *fd);
	if (rc)
		close(*fd);
	return rc;
}

void vb_feed_close(struct vb_feed *feed)
{
	if (feed->shared)
		vb_shm_unmap(feed->shared, sizeof(*feed->shared));
	feed->shared = NULL;
}

void vb_feed_forget(struct vb_feed *feed)
{
	if (feed->shared)
		vb_shm_forget(feed->shared, sizeof(*feed->shared));
	feed->shared = NULL;
}

bool vb_feed_put(struct vb_feed *feed, const uint8_t *octets, size_t bytes)
{
	uint64_t used = feed->head - vb_feed_tail(feed);
	size_t at = feed->head % VB_FEED_BYTES, first;

	if (used > VB_FEED_BYTES || bytes > VB_FEED_BYTES - used)
		return false;
	first = vb_min_u64(bytes, VB_FEED_BYTES - at);
	memcpy(feed->shared->octets + at, octets, first);
	memcpy(feed->shared->octets, octets + first, bytes - first);
	feed->head += bytes;
	atomic_store_explicit(&feed->shared->head, feed->head, memory_order_release);
	return true;
}

size_t vb_feed_look(const struct vb_feed *feed, const uint8_t **octets)
{
	uint64_t tail = vb_feed_tail(feed);
	uint64_t wait = atomic_load_explicit(&feed->shared->head, memory_order_acquire) - tail;
	size_t at = tail % VB_FEED_BYTES;

	*octets = feed->shared->octets + at;
	return wait > VB_FEED_BYTES ? 0 : vb_min_u64(wait, VB_FEED_BYTES - at);
}

void vb_feed_take(struct vb_feed *feed, size_t bytes)
{
	atomic_store_explicit(&feed->shared->tail, vb_feed_tail(feed) + bytes,
			      memory_order_release);
}
