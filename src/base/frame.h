/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_FRAME_H
#define VB_BASE_FRAME_H

/*
 * Frames as they pass between a NIC and a link: what RoCEv2 puts behind the UDP header. The two
 * know nothing of each other but this.
 */

#include <stdint.h>
#include <sys/uio.h>

#include "base/path.h"

enum {
	VB_LINK_BURST_FRAMES_MAX = 64, /* frames of one burst */
	VB_LINK_BURST_IOV_MAX = 512,   /* pieces of one burst */
	VB_LINK_BURST_BYTES_MAX = 65000,
	VB_LINK_RX_FRAMES_MAX = 1024, /* frames that one rx call may return */
};

/*
 * Frames to one destination slot, gathered from where they lie. All frames are frame_bytes long
 * but the last, which may be shorter (last_bytes, > 0). They lie one behind the other without gap;
 * where pieces end has nothing to do with where frames end.
 *
 * Frame i leaves with IPv4 identification first_id + i, since the kernel's segmentation counts so;
 * whoever computed the ICRCs relied on it. first_id is 0, unless somebody claimed another one.
 */
struct vb_burst {
	struct vb_path path;
	uint16_t slot; /* of the destination: all frames of a burst go to the same one */
	uint16_t frames;
	uint32_t frame_bytes, last_bytes;
	uint32_t iovcnt;
	const struct iovec *iov;
	uint16_t first_id;
	void *claim; /* by which (link.h); NULL: none */
};

/* One frame received. The octets stay valid until the next rx call on that link. */
struct vb_frame {
	struct vb_path path; /* src: the sender; dst: the address of ours it was sent to */
	const uint8_t *data;
	uint32_t bytes;
	uint16_t id_hint; /* the likely IPv4 identification: the frame's place in its batch */
};

#endif
