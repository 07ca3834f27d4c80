/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PEER_H
#define VB_NIC_PEER_H

/*
 * A peer: another slot under the same hub (or a slot of our own), reached through rings in shared
 * memory. Between one of our slots and one of another there are VB_RING_LANES rings each way. A QP
 * uses the lane that its own number selects, so QPs of different threads seldom collide (but see
 * vb_lane_of).
 *
 * The host maps memory and passes it in; the NIC makes, uses and retires the objects. A peer object
 * is never freed before the NIC, only reused, and its mappings stay valid (if only as zeros): so a
 * thread that looks at a peer that has just gone reads valid memory.
 *
 * Sending makes no system call. A process that sleeps says so in its export (sleep_epoch is odd),
 * and a peer that published something for it then rings its bell, once for each epoch. A producer
 * reads the epoch without a fence, and so may read it too early: it reads it again when it next
 * polls, or before it sleeps (`dirty`), and a timer makes sure that one of these happens.
 */

#include "base/ring.h"
#include "nic/core/nic.h"
#include "nic/way/direct.h"
#include "nic/core/export.h"
#include "nic/core/later.h"
#include "nic/core/stats.h"
#include "wire/opcode.h"

struct vb_peer;

/* Messages are cut into pieces of this size: large, and still fitting in a cache. */
#define VB_LANE_MTU_BYTES 32768u

/*
 * XRC does so only if there is also a ring back, and says so in bits of the XRCETH that are
 * reserved on a wire, since the receiver may not know the sender yet. (DC says so when it connects:
 * VB_DC_MTU_LARGE.)
 */
#define VB_LANE_LARGE (1u << 24)

/*
 * Behind a datagram's headers: its source and destination GIDs. There is no room for more, but the
 * PSN is not used: that word of the BTH has traffic class and flow label.
 */
#define VB_LANE_PATH_BYTES (2 * VB_GID_BYTES)
#define VB_LANE_FLOW_OFFSET VB_BTH_PSN_OFFSET

enum vb_peer_mark {
	VB_PEER_GONE = 1 << 0,	  /* the process is dead, or has left */
	VB_PEER_BROKEN = 1 << 1,  /* it wrote impossible values into a ring: treated as gone */
	VB_PEER_WATCHED = 1 << 2, /* our host sees each packet (watch.h) */
	VB_PEER_PACKETS = 1 << 3, /* ... and each operation is to be one: none is direct */
};

struct vb_lane {
	struct vb_peer *peer;

	_Alignas(VB_RING_LINE_BYTES) vb_lock tx_lock; /* taken inside a QP's lock */
	struct vb_ring_tx tx;
	struct vb_later_queue waiting; /* QPs that wait for room */
	_Atomic uint32_t waiters;	       /* their number */
	_Atomic uint32_t stuck_tail;	       /* the consumer's position then */
	bool given_up;		  /* frames were lost because it took none for too long ... */
	uint32_t given_up_tail;	  /* ... at this position: until it moves, none waits (raw_tx.c) */

	_Alignas(VB_RING_LINE_BYTES) struct vb_direct direct;

	/* the right to consume; taken outside QPs' locks */
	_Alignas(VB_RING_LINE_BYTES) vb_lock rx_lock;
	struct vb_ring_rx rx;
	unsigned (*take)(struct vb_lane *lane); /* how frames are taken (receive.h, disorder.h) */
	struct vb_held_sum frames, octets; /* taken; the NIC's statistics do not have them */
	_Atomic uint64_t unsettled; /* the value of `direct` for which waiting failed */
};

struct vb_peer {
	struct vb_nic *nic;
	void *run; /* owned by the host */
	uint16_t own_slot, slot;
	_Atomic uint32_t refs; /* QPs bound to it, and one while the process lives */
	_Atomic bool has_tx, has_rx;
	_Atomic uint32_t marks; /* enum vb_peer_mark; 0: as usual, so fast paths may be taken */
	_Atomic bool left;	/* it is gone by itself: see vb_peer_gone() */
	_Atomic bool dirty; /* published since the epoch was last read behind a fence */
	_Atomic uint32_t rung; /* the sleep epoch for which the bell was rung */
	const struct vb_export *_Atomic export; /* set with has_tx and with has_rx */
	_Atomic bool heeded; /* its marks of direct accesses count: set before has_rx */
	bool is_listed; /* in nic->peering.all: from its first use on, for ever */
	struct vb_peer *free_next;
	struct vb_lane lane[VB_RING_LANES];
};

/* --- for the host (run). Any thread; they take peering.lock, and lanes' locks --- */

/* The live peer for this pair of slots, made if necessary. NULL: no memory, or too many. */
struct vb_peer *vb_peer_get(struct vb_nic *nic, uint16_t own_slot, uint16_t slot);

/* The same; NULL if there is none. */
struct vb_peer *vb_peer_find(struct vb_nic *nic, uint16_t own_slot, uint16_t slot);

/* Sets the rings that we send by; export stays mapped as long as the peer object. */
void vb_peer_tx_set(struct vb_peer *peer, struct vb_ring_area *area,
		    const struct vb_export *export);

/*
 * While paused, nothing is taken from the peer's rings. Needed because pollers look into a reused
 * peer object at the old positions: new mappings must not be seen before vb_peer_rx_set().
 */
void vb_peer_rx_pause(struct vb_peer *peer);
void vb_peer_rx_resume(struct vb_peer *peer);

