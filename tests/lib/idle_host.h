/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_IDLE_HOST_H
#define VB_TESTS_IDLE_HOST_H

/*
 * A host that does nothing for its NIC: time stands, frames and signals vanish, all memory is
 * mapped, and it is alone. A test or a simulation takes it, and sets what it is about.
 */

#include <errno.h>
#include <sched.h>

#include "nic/core/nic_host.h"
#include "wire/icrc.h"

enum { IDLE_SLOT = 3, IDLE_INDEX = 100, IDLE_FRAME_BYTES = 5000 };

static inline uint64_t idle_now_ns(void *arg)
{
	return 1;
}

static inline void idle_kick(void *arg)
{
}

static inline void idle_pause(void *arg, uint64_t waited_ns)
{
	sched_yield();
}

static inline int idle_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = IDLE_SLOT;
	*next_index = IDLE_INDEX;
	return 0;
}

static inline int idle_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	return 0;
}

static inline void *idle_claim(void *arg, uint16_t src_slot, const struct vb_path *path,
			       uint16_t *first_id)
{
	return NULL;
}

static inline void idle_unclaim(void *arg, uint16_t src_slot, void *claim)
{
}

static inline unsigned idle_burst_frames_max(void *arg)
{
	return VB_LINK_BURST_FRAMES_MAX;
}

static inline uint32_t idle_frame_bytes_max(void *arg, const struct vb_path *path)
{
	return IDLE_FRAME_BYTES;
}

static inline uint16_t idle_sport(void *arg, uint16_t src_slot, const struct vb_path *path,
				  uint16_t slot, enum vb_whom whom)
{
	return VB_ROCE_PORT;
}

static inline int idle_sport_choose(void *arg, uint16_t src_slot, const struct vb_path *path,
				    uint16_t slot, uint16_t port)
{
	return EOPNOTSUPP;
}

static inline void idle_afar(void *arg, const uint8_t gid[VB_GID_BYTES])
{
}

static inline void idle_signal(void *arg, int fd)
{
}

static inline int idle_probe(void *arg, const void *addr, size_t bytes, bool write)
{
	return 0;
}

static inline struct vb_nic_host idle_host(void *arg)
{
	return (struct vb_nic_host){
		.arg = arg,
		.clock = { .now_ns = idle_now_ns, .kick = idle_kick, .pause = idle_pause },
		.wire = { .lease = idle_lease, .tx = idle_tx, .claim = idle_claim,
			  .unclaim = idle_unclaim, .burst_frames_max = idle_burst_frames_max,
			  .frame_bytes_max = idle_frame_bytes_max, .sport = idle_sport,
			  .sport_choose = idle_sport_choose, .afar = idle_afar },
		.line_kbps = 10000000,
		.process = { .signal = idle_signal, .unsignal = idle_signal, .probe = idle_probe },
	};
}

/* --- for groups of which a test needs only a part --- */

static inline void idle_await(void *arg, uint16_t own_slot, uint16_t slot)
{
}

static inline void idle_peer(void *arg, struct vb_peer *peer)
{
}

static inline bool idle_may_reach(void *arg, struct vb_peer *peer)
{
	return true;
}

static inline bool idle_tarry(void *arg, struct vb_peer *peer, uint64_t waited_ns)
{
	sched_yield();
	return true;
}

static inline void *idle_map(void *arg, struct vb_peer *peer, int file, uint64_t offset,
			     uint64_t bytes)
{
	return NULL;
}

static inline void idle_unmap(void *arg, void *at, uint64_t bytes)
{
}

static inline void *idle_device_memory(void *arg, size_t bytes)
{
	return NULL;
}

static inline int idle_map_file(void *arg, int fd, uint64_t offset, uint64_t bytes, uint64_t iova,
				bool write, void **at)
{
	return EOPNOTSUPP;
}

static inline void idle_xrc(void *arg)
{
}

static inline bool idle_uplink_open(void *arg)
{
	return false;
}

static inline unsigned idle_uplink_tx(void *arg, const struct iovec *frames, unsigned count)
{
	return 0;
}

#endif
