/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * attack_ring SEED= N= [T=] [BUT=]: a victim works with an honest process and, N times, with one
 * that connects as it should and then writes anything into all that they share (attacker.c), until
 * it is killed. Whatever that does to its own connections, the victim's work with the honest one is
 * whole; each of its work requests completes, once; nothing is written outside of what it let
 * others write; and when the attacker stands still, the victim sleeps.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "attack.h"
#include "attacker.h"
#include "base/check.h"
#include "duet.h"

enum { BYTES = 1 << 16, SMALL = 64, SILENT = 0x3c, STILL_MS = 300, WATCH_S = 120 };

/* One of the victim's ends towards the attacker. */
struct work {
	struct duet_end end;
	unsigned sends, recvs; /* outstanding */
	bool over;	       /* it takes no more requests */
};

static void work_recv(struct work *work, uint64_t *rng)
{
	size_t half = work->end.memory.bytes / 2;
	struct ibv_sge sge = {(uintptr_t)work->end.memory.own + half,
			      attack_below(rng, (unsigned)half), work->end.own_mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1, .wr_id = 1}, *bad;

	if (work->recvs < DUET_DEPTH && !ibv_post_recv(work->end.qp, &wr, &bad))
		work->recvs++;
}

static void work_send(struct work *work, uint64_t *rng, struct ibv_ah *ah)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	enum ibv_qp_type type = work->end.qp->qp_type;
	unsigned op = attack_below(rng, type == IBV_QPT_RC ? VB_ARRAY_LEN(ops) : 2);
	uint32_t large = attack_below(rng, BYTES / 2), small = attack_below(rng, SMALL);
	struct ibv_sge sge = {(uintptr_t)work->end.memory.own,
			      attack_one_in(rng, 2) ? large : small, work->end.own_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .wr_id = 0}, *bad;

	if (type == IBV_QPT_UD) {
		op = 0;
		sge.length = small;
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = work->end.peer.qpn;
		wr.wr.ud.remote_qkey = 0x11111111;
	} else if (ops[op] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = DUET_ADD_BYTES;
		wr.wr.atomic.remote_addr = work->end.peer.open;
		wr.wr.atomic.rkey = work->end.peer.rkey;
	} else {
		wr.wr.rdma.remote_addr = work->end.peer.open;
		wr.wr.rdma.rkey = work->end.peer.rkey;
	}
	wr.opcode = ops[op];
	if (wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		sge.addr += BYTES / 2;
	if (!work->over && work->sends < DUET_DEPTH && !ibv_post_send(work->end.qp, &wr, &bad))
		work->sends++;
}

static void work_poll(struct work *work)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(work->end.cq, 1, &wc)) == 1) {
		unsigned *left = wc.wr_id ? &work->recvs : &work->sends;

		if (!*left)
			attack_fail("a %s completes twice", wc.wr_id ? "receive" : "send");
		--*left;
		work->over = work->over || wc.status != IBV_WC_SUCCESS;
	}
	if (n)
		attack_fail("ibv_poll_cq: %d", n);
}

/* What was not sent to us must not come, and what is not to be written must be as it was. */
static void work_whole(const struct work *work)
{
	duet_canaries(&work->end, "the victim");
	for (size_t i = 0; i < BYTES / 2; i++)
		if (work->end.memory.own[i] != SILENT)
			attack_fail("what is sent from is written to: octet %zu is %02x", i,
				    work->end.memory.own[i]);
}

/* All that waits for the attacker ends with it; and then what waits for nobody. */
static void work_end(struct work *work)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	duet_watch(WATCH_S);
	while (work->sends)
		work_poll(work);
	if (ibv_modify_qp(work->end.qp, &attr, IBV_QP_STATE))
		attack_fail("ibv_modify_qp to ERR: %s", strerror(errno));
	while (work->recvs)
		work_poll(work);
	work_whole(work);
	duet_close(&work->end);
}

