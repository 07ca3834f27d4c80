/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator's front door:
 *
 *   sim SEED                  one run; with V=1 in the environment it tells all that happens
 *   sim --count N [FROM]      the seeds from FROM (1) on
 *   sim --random N            N seeds that nobody has tried
 *   sim --file FILE           the seeds in a file, one a line; what follows '#' is a comment
 *
 * With ORDER=1 (or ORDER=iba) in the environment, NICs have another order (docs/order.md), by the
 * same seed.
 *
 * Seeds are spread over the processors. A run that fails prints "seed N: why", and the exit status
 * is 1. Wrong arguments are refused with exit status 2, and nothing runs (arguments.h).
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "base/check.h"
#include "sim.h"

enum { WORKERS_MAX = 16, SEEDS_FILE_MAX = 10000, RUN_SECONDS_MAX = 120 };

/* What the workers share with their parent. */
struct work {
	_Atomic uint64_t next; /* place of the next seed that nobody has taken */
	_Atomic uint64_t failed;
	_Atomic uint64_t migrations, stumbles, changes; /* of all runs: there must be some */
	_Atomic uint64_t running[WORKERS_MAX];
	uint64_t count;
	uint64_t from;
	bool is_list;
	uint64_t listed[SEEDS_FILE_MAX];
};

static struct work *work;

static uint64_t seed_at(uint64_t place)
{
	return work->is_list ? work->listed[place] : work->from + place;
}

static struct sim sim;

static bool run_one(uint64_t seed, bool trace)
{
	alarm(trace ? 0 : RUN_SECONDS_MAX);
	if (sim_run(&sim, seed, trace))
		return true;
	printf("seed %llu: %s\n", (unsigned long long)seed, sim.why);
	fflush(stdout);
	return false;
}

static void worker(unsigned self)
{
	for (;;) {
		uint64_t place = work->next++;

		if (place >= work->count)
			_exit(0);
		work->running[self] = seed_at(place);
		if (!run_one(seed_at(place), false))
			work->failed++;
		work->migrations += sim.migrations;
		work->stumbles += sim.stumbles;
		work->changes += sim.changes;
	}
}

static pid_t start(unsigned self)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		worker(self);
	return pid;
}

/* A run that kills its worker costs only itself: another worker goes on behind it. */
static void watch(pid_t *pid, unsigned workers)
{
	unsigned alive = workers;
	int status;

	while (alive) {
		pid_t ended = wait(&status);

		for (unsigned i = 0; i < workers; i++) {
			if (pid[i] != ended)
				continue;
			if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
				alive--;
				continue;
			}
			work->failed++;
			printf("seed %llu: ended by %s %d\n", (unsigned long long)work->running[i],
			       WIFSIGNALED(status) ? "signal" : "exit status",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			pid[i] = start(i);
		}
	}
}

static int run_many(void)
{
	pid_t pid[WORKERS_MAX];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned workers = cpus < 1 ? 1 : cpus > WORKERS_MAX ? WORKERS_MAX : (unsigned)cpus;

	for (unsigned i = 0; i < workers; i++) {
		pid[i] = start(i);
		if (pid[i] < 0) {
			perror("fork");
			return 1;
		}
	}
	watch(pid, workers);
	printf("%llu runs, %llu failed; %llu migrations, %llu recoveries, %llu changes in SQD\n",
	       (unsigned long long)work->count, (unsigned long long)work->failed,
	       (unsigned long long)work->migrations, (unsigned long long)work->stumbles,
	       (unsigned long long)work->changes);
	return work->failed != 0;
}

/* A line's seed, if it has one: what follows '#' is a comment. False if it has something else. */
static bool line_take(char *line)
{
	char *word = line + strspn(line, " \t"), *end;

	word[strcspn(word, "#\n")] = 0;
	for (end = word + strlen(word); end > word && strchr(" \t", end[-1]); end--)
		end[-1] = 0;
	if (!*word)
		return true;
	if (work->count < SEEDS_FILE_MAX && sim_number_parse(word, &work->listed[work->count])) {
		work->count++;
		return true;
	}
	if (work->count == SEEDS_FILE_MAX)
		fprintf(stderr, "sim: more than %d seeds\n", SEEDS_FILE_MAX);
	else
		sim_refuse_seed(word);
	return false;
}

static int run_file(const char *name)
{
	FILE *file = fopen(name, "r");
	char *line = NULL;
	bool good = true;
	size_t bytes = 0;

	if (!file) {
		fprintf(stderr, "sim: %s: %s\n", name, strerror(errno));
		return SIM_BAD_USAGE;
	}
	while (good && getline(&line, &bytes, file) >= 0)
		good = line_take(line);
	free(line);
	fclose(file);
	work->is_list = true;
	if (good && !work->count)
		fprintf(stderr, "sim: %s: no seed in it\n", name);
	return good && work->count ? run_many() : SIM_BAD_USAGE;
}

static int run_random(const char *runs)
{
	if (sim_count_parse(runs, &work->count))
		return SIM_BAD_USAGE;
	if (getrandom(&work->from, sizeof(work->from), 0) != sizeof(work->from))
		return 1;
	work->from = (work->from >> 24) + 1;
	printf("seeds from %llu\n", (unsigned long long)work->from);
	return run_many();
}

static int run_single(uint64_t seed)
{
	const char *v = getenv("V");

	if (!run_one(seed, v && *v && *v != '0'))
		return 1;
	printf("seed %llu: ok\n", (unsigned long long)seed);
	return 0;
}

int main(int argc, char **argv)
{
	struct sim_range range;
	int rc;

	/* A NIC's tables are large and hardly used: new zeros cost less than clearing old ones. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	work = mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (work == MAP_FAILED) {
		perror("sim: mmap");
		return 1;
	}
	if (argc == 3 && strcmp(argv[1], "--file") == 0)
		return run_file(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--random") == 0)
		return run_random(argv[2]);
	rc = sim_range_parse(argc, argv, "sim SEED | --count N [FROM] | --random N | --file FILE",
			     &range);
	if (rc)
		return rc;
	if (range.single)
		return run_single(range.from);
	work->from = range.from;
	work->count = range.count;
	return run_many();
}
