/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Rings with a script in between. The NIC has private rings in place of those that it shares with
 * a peer, and packets are moved from one to the other. A private ring allows no direct operations,
 * so all goes as packets.
 */

#include "run/faults/rings.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "nic/way/peer.h"
#include "run/faults/flow.h"

enum { SETTLE_ROUNDS = 1000, LANE_ITEMS_MAX = VB_RING_SLOTS };

/* Of one lane, in one direction: out of one ring, into the other. */
struct lane {
	struct vb_fault_flow flow;
	struct vb_ring_rx from;
	struct vb_ring_tx to;
	struct vb_via *via;
};

/* All lanes to a peer, or from it. Never changes but for `parted`, and is never removed. */
struct vb_via {
	struct vb_via *next;
	struct vb_peer *peer;
	struct vb_ring_area *own; /* private */
	bool sent;
	vb_lock lock; /* held while the shared ring is used; parted: it may not be any more */
	_Atomic bool parted;
	struct lane lane[VB_RING_LANES];
};

/* --- moving --- */

static bool ring_put(struct vb_ring_tx *to, const struct vb_fault_item *item)
{
	uint32_t payload = item->bytes - item->head_bytes;
	uint8_t *at = vb_ring_reserve(to, item->head_bytes, payload);

	if (!at)
		return false;
	memcpy(to->octets, item->octets, item->head_bytes);
	memcpy(at, item->octets + item->head_bytes, payload);
	vb_ring_publish(to, item->head_bytes, payload);
	return true;
}

static bool put(struct vb_fault_flow *flow, struct vb_fault_item *item)
{
	struct lane *lane = vb_container_of(flow, struct lane, flow);
	struct vb_via *via = lane->via;
	bool gone, done;

	vb_lock_take(&via->lock);
	gone = via->parted || lane->to.broken;
	done = gone || ring_put(&lane->to, item);
	vb_lock_drop(&via->lock);
	if (done)
		free(item);
	if (done && !gone && via->sent)
		vb_peer_published(via->peer);
	return done;
}

/* A copy of the next packet; NULL: there is none, or no memory. */
static struct vb_fault_item *take(struct lane *lane)
{
	struct vb_fault_item *item = NULL;
	struct vb_via *via = lane->via;
	struct vb_ring_frame frame;

	vb_lock_take(&via->lock);
	if ((via->sent || !via->parted) && vb_ring_take(&lane->from, &frame)) {
		item = vb_fault_item_make(&lane->flow, frame.head_bytes + frame.payload_bytes);
		if (item) {
			item->head_bytes = frame.head_bytes;
			memcpy(item->octets, frame.octets, frame.head_bytes);
			memcpy(item->octets + frame.head_bytes, frame.payload,
			       frame.payload_bytes);
		}
		vb_ring_release(&lane->from);
	}
	vb_lock_drop(&via->lock);
	return item;
}

/* Tells the producer what was taken: the NIC finds that out itself, a peer may have to be woken. */
static void tell(struct lane *lane)
{
	struct vb_via *via = lane->via;
	bool wants_room;

	vb_lock_take(&via->lock);
	wants_room = (via->sent || !via->parted) && vb_ring_tell(&lane->from) &&
		     vb_ring_wants_room(&lane->from) && !via->sent;
	vb_lock_drop(&via->lock);
	if (wants_room)
		vb_peer_bell(via->peer);
}

/* Has the NIC taken in all that it was given? */
static bool is_settled(struct lane *lane)
{
	return lane->flow.sent || (!lane->flow.ready.first && vb_ring_tx_is_empty(&lane->to));
}

/* Has the NIC take in what it was given, so that what follows is in its turn. */
static void settle(struct lane *lane)
{
	for (unsigned i = 0; i < SETTLE_ROUNDS; i++) {
		vb_fault_flow_flush(&lane->flow);
		if (is_settled(lane))
			return;
		if (!vb_nic_lanes_scan(lane->via->peer->nic))
			sched_yield();
	}
}

