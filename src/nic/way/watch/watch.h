/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WATCH_H
#define VB_NIC_WATCH_H

/*
 * Packets of both ways told to the host (vb_host_capture), while the NIC is watched. Then rings
 * take no fast path, and nobody accesses memory directly: what would need no packet becomes one. Or
 * packets of rings alone, as they are, without an ICRC.
 * A NIC that is not watched never gets here.
 *
 * A packet that came is told of when it has been handled, or when it makes the same thread send
 * one: so its fate is known, and it still comes before its answer.
 */

#include "base/record.h"
#include "nic/data/demux.h"
#include "nic/way/peer.h"
#include "wire/packet.h"

/*
 * Watches from now on, or no more. When it returns, all packets that threads send or take in later
 * are told of, or none. For the host; any thread, without locks.
 */
void vb_nic_watch(struct vb_nic *nic, enum vb_watch_what what);

/* --- inside nic, while it is watched --- */

/* All of it? Rings have their own mark (peer.h). */

static inline bool vb_nic_is_watched(const struct vb_nic *nic)
{
	return __builtin_expect(atomic_load_explicit(&nic->watched, memory_order_relaxed) ==
				VB_WATCH_ALL, false);
}

/* A burst has left. qp: locked; NULL: it is of none. */
void vb_watch_burst(struct vb_nic *nic, const struct vb_qp *qp, const struct vb_burst *burst);

/* The packet that was put into the lane last, from ns on. path: of a datagram; qp as above. */
void vb_watch_lane(struct vb_lane *lane, const struct vb_qp *qp, const struct vb_path *path,
		   const struct vb_pkt *pkt, uint32_t payload_bytes, bool again, uint64_t ns);

/* A frame of the Ethernet segment. */
void vb_watch_ethernet(struct vb_nic *nic, const uint8_t *octets, uint32_t bytes, bool sent);

/* A packet that came, from its taking in to its end. */
struct vb_watch {
	struct vb_batch *batch;
	struct vb_qp *qp; /* that it is for; NULL: none, or not known */
	bool takes_recv;
	struct vb_record record;
	uint8_t head[VB_PKT_HEADER_BYTES_MAX];
	uint8_t tail[4 + VB_ICRC_BYTES]; /* pad and ICRC */
};

/* It is about to be handled; path: of a datagram. May hold the QP that it is for. */
void vb_watch_frame(struct vb_watch *watch, struct vb_batch *batch, const struct vb_frame *frame);
void vb_watch_ring(struct vb_watch *watch, struct vb_batch *batch,
		   const struct vb_ring_frame *from);

/* It was handled. */
void vb_watch_end(struct vb_watch *watch);

#endif
