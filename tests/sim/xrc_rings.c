/* SPDX-License-Identifier: BSD-2-Clause */

/* Rings between processes of one host, in the world of sim_xrc or sim_dc (meson.build). */
#include <errno.h>
#include <stdlib.h>

#include "nic/way/peer.h"
#include "idle_host.h"
#include SIM_WORLD

/* From one node to another, and what the former has of the latter. */
static struct ring {
	bool refused;
	struct vb_ring_area *area;
	struct vb_peer *peer;
} rings[FABRIC_NICS_MAX][FABRIC_NICS_MAX];

static uint64_t gone_ns[FABRIC_NICS_MAX];
static bool told[FABRIC_NICS_MAX][FABRIC_NICS_MAX];

static struct node *owner_of(uint16_t slot)
{
	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		if (sim.node[i].slot == slot && !sim.node[i].dead)
			return &sim.node[i];
	}
	return NULL;
}

static struct vb_peer *peer_of(struct node *node, struct node *other)
{
	struct ring *ring = &rings[node->index][other->index];

	ring->peer = vb_peer_get(node->nic, node->slot, other->slot);
	require(ring->peer);
	return ring->peer;
}

static int reach(struct node *from, struct node *to)
{
	struct ring *ring = &rings[from->index][to->index];
	struct vb_peer *peer;

	if (ring->refused)
		return EOPNOTSUPP;
	if (ring->area)
		return 0;
	ring->area = aligned_alloc(4096, sizeof(*ring->area));
	vb_check(ring->area);
	/* Zeros where they count. */
	for (unsigned k = 0; k < VB_RING_LANES; k++)
		memset(&ring->area->lane[k], 0, offsetof(struct vb_ring_shared, data));
	vb_peer_tx_set(peer_of(from, to), ring->area, to->nic->export);
	if (vb_peers_back_wanted(to->nic))
		reach(to, from);
	peer = peer_of(to, from);
	vb_peer_rx_pause(peer);
	vb_peer_rx_set(peer, ring->area, from->nic->export);
	vb_peer_rx_resume(peer);
	return 0;
}

static int rings_reach(void *arg, uint16_t own_slot, uint16_t slot)
{
	struct node *to = owner_of(slot);

	return sim.one_host && to ? reach(arg, to) : ENOENT;
}

/* All look at their rings by themselves, sooner or later. */
static void rings_ignore(void *arg, struct vb_peer *peer)
{
}

const struct vb_host_peers rings_host = {
	.reach = rings_reach, .await = idle_await, .bell = rings_ignore, .release = rings_ignore,
};

/* Each direction by itself may not be to be had. */
void rings_begin(void)
{
	memset(rings, 0, sizeof(rings));
	memset(gone_ns, 0, sizeof(gone_ns));
	memset(told, 0, sizeof(told));
	for (unsigned i = 0; i < FABRIC_NICS_MAX; i++) {
		for (unsigned k = 0; k < FABRIC_NICS_MAX; k++)
			rings[i][k].refused = chance(10);
	}
}

void rings_end(void)
{
	for (unsigned i = 0; i < FABRIC_NICS_MAX; i++) {
		for (unsigned k = 0; k < FABRIC_NICS_MAX; k++)
			free(rings[i][k].area);
	}
}

/* Who has died is missed sooner or later. */
static void hear_of_the_dead(struct node *node)
{
	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		struct vb_peer *peer = rings[node->index][i].peer;

		if (!sim.node[i].dead || told[node->index][i])
			continue;
		if (!gone_ns[i])
			gone_ns[i] = sim.fabric.now_ns + below(chance(50) ? 10000 : 30000000);
		if (sim.fabric.now_ns < gone_ns[i])
			continue;
		told[node->index][i] = true;
		if (peer)
			vb_peer_gone(peer);
	}
}

void rings_turn(struct node *node)
{
	if (!sim.one_host)
		return;
	hear_of_the_dead(node);
	if (sim.calm || chance(70))
		sim.ring_frames += vb_nic_lanes_scan(node->nic);
}
