/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/core/quiesce.h"
#include "nic/data/qp.h"
#include "nic/service/eth/segment.h"
#include "nic/service/xrc/xrc_rx.h"
#include "nic/way/direct.h"
#include "nic/way/disorder.h"
#include "nic/way/pair.h"
#include "nic/way/receive.h"

/*
 * One in so many empty polls also looks at lanes that are not in use. A poll that found something
 * counts less, but it counts: lanes must not starve because of others' traffic.
 */
#define SCAN_EVERY 64u
#define BUSY_SHARE 16u

/* --- the table of peers --- */

static unsigned peers_count(struct vb_nic *nic)
{
	return atomic_load_explicit(&nic->peering.count, memory_order_acquire);
}

static struct vb_peer *peer_nth(struct vb_nic *nic, unsigned i)
{
	return atomic_load_explicit(&nic->peering.all[i], memory_order_relaxed);
}

static _Atomic(struct vb_peer *) *place_of(struct vb_nic *nic, uint16_t own_slot, uint16_t slot)
{
	const struct vb_slot *own = vb_nic_slot_find(nic, own_slot);

	return own && slot < VB_SLOTS ? &nic->peering.at[own->place][slot] : NULL;
}

struct vb_peer *vb_peer_find(struct vb_nic *nic, uint16_t own_slot, uint16_t slot)
{
	_Atomic(struct vb_peer *) *place = place_of(nic, own_slot, slot);

	return place ? atomic_load_explicit(place, memory_order_acquire) : NULL;
}

static struct vb_peer *peer_make(struct vb_nic *nic)
{
	struct vb_peer *peer = nic->peering.free;

	if (peer) {
		nic->peering.free = peer->free_next;
		return peer;
	}
	if (atomic_load(&nic->peering.count) == VB_PEERS_MAX)
		return NULL;
	peer = aligned_alloc(_Alignof(struct vb_peer), sizeof(*peer));
	if (!peer)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	peer->nic = nic;
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		peer->lane[i].peer = peer;
		vb_lock_init(&peer->lane[i].tx_lock, VB_RANK_LANE_TX);
		vb_lock_init(&peer->lane[i].rx_lock, VB_RANK_LANE_NEW);
		vb_lock_init(&peer->lane[i].direct.lock, VB_RANK_DIRECT);
	}
	return peer;
}

#define WATCH_MARKS ((uint32_t)(VB_PEER_WATCHED | VB_PEER_PACKETS))

static uint32_t watch_marks(struct vb_nic *nic)
{
	static const uint32_t marks[] = {
		[VB_WATCH_NOTHING] = 0,
		[VB_WATCH_RINGS] = VB_PEER_WATCHED,
		[VB_WATCH_ALL] = VB_PEER_WATCHED | VB_PEER_PACKETS,
	};

	return marks[atomic_load(&nic->watched)];
}

static void peer_reset(struct vb_peer *peer, uint16_t own_slot, uint16_t slot)
{
	peer->own_slot = own_slot;
	peer->slot = slot;
	atomic_store(&peer->marks, watch_marks(peer->nic));
	atomic_store(&peer->left, false);
	atomic_store(&peer->dirty, false);
	atomic_store(&peer->rung, 0);
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		vb_check(!atomic_load(&peer->lane[i].waiters));
		peer->lane[i].waiting = VB_LATER_EMPTY;
	}
	atomic_store(&peer->refs, 1);
}

struct vb_peer *vb_peer_get(struct vb_nic *nic, uint16_t own_slot, uint16_t slot)
{
	_Atomic(struct vb_peer *) *place = place_of(nic, own_slot, slot);
	struct vb_peer *peer = NULL;
	uint32_t count;