static void lane_run(struct lane *lane)
{
	struct vb_fault_item *item;

	vb_fault_flow_flush(&lane->flow);
	for (unsigned i = 0; i < LANE_ITEMS_MAX && !lane->flow.ready.first; i++) {
		item = take(lane);
		if (!item)
			break;
		if (!vb_fault_judge(item, is_settled(lane))) {
			settle(lane);
			vb_fault_judge(item, true);
		}
	}
	tell(lane);
}

void vb_vias_run(struct vb_faults *faults)
{
	struct vb_via *via = atomic_load(&faults->vias);

	for (; via; via = via->next) {
		for (unsigned i = 0; i < VB_RING_LANES && !via->parted; i++)
			lane_run(&via->lane[i]);
	}
}

/* --- making --- */

/* Answers of that QP to ours come by the lane that its number selects. */
static struct vb_fault_flow *back(struct vb_fault_flow *flow, uint32_t dqpn)
{
	const struct vb_via *sent = vb_container_of(flow, struct lane, flow)->via;
	struct vb_via *via = atomic_load(&flow->faults->vias);

	for (; via; via = via->next) {
		if (!via->sent && !via->parted && via->peer == sent->peer)
			return &via->lane[dqpn % VB_RING_LANES].flow;
	}
	return NULL;
}

static void lane_init(struct vb_faults *faults, struct vb_via *via, unsigned i,
		      struct vb_ring_area *shared)
{
	struct lane *lane = &via->lane[i];

	lane->via = via;
	lane->flow = (struct vb_fault_flow){
		.faults = faults,
		.sent = via->sent,
		.own_slot = via->peer->own_slot,
		.put = put,
		.back = back,
	};
	vb_fault_queue_init(&lane->flow.ready);
	vb_ring_rx_init(&lane->from, via->sent ? &via->own->lane[i] : &shared->lane[i]);
	vb_ring_tx_init(&lane->to, via->sent ? &shared->lane[i] : &via->own->lane[i]);
}

static void *via_make(struct vb_faults *faults, struct vb_peer *peer, void *area, bool sent)
{
	struct vb_via *via;

	if (!faults)
		return area;
	via = calloc(1, sizeof(*via));
	if (!via)
		return area;
	via->own = aligned_alloc(_Alignof(struct vb_ring_area), sizeof(*via->own));
	if (!via->own) {
		free(via);
		return area;
	}
	memset(via->own, 0, sizeof(*via->own));
	via->peer = peer;
	via->sent = sent;
	vb_lock_init(&via->lock, VB_RANK_FAULTS);
	for (unsigned i = 0; i < VB_RING_LANES; i++)
		lane_init(faults, via, i, area);
	via->next = atomic_load(&faults->vias);
	while (!atomic_compare_exchange_weak(&faults->vias, &via->next, via))
		continue;
	faults->host.kick(faults->host.arg);
	return via->own;
}

void *vb_faults_tx(struct vb_faults *faults, struct vb_peer *peer, void *area)
{
	return via_make(faults, peer, area, true);
}

void *vb_faults_rx(struct vb_faults *faults, struct vb_peer *peer, void *area)
{
	return via_make(faults, peer, area, false);
}

void vb_faults_part(struct vb_faults *faults, const struct vb_peer *peer, bool sent)
{
	struct vb_via *via = faults ? atomic_load(&faults->vias) : NULL;

	for (; via; via = via->next) {
		if (via->peer != peer || via->sent != sent)
			continue;
		vb_lock_take(&via->lock);
		via->parted = true;
		vb_lock_drop(&via->lock);
	}
}

void vb_vias_free(struct vb_faults *faults)
{
	struct vb_via *via = atomic_load(&faults->vias);

	while (via) {
		struct vb_via *next = via->next;

		for (unsigned i = 0; i < VB_RING_LANES; i++)
			vb_fault_queue_free(&via->lane[i].flow.ready);
		free(via->own);
		free(via);
		via = next;
	}
}
