/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FRAMER_H
#define VB_NIC_FRAMER_H

/*
 * Frames of the wire, made one behind the other into a burst: headers, payload and ICRC in one
 * piece. The payload is copied: that costs about what the kernel asks for a piece more, and the
 * kernel never meets memory that the application has unmapped meanwhile. QP locked throughout.
 */

#include "nic/data/qp.h"
#include "nic/mem/payload.h"
#include "wire/icrc.h"

struct vb_framer {
	unsigned seat; /* which of the NIC's it is */
	const struct vb_qp *qp;
	uint16_t slot; /* that its frames come from */
	struct vb_burst burst;
	uint32_t bytes; /* of all frames, in the room */
	unsigned frames_max;
	/*
	 * Sum up what was copied, not what it is copied from. The application may write there all
	 * the time, and what changes between the sum and the copy is dropped by whoever gets it. It
	 * is sent again then, and that must not go on for ever. For the caller to set.
	 */
	bool certain;
	struct iovec piece;
	uint8_t room[VB_LINK_BURST_BYTES_MAX];
};

/* 0 or ENOMEM. */
int vb_framers_init(struct vb_nic *nic);
void vb_framers_fini(struct vb_nic *nic);

/*
 * One of the NIC's, for frames that come from this QP and slot: a framer is too large for the stack
 * of a thread that is not ours. Whoever sends has at most one; with more threads than VB_FRAMERS
 * at once, one waits for another. drop: gives it back, and what it holds of the host's.
 */
struct vb_framer *vb_framer_take(const struct vb_qp *qp, uint16_t slot);
void vb_framer_drop(struct vb_framer *framer);

/* An empty burst. What was in the last one has left by the host's tx, or was not sent. */
void vb_framer_begin(struct vb_framer *framer);

/*
 * Does a frame of these octets fit behind those that are there? Where not, the burst has to leave
 * first. All frames of a burst are equally long but the last.
 */
bool vb_framer_fits(const struct vb_framer *framer, const struct vb_path *path, uint16_t slot,
		    uint32_t frame_bytes);

/* What was built, for the host's tx, which ends its claim. Valid until the next begin. */
const struct vb_burst *vb_framer_burst(struct vb_framer *framer);

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
