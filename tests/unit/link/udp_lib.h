/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_UDP_LIB_H
#define VB_TESTS_UDP_LIB_H

/* Slots' sockets as the hub makes them, a link on each, and frames between them. */

#include <arpa/inet.h>

#include "group.h"
#include "link/link.h"
#include "link/udp.h"
#include "link/udp_socket.h"
#include "netns.h"

/* These tests' frames have no ICRC, and are right as long as a test does not say otherwise. */
static bool all_are_wrong;

static inline bool any_is_right(const struct vb_path *path, const uint8_t *frame, size_t bytes,
				uint16_t id_hint, uint16_t *id)
{
	return !all_are_wrong;
}

/* Slots 0 to count - 1 in this namespace. */
static inline bool slots_make(struct vb_link **slot, unsigned count)
{
	int fd;

	for (unsigned i = 0; i < count; i++) {
		if (vb_udp_socket_create(&fd) || (i == 0 && vb_udp_socket_steer(fd)) ||
		    vb_udp_socket_bind(fd) || vb_link_udp_create(&slot[i], fd, any_is_right))
			return false;
	}
	return true;
}

static inline void slots_destroy(struct vb_link **slot, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		slot[i]->ops->destroy(slot[i]);
}

static inline void gid_set(uint8_t gid[VB_GID_BYTES], const char *address)
{
	memset(gid, 0, VB_GID_BYTES);
	if (inet_pton(AF_INET6, address, gid) == 1)
		return;
	memset(gid + 10, 0xff, 2);
	assert_int_equal(inet_pton(AF_INET, address, gid + 12), 1);
}

static inline struct vb_path path_make(const char *src, const char *dst)
{
	struct vb_path path = {.hop_limit = VB_UDP_HOP_LIMIT_DEFAULT, .sport = VB_UDP_PORT};

	gid_set(path.src, src);
	gid_set(path.dst, dst);
	return path;
}

/* The slot stands where a BTH has it. */
static inline void frame_slot_set(uint8_t *data, unsigned slot)
{
	data[5] = (uint8_t)(slot >> 2);
	data[6] = (uint8_t)(slot << 6);
}

static inline unsigned frame_slot(const uint8_t *data)
{
	return (unsigned)data[5] << 2 | data[6] >> 6;
}

/* One frame to a slot. */
static inline int frame_send_to(struct vb_link *link, const struct vb_path *path, unsigned slot,
				uint8_t *data, uint32_t bytes)
{
	struct iovec iov = {data, bytes};
	struct vb_burst burst = {
		.path = *path,
		.slot = (uint16_t)slot,
		.frames = 1,
		.frame_bytes = bytes,
		.last_bytes = bytes,
		.iovcnt = 1,
		.iov = &iov,
	};

	frame_slot_set(data, slot);
	return vb_link_tx(link, &burst);
}

#endif
