/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WAY_H
#define VB_NIC_WAY_H

/*
 * The choice of the way: a ring or the wire. For a ring to another slot, the host asks the hub,
 * which may be slow, stopped or dead. So no thread waits for it with a lock held: what is to be
 * sent stays in its queue for a moment, and goes by the wire if there is no answer by then.
 * Transports that can change their way (XRC, DC, datagrams) use rings as soon as they exist.
 *
 * RC and UC have one way per connection, and each end decides for itself, so the two may differ. UC
 * accepts both ways. An RC end that was about to use a ring returns to the wire when packets of the
 * other end come there, and that end's export confirms it: as long as nothing has come through the
 * ring, nothing sent through it has been taken either. An end that has sent and received nothing
 * yet changes to the ring when that becomes known.
 */

#include "nic/data/demux.h"
#include "nic/data/qp.h"
#include "nic/way/peer.h"

enum vb_way {
	VB_WAY_WIRE,
	VB_WAY_RING,
	VB_WAY_ASKED, /* unknown yet, and worth a short wait */
};

/*
 * The way from our QP qpn to dqpn, a QPN of this host; RING: *peer. Asks the hub, unless a question
 * is under way or failed recently. A known peer is assumed to live.
 */
enum vb_way vb_way_seek(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn, struct vb_peer **peer);

/*
 * The same for the next work request of the QP. ASKED: it stays there, and the QP runs again when
 * the answer comes or the time is over. QP locked.
 */
enum vb_way vb_way_choose(struct vb_qp *qp, uint32_t dqpn, struct vb_peer **peer);

/* XRC, DC: does the next work request wait for an answer, as above? Asks nothing. QP locked. */
bool vb_way_is_awaited(struct vb_qp *qp, uint32_t dqpn);

/*
 * A valid packet has come by the wire, from the right address, for a QP that is bound to a ring; or
 * through a lane that it is not bound to. Is it accepted? RC and UC. QP locked.
 */
bool vb_way_heeds_wire(struct vb_batch *batch, struct vb_qp *qp);
bool vb_way_heeds_lane(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane);

/*
 * The QP is destroyed, or the process exits: sends what was posted and waits for a way, by the ring
 * if that comes while await() waits, else by the wire, since a program need not wait for
 * completions. The first: QP not locked, any thread; the second: no lock held.
 */
void vb_way_finish(struct vb_qp *qp);
void vb_ways_finish(struct vb_nic *nic);

/*
 * The outcome of a reach() that returned EINPROGRESS; asking again is a new question. QPs that
 * waited for it continue. Under no lock.
 */
void vb_peer_answered(struct vb_nic *nic, uint16_t own_slot, uint16_t slot, int rc);

/* During the change to RTR: binds the QP to this peer, its destination. */
void vb_qp_bind_locked(struct vb_qp *qp, struct vb_peer *peer, uint32_t dqpn);
void vb_qp_unbind_locked(struct vb_qp *qp);

#endif