	if (!place)
		return NULL;
	vb_lock_take(&nic->peering.lock);
	peer = atomic_load(place);
	if (!peer)
		peer = peer_make(nic);
	if (peer && !atomic_load(place)) {
		peer_reset(peer, own_slot, slot);
		count = atomic_load(&nic->peering.count);
		if (!peer->is_listed) {
			peer->is_listed = true;
			atomic_store(&nic->peering.all[count], peer);
			atomic_store(&nic->peering.count, count + 1);
		}
		atomic_store_explicit(place, peer, memory_order_release);
	}
	vb_lock_drop(&nic->peering.lock);
	return peer;
}

void vb_peer_tx_set(struct vb_peer *peer, struct vb_ring_area *area,
		    const struct vb_export *export)
{
	atomic_store(&peer->export, export);
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		vb_lock_take(&peer->lane[i].tx_lock);
		vb_ring_tx_init(&peer->lane[i].tx, &area->lane[i]);
		vb_lock_drop(&peer->lane[i].tx_lock);
		vb_direct_reset(&peer->lane[i]);
	}
	atomic_store_explicit(&peer->has_tx, true, memory_order_release);
}

/* Other locks are taken only under the lock of a lane whose rings are in use. */
static void rank_set(struct vb_peer *peer, enum vb_lock_rank rank)
{
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		vb_lock_rank_set(&peer->lane[i].rx_lock, rank);
}

void vb_peer_rx_pause(struct vb_peer *peer)
{
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		vb_lock_take(&peer->lane[i].rx_lock);
}

void vb_peer_rx_resume(struct vb_peer *peer)
{
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		vb_lock_drop(&peer->lane[i].rx_lock);
}

void vb_peer_rx_set(struct vb_peer *peer, struct vb_ring_area *area,
		    const struct vb_export *export)
{
	const struct vb_nic_host *host = &peer->nic->host;

	atomic_store(&peer->export, export);
	peer->heeded = !host->order &&
		       (!host->direct || host->direct->may_reach(host->arg, peer));
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		vb_ring_rx_init(&peer->lane[i].rx, &area->lane[i]);
		peer->lane[i].take = host->order ? vb_disorder_take : vb_lane_take;
		atomic_store(&peer->lane[i].unsettled, 0);
	}
	rank_set(peer, VB_RANK_LANE_RX);
	/* From here on a revocation finds these rings, and waits for their producer. */
	atomic_store(&peer->has_rx, true);
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		atomic_store(&area->lane[i].heeds_direct, peer->heeded);
}

struct vb_peer *vb_peer_known(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn)
{
	struct vb_peer *peer = vb_peer_find(nic, (uint16_t)(qpn >> VB_INDEX_BITS),
					    (uint16_t)(dqpn >> VB_INDEX_BITS));

	return peer && atomic_load_explicit(&peer->has_tx, memory_order_acquire) ? peer : NULL;
}

void vb_peer_reach(struct vb_nic *nic, uint32_t qpn, uint32_t dqpn)
{
	uint16_t own_slot = (uint16_t)(qpn >> VB_INDEX_BITS);
	uint16_t slot = (uint16_t)(dqpn >> VB_INDEX_BITS);

	if (nic->host.peers && slot < VB_SLOTS &&
	    nic->host.peers->reach(nic->host.arg, own_slot, slot) == EINPROGRESS)
		nic->host.peers->await(nic->host.arg, own_slot, slot);
}

bool vb_peers_back_wanted(const struct vb_nic *nic)
{
	return atomic_load(&nic->special.xrc) != NULL || atomic_load(&nic->special.has_targets) ||
	       vb_segment_has_uplink(nic);
}

void vb_peers_reach_back(struct vb_nic *nic)
{
	for (unsigned i = 0; i < peers_count(nic); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		if (atomic_load(&peer->has_rx) && !atomic_load(&peer->has_tx) &&
		    !vb_peer_is_lost(peer))
			nic->host.peers->reach(nic->host.arg, peer->own_slot, peer->slot);
	}
}

void vb_peers_watch(struct vb_nic *nic)
{
	uint32_t marks = watch_marks(nic);

	vb_lock_take(&nic->peering.lock);
	for (unsigned i = 0; i < peers_count(nic); i++) {
		atomic_fetch_or(&peer_nth(nic, i)->marks, marks);
		atomic_fetch_and(&peer_nth(nic, i)->marks, marks | ~WATCH_MARKS);
	}
	vb_lock_drop(&nic->peering.lock);
}

