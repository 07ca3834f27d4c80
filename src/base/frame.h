/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FRAME_H
#define VB_BASE_FRAME_H

/*
 * Frames between a NIC and a link: what RoCEv2 puts behind the UDP header. NIC and link share
 * nothing else.
 */

#include <stdint.h>
#include <sys/uio.h>

#include "base/path.h"

enum {
	VB_LINK_BURST_FRAMES_MAX = 64, /* frames per burst */
	VB_LINK_BURST_IOV_MAX = 512,   /* pieces per burst */
	VB_LINK_BURST_BYTES_MAX = 65000,
	VB_LINK_RX_FRAMES_MAX = 1024, /* frames that one rx call may return */
};

/*
 * Frames to one destination slot, gathered from where their octets are. All frames have frame_bytes
 * octets but the last, which may be shorter (last_bytes, > 0). They follow each other without gaps;
 * the ends of pieces and frames are unrelated.
 *
 * Frame i leaves with IPv4 identification first_id + i, as the kernel's segmentation counts; the
 * ICRCs assume that. first_id is 0 unless another one was claimed (link.h).
 */
struct vb_burst {
	struct vb_path path;
	uint16_t slot; /* of the destination, the same for all frames */
	uint16_t frames;
	uint32_t frame_bytes, last_bytes;
	uint32_t iovcnt;
	const struct iovec *iov;
	uint16_t first_id;
	void *claim; /* of first_id (link.h); NULL: none */
};

/* From the BTH to the ICRC, of all its frames. */
static inline uint64_t vb_burst_octets(const struct vb_burst *burst)
{
	return (uint64_t)(burst->frames - 1) * burst->frame_bytes + burst->last_bytes;
}

/* A received frame. The octets stay valid until the next rx call on that link. */
struct vb_frame {
	struct vb_path path; /* src: the sender; dst: our address that it was sent to */
	const uint8_t *data;
	uint32_t bytes;
	uint16_t id_hint; /* the likely IPv4 identification: the frame's index in its batch */
};

#endif
