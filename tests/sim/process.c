/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/check.h"
#include "idle_host.h"
#include "nic/control/nic.h"
#include "nic/core/timer.h"
#include "nic/data/qp_error.h"
#include "nic/way/peer.h"
#include "sim.h"

#define NEVER UINT64_MAX

/* Kept from run to run: what is touched of it is little, and cleared where it must be. */
static struct vb_ring_area *areas[NODES_MAX][NODES_MAX];
static struct vb_export *exports[NODES_MAX];
static struct vb_export *shadows[NODES_MAX][NODES_MAX]; /* of a link that is stale */

static void *zeros(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	vb_check(at != MAP_FAILED);
	return at;
}

/*
 * Polls count for the thread that makes them, from run to run: a run must not depend on those
 * before it. What says where the count stands is that a poll of all lanes clears a peer's `dirty`.
 */
static void polls_restart(void)
{
	const struct vb_nic_host host = idle_host(NULL);
	static struct vb_slot slot = { .slot = 1 };
	static struct vb_peer *peer;
	static struct vb_nic *nic;

	if (!nic) {
		vb_check(!vb_nic_create(&nic, &host, 1));
		atomic_store(&nic->leased.slot[0], &slot);
		peer = vb_peer_get(nic, 1, 2);
		vb_check(peer);
		peer->export = zeros(sizeof(struct vb_export));
	}
	atomic_store(&peer->dirty, true);
	for (unsigned i = 0; atomic_load(&peer->dirty); i++) {
		vb_check(i < 100000);
		vb_nic_lanes_poll(nic);
	}
}

static struct link *link_of(const struct node *from, const struct node *to)
{
	return &from->sim->link[from->index][to->index];
}

void process_begin(struct sim *sim)
{
	static const uint32_t lost[] = { 0, 0, 100000, 500000, 1000000 };

	polls_restart();
	for (unsigned i = 0; i < NODES_MAX * NODES_MAX; i++) {
		struct vb_export *shadow = shadows[i / NODES_MAX][i % NODES_MAX];

		if (shadow)
			atomic_store(&shadow->sleep_epoch, 0);
	}
	sim->one_host = sim_chance(sim, 75);
	sim->bells_lost = lost[sim_below(sim, VB_ARRAY_LEN(lost))];
}

void process_links(struct sim *sim)
{
	unsigned percent = sim_chance(sim, 50) ? 100 : 60;

	for (unsigned i = 0; i < NODES_MAX; i++) {
		for (unsigned k = i; k < NODES_MAX; k++) {
			struct link *a = &sim->link[i][k], *b = &sim->link[k][i];

			a->open = b->open = (sim->one_host || i == k) && sim_chance(sim, percent);
			a->stale = sim_chance(sim, 50);
			b->stale = sim_chance(sim, 50);
			a->vm = sim_chance(sim, 50);
			b->vm = sim_chance(sim, 50);
		}
	}
	for (unsigned i = 0; i < NODES_MAX; i++) {
		sim->node[i].threaded = sim_chance(sim, 50);
		sim->node[i].rude = sim_chance(sim, 30);
		sim->node[i].thread_ns = sim_below(sim, 100000);
	}
}

void process_by_wire(struct sim *sim, const struct node *a, const struct node *b)
{
	sim->link[a->index][b->index].open = sim->link[b->index][a->index].open = false;
}

void *process_export(struct node *node)
{
	struct vb_export **export = &exports[node->index];

	if (!*export)
		*export = zeros(sizeof(**export));
	vb_check(madvise(*export, sizeof(**export), MADV_DONTNEED) == 0);
	return *export;
}

/* --- rings --- */

static uint64_t now_ns(const struct node *node)
{
	return node->sim->fabric.now_ns;
}

static void wake_at(struct node *node, uint64_t at_ns)
{
	node->thread_ns = vb_min_u64(node->thread_ns, at_ns);
}

static struct node *owner_of(struct sim *sim, uint16_t slot)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct node *node = &sim->node[i];

		if (node->slot == slot && !node->dead)
			return node;
	}
	return NULL;
}

/* What node sees of the other's export. */
static const struct vb_export *export_of(const struct node *node, const struct node *other)
{
	struct vb_export **shadow = &shadows[node->index][other->index];

	if (!link_of(node, other)->stale)
		return exports[other->index];
	if (!*shadow)
		*shadow = zeros(sizeof(**shadow));
	return *shadow;
}

