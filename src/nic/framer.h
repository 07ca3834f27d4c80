/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FRAMER_H
#define VB_NIC_FRAMER_H

/*
 * Frames of the wire, made one behind the other into a burst: headers and ICRCs, with the payload
 * copied or from where the application has it. QP locked throughout.
 */

#include "nic/tx.h"
#include "wire/icrc.h"

/*
 * A payload up to this size is copied behind its header: cheaper than a piece of its own, and
 * what the ICRC was made over is what leaves, whatever the application writes meanwhile.
 */
#define VB_FRAMER_COPY_BYTES_MAX 256u

/*
 * The same for the many frames of a long message, which are one piece then: a copy in the cache
 * costs about what the kernel asks for two pieces.
 */
#define VB_FRAMER_WIDE_BYTES_MAX 4096u

#define VB_FRAMER_TAIL_BYTES_MAX (3 + VB_ICRC_BYTES)

/* What a frame takes of the room at most: all of it, if small, or what goes around its payload. */
#define VB_FRAMER_ROOM_BYTES                                                                       \
	(VB_PKT_HEADER_BYTES_MAX + VB_FRAMER_COPY_BYTES_MAX + VB_FRAMER_TAIL_BYTES_MAX)

struct vb_framer {
	const struct vb_qp *qp;
	uint16_t slot; /* that its frames come from */
	struct vb_burst burst;
	uint32_t bytes;
	unsigned frames_max;
	/*
	 * Sum up what was copied, not what it is copied from. The application may write there all
	 * the time, and what changes between the sum and the copy is dropped by whoever gets it. It
	 * is sent again then, and that must not go on for ever. For the caller to set.
	 */
	bool certain;
	struct iovec iov[VB_LINK_BURST_IOV_MAX];
	/*
	 * Frames lie one behind the other here, so that small ones are one piece together, and a
	 * tail is one with the header that follows it: each piece costs the kernel something.
	 */
	uint32_t room_used;
	/* Of the NIC's, for whole frames of a long message; NULL: somebody else has it. */
	uint8_t *wide;
	uint32_t wide_used;
	uint8_t room[VB_LINK_BURST_FRAMES_MAX * VB_FRAMER_ROOM_BYTES];
};

/* Nothing of it is set before. fini: gives back what it holds of the NIC's and of the host's. */
void vb_framer_init(struct vb_framer *framer, const struct vb_qp *qp, uint16_t slot);
void vb_framer_fini(struct vb_framer *framer);

/* An empty burst. What was in the last one has left by the host's tx, or was not sent. */
void vb_framer_begin(struct vb_framer *framer);

/*
 * Does a frame of these octets, with its payload in so many pieces, fit behind those gathered?
 * Where not, the burst has to leave first. All frames of a burst are equally long but the last.
 */
bool vb_framer_fits(const struct vb_framer *framer, const struct vb_path *path, uint16_t slot,
		    uint32_t frame_bytes, uint32_t pieces);

/* One more, which fits; sets pkt->pad. False if the payload cannot be read: then there is none. */
bool vb_framer_add(struct vb_framer *framer, const struct vb_path *path, struct vb_pkt *pkt,
		   const struct vb_payload *payload);

/*
 * How many more frames have room that are in the midst of a message and have so many octets of
 * payload. They must be as long as those that are there: 0, if there are none.
 */
uint32_t vb_framer_room(const struct vb_framer *framer, uint32_t payload_bytes);

/*
 * n of those, at least 1 and at most what has room, whose headers are those of the first but for
 * the PSNs, and whose payload, `bytes` for each, lies in one piece. False as above.
 */
bool vb_framer_add_middles(struct vb_framer *framer, const struct vb_pkt *first,
			   const uint8_t *payload, uint32_t bytes, uint32_t n);

#endif
