/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Do threads slow each other down? One thread, then two on two cores, each with a QP and a CQ of
 * its own in the same context, send messages of 8 octets to another process.
 *
 *   threads write CORE CORE    the other process sleeps: it limits nothing unless it has to help
 *   threads lone CORE CORE     the same, each thread waiting for its message before the next: the
 *                              other process need not help at all
 *   threads send CORE CORE     the other process receives when the system lets it run
 *
 * Prints the rate of one thread and of both together: "one M/s", "two M/s", medians.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "qp.h"

enum {
	THREADS = 2,
	DEPTH = 128, /* as in perftest */
	SIGNAL_EACH = 32,
	RECV_DEPTH = 512,
	WINDOWS = 5,
	WINDOW_US = 100000,
	OCTETS = 8,
	SPREAD = 256,
};

struct lane {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct qp_name peer;
	pthread_t thread;
	int core;
	_Atomic uint64_t done __attribute__((aligned(LINE_BYTES))); /* messages completed */
	_Atomic bool on;
};

static const struct ibv_qp_cap cap = {
	.max_send_wr = DEPTH,
	.max_recv_wr = RECV_DEPTH,
	.max_send_sge = 1,
	.max_recv_sge = 1,
	.max_inline_data = 16,
};
static struct lane lanes[THREADS];
static struct end end;
static enum ibv_wr_opcode opcode;
static unsigned depth = DEPTH, signal_each = SIGNAL_EACH;

/* As perftest does: a full queue, and a completion for one in SIGNAL_EACH. */
static void *lane_run(void *arg)
{
	struct lane *lane = arg;
	uint64_t posted = 0, done = 0;

	pin(lane->core);
	for (;;) {
		if (!atomic_load_explicit(&lane->on, memory_order_relaxed) && posted == done) {
			usleep(100);
			continue;
		}
		while (posted - done < depth &&
		       (posted % signal_each ||
			atomic_load_explicit(&lane->on, memory_order_relaxed))) {
			posted++;
			send_post(&end, lane->qp, opcode,
				  posted % signal_each ? 0 : IBV_SEND_SIGNALED, OCTETS,
				  &lane->peer);
		}
		done += (uint64_t)cq_poll(lane->cq).sent * signal_each;
		atomic_store_explicit(&lane->done, done, memory_order_relaxed);
	}
	return NULL;
}

static void lanes_make(int fd)
{
	end_open(&end);
	for (unsigned i = 0; i < THREADS; i++) {
		lanes[i].cq = ibv_create_cq(end.context, RECV_DEPTH + DEPTH, NULL, NULL, 0);
		need(lanes[i].cq, "ibv_create_cq");
		qps_make(&end, lanes[i].cq, &cap, fd, &lanes[i].qp, 1, &lanes[i].peer);
		/* Not in one cache line, where any two writers would collide. */
		lanes[i].peer.address += i * SPREAD;
	}
}

static _Noreturn void server(int fd)
{
	char word;

	lanes_make(fd);
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned n = 0; n < RECV_DEPTH; n++)
			recv_post(&end, lanes[i].qp);
	}
	octets_send(fd, "", 1);
	if (opcode == IBV_WR_RDMA_WRITE)
		octets_receive(fd, &word, 1); /* until the client is gone */
	for (;;) {
		for (unsigned i = 0; i < THREADS; i++) {
			for (unsigned n = cq_poll(lanes[i].cq).received; n; n--)
				recv_post(&end, lanes[i].qp);
		}
	}
}

/* Millions of messages per second for this many threads; their queues are drained afterwards. */
static double window(unsigned threads)
{
	uint64_t before = 0, after = 0, start;
	double rate;

	for (unsigned i = 0; i < threads; i++)
		atomic_store(&lanes[i].on, true);
	usleep(WINDOW_US / 10);
	for (unsigned i = 0; i < threads; i++)
		before += atomic_load(&lanes[i].done);
	start = now_ns();
	usleep(WINDOW_US);
	for (unsigned i = 0; i < threads; i++)
		after += atomic_load(&lanes[i].done);
	rate = (double)(after - before) * 1e3 / (double)(now_ns() - start);
	for (unsigned i = 0; i < threads; i++)
		atomic_store(&lanes[i].on, false);
	usleep(WINDOW_US / 10);
	return rate;
}

int main(int argc, char **argv)
{
	double one[WINDOWS], two[WINDOWS];
	int ends[2];
	char word;
	pid_t pid;

	if (argc != 4 || (strcmp(argv[1], "write") && strcmp(argv[1], "lone") &&
			  strcmp(argv[1], "send"))) {
		fputs("usage: threads write|lone|send CORE CORE\n", stderr);
		return 2;
	}
	opcode = strcmp(argv[1], "send") ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
	if (!strcmp(argv[1], "lone"))
		depth = signal_each = 1;
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	pid = fork_child();
	close(ends[pid ? 1 : 0]);
	if (!pid)
		server(ends[1]);
	lanes_make(ends[0]);
	octets_receive(ends[0], &word, 1);
	for (unsigned i = 0; i < THREADS; i++) {
		lanes[i].core = atoi(argv[2 + i]);
		need(!pthread_create(&lanes[i].thread, NULL, lane_run, &lanes[i]), "thread");
	}
	for (unsigned i = 0; i < WINDOWS; i++) {
		one[i] = window(1);
		two[i] = window(THREADS);
	}
	printf("one %.3f\ntwo %.3f\n", median(one, WINDOWS), median(two, WINDOWS));
	return 0;
}
