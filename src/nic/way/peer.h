/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PEER_H
#define VB_NIC_PEER_H

/*
 * A peer: another slot under the same hub (or a slot of our own), reached through rings in shared
 * memory. Between one slot of ours and one of another there are VB_RING_LANES rings each way; a QP
 * sends through the lane that its own number picks, so QPs of different threads seldom meet (but
 * see vb_lane_of).
 *
 * The host maps memory and hands it in; the NIC makes, uses and retires the objects. A peer object
 * is never freed before the NIC is, only used again, and what the host mapped for it stays mapped
 * (if only to nothing): so whoever looks at a peer that has just gone looks at valid memory.
 *
 * Nobody turns to the kernel to send. Whoever sleeps says so in its export (sleep_epoch is odd),
 * and whoever published something for it then rings its bell, once for each epoch. A producer
 * looks at the epoch without a fence, and therefore may look too early: it looks once more when
 * it next polls, or before it sleeps (`dirty`), and some clock sees to it that one of these comes.
 */

#include "base/ring.h"
#include "nic/core/nic.h"
#include "nic/way/direct.h"
#include "nic/core/export.h"
#include "nic/core/later.h"
#include "wire/opcode.h"

struct vb_peer;

/* Messages are cut into pieces of this size: large, and still at home in a cache. */
#define VB_LANE_MTU_BYTES 32768u

/*
 * XRC does so only where there is a ring back as well, and says it in bits of the XRCETH that are
 * reserved on a wire: whoever takes the request need not have heard of its sender before. (DC too
 * says it, when it connects: VB_DC_MTU_LARGE.)
 */
#define VB_LANE_LARGE (1u << 24)

/*
 * Behind the headers of a datagram: the GIDs it comes from and goes to. There is no room for more,
 * but its PSN is for nobody: in that word of the BTH stand traffic class and flow label.
 */
#define VB_LANE_PATH_BYTES (2 * VB_GID_BYTES)
#define VB_LANE_FLOW_OFFSET VB_BTH_PSN_OFFSET

struct vb_lane {
	struct vb_peer *peer;

	_Alignas(VB_RING_LINE_BYTES) vb_lock tx_lock; /* inside a QP's lock */
	struct vb_ring_tx tx;
	struct vb_later_queue waiting; /* QPs for which there was no room */
	_Atomic uint32_t waiters;	       /* their number */
	_Atomic uint32_t stuck_tail;	       /* where the consumer was then */
	bool given_up;		  /* frames were lost because it took none for so long ... */
	uint32_t given_up_tail;	  /* ... and stood here: until it moves, none waits (raw_tx.c) */

	_Alignas(VB_RING_LINE_BYTES) struct vb_direct direct;

	_Alignas(VB_RING_LINE_BYTES) vb_lock rx_lock; /* the right to consume; outside QP locks */
	struct vb_ring_rx rx;
	uint64_t frames; /* taken, and not yet in the NIC's statistics */
	_Atomic uint64_t unsettled; /* what `direct` was when we waited for it in vain */
};

struct vb_peer {
	struct vb_nic *nic;
	void *run; /* belongs to the host */
	uint16_t own_slot, slot;
	_Atomic uint32_t refs; /* QPs bound to it, and one for as long as the process lives */
	_Atomic bool has_tx, has_rx;
	_Atomic bool gone;   /* the process is dead, or has left */
	_Atomic bool left;   /* ... which is no failure: see vb_peer_gone() */
	_Atomic bool broken; /* it has written nonsense into a ring: as good as gone */
	_Atomic bool dirty; /* published since the epoch was last looked at behind a fence */
	_Atomic uint32_t rung; /* the sleep epoch for which the bell was rung */
	const struct vb_export *_Atomic export; /* set with has_tx and with has_rx */
	_Atomic bool heeded; /* what it says of accesses by itself counts: set before has_rx */
	bool is_listed; /* in nic->peering.all: from its first use on, for ever */
	struct vb_peer *free_next;
	struct vb_lane lane[VB_RING_LANES];
};

/* --- for the host (run). Any thread; they take peering.lock, and lanes' locks --- */

/* The live peer for that pair of slots, made if there is none. NULL: no memory, or too many. */
struct vb_peer *vb_peer_get(struct vb_nic *nic, uint16_t own_slot, uint16_t slot);

/* The same, NULL if there is none. */
struct vb_peer *vb_peer_find(struct vb_nic *nic, uint16_t own_slot, uint16_t slot);

/* What we send goes here; export stays mapped as long as the peer object is. */
void vb_peer_tx_set(struct vb_peer *peer, struct vb_ring_area *area,
		    const struct vb_export *export);

/*
 * Nobody takes anything out of the peer's rings in between. A peer object that was another's is
 * looked into by whoever polls, at the places where that one stopped: what is mapped for it must
 * not be seen before vb_peer_rx_set().
 */
void vb_peer_rx_pause(struct vb_peer *peer);
void vb_peer_rx_resume(struct vb_peer *peer);

/* What it sends comes here, from the first frame on; export as above. Paused. */
void vb_peer_rx_set(struct vb_peer *peer, struct vb_ring_area *area,
		    const struct vb_export *export);

/*
 * What reach() called EINPROGRESS has come to this, and the next question is a new one: QPs that
 * have waited for it go on (way.c). Under no lock.
 */
void vb_peer_answered(struct vb_nic *nic, uint16_t own_slot, uint16_t slot, int rc);

/*
 * XRC and DC answer by the way that a request came, and from within a ring's batch nobody can be
 * asked for that way; and who has the uplink sends to all. wanted: so whoever lets a peer send to
 * us sees to it that we can send to that peer soon. reach: asks for it for all that can send to us,
 * from now on.
 */