/* --- bells --- */

void vb_peer_bell(struct vb_peer *peer)
{
	uint32_t epoch = atomic_load_explicit(&peer->export->sleep_epoch, memory_order_relaxed);

	if ((epoch & 1) && atomic_exchange(&peer->rung, epoch) != epoch)
		peer->nic->host.peers->bell(peer->nic->host.arg, peer);
}

/* What was published before is visible by now, so this read of the epoch is final. */
static void bell_again(struct vb_peer *peer)
{
	if (!atomic_load_explicit(&peer->dirty, memory_order_relaxed))
		return;
	atomic_exchange(&peer->dirty, false); /* a fence as well */
	vb_peer_bell(peer);
}

void vb_lane_tell_room(struct vb_lane *lane)
{
	struct vb_peer *peer = lane->peer;

	if (vb_ring_wants_room(&lane->rx))
		vb_peer_bell(peer);
}

/* --- waiting for room --- */

bool vb_lane_wait_locked(struct vb_lane *lane, struct vb_qp *qp)
{
	/*
	 * Ordered before reading the consumer's tail, as it reads wants_room after storing it: one
	 * of both sees the other.
	 */
	atomic_store(&lane->tx.shared->wants_room, 1);
	atomic_thread_fence(memory_order_seq_cst);
	if (vb_ring_tx_update(&lane->tx))
		return false;
	lane->stuck_tail = lane->tx.tail;
	if (qp->lane.waits)
		return true;
	qp->lane.waits = lane;
	vb_later_put(&lane->waiting, &qp->later.room);
	atomic_fetch_add(&lane->waiters, 1);
	atomic_fetch_add(&lane->peer->nic->lanes.waiters, 1);
	return true;
}

bool vb_lane_wait(struct vb_lane *lane, struct vb_qp *qp)
{
	bool waits;

	vb_lock_take(&lane->tx_lock);
	waits = vb_lane_wait_locked(lane, qp);
	vb_lock_drop(&lane->tx_lock);
	return waits;
}

static void waiters_count_down(struct vb_lane *lane, uint32_t by)
{
	atomic_fetch_sub(&lane->waiters, by);
	atomic_fetch_sub(&lane->peer->nic->lanes.waiters, by);
}

void vb_qp_silence(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;

	/*
	 * Timer, pacing and waiting for room can each start the others, so all are stopped at once.
	 */
	vb_lock_take(&nic->rx);
	vb_lock_take(&nic->peering.resume_lock);
	vb_timer_cancel(nic, qp);
	vb_pair_unhold(nic, qp);
	vb_lane_unwait(qp);
	vb_lock_drop(&nic->peering.resume_lock);
	vb_lock_drop(&nic->rx);
}

void vb_lane_unwait(struct vb_qp *qp)
{
	struct vb_lane *lane = qp->lane.waits;

	if (!lane)
		return;
	vb_lock_take(&lane->tx_lock);
	if (vb_later_drop(&lane->waiting, &qp->later.room)) {
		qp->lane.waits = NULL;
		waiters_count_down(lane, 1);
	}
	vb_lock_drop(&lane->tx_lock);
}

bool vb_lane_is_overdue(struct vb_qp *qp, uint64_t patience_ns)
{
	uint64_t now_ns = vb_nic_now_ns(qp->nic);

	if (!qp->lane.stuck_ns)
		qp->lane.stuck_ns = now_ns;
	if (now_ns >= qp->lane.stuck_ns + patience_ns)
		return true;
	vb_timer_arm(qp->nic, qp, qp->lane.stuck_ns + patience_ns);
	return false;
}

static bool lane_moved(struct vb_lane *lane)
{
	vb_ring_tx_update(&lane->tx);
	return lane->tx.tail != lane->stuck_tail || lane->tx.broken ||
	       (atomic_load(&lane->peer->marks) & VB_PEER_GONE);
}

