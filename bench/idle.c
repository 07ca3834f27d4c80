/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The cost of idle QPs: two pairs of processes, one with a single RC connection, the other with
 * COUNT of them, and the same ping-pong over one connection of each pair, in turns.
 *
 *   idle CORE CORE COUNT
 *
 * Prints lines of a name and a figure:
 *   setup      connections made per second, both QPs taken from nothing to RTS
 *   memory     resident octets of an idle QP with DEPTH send and receive requests
 *   latency_1, latency_n     half a round trip of 2 octets, polling, in us
 *   wakeups    how often per second the threads of the busiest process were woken, while all
 *              had open devices and connected QPs and waited elsewhere
 */
#include <dirent.h>
#include <sys/socket.h>

#include "qp.h"

enum {
	DEPTH = 128,
	ROUNDS = 10,   /* pings timed together: reading the clock costs as much as a message */
	BATCHES = 300, /* of a burst, whose figure is their median */
	BURSTS = 9,
	COUNT_MAX = 60000,
	SETTLE_US = 500000,
	WATCH_S = 2,
};

/* Sent to the coordinator once all QPs are connected. */
struct ready {
	double setup, memory;
	pid_t server;
};

/* The coordinator's view of a pair. */
struct pair {
	int fd;
	pid_t client;
	struct ready ready;
	double latency_us[BURSTS];
};

static const struct ibv_qp_cap cap = {
	.max_send_wr = DEPTH,
	.max_recv_wr = DEPTH,
	.max_send_sge = 1,
	.max_recv_sge = 1,
	.max_inline_data = 16,
};
static struct ibv_qp *qps[COUNT_MAX];

static double resident_bytes(void)
{
	unsigned long all, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	need(file && fscanf(file, "%lu %lu", &all, &resident) == 2, "statm");
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* The n-th QP here is connected to the n-th of the peer. */
static void receive_one(const struct end *end, struct ibv_cq *cq)
{
	while (!cq_poll(cq).received)
		;
	recv_post(end, qps[0]);
}

static void send_one(const struct end *end)
{
	static const struct qp_name nobody;

	send_post(end, qps[0], IBV_WR_SEND, IBV_SEND_SIGNALED, 2, &nobody);
}

/* Connects COUNT QPs; measures how many per second, and the memory of each. */
static struct ibv_cq *make(struct end *end, int fd, size_t count, struct ready *ready)
{
	struct qp_name peer;
	struct ibv_cq *cq;
	double before;
	uint64_t start;

	end_open(end);
	cq = ibv_create_cq(end->context, 4 * DEPTH, NULL, NULL, 0);
	need(cq, "ibv_create_cq");
	qps_make(end, cq, &cap, fd, qps, 1, &peer);
	for (unsigned i = 0; i < 16; i++)
		recv_post(end, qps[0]);
	before = resident_bytes();
	start = now_ns();
	qps_make(end, cq, &cap, fd, qps + 1, count - 1, &peer);
	ready->setup = (double)(count - 1) * 1e9 / (double)(now_ns() - start);
	ready->memory = count > 1 ? (resident_bytes() - before) / (double)(count - 1) : 0;
	return cq;
}

static _Noreturn void server(int fd, size_t count)
{
	struct ready ready;
	struct ibv_cq *cq;
	struct end end = {0};
	char word;

	cq = make(&end, fd, count, &ready);
	for (;;) {
		octets_receive(fd, &word, 1);
		for (unsigned i = 0; i < ROUNDS * BATCHES; i++) {
			receive_one(&end, cq);
			send_one(&end);
		}
	}
}

/* Half a round trip, in us. */
static double ping(const struct end *end, struct ibv_cq *cq)
{
	double us[BATCHES];
	uint64_t start;

	for (unsigned n = 0; n < BATCHES; n++) {
		start = now_ns();
		for (unsigned i = 0; i < ROUNDS; i++) {
			send_one(end);
			receive_one(end, cq);
		}
		us[n] = (double)(now_ns() - start) / 2e3 / ROUNDS;
	}
	return median(us, BATCHES);
}

static _Noreturn void client(int fd, size_t count, const int *core)
{
	struct ready ready;
	struct end end = {0};
	struct ibv_cq *cq;
	int ends[2];
	double us;
	char word;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	ready.server = fork_child();
	pin(core[ready.server ? 0 : 1]);
	close(ends[ready.server ? 1 : 0]);
	if (!ready.server)
		server(ends[1], count);
	cq = make(&end, ends[0], count, &ready);
	octets_send(fd, &ready, sizeof(ready));
	for (;;) {
		octets_receive(fd, &word, 1);
		octets_send(ends[0], "", 1);
		us = ping(&end, cq);
		octets_send(fd, &us, sizeof(us));
	}
}

/* How often the threads of a process have given up the CPU or lost it. */
static double switches(pid_t pid)
{
	char path[64 + 256], line[128];
	unsigned long n, all = 0;
	struct dirent *entry;
	FILE *file;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	need(dir, path);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1 ||
			    sscanf(line, "nonvoluntary_ctxt_switches: %lu", &n) == 1)
				all += n;
		}
		if (file)
			fclose(file);
	}
	closedir(dir);
	return (double)all;
}

/* While all processes wait for a message; the figure of the one with the most wakeups. */
static double wakeups(const struct pair *pairs)
{
	pid_t pid[4] = {pairs[0].client, pairs[0].ready.server, pairs[1].client,
			pairs[1].ready.server};
	double before[4], most = 0, n;

	usleep(SETTLE_US);
	for (unsigned i = 0; i < 4; i++)
		before[i] = switches(pid[i]);
	sleep(WATCH_S);
	for (unsigned i = 0; i < 4; i++) {
		n = switches(pid[i]) - before[i];
		most = n > most ? n : most;
	}
	return most / WATCH_S;
}

static void pair_start(struct pair *pair, size_t count, const int *core)
{
	int ends[2];

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	pair->client = fork_child();
	close(ends[pair->client ? 1 : 0]);
	if (!pair->client)
		client(ends[1], count, core);
	pair->fd = ends[0];
	octets_receive(pair->fd, &pair->ready, sizeof(pair->ready));
}

static void burst(struct pair *pair, unsigned number)
{
	octets_send(pair->fd, "", 1);
	octets_receive(pair->fd, &pair->latency_us[number], sizeof(double));
}

int main(int argc, char **argv)
{
	size_t count = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
	int core[2] = {argc > 1 ? atoi(argv[1]) : 0, argc > 2 ? atoi(argv[2]) : 0};
	struct pair pairs[2];

	if (count < 2 || count > COUNT_MAX) {
		fputs("usage: idle CORE CORE COUNT\n", stderr);
		return 2;
	}
	pair_start(&pairs[0], 1, core);
	pair_start(&pairs[1], count, core);
	printf("setup %.0f\nmemory %.0f\n", pairs[1].ready.setup, pairs[1].ready.memory);
	/* The first of each warms up and is overwritten. */
	for (unsigned i = 0; i <= BURSTS; i++) {
		for (unsigned k = 0; k < 2; k++)
			burst(&pairs[k], i ? i - 1 : 0);
	}
	printf("latency_1 %.3f\n", median(pairs[0].latency_us, BURSTS));
	printf("latency_n %.3f\n", median(pairs[1].latency_us, BURSTS));
	printf("wakeups %.1f\n", wakeups(pairs));
	/* The clients end when this end of their sockets closes, and the servers with them. */
	return 0;
}
