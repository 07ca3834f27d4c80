/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_WAY_H
#define VB_NIC_WAY_H

/*
 * By which way: through a ring or by the wire. Who wants a ring to another slot asks his host,
 * which asks the hub, and that may be slow, stopped or dead. So nobody waits for it with anything
 * locked: what is to be sent stays in its queue for a moment, and goes by the wire if there is no
 * answer by then. Where the queue may change its way (XRC, DC, datagrams), rings are used when
 * there are some.
 *
 * RC and UC have one way for all of a connection, and each end decides for itself. So two may
 * decide differently. UC hears both ways. Of RC, an end that was about to use a ring goes back to
 * the wire when the other end is heard there, and says in its export that it means it: as long as
 * nothing has come through the ring, nothing that was sent through it has been taken either. An end
 * at which nothing has happened yet takes to the ring when it becomes known.
 */

#include "nic/data/demux.h"
#include "nic/data/qp.h"
#include "nic/way/peer.h"

enum vb_way {
	VB_WAY_WIRE,
	VB_WAY_RING,
	VB_WAY_ASKED, /* it is not known yet, and worth a moment */
};

/*
 * How something for dqpn, a QPN of this host, leaves QP qpn of ours; RING: *peer. Asks, unless that
 * is under way or came to nothing lately. Whoever is known is taken to live.
 */
enum vb_way vb_way_seek(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn, struct vb_peer **peer);

/*
 * The same for what is next in the QP's queue. ASKED: it stays there, and the QP is looked at again
 * when that is over. QP locked.
 */
enum vb_way vb_way_choose(struct vb_qp *qp, uint32_t dqpn, struct vb_peer **peer);

/* XRC, DC: does what is next wait for an answer, as above? Asks nothing. QP locked. */
bool vb_way_is_awaited(struct vb_qp *qp, uint32_t dqpn);

/*
 * A packet that fits QP has come by the wire, from the right address, where the QP is bound to a
 * ring; or through a lane that it is not bound to. Is it heard? RC and UC. QP locked.
 */
bool vb_way_heeds_wire(struct vb_batch *batch, struct vb_qp *qp);
bool vb_way_heeds_lane(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane);

/*
 * The QP is destroyed, or the process ends: what was posted and waits for a way leaves now, by the
 * ring if that is brought while await() waits, else by the wire. A program need not wait for a
 * completion to have sent. The first: QP not locked, any thread; the second: no lock held.
 */
void vb_way_finish(struct vb_qp *qp);
void vb_ways_finish(struct vb_nic *nic);

#endif