/* A fence: what others have said of their sleep is seen now. */
static void look_around(const struct node *node)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		const struct node *other = &node->sim->node[i];

		if (shadows[node->index][i] && exports[i] && other->nic)
			atomic_store(&shadows[node->index][i]->sleep_epoch,
				     atomic_load(&exports[i]->sleep_epoch));
	}
}

/* One that stands for a process that had the slot before makes room. */
static struct vb_peer *peer_of(struct node *node, struct node *other)
{
	struct vb_peer *peer = vb_peer_find(node->nic, node->slot, other->slot);

	if (peer && peer->run && peer->run != other)
		vb_peer_unlist(peer);
	peer = vb_peer_get(node->nic, node->slot, other->slot);
	sim_require(node->sim, peer);
	peer->run = other;
	link_of(node, other)->peer = peer;
	return peer;
}

/* Zeros where they count, or the marks of frames that went through before. */
static void area_begin(struct vb_ring_area *area, const struct link *link)
{
	for (unsigned k = 0; k < VB_RING_LANES; k++) {
		struct vb_ring_shared *lane = &area->lane[k];

		memset(lane, 0, offsetof(struct vb_ring_shared, data));
		atomic_store(&lane->tail, link->start);
		for (uint32_t i = 1; link->start && i <= VB_RING_SLOTS; i++)
			atomic_store(&lane->slot[vb_ring_slot_index(link->start - i)].mark,
				     link->start - i + 1);
	}
}

/* The thread hears that another node sends here. */
static void ring_comes(struct node *node, struct node *from)
{
	const struct link *link = link_of(from, node);
	struct vb_peer *peer = peer_of(node, from);

	vb_peer_rx_pause(peer);
	vb_peer_rx_set(peer, areas[from->index][node->index], export_of(node, from));
	for (unsigned k = 0; k < VB_RING_LANES; k++) {
		struct vb_ring_rx *rx = &peer->lane[k].rx;

		atomic_store(&rx->next, link->start);
		atomic_store(&rx->told, link->start);
		rx->data_pos = rx->data_told = rx->next_data_pos = link->data_start;
	}
	vb_peer_rx_resume(peer);
	node->rings_due &= ~(1u << from->index);
}

int process_reach(struct node *from, uint16_t slot)
{
	struct sim *sim = from->sim;
	struct node *to = owner_of(sim, slot);
	struct link *link;
	struct vb_peer *peer;

	/* Who has died is out of the way, though we may not have heard of it. */
	peer = vb_peer_find(from->nic, from->slot, slot);
	if (peer && peer->run != to)
		vb_peer_unlist(peer);
	if (!to)
		return ENOENT;
	link = link_of(from, to);
	if (!link->open)
		return EOPNOTSUPP;
	if (link->made)
		return 0;
	link->made = true;
	if (sim_chance(sim, 50)) {
		link->start = 0u - sim_below(sim, 2 * VB_RING_SLOTS);
		link->data_start = sim_below(sim, 1 << 20) * VB_RING_LINE_BYTES;
	}
	if (!areas[from->index][to->index])
		areas[from->index][to->index] = zeros(sizeof(struct vb_ring_area));
	area_begin(areas[from->index][to->index], link);
	peer = peer_of(from, to);
	vb_peer_tx_set(peer, areas[from->index][to->index], export_of(from, to));
	for (unsigned k = 0; k < VB_RING_LANES; k++) {
		struct vb_ring_tx *tx = &peer->lane[k].tx;

		tx->head = tx->tail = link->start;
		tx->data_head = tx->data_tail = tx->next_data_head = link->data_start;
	}
	sim_trace(sim, "node %u reaches node %u", from->index, to->index);
	to->rings_due |= 1u << from->index;
	if (to == from || sim_chance(sim, 50))
		ring_comes(to, from);
	else
		wake_at(to, now_ns(to) + sim_below(sim, 100000));
	return 0;
}

void process_bell(struct node *from, struct vb_peer *peer)
{
	struct sim *sim = from->sim;
	struct node *to = peer->run;

	/* Whoever looks at a peer that was just given up may ring where nobody is. */
	if (!to || to->dead)
		return;
	if (!sim->calm && sim_below(sim, 1000000) < sim->bells_lost)
		return;
	sim_trace(sim, "node %u rings for node %u", from->index, to->index);
	wake_at(to, now_ns(to) + (sim->calm ? 1000 : sim_below(sim, 200000)));
}

