/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_FRAMER_H
#define VB_NIC_FRAMER_H

/*
 * Builds frames of the wire one after another into a burst: headers, payload and ICRC in one piece.
 * The payload is copied: that costs about as much as another piece would cost in the kernel, and
 * the kernel never meets memory that was unmapped meanwhile. QP locked throughout.
 */

#include "nic/data/qp.h"
#include "nic/mem/payload.h"
#include "wire/icrc.h"

struct vb_framer {
	unsigned seat; /* index among the NIC's framers */
	const struct vb_qp *qp;
	uint16_t slot; /* that its frames come from */
	struct vb_burst burst;
	uint32_t bytes; /* of all frames, in room */
	unsigned frames_max;
	/*
	 * Computes ICRCs over the copy instead of the source. The application may keep writing to
	 * the source, and a change between summing and copying makes the receiver drop the frame.
	 * It is then sent again, which must not repeat for ever. Set by the caller.
	 */
	bool certain;
	struct vb_icrc_memo memo;
	struct iovec piece;
	uint8_t room[VB_LINK_BURST_BYTES_MAX];
};

/* 0 or ENOMEM. */
int vb_framers_init(struct vb_nic *nic);
void vb_framers_fini(struct vb_nic *nic);

/*
 * Takes one of the NIC's framers, for frames from this QP and slot: a framer is too large for the
 * stack of an application's thread. A thread has at most one; with more threads than VB_FRAMERS at
 * once, one waits for another. drop: returns it, with what it holds of the host's.
 */
struct vb_framer *vb_framer_take(const struct vb_qp *qp, uint16_t slot);
void vb_framer_drop(struct vb_framer *framer);

/* Begins an empty burst. The last one has left by the host's tx, or was not sent. */
void vb_framer_begin(struct vb_framer *framer);

/*
 * Does a frame of this size fit behind the others? If not, the burst has to leave first. All frames
 * of a burst have the same size but the last.
 */
bool vb_framer_fits(const struct vb_framer *framer, const struct vb_path *path, uint16_t slot,
		    uint32_t frame_bytes);

/* The burst, for the host's tx, which ends its claim. Valid until the next begin. */
const struct vb_burst *vb_framer_burst(struct vb_framer *framer);

/*
 * Adds a frame, which fits; sets pkt->pad. Returns false, with nothing added, if the payload cannot
 * be read.
 */
bool vb_framer_add(struct vb_framer *framer, const struct vb_path *path, struct vb_pkt *pkt,
		   const struct vb_payload *payload);

/*
 * How many further frames in the middle of a message fit, with a payload of this size. They must
 * have the size of those that are there: 0 if there are none.
 */
uint32_t vb_framer_room(const struct vb_framer *framer, uint32_t payload_bytes);

/*
 * Adds n of those, at least 1 and at most as many as fit. Their headers are those of the first
 * except for the PSNs; their payload, `bytes` for each, is in one piece. False as above.
 */
bool vb_framer_add_middles(struct vb_framer *framer, const struct vb_pkt *first,
			   const uint8_t *payload, uint32_t bytes, uint32_t n);

#endif
