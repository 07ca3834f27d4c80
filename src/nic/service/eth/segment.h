/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SEGMENT_H
#define VB_NIC_SEGMENT_H

/*
 * The Ethernet segment (docs/ethernet.md): a switch without a place of its own. Whoever sends a
 * frame looks up who wants it (segment_table.h) and puts it into their rings; its own process is
 * one like the others. One process may have an uplink, an interface of the host's. Frames with
 * unknown destinations go to the uplink; what comes in there goes into the others' rings.
 *
 * In a ring a frame is the payload; its head is as long as a BTH, with an opcode that the wire does
 * not have.
 */

#include "nic/core/nic.h"
#include "nic/service/eth/segment_table.h"

struct vb_lane;
struct vb_ring_frame;

enum {
	VB_SEGMENT_OPCODE = 0xff, /* of those that IBTA 9.2.1 leaves to manufacturers */
	VB_SEGMENT_HEAD_BYTES = 12,
	VB_SEGMENT_TARGETS_MAX = VB_SLOTS,
	VB_SEGMENT_OUT_FRAMES = 64, /* that wait for the uplink */
};

/* What a frame is for, where it arrives. */
enum { VB_SEGMENT_IN = 1, VB_SEGMENT_OUT = 2 };

/* A NIC's part of the segment. */
struct vb_segment_port {
	struct vb_segment_table *table;
	uint16_t slot; /* by which the others know this NIC */
	_Atomic bool has_uplink;
	vb_lock lock; /* of what follows */
	uint32_t qps; /* RAW_PACKET QPs; the uplink is asked for with the first */
	vb_lock out_lock; /* frames that wait for the uplink */
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

/* The NIC's rules have changed: tell the others what it wants now. Takes vb_steer_filter(). */
void vb_segment_tell(struct vb_nic *nic);

/* For whom a frame is: slots, with VB_SEGMENT_IN and OUT above; their number. */
#define VB_SEGMENT_TARGET_SHIFT 14
unsigned vb_segment_plan(struct vb_segment_port *port, const uint8_t *octets, bool from_uplink,
			 uint16_t targets[VB_SEGMENT_TARGETS_MAX]);

/* A frame that goes out by this NIC's own uplink; flush: now, at the latest. */
void vb_segment_out(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes);
void vb_segment_flush(struct vb_nic *nic);

/*
 * Put a frame into a lane: false if there is no room. context: of the QP that sends it (struct
 * vb_ctx.family), 0: it comes from outside. tx_lock held.
 */
bool vb_segment_put(struct vb_lane *lane, const uint8_t *octets, uint32_t bytes, unsigned what,
		    uint64_t context);

/* A frame came through a lane, whose right the caller has. True: vb_segment_flush() is due. */
bool vb_segment_came(struct vb_lane *lane, const struct vb_ring_frame *from);

/* Do others' frames leave by this NIC's uplink, and come in there? */
bool vb_segment_has_uplink(const struct vb_nic *nic);

/* Somebody is dead: if that was who had the uplink, another may take it. */
void vb_segment_look(struct vb_nic *nic, uint16_t dead_slot);

void vb_segment_fini(struct vb_nic *nic);

/* --- for the host --- */

/*
 * A frame came in by the uplink; mss: it is several TCP segments of so many octets in one, else 0.
 * Rx right held.
 */
void vb_nic_uplink_rx(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, uint32_t mss);

#endif