/* Sets the rings that it sends by, from the first frame on; export as above. Paused. */
void vb_peer_rx_set(struct vb_peer *peer, struct vb_ring_area *area,
		    const struct vb_export *export);

/*
 * XRC and DC answer by the ring of the request, and within a ring's batch a ring cannot be
 * requested; and a NIC with the uplink sends to all. wanted: is a ring back needed, so that a peer
 * that may send to us can soon be sent to? reach: requests rings to all that can send to us from
 * now on.
 */
bool vb_peers_back_wanted(const struct vb_nic *nic);
void vb_peers_reach_back(struct vb_nic *nic);

/* Removes it from the table: the slot's next owner gets a peer of its own. */
void vb_peer_unlist(struct vb_peer *peer);

/*
 * The other process is gone: takes in what it had published; then everything that QPs have
 * outstanding towards it fails with RETRY_EXC_ERR: at once or, if it left by itself
 * (vb_nic_farewell) and the QP has a timeout, when the retries are used up.
 */
void vb_peer_gone(struct vb_peer *peer);

/* --- progress, for the host --- */

/*
 * Takes in what has arrived through lanes in use, and sends where there is room again. Returns the
 * number of frames. Any thread; two threads share the work. One in so many calls also looks at all
 * other lanes.
 */
unsigned vb_nic_lanes_poll(struct vb_nic *nic);

/* The same for all lanes: after a bell. */
unsigned vb_nic_lanes_scan(struct vb_nic *nic);

/*
 * A thread is about to sleep: peers have to ring our bell. Returns false if something has come
 * meanwhile: then do not sleep, but take it in. In either case vb_nic_awake() follows; a thread
 * that heard the bell scans after that. Several threads may sleep.
 */
bool vb_nic_asleep(struct vb_nic *nic);
void vb_nic_awake(struct vb_nic *nic);

/*
 * Call this after the bell was hushed, and then look at all lanes. Other sleeping threads may not
 * have heard it, and peers ring once per epoch, so this begins another.
 */
void vb_nic_heard(struct vb_nic *nic);

/* --- inside nic --- */

void vb_peers_init(struct vb_nic *nic);
void vb_peers_fini(struct vb_nic *nic);

/* Marks all peers as nic->watched says. */
void vb_peers_watch(struct vb_nic *nic);

/*
 * Called before our QP qpn is connected to one of this host: vb_peer_known() then has the result.
 * May wait for the hub as long as await() does, some 100 us the first time, so under no lock. A
 * peer that has died is no longer known, even if that was not reported yet.
 */
void vb_peer_reach(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn);

/*
 * The peer for our QP qpn, if the destination is an address of this host. NULL: not through shared
 * memory, or not yet.
 */
struct vb_peer *vb_peer_known(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn);

/* While held, a peer object is not reused for another slot. Returns false if it was. */
bool vb_peer_hold(struct vb_peer *peer);
void vb_peer_drop(struct vb_peer *peer);

/*
 * The lane that a QP of that number sends by, on either side. XRC and DC all use one lane, since
 * order is kept only within a lane, and one QP's answer must stay behind another's ACK (acks.h).
 */
static inline struct vb_lane *vb_lane_of(struct vb_peer *peer, enum vb_transport transport,
					 uint32_t qpn)
{
	return &peer->lane[vb_transport_aims(transport) ? 0 : qpn % VB_RING_LANES];
}

static inline uint32_t vb_peer_marks(const struct vb_peer *peer)
{
	return atomic_load_explicit(&peer->marks, memory_order_relaxed);
}

/* Is the peer gone or broken? */
static inline bool vb_peer_is_lost(const struct vb_peer *peer)
{
	return vb_peer_marks(peer) & (VB_PEER_GONE | VB_PEER_BROKEN);
}

/* The same, or has the lane's reader corrupted its tail? tx_lock held. */
static inline bool vb_lane_is_lost(struct vb_lane *lane)
{
	if (lane->tx.broken)
		atomic_fetch_or(&lane->peer->marks, VB_PEER_BROKEN);
	return vb_peer_is_lost(lane->peer);
}

/* Rings if the other side sleeps. */
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
 * Checks again, behind a fence, whether peers sleep that something was published for: for callers
 * after which no other check may come, such as a QP being destroyed with its timer.
 */
void vb_peers_look(struct vb_nic *nic);

/* Room was or was not reported to the lane's producer: rings it if it waits for room. */
void vb_lane_tell_room(struct vb_lane *lane);

/* Queues the QP until the lane has room. Returns false if it has some by now. tx_lock held. */
bool vb_lane_wait_locked(struct vb_lane *lane, struct vb_qp *qp);

/* The same with tx_lock not held. */
bool vb_lane_wait(struct vb_lane *lane, struct vb_qp *qp);

/* Removes the QP from the queue that it is in, if any. The QP is locked, or unreachable. */
void vb_lane_unwait(struct vb_qp *qp);

/*
 * The next packet, which no peer acknowledges, waits for room: so long that it counts as lost? If
 * not, the QP's turn comes again. With room, the caller sets lane_stuck_ns to 0. QP locked.
 */
bool vb_lane_is_overdue(struct vb_qp *qp, uint64_t patience_ns);

/* The same for all lanes not in use. */
void vb_peers_count(struct vb_nic *nic);

/* Removes it from timers, pacing and waits for room; packets must not find it either. */
void vb_qp_silence(struct vb_qp *qp);

#endif
