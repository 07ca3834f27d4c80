/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Connection managers that connect, refuse, part, forget and die, on a bad network and among
 * strangers' forgeries:
 *
 *   sim_cm SEED | --count N [FROM]
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "cm_sim.h"

struct sim sim;

enum { MANY = 1000, FIRST_SLOT = 3 };

static struct {
	unsigned long long up, checked, rejected, deaths, forged, stale, floods, laps, sidrs;
} sums;

void trace(const char *format, ...)
{
	va_list args;

	if (!sim.trace)
		return;
	printf("%14llu ", (unsigned long long)sim.now_ns);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* --- a world --- */

static void choose_weather(void)
{
	static const uint32_t most_ppm[] = {0, 10000, 100000, 100000, 300000};
	uint32_t most = most_ppm[below(VB_ARRAY_LEN(most_ppm))];

	sim.stern = most < 300000 && VB_CM_LINGERING_MAX > CONNS_MAX;
	if (most)
		sim.weather = (struct weather){
			.loss = below(most),
			.dup = below(most),
			.late = below(2 * most),
		};
	sim.weather.late_ns = (1 + below(200)) * SIM_MS;
	sim.weather.forge = chance(50) ? below(300000) : 0;
}

static void make_hosts(void)
{
	sim.hosts = 1 + below(HOSTS_MAX);
	for (unsigned i = 0; i < sim.hosts; i++) {
		struct host *host = &sim.host[i];

		host->guid = vb_prng_next(&sim.rng);
		host->foreign = chance(25);
		for (unsigned k = 0; k < PLACES; k++) {
			host->gid[k][10] = host->gid[k][11] = 0xff;
			host->gid[k][12] = 10;
			host->gid[k][15] = (uint8_t)(1 + 10 * k + i);
		}
	}
}

static void make_nodes(void)
{
	sim.nodes = 2 + below(NODES_MAX - 1);
	for (unsigned i = 0; i < sim.nodes; i++) {
		struct node *node = &sim.node[i];

		node->index = i;
		node->host = below(sim.hosts);
		node->slot = (uint16_t)(FIRST_SLOT + i);
		node->service_id = 0x01060000 + 7 * i;
		node_birth(node);
	}
}

static void world_make(void)
{
	choose_weather();
	sim.life_exponent = 16;
	sim.response_exponent = 16 + below(5);
	sim.retries = sim.stern ? 15 : 1 + below(15);
	sim.wanted = 4 + below(24);
	sim.qps_again = chance(20);
	sim.end_ns = (1 + below(90)) * SIM_S;
	make_hosts();
	make_nodes();
}

/* --- time --- */

static uint64_t next_ns(void)
{
	uint64_t next = vb_min_u64(net_next_ns(), death_next_ns());

	for (unsigned i = 0; i < sim.nodes; i++)
		next = vb_min_u64(next, node_next_ns(&sim.node[i]));
	return next;
}

static void step(void)
{
	death_step();
	net_step();
	for (unsigned i = 0; i < sim.nodes; i++)
		node_step(&sim.node[i]);
}

static void run_until(uint64_t end_ns)
{
	for (unsigned steps = 0; next_ns() < end_ns; steps++) {
		require(steps < STEPS_MAX);
		sim.now_ns = vb_max_u64(sim.now_ns, next_ns());
		step();
	}
}

static void calm(void)
{
	trace("calm");
	sim.calm = true;
	for (unsigned i = 0; i < sim.nodes; i++)
		sim.node[i].sends_left = -1;
	for (unsigned i = 0; i < sim.conns; i++) {
		if (sim.conn[i].id)
			sim.conn[i].act_ns = sim.now_ns;
	}
}

static void let_go(struct node *node, const void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < sim.conns; i++) {
		if (sim.conn[i].node == node && sim.conn[i].id)
			app_release(&sim.conn[i]);
	}
	vb_cm_id_release(node->listener, sim.now_ns);
}

static void all_let_go(void)
{
	trace("all let go");
	for (unsigned i = 0; i < sim.nodes; i++) {
		if (sim.node[i].alive)
			node_does(&sim.node[i], let_go, NULL);
	}
}

static void clean_up(void)
{
	net_end();
	for (unsigned i = 0; i < sim.nodes; i++) {
		struct node *node = &sim.node[i];

		while (node->blocks)
			free(node->block[--node->blocks]);
	}
}

static void add_up(void)
{
	sums.up += sim.up;
	sums.checked += sim.ups_checked;
	sums.rejected += sim.rejected;
	sums.deaths += sim.deaths;
	sums.forged += sim.forged;
	for (unsigned i = 0; i < sim.nodes; i++)
		sums.stale += sim.node[i].cm.stats.stale;
	sums.floods += sim.floods;
	sums.laps += sim.laps;
	sums.sidrs += sim.sidrs;
}

static bool run(uint64_t seed, bool tracing)
{
	memset(&sim, 0, sizeof(sim));
	sim.seed = seed;
	sim.rng = seed * 0x9e3779b97f4a7c15u + 5;
	sim.trace = tracing;
	sim.now_ns = 1;
	if (setjmp(sim.failed)) {
		printf("seed %llu: %s\n", (unsigned long long)seed, sim.why);
		fflush(stdout);
		clean_up();
		return false;
	}
	world_make();
	run_until(sim.end_ns);
	calm();
	run_until(UINT64_MAX);
	oracle_quiet();
	all_let_go();
	run_until(UINT64_MAX);
	for (unsigned i = 0; i < sim.nodes; i++)
		node_end(&sim.node[i]);
	add_up();
	net_end();
	return true;
}

int main(int argc, char **argv)
{
	struct sim_range range;
	uint64_t failures;

	if (sim_range_parse(argc, argv, "sim_cm SEED | --count N [FROM]", &range))
		return SIM_BAD_USAGE;
	failures = sim_runs(&range, run);
	if (range.single && !failures)
		printf("seed %llu: ok\n", (unsigned long long)range.from);
	if (range.count >= MANY)
		death_print();
	if (range.count >= MANY && (!death_seen_all() || !sums.checked || !sums.laps ||
				    !sums.sidrs || !sums.stale)) {
		printf("these runs show too little\n");
		failures++;
	}
	printf("%llu runs, %llu failed; %llu connected, %llu pairs compared at the end, "
	       "%llu rejected, %llu deaths, %llu forged, %llu stale, %llu floods, "
	       "%llu paths offered, %llu asked for a service\n",
	       (unsigned long long)range.count, (unsigned long long)failures, sums.up, sums.checked,
	       sums.rejected, sums.deaths, sums.forged, sums.stale, sums.floods, sums.laps,
	       sums.sidrs);
	return failures != 0;
}
