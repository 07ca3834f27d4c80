/* SPDX-License-Identifier: BSD-2-Clause */

/* Compiled for each world (meson.build). */
#include "turns.h"

#include SIM_WORLD

bool faults_draw(struct fabric_faults *faults, bool *ipv4)
{
	static const uint32_t most_ppm[] = { 0, 10000, 30000, 50000 };
	uint32_t most = most_ppm[below(VB_ARRAY_LEN(most_ppm))];

	*faults = (struct fabric_faults){ .queue_max = UINT32_MAX, .late_ns = 1 };
	*ipv4 = chance(50);
	if (!most)
		return false;
	faults->loss = below(most);
	faults->dup = below(most);
	faults->reorder = below(most);
	faults->corrupt = below(most / 2);
	faults->full = chance(30) ? below(200000) : 0;
	faults->late_ns = chance(30) ? 5000000 : 100000;
	return true;
}

/* --- what a NIC asks of its surroundings --- */

static uint64_t host_now_ns(void *arg)
{
	return sim.fabric.now_ns;
}

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	return fabric_tx(&sim.fabric, ((struct node *)arg)->index, burst);
}

static unsigned host_burst_frames_max(void *arg)
{
	return sim.fabric.frames_max;
}

static int host_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	struct node *node = arg;

	*slot = node->slot = (uint16_t)(3 + 41 * node->index);
	*next_index = below(VB_INDICES);
	return 0;
}

void turns_host(struct vb_nic_host *host)
{
	host->clock.now_ns = host_now_ns;
	host->wire.lease = host_lease;
	host->wire.tx = host_tx;
	host->wire.burst_frames_max = host_burst_frames_max;
}

/* --- turns --- */

static bool works(const struct node *node)
{
	return node->nic && !node->dead;
}

static uint64_t clocks_ns(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		if (works(&sim.node[i]))
			next = vb_min_u64(next, vb_nic_deadline_ns(sim.node[i].nic));
	}
	return next;
}

static void step(const struct turns *turns, uint64_t *app_ns)
{
	uint64_t next = vb_min_u64(fabric_next_ns(&sim.fabric), clocks_ns());

	if (next < *app_ns) {
		sim.fabric.now_ns = vb_max_u64(sim.fabric.now_ns, next);
		fabric_step(&sim.fabric);
		for (unsigned i = 0; i < sim.fabric.nics; i++) {
			if (works(&sim.node[i]) &&
			    vb_nic_deadline_ns(sim.node[i].nic) <= sim.fabric.now_ns)
				vb_nic_turn(sim.node[i].nic);
		}
		return;
	}
	sim.fabric.now_ns = *app_ns;
	turns->happen();
	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		if (works(&sim.node[i]))
			turns->work(&sim.node[i]);
	}
	*app_ns += sim.calm ? 50000 : below(chance(5) ? 2000000 : 60000) + 1;
}

static bool are_over(const struct turns *turns)
{
	return turns->are_done() && fabric_next_ns(&sim.fabric) == UINT64_MAX &&
	       clocks_ns() == UINT64_MAX;
}

void turns_take(const struct turns *turns, unsigned polls)
{
	uint64_t app_ns = sim.fabric.now_ns, from_ns = app_ns;
	unsigned steps = 0;

	while (!are_over(turns)) {
		step(turns, &app_ns);
		require(++steps < STEPS_MAX);
		if (!sim.calm && sim.fabric.now_ns - from_ns > 100000000) {
			sim.calm = true;
			fabric_calm(&sim.fabric);
		}
		if (sim.fabric.now_ns - from_ns > CALM_NS_MAX)
			failed("nothing goes on, although nothing is in the way");
	}
	for (unsigned n = 0; n < polls; n++) {
		for (unsigned i = 0; i < sim.fabric.nics; i++) {
			if (!works(&sim.node[i]))
				continue;
			rings_turn(&sim.node[i]);
			turns->poll(&sim.node[i]);
		}
	}
}
