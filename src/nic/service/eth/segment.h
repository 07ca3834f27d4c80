/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEGMENT_H
#define VB_NIC_SEGMENT_H

/*
 * The Ethernet segment (docs/ethernet.md): a switch that is part of every sender. A sender looks up
 * which members want a frame (segment_table.h) and puts it into their rings, its own process
 * included. One process may have an uplink, an interface of the host. Frames with unknown
 * destinations go to the uplink; frames received there go into the members' rings.
 *
 * In a ring a frame is the payload; its head has the size of a BTH, with an opcode that the wire
 * does not have.
 */

#include "nic/core/nic.h"
#include "nic/service/eth/segment_table.h"

struct vb_lane;
struct vb_ring_frame;

enum {
	VB_SEGMENT_OPCODE = 0xff, /* one that IBTA 9.2.1 leaves to manufacturers */
	VB_SEGMENT_HEAD_BYTES = 12,
	VB_SEGMENT_TARGETS_MAX = VB_SLOTS,
	VB_SEGMENT_OUT_FRAMES = 64, /* frames that wait for the uplink */
};

/* What the receiver has to do with a frame. */
enum { VB_SEGMENT_IN = 1, VB_SEGMENT_OUT = 2 };

/* A NIC's part of the segment. */
struct vb_segment_port {
	struct vb_segment_table *table;
	uint16_t slot; /* by which other members know this NIC */
	_Atomic bool has_uplink;
	vb_lock lock; /* guards the following */
	uint32_t qps; /* RAW_PACKET QPs; the first one requests the uplink */
	vb_lock out_lock; /* guards frames that wait for the uplink */
	uint32_t out_frames, out_bytes;
	struct iovec out[VB_SEGMENT_OUT_FRAMES];
	uint8_t *out_octets;
};

/* --- for the rest of nic --- */

/*
 * A RAW_PACKET QP begins, or ends. The first one makes the NIC's part of the segment. EOPNOTSUPP:
 * there is no segment; ENOMEM, or as the host's lease().
 */
int vb_segment_qp_add(struct vb_nic *nic, struct vb_segment_port **port);
void vb_segment_qp_remove(struct vb_nic *nic);

/* The NIC's rules have changed: updates its entry in the table. Calls vb_steer_filter(). */
void vb_segment_tell(struct vb_nic *nic);

/*
 * Finds the destinations of a frame: slots, with VB_SEGMENT_IN and OUT above. Returns their number.
 */
#define VB_SEGMENT_TARGET_SHIFT 14
unsigned vb_segment_plan(struct vb_segment_port *port, const uint8_t *octets, bool from_uplink,
			 uint16_t targets[VB_SEGMENT_TARGETS_MAX]);

/* Queues a frame for this NIC's own uplink; flush sends what is queued. */
void vb_segment_out(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes);
void vb_segment_flush(struct vb_nic *nic);

/*
 * Puts a frame into a lane. Returns false if there is no room. context: of the sending QP (struct
 * vb_ctx.family), 0: from outside. tx_lock held.
 */
bool vb_segment_put(struct vb_lane *lane, const uint8_t *octets, uint32_t bytes, unsigned what,
		    uint64_t context);

/*
 * Handles a frame from a lane, whose right the caller holds. Returns true if vb_segment_flush() is
 * due.
 */
bool vb_segment_came(struct vb_lane *lane, const struct vb_ring_frame *from);

/* Does this NIC have the uplink? */
bool vb_segment_has_uplink(const struct vb_nic *nic);

/* A process died: if it had the uplink, another may take it. */
void vb_segment_look(struct vb_nic *nic, uint16_t dead_slot);

void vb_segment_fini(struct vb_nic *nic);

/* --- for the host --- */

/*
 * A frame came in by the uplink; mss: it contains several TCP segments of this size, else 0. Rx
 * right held.
 */
void vb_nic_uplink_rx(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, uint32_t mss);

#endif