/* Takes out the QP that has waited longest, if there is room now. */
static struct vb_qp *take_waiting(struct vb_lane *lane)
{
	struct vb_qp *qp = NULL;

	vb_lock_take(&lane->tx_lock);
	if (!vb_later_is_empty(&lane->waiting) && lane_moved(lane)) {
		qp = vb_container_of(vb_later_take(&lane->waiting), struct vb_qp, later.room);
		if (vb_later_is_empty(&lane->waiting))
			atomic_store(&lane->tx.shared->wants_room, 0);
		qp->lane.waits = NULL;
		waiters_count_down(lane, 1);
	}
	vb_lock_drop(&lane->tx_lock);
	return qp;
}

/* Gives a turn to each QP that waits now. */
static void lane_resume(struct vb_lane *lane)
{
	uint32_t turns = atomic_load(&lane->waiters);
	struct vb_qp *qp;

	while (turns-- && (qp = take_waiting(lane))) {
		vb_lock_take(&qp->lock);
		vb_qp_transmit_locked(qp);
		vb_lock_drop(&qp->lock);
	}
}

/* --- progress --- */

/* Sends where there is room again. The resume right keeps the QPs from being destroyed. */
static void resume(struct vb_nic *nic)
{
	if (!vb_lock_try(&nic->peering.resume_lock))
		return;
	for (unsigned i = 0; i < peers_count(nic); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		for (unsigned k = 0; k < VB_RING_LANES; k++) {
			if (atomic_load(&peer->lane[k].waiters))
				lane_resume(&peer->lane[k]);
		}
	}
	vb_lock_drop(&nic->peering.resume_lock);
}

/* From now on the lane is looked at in every poll, in place of another one. */
static void make_hot(struct vb_nic *nic, struct vb_lane *lane)
{
	unsigned count = atomic_load_explicit(&nic->lanes.count, memory_order_relaxed);

	if (!vb_lock_try(&nic->peering.lock))
		return;
	count = atomic_load(&nic->lanes.count);
	for (unsigned i = 0; i < count; i++) {
		if (atomic_load(&nic->lanes.hot[i]) == lane)
			goto out;
	}
	atomic_store(&nic->lanes.hot[nic->lanes.next++ % VB_HOT_MAX], lane);
	if (count < VB_HOT_MAX)
		atomic_store_explicit(&nic->lanes.count, count + 1, memory_order_release);
out:
	vb_lock_drop(&nic->peering.lock);
}

/* Tells the producer about room: it may wait, or want to know whether its frames were taken. */
static void tell_idle(struct vb_lane *lane)
{
	if (!vb_lock_try(&lane->rx_lock))
		return;
	if (lane->rx.shared && vb_ring_tell(&lane->rx))
		vb_lane_tell_room(lane);
	vb_lane_count(lane);
	vb_lock_drop(&lane->rx_lock);
}

void vb_peers_look(struct vb_nic *nic)
{
	for (unsigned i = 0; i < peers_count(nic); i++)
		bell_again(peer_nth(nic, i));
}

unsigned vb_nic_lanes_scan(struct vb_nic *nic)
{
	unsigned got = 0;

	for (unsigned i = 0; i < peers_count(nic); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		bell_again(peer);
		if (!atomic_load_explicit(&peer->has_rx, memory_order_acquire))
			continue;
		for (unsigned k = 0; k < VB_RING_LANES; k++) {
			struct vb_lane *lane = &peer->lane[k];

			if (vb_ring_ready(&lane->rx)) {
				make_hot(nic, lane);
				got += vb_lane_rx(nic, lane);
			} else if (vb_ring_untold(&lane->rx)) {
				tell_idle(lane);
			}
		}
	}
	if (atomic_load_explicit(&nic->lanes.waiters, memory_order_relaxed))
		resume(nic);
	return got;
}