void process_release(struct vb_peer *peer)
{
	peer->run = NULL;
}

/* A system call that moves some of it fails now and then, as if the rest were not mapped. */
bool process_vm(struct node *from, const struct vb_peer *peer, uint64_t address,
		const struct iovec *iov, unsigned count, bool write)
{
	struct sim *sim = from->sim;
	struct node *to = peer->run;
	uint8_t *at = (uint8_t *)(uintptr_t)address;

	if (!to || to->dead || !link_of(from, to)->vm)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (sim_chance(sim, 5))
			return false;
		memcpy(write ? at : iov[i].iov_base, write ? iov[i].iov_base : at,
		       iov[i].iov_len);
		at += iov[i].iov_len;
	}
	return true;
}

void process_hear_rings(struct node *node)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		if (node->rings_due >> i & 1)
			ring_comes(node, &node->sim->node[i]);
	}
}

/* --- the end of a process --- */

void process_die(struct node *node)
{
	struct sim *sim = node->sim;

	node->dead = true;
	node->thread_ns = NEVER;
	sim->fabric.dead[node->index] = true;
	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct node *other = &sim->node[i];

		if (!other->nic || other->dead)
			continue;
		other->news_ns = now_ns(node) + 1 +
				 sim_below(sim, sim_chance(sim, 50) ? 1000 : 3000000);
		wake_at(other, other->news_ns);
	}
}

/* Whatever was under way to the dead has failed by now. */
static void nothing_is_left(struct node *node, const struct vb_peer *peer)
{
	struct sim *sim = node->sim;

	for (unsigned i = 0; i < sim->ends; i++) {
		const struct end *end = &sim->end[i];

		if (end->node == node && end->type == IBV_QPT_RC && end->qp &&
		    end->qp->to.peer == peer && vb_qp_state(end->qp) == IBV_QPS_RTS)
			sim_require(sim, end->qp->req.head == end->qp->req.tail);
	}
}

static void hear(struct node *node)
{
	struct sim *sim = node->sim;

	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct link *link = &sim->link[node->index][i];

		if (!sim->node[i].dead || !link->peer || link->told)
			continue;
		sim_trace(sim, "node %u hears that node %u is gone", node->index, i);
		link->told = true;
		vb_peer_gone(link->peer);
		nothing_is_left(node, link->peer);
	}
	node->news_ns = 0;
}

/* --- the thread --- */

static void lie_down(struct node *node)
{
	struct sim *sim = node->sim;

	if (!vb_nic_asleep(node->nic)) {
		vb_nic_awake(node->nic);
		wake_at(node, now_ns(node) + 100);
		return;
	}
	node->asleep = true;
	if (!sim->calm)
		wake_at(node, now_ns(node) + 1 + sim_below(sim, 3000000));
}

static void thread_run(struct node *node)
{
	struct sim *sim = node->sim;

	node->thread_ns = NEVER;
	if (node->asleep)
		vb_nic_awake(node->nic);
	node->asleep = false;
	look_around(node);
	process_hear_rings(node);
	if (node->news_ns && node->news_ns <= now_ns(node))
		hear(node);
	if (node->news_ns)
		wake_at(node, node->news_ns);
	if (vb_nic_deadline_ns(node->nic) <= now_ns(node))
		vb_nic_turn(node->nic);
	/* Others look at the lanes. */
	if (!node->threaded && (sim->calm || sim_chance(sim, 50))) {
		if (!sim->calm)
			wake_at(node, now_ns(node) + 1 + sim_below(sim, 1000000));
		return;
	}
	if (vb_nic_lanes_scan(node->nic))
		wake_at(node, now_ns(node) + sim_range(sim, 100, 2000));
	else
		lie_down(node);
}

static bool is_alive(const struct node *node)
{
	return node->nic && !node->dead;
}

uint64_t process_next_ns(const struct sim *sim)
{
	uint64_t next_ns = NEVER;

	for (unsigned i = 0; i < NODES_MAX; i++) {
		const struct node *node = &sim->node[i];

		if (!is_alive(node))
			continue;
		next_ns = vb_min_u64(next_ns, node->thread_ns);
		next_ns = vb_min_u64(next_ns, vb_nic_deadline_ns(node->nic));
	}
	return next_ns;
}