bool vb_peers_back_wanted(const struct vb_nic *nic);
void vb_peers_reach_back(struct vb_nic *nic);

/* Nobody finds it any more: the slot's next owner gets a peer of its own. */
void vb_peer_unlist(struct vb_peer *peer);

/*
 * The other process is gone: what it had published is taken in; then everything that QPs still
 * have outstanding towards it fails with RETRY_EXC_ERR: at once, or, if it left as one should
 * (vb_nic_farewell) and the QP has a timeout, when the retries are used up.
 */
void vb_peer_gone(struct vb_peer *peer);

/* --- progress, for the host --- */

/*
 * Take in what has come through lanes that are in use, send on where there is room again. The
 * number of frames. Any thread; two threads share the work. With thousands of calls in vain, looks
 * at all other lanes now and then.
 */
unsigned vb_nic_lanes_poll(struct vb_nic *nic);

/* The same for all lanes there are: after a bell. */
unsigned vb_nic_lanes_scan(struct vb_nic *nic);

/*
 * A thread is about to sleep: peers are to ring our bell. False if something has come meanwhile:
 * then do not sleep, but take it in. Either way vb_nic_awake() follows, and whoever heard the
 * bell scans after that. Several threads may sleep.
 */
bool vb_nic_asleep(struct vb_nic *nic);
void vb_nic_awake(struct vb_nic *nic);

/*
 * The bell was hushed: call this next, and then look at all lanes. Whoever sleeps on may not have
 * heard it, and peers ring once for an epoch only, so this begins another.
 */
void vb_nic_heard(struct vb_nic *nic);

/* --- inside nic --- */

void vb_peers_init(struct vb_nic *nic);
void vb_peers_fini(struct vb_nic *nic);

/*
 * To be asked before QP qpn of ours is connected to one of this host: what vb_peer_known() says
 * behind it. May wait for the hub as long as await() does, some 100 us for the first time, so
 * under no lock. Whoever has died by now is not known any more, though nobody may have heard of it.
 */
void vb_peer_reach(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn);

/*
 * The peer that QP qpn of ours sends to, where the destination is an address of this host's. NULL:
 * not through shared memory, or not yet.
 */
struct vb_peer *vb_peer_known(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn);

/* As long as it is held, a peer is not used for another slot. False: that has happened. */
bool vb_peer_hold(struct vb_peer *peer);
void vb_peer_drop(struct vb_peer *peer);

/*
 * The lane by which a QP of that number sends, on either side. What aims goes by a single one: only
 * within a lane does anything stay in order, and there one QP's answer must stay behind another's
 * ACK (acks.h).
 */
static inline struct vb_lane *vb_lane_of(struct vb_peer *peer, enum vb_transport transport,
					 uint32_t qpn)
{
	return &peer->lane[vb_transport_aims(transport) ? 0 : qpn % VB_RING_LANES];
}

/* Is there nobody any more to send to? */
static inline bool vb_peer_is_lost(const struct vb_peer *peer)
{
	return atomic_load_explicit(&peer->gone, memory_order_relaxed) ||
	       atomic_load_explicit(&peer->broken, memory_order_relaxed);
}

/* The same, or has the lane's reader corrupted its tail? tx_lock held. */
static inline bool vb_lane_is_lost(struct vb_lane *lane)
{
	if (lane->tx.broken)
		atomic_store(&lane->peer->broken, true);
	return vb_peer_is_lost(lane->peer);
}

/* Ring, if the other side sleeps. */
void vb_peer_bell(struct vb_peer *peer);

/* Something was published. Needs no lock. */
static inline void vb_peer_published(struct vb_peer *peer)
{
	if (!atomic_load_explicit(&peer->dirty, memory_order_relaxed))
		atomic_store_explicit(&peer->dirty, true, memory_order_relaxed);
	if (atomic_load_explicit(&peer->export->sleep_epoch, memory_order_relaxed) & 1)
		vb_peer_bell(peer);
}

/*
 * Look once more, behind a fence, whether a peer sleeps that something was published for: for those
 * after whom nobody may come, as a QP that goes and takes its clock along.
 */
void vb_peers_look(struct vb_nic *nic);

/* The lane's consumer was told of room, or was not: ring the producer if it waits for that. */
void vb_lane_tell_room(struct vb_lane *lane);

/* Queue the QP until the lane has room; false if it has some by now. tx_lock held. */
bool vb_lane_wait_locked(struct vb_lane *lane, struct vb_qp *qp);

/* The same, tx_lock not held. */
bool vb_lane_wait(struct vb_lane *lane, struct vb_qp *qp);

/* Take the QP off the queue it is in, if any. The QP locked, or out of everybody's reach. */
void vb_lane_unwait(struct vb_qp *qp);

/*
 * What is next waits for room, and nobody answers for it: has it waited so long that it counts as
 * lost? If not, the QP is looked at again. Who gets room sets lane_stuck_ns to 0. QP locked.
 */
bool vb_lane_is_overdue(struct vb_qp *qp, uint64_t patience_ns);

/* Take frames from the lane (receive.c): their number. */
unsigned vb_lane_rx(struct vb_nic *nic, struct vb_lane *lane);

/* Bring the NIC's statistics up to date; rx_lock held. The other: of all lanes not in use. */
void vb_lane_count(struct vb_lane *lane);
void vb_peers_count(struct vb_nic *nic);

/* Take all that was there, waiting for whoever else is at it. */
void vb_lane_drain(struct vb_lane *lane);

#endif
