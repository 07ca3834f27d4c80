/* SPDX-License-Identifier: BSD-2-Clause */

/* One run, from its seed: first with faults, then without, until all is done. */

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "sim.h"

enum {
	STEPS_MAX = 4000000,
	FAULTY_NS_MAX = 400 * 1000 * 1000,
};

/* Virtual time in which everything must be done once nothing is in the way any more. */
#define CALM_NS_MAX (60ull * 1000 * 1000 * 1000)

void sim_fail(struct sim *sim, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sim->why, sizeof(sim->why), format, args);
	va_end(args);
	longjmp(sim->failed, 1);
}

void sim_trace(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (!sim->trace)
		return;
	printf("%12llu ", (unsigned long long)sim->fabric.now_ns);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* Weather: none, light, heavy. */
static void choose_faults(struct sim *sim, struct fabric_faults *faults)
{
	static const uint32_t most_ppm[] = { 0, 10000, 10000, 50000, 50000, 100000 };
	uint32_t most = most_ppm[sim_below(sim, VB_ARRAY_LEN(most_ppm))];

	*faults = (struct fabric_faults){ .queue_max = UINT32_MAX, .late_ns = 1 };
	if (!most)
		return;
	sim->faulty = true;
	faults->loss = sim_below(sim, most);
	faults->dup = sim_below(sim, most);
	faults->reorder = sim_below(sim, most);
	faults->corrupt = sim_below(sim, most / 2);
	faults->hint = sim_chance(sim, 30) ? sim_below(sim, 1000000) : 0;
	faults->full = sim_chance(sim, 30) ? sim_below(sim, 200000) : 0;
	faults->late_ns = sim_chance(sim, 30) ? 5000000 : 100000;
	if (sim_chance(sim, 20))
		faults->queue_max = sim_range(sim, 40, 200);
}

/* Whoever sleeps wakes when something comes from the wire. */
static void arrivals(struct sim *sim)
{
	for (unsigned i = 0; i < sim->fabric.nics; i++) {
		if (sim->fabric.arrived[i])
			process_wake(&sim->node[i]);
		sim->fabric.arrived[i] = false;
	}
}

/* To when the application or the fabric does something next. */
static void step(struct sim *sim, uint64_t *app_ns, uint64_t idle_ns)
{
	struct fabric *fabric = &sim->fabric;
	uint64_t next_ns = vb_min_u64(fabric_next_ns(fabric), process_next_ns(sim));

	if (next_ns < *app_ns) {
		if (next_ns > fabric->now_ns)
			fabric->now_ns = next_ns;
		process_step(sim);
		fabric_step(fabric);
		arrivals(sim);
		return;
	}
	fabric->now_ns = *app_ns;
	world_tick(sim);
	trouble_tick(sim);
	workload_tick(sim);
	if (sim->calm)
		*app_ns += idle_ns;
	else
		*app_ns += sim_chance(sim, 3) ? sim_below(sim, 2000000)
					      : sim_range(sim, 100, 30000);
}

static bool all_posted(const struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++)
		if (!sim->end[i].gone && sim->end[i].ops < sim->end[i].wanted)
			return false;
	return true;
}

static void run(struct sim *sim)
{
	struct fabric *fabric = &sim->fabric;
	uint64_t app_ns = fabric->now_ns, faulty_ns, calm_ns, idle_ns = 20000;
	uint64_t done = 0;
	unsigned steps = 0;

	/* Some have nearly all of it still before them when it becomes calm. */
	faulty_ns = sim_chance(sim, 30) ? sim_below(sim, 2000000) : FAULTY_NS_MAX;
	while (!all_posted(sim) && fabric->now_ns < faulty_ns) {
		step(sim, &app_ns, 0);
		sim_require(sim, ++steps < STEPS_MAX);
	}
	sim->calm = true;
	fabric_calm(fabric);
	process_calm(sim);
	sim_trace(sim, "calm");
	calm_ns = app_ns = fabric->now_ns;
	while (!workload_finished(sim) || fabric_next_ns(fabric) != UINT64_MAX ||
	       process_next_ns(sim) != UINT64_MAX || !process_quiet(sim)) {
		uint64_t before = done;

		step(sim, &app_ns, idle_ns);
		process_check(sim);
		done = 0;
		for (unsigned i = 0; i < sim->ends; i++)
			done += sim->end[i].done + sim->end[i].recv_next;
		idle_ns = done != before ? 20000 : vb_min_u64(2000000, idle_ns + idle_ns / 8);
		sim_require(sim, ++steps < STEPS_MAX);
		if (fabric->now_ns - calm_ns > CALM_NS_MAX)
			sim_fail(sim, "nothing goes on, although nothing is in the way: %s",
				 !workload_finished(sim)		    ? "work"
				 : fabric_next_ns(fabric) != UINT64_MAX    ? "the wire"
				 : process_next_ns(sim) != UINT64_MAX	    ? "a clock"
									    : "a ring");
	}
	workload_tick(sim);
	workload_tick(sim);
}

bool sim_run(struct sim *sim, uint64_t seed, bool trace)
{
	struct fabric_faults faults;

	memset(sim, 0, sizeof(*sim));
	sim->seed = seed;
	sim->rng = seed * 0x9e3779b97f4a7c15u + 1;
	sim->trace = trace;
	if (setjmp(sim->failed))
		return false;
	choose_faults(sim, &faults);
	if (sim_chance(sim, 30))
		sim->trouble = (enum trouble_kind)sim_range(sim, 1, TROUBLE_KINDS - 1);
	windows_begin(sim);
	fabric_init(&sim->fabric, sim_random(sim), &faults);
	process_begin(sim);
	sim->fabric.trace = trace;
	world_make(sim);
	run(sim);
	trouble_end(sim);
	oracle_end(sim);
	world_unmake(sim);
	return true;
}
