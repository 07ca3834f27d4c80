/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_AROUND_H
#define VB_LINK_AROUND_AROUND_H

/*
 * What all links around another one have: the inner link, and calls that go straight to it. A
 * wrapper begins with a struct vb_around and names in its table what it does itself.
 */

#include "link/link.h"

struct vb_around {
	struct vb_link link;
	struct vb_link *inner; /* owned */
};

static inline struct vb_link *vb_around_inner(struct vb_link *link)
{
	return ((struct vb_around *)link)->inner;
}

/* The clock of frames that are held. */
uint64_t vb_around_now_ns(void);

/* As link.h says, done by the inner link. */
int vb_around_rx_fd(struct vb_link *link, unsigned i);
uint32_t vb_around_frame_bytes_max(struct vb_link *link, const struct vb_path *path);
uint16_t vb_around_sport(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			 enum vb_whom whom);
int vb_around_sport_choose(struct vb_link *link, const struct vb_path *path, uint16_t slot,
			   uint16_t port);
int vb_around_join(struct vb_link *link, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex);
void vb_around_leave(struct vb_link *link, const uint8_t gid[VB_GID_BYTES]);
bool vb_around_deliver(struct vb_link *link, const struct vb_frame *frame);
void vb_around_forget(struct vb_link *link);

/* For the initializer of a wrapper's table: what no wrapper of ours does itself. */
#define VB_AROUND_OPS                                                                              \
	.rx_fd = vb_around_rx_fd, .frame_bytes_max = vb_around_frame_bytes_max,                    \
	.sport = vb_around_sport, .sport_choose = vb_around_sport_choose, .join = vb_around_join,  \
	.leave = vb_around_leave, .deliver = vb_around_deliver

#endif