unsigned vb_nic_lanes_poll(struct vb_nic *nic)
{
	static __thread unsigned turns __attribute__((tls_model("initial-exec")));
	unsigned count = atomic_load_explicit(&nic->lanes.count, memory_order_acquire);
	unsigned got = 0;

	for (unsigned i = 0; i < count; i++) {
		struct vb_lane *lane =
			atomic_load_explicit(&nic->lanes.hot[i], memory_order_relaxed);

		if (vb_ring_ready(&lane->rx))
			got += vb_lane_rx(nic, lane);
		bell_again(lane->peer);
	}
	if (atomic_load_explicit(&nic->lanes.waiters, memory_order_relaxed))
		resume(nic);
	turns += got ? 1 : BUSY_SHARE;
	if (turns < SCAN_EVERY * BUSY_SHARE)
		return got;
	turns = 0;
	return got + vb_nic_lanes_scan(nic);
}

/* Is there work in any lane, frames or room? */
static bool has_work(struct vb_nic *nic)
{
	for (unsigned i = 0; i < peers_count(nic); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		bell_again(peer);
		for (unsigned k = 0; k < VB_RING_LANES; k++) {
			struct vb_lane *lane = &peer->lane[k];

			if (atomic_load_explicit(&peer->has_rx, memory_order_acquire) &&
			    vb_ring_ready(&lane->rx) && !vb_ring_rx_is_broken(&lane->rx))
				return true;
			if (atomic_load(&lane->waiters) &&
			    atomic_load(&lane->tx.shared->tail) != lane->stuck_tail)
				return true;
		}
	}
	return false;
}

bool vb_nic_asleep(struct vb_nic *nic)
{
	vb_lock_take(&nic->sleep.lock);
	nic->sleep.sleepers++;
	/* Odd, and ordered before reading what peers have published. */
	atomic_fetch_or(&nic->export->sleep_epoch, 1);
	vb_lock_drop(&nic->sleep.lock);
	atomic_thread_fence(memory_order_seq_cst);
	return !has_work(nic);
}

void vb_nic_awake(struct vb_nic *nic)
{
	vb_lock_take(&nic->sleep.lock);
	/* If others still sleep, a new epoch, as the bell may have been rung for the old one. */
	atomic_fetch_add(&nic->export->sleep_epoch, --nic->sleep.sleepers ? 2 : 1);
	vb_lock_drop(&nic->sleep.lock);
}

void vb_nic_heard(struct vb_nic *nic)
{
	vb_lock_take(&nic->sleep.lock);
	if (nic->sleep.sleepers)
		atomic_fetch_add(&nic->export->sleep_epoch, 2);
	vb_lock_drop(&nic->sleep.lock);
}

static void lanes_quiesce(struct vb_nic *nic)
{
	for (unsigned i = 0; i < peers_count(nic); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		for (unsigned k = 0; k < VB_RING_LANES; k++) {
			vb_lock_take(&peer->lane[k].rx_lock);
			vb_lock_drop(&peer->lane[k].rx_lock);
		}
	}
}

void vb_peers_count(struct vb_nic *nic)
{
	for (unsigned i = 0; i < peers_count(nic); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		for (unsigned k = 0; k < VB_RING_LANES; k++) {
			vb_lane_count(&peer->lane[k]);
			vb_direct_count(&peer->lane[k]);
		}
	}
}

/* --- peers that end --- */

bool vb_peer_hold(struct vb_peer *peer)
{
	uint32_t refs = atomic_load(&peer->refs);

	while (refs && !atomic_compare_exchange_weak(&peer->refs, &refs, refs + 1))
		;
	return refs != 0;
}

void vb_peer_drop(struct vb_peer *peer)
{
	struct vb_nic *nic = peer->nic;

	if (atomic_fetch_sub(&peer->refs, 1) != 1)
		return;
	vb_direct_forget(peer);
	nic->host.peers->release(nic->host.arg, peer);
	atomic_store(&peer->has_tx, false);
	atomic_store(&peer->has_rx, false);
	rank_set(peer, VB_RANK_LANE_NEW);
	vb_lock_take(&nic->peering.lock);
	peer->free_next = nic->peering.free;
	nic->peering.free = peer;
	vb_lock_drop(&nic->peering.lock);
}