static uint64_t cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Nobody moves. Whoever runs now all the time runs for ever. */
static void sleeps(const char *when)
{
	uint64_t before;

	usleep(STILL_MS * 1000);
	before = cpu_ms();
	usleep(STILL_MS * 1000);
	if (cpu_ms() - before > STILL_MS / 2)
		attack_fail("the victim runs without end %s", when);
}

static pid_t attacker_start(uint64_t *rng, int *fd)
{
	char seed[32], but[256];
	const char *const arguments[] = {"attack_ring", "attack", seed, but, NULL};

	snprintf(seed, sizeof(seed), "SEED=%llu", (unsigned long long)vb_prng_next(rng));
	snprintf(but, sizeof(but), "BUT=%s", attack.but);
	return duet_spawn(arguments, attack_one_in(rng, 3), fd);
}

static void attacker_end(pid_t pid, int fd, bool still)
{
	int status;

	if (still) {
		kill(pid, SIGSTOP);
		sleeps("while the attacker is stopped");
	}
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		attack_fail("waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == ATTACKER_FAILED)
		attack_fail("the attacker could not attack");
	close(fd);
}

static void round_run(struct duet_device *device, struct duet_end *honest, uint64_t *rng)
{
	struct duet_options options = {.bytes = BYTES, .timeout = 14};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh.dgid = device->gid};
	unsigned turns = 5 + attack_below(rng, 40), fd_turns = 0;
	bool still = attack_one_in(rng, 8), after = attack_one_in(rng, 8);
	struct work work[ATTACKER_ENDS];
	struct ibv_ah *ah;
	int fd;
	pid_t pid;

	memset(work, 0, sizeof(work));
	pid = attacker_start(rng, &fd);
	for (unsigned i = 0; i < ATTACKER_ENDS; i++) {
		options.type = attacker_types[i];
		options.file = attack_one_in(rng, 2);
		duet_open(&work[i].end, device, &options);
		memset(work[i].end.memory.own, SILENT, BYTES / 2);
		duet_meet(&work[i].end, device, fd, options.timeout);
	}
	to.grh.hop_limit = 64;
	ah = ibv_create_ah(work[ATTACKER_UD].end.pd, &to);
	for (; fd_turns < turns; fd_turns++) {
		for (unsigned i = 0; i < ATTACKER_ENDS; i++) {
			work_recv(&work[i], rng);
			work_send(&work[i], rng, ah);
			work_poll(&work[i]);
		}
		duet_lead(honest, rng);
	}
	attacker_end(pid, fd, still);
	duet_lead(honest, rng);
	ibv_destroy_ah(ah);
	for (unsigned i = 0; i < ATTACKER_ENDS; i++)
		work_end(&work[i]);
	if (after)
		sleeps("when the attacker is dead");
}

int main(int argc, char **argv)
{
	static const char *const follower[] = {"attack_ring", "sleep", NULL};
	struct duet_options options = {.bytes = 1 << 18, .timeout = 18, .file = true};
	struct duet_device device;
	struct duet_end honest;
	uint64_t round;
	pid_t pid;
	int fd;

	if (argc == 2 && !strcmp(argv[1], "sleep"))
		return duet_follower(true);
	if (argc > 2 && !strcmp(argv[1], "attack"))
		return attacker_run(argv + 2);
	attack_arguments(argv + 1, 60);
	pid = duet_spawn(follower, false, &fd);
	duet_device_open(&device);
	duet_open(&honest, &device, &options);
	duet_meet(&honest, &device, fd, options.timeout);
	for (round = 0; attack_goes_on(round); round++) {
		uint64_t rng = attack_round(round);

		round_run(&device, &honest, &rng);
	}
	duet_part(pid, fd);
	duet_close(&honest);
	duet_device_close(&device);
	printf("whole: %llu rounds\n", (unsigned long long)round);
	return 0;
}
