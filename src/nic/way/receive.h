/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RECEIVE_H
#define VB_NIC_RECEIVE_H

/* The way in, for frames of the wire and of rings. */

#include "nic/core/nic.h"
#include "nic/data/demux.h"
#include "nic/way/peer.h"

/*
 * Takes in frames addressed to slots of this NIC and sends what follows: acknowledgements, READ
 * responses, further requests. One thread at a time (the rx right). Returns the time when it began.
 */
uint64_t vb_nic_rx(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/*
 * The same in a thread of the application that polls and so probably answers at once: an ACK may
 * wait for that until the NIC's deadline (vb_nic_deadline_ns), which moves forward for it.
 */
uint64_t vb_nic_rx_polled(struct vb_nic *nic, const struct vb_frame *frames, unsigned count);

/* Takes frames from the lane. Returns their number. */
unsigned vb_lane_rx(struct vb_nic *nic, struct vb_lane *lane);

/*
 * Reads a datagram's path, which is behind `head` octets of headers, for its GRH. False: there is
 * none.
 */
bool vb_lane_path(struct vb_frame *frame, const struct vb_ring_frame *from, uint32_t head);

/* One frame, and the end of a batch: for who has batches of its own (disorder.h). */
void vb_frames_count(struct vb_nic *nic, const struct vb_frame *frames, unsigned n);
void vb_take_frame(struct vb_batch *batch, const struct vb_frame *frame);
void vb_take_lane_frame(struct vb_batch *batch, struct vb_lane *lane,
			const struct vb_ring_frame *frame);
void vb_lane_end(struct vb_batch *batch, struct vb_lane *lane, unsigned frames,
		 uint64_t octets, bool told);

/* lane->take: takes up to a batch of frames; rx_lock held. */
unsigned vb_lane_take(struct vb_lane *lane);

/* Updates the NIC's statistics. Any thread. */
void vb_lane_count(struct vb_lane *lane);

/* Takes everything that was there, waiting for other threads that do. */
void vb_lane_drain(struct vb_lane *lane);

#endif