void vb_peer_unlist(struct vb_peer *peer)
{
	_Atomic(struct vb_peer *) *place = place_of(peer->nic, peer->own_slot, peer->slot);
	struct vb_peer *expected = peer;

	if (place)
		atomic_compare_exchange_strong(place, &expected, NULL);
}

static void slot_fail(struct vb_slot *slot, struct vb_peer *peer)
{
	for (unsigned i = 0; i < VB_INDICES; i++) {
		struct vb_qp *qp = atomic_load(&slot->qp[i]);

		if (!qp)
			continue;
		if (qp->service->fail.peer_gone)
			qp->service->fail.peer_gone(qp, peer);
		vb_lock_take(&qp->lock);
		if (qp->to.peer == peer) {
			vb_export_qp_locked(qp);
			vb_qp_transmit_locked(qp);
		}
		vb_lock_drop(&qp->lock);
	}
}

void vb_peer_gone(struct vb_peer *peer)
{
	struct vb_nic *nic = peer->nic;

	if (atomic_load(&peer->has_rx)) {
		for (unsigned k = 0; k < VB_RING_LANES; k++)
			vb_lane_drain(&peer->lane[k]);
	}
	if (atomic_load(&peer->has_tx))
		atomic_store(&peer->left, atomic_load(&peer->export->left));
	if (atomic_fetch_or(&peer->marks, VB_PEER_GONE) & VB_PEER_GONE)
		return;
	vb_peer_unlist(peer);
	/* Destroying a QP takes the rx right before freeing it. */
	vb_lock_take(&nic->rx);
	for (unsigned i = 0; i < VB_SLOTS_PER_NIC_MAX; i++) {
		struct vb_slot *slot = atomic_load(&nic->leased.slot[i]);

		if (slot)
			slot_fail(slot, peer);
	}
	vb_xrc_peer_gone(peer);
	vb_lock_drop(&nic->rx);
	/* Datagrams wait without holding the peer. */
	vb_lock_take(&nic->peering.resume_lock);
	for (unsigned k = 0; k < VB_RING_LANES; k++) {
		/*
		 * A thread that did not see that the peer is gone has entered the queue after this.
		 */
		vb_lock_take(&peer->lane[k].tx_lock);
		vb_lock_drop(&peer->lane[k].tx_lock);
		lane_resume(&peer->lane[k]);
	}
	vb_lock_drop(&nic->peering.resume_lock);
	vb_segment_look(nic, peer->slot);
	/* The reference for its life. */
	vb_peer_drop(peer);
}

/* --- creating and destroying the table --- */

static const struct vb_insiders insiders = {
	.quiesce = lanes_quiesce,
	.settle = vb_direct_settle,
	.revoked = vb_direct_revoked,
};

void vb_peers_init(struct vb_nic *nic)
{
	nic->insiders = &insiders;
	vb_lock_init(&nic->peering.lock, VB_RANK_PEERS);
	vb_lock_init(&nic->peering.resume_lock, VB_RANK_RESUME);
	vb_lock_init(&nic->sleep.lock, VB_RANK_SLEEPERS);
}

void vb_peers_fini(struct vb_nic *nic)
{
	for (unsigned i = 0; i < atomic_load(&nic->peering.count); i++) {
		struct vb_peer *peer = peer_nth(nic, i);

		vb_direct_forget(peer);
		if (nic->host.peers)
			nic->host.peers->release(nic->host.arg, peer);
		for (unsigned k = 0; k < VB_RING_LANES; k++) {
			vb_lock_fini(&peer->lane[k].tx_lock);
			vb_lock_fini(&peer->lane[k].rx_lock);
		}
		free(peer);
	}
	vb_lock_fini(&nic->sleep.lock);
	vb_lock_fini(&nic->peering.resume_lock);
	vb_lock_fini(&nic->peering.lock);
}
