/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/around/around.h"

#include <time.h>

uint64_t vb_around_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int vb_around_rx_fd(struct vb_link *link, unsigned i)
{
	struct vb_link *inner = vb_around_inner(link);

	return inner->ops->rx_fd(inner, i);
}

uint32_t vb_around_frame_bytes_max(struct vb_link *link, const struct vb_path *path)
{
	struct vb_link *inner = vb_around_inner(link);

	return inner->ops->frame_bytes_max(inner, path);
}

uint16_t vb_around_sport(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			 enum vb_whom whom)
{
	struct vb_link *inner = vb_around_inner(link);

	return inner->ops->sport(inner, path, slot, whom);
}

int vb_around_sport_choose(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			   uint16_t port)
{
	struct vb_link *inner = vb_around_inner(link);

	return inner->ops->sport_choose(inner, path, slot, port);
}

int vb_around_join(struct vb_link *link, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	struct vb_link *inner = vb_around_inner(link);

	return inner->ops->join(inner, gid, ifindex);
}

void vb_around_leave(struct vb_link *link, const uint8_t gid[VB_GID_BYTES])
{
	struct vb_link *inner = vb_around_inner(link);

	inner->ops->leave(inner, gid);
}

bool vb_around_deliver(struct vb_link *link, const struct vb_frame *frame)
{
	struct vb_link *inner = vb_around_inner(link);

	return inner->ops->deliver(inner, frame);
}

void vb_around_forget(struct vb_link *link)
{
	struct vb_link *inner = vb_around_inner(link);

	inner->ops->forget(inner);
}