void process_step(struct sim *sim)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct node *node = &sim->node[i];

		if (is_alive(node) && (node->thread_ns <= now_ns(node) ||
				       vb_nic_deadline_ns(node->nic) <= now_ns(node)))
			thread_run(node);
	}
}

void process_wake(struct node *node)
{
	wake_at(node, now_ns(node));
}

void process_poll(struct node *node)
{
	look_around(node);
	if (vb_nic_deadline_ns(node->nic) <= now_ns(node))
		vb_nic_turn(node->nic);
	/* All nodes share a thread here, and which of its polls looks at all lanes must not fall
	 * to the same node for ever. */
	for (unsigned n = sim_range(node->sim, 1, 3); n; n--)
		vb_nic_lanes_poll(node->nic);
}

/* As one who waits for an event: a last look around, and whoever has work does it. */
void process_rest(struct node *node)
{
	if (node->rude)
		return;
	look_around(node);
	if (!vb_nic_asleep(node->nic))
		wake_at(node, now_ns(node));
	vb_nic_awake(node->nic);
}

void process_fence(struct node *node)
{
	look_around(node);
	for (unsigned i = 0; i < NODES_MAX; i++) {
		struct vb_peer *peer = node->sim->link[node->index][i].peer;

		if (peer && atomic_load(&peer->has_tx) && !atomic_load(&peer->dirty))
			vb_peer_bell(peer);
	}
}

void process_calm(struct sim *sim)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		if (is_alive(&sim->node[i]))
			wake_at(&sim->node[i], now_ns(&sim->node[i]) + 1);
	}
}

/* --- is anything forgotten? --- */

static bool sleeps(const struct node *node)
{
	return node->asleep && node->thread_ns == NEVER;
}

/* Frames, or room, for this node at that peer. */
static bool has_frames(const struct vb_peer *peer)
{
	for (unsigned k = 0; k < VB_RING_LANES; k++) {
		if (atomic_load(&peer->has_rx) && vb_ring_ready(&peer->lane[k].rx))
			return true;
	}
	return false;
}

static bool has_room(const struct vb_peer *peer)
{
	for (unsigned k = 0; k < VB_RING_LANES; k++) {
		const struct vb_lane *lane = &peer->lane[k];

		if (atomic_load(&lane->waiters) &&
		    atomic_load(&lane->tx.shared->tail) != atomic_load(&lane->stuck_tail))
			return true;
	}
	return false;
}

/* Will that node look once more whether this one sleeps? At the latest when its clock rings. */
static bool will_look(const struct node *node, const struct node *other)
{
	const struct vb_peer *peer = link_of(node, other)->peer;

	return peer && atomic_load(&peer->dirty) &&
	       (!sleeps(node) || vb_nic_deadline_ns(node->nic) != NEVER);
}

void process_check(struct sim *sim)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		const struct node *node = &sim->node[i];

		if (!is_alive(node) || !sleeps(node) || node->rings_due)
			continue;
		for (unsigned k = 0; k < NODES_MAX; k++) {
			const struct vb_peer *peer = sim->link[i][k].peer;

			if (!peer || sim->node[k].dead || will_look(&sim->node[k], node))
				continue;
			if (has_frames(peer))
				sim_fail(sim, "node %u sleeps over frames of node %u", i, k);
			if (has_room(peer))
				sim_fail(sim, "node %u sleeps over room at node %u", i, k);
		}
	}
}

static bool link_is_quiet(const struct sim *sim, unsigned i, unsigned k)
{
	const struct vb_peer *peer = sim->link[i][k].peer;

	if (!peer || sim->node[k].dead)
		return true;
	for (unsigned lane = 0; lane < VB_RING_LANES; lane++) {
		if (peer->lane[lane].tx.broken || vb_ring_rx_is_broken(&peer->lane[lane].rx))
			sim_fail((struct sim *)sim, "the ring of nodes %u, %u is broken", i, k);
	}
	return !has_frames(peer);
}

bool process_quiet(const struct sim *sim)
{
	for (unsigned i = 0; i < NODES_MAX; i++) {
		const struct node *node = &sim->node[i];

		if (!is_alive(node))
			continue;
		if (node->rings_due || node->news_ns || node->thread_ns != NEVER ||
		    atomic_load(&node->nic->lanes.waiters))
			return false;
		for (unsigned k = 0; k < NODES_MAX; k++) {
			if (!link_is_quiet(sim, i, k))
				return false;
		}
	}
	return true;
}
