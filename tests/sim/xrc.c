/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC, simulated: processes of one host that share a domain and its receive QPs, and senders on
 * others, over a fabric that loses, doubles, delays and damages; or all of them on one host, by
 * rings where there is one; and with the death of a process.
 * Arguments and output as those of `sim` (main.c), but for files.
 *
 * What must come of it: every message once and in its order, at the SRQ that it names; what is
 * written, read and counted is right; and who fails, fails at a process that has died, by
 * IBV_WC_RETRY_EXC_ERR, and nobody else does. With the last reference to the domain the receive
 * QPs are gone.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "xrc_sim.h"

#include "nic/core/timer.h"
#include "nic/data/qp_error.h"

enum { MANY = 200 }; /* runs: some of all that may happen is in them */

static unsigned long long broken_runs, deaths, noted, by_ring, migrations; /* in all runs */

static uint32_t key_of(unsigned s, unsigned number)
{
	return 1000 * (s + 1) + number;
}

static uint8_t *target_of(unsigned r, unsigned s)
{
	return memory[r][1] + s * MESSAGE_MAX;
}

static uint64_t *counter_of(unsigned r, unsigned s)
{
	return (uint64_t *)(void *)(memory[r][2] + AREA_BYTES) + s;
}

/* --- senders --- */

static bool takes_recv(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_write(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void op_choose(struct sender *sender, struct op *op)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND,
	};

	/* Often the same as the last. */
	op->to = op > sender->op && chance(40) ? op[-1].to : below(sim.receivers);
	while (!(sender->targets >> op->to & 1))
		op->to = below(sim.receivers);
	op->srq = below(SRQS);
	op->opcode = opcodes[below(VB_ARRAY_LEN(opcodes))];
	op->bad = sim.bad_key && sender == sim.sender && sender->posted == sender->wanted;
	if (op->bad) {
		op->opcode = IBV_WR_RDMA_WRITE;
		op->bytes |= 1;
	}
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		op->bytes = 8;
		op->adds = sender->adds[op->to]++;
	}
	op->offset = below(AREA_BYTES - op->bytes);
}

static void post(unsigned s)
{
	struct sender *sender = &sim.sender[s];
	struct node *node = &sim.node[sim.receivers + s];
	unsigned number = sender->posted++;
	struct op *op = &sender->op[number];
	uint8_t *mine = memory[node->index][0] + (size_t)(number % OPS) * MESSAGE_MAX;
	struct ibv_send_wr wr = { .wr_id = number, .num_sge = 1, .imm_data = number }, *bad;
	struct ibv_sge sge;
	struct node *to;

	op_choose(sender, op);
	to = &sim.node[op->to];
	if (op->opcode == IBV_WR_RDMA_READ || op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		mine = memory[node->index][1] + (size_t)(number % OPS) * MESSAGE_MAX;
	else
		fill(mine, op->bytes, key_of(s, number));
	sge = (struct ibv_sge){ (uintptr_t)mine, op->bytes,
				node->mr[0][mine >= memory[node->index][1]]->ibv.lkey };
	wr.sg_list = &sge;
	wr.opcode = op->opcode;
	wr.qp_type.xrc.remote_srqn = to->srq[op->srq] ? to->srq[op->srq]->ibv.handle : 0;
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)counter_of(op->to, s);
		wr.wr.atomic.rkey = to->mr[op->srq][2]->ibv.rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (op->opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = (uintptr_t)memory[op->to][2] + op->offset;
		wr.wr.rdma.rkey = to->mr[op->srq][2]->ibv.rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)target_of(op->to, s);
		wr.wr.rdma.rkey = to->mr[op->srq ^ op->bad][1]->ibv.rkey;
	}
	if (sim.trace)
		printf("%12llu sender %u posts %u: opcode %d to %u, %u octets\n",
		       (unsigned long long)sim.fabric.now_ns, s, number, op->opcode, op->to,
		       op->bytes);
	require(vb_qp_post_send(sender->qp, &wr, &bad) == 0);
}

/* Behind a bad key the QP is in error, and says nothing to one whose answer was lost before. */
static bool may_fail(unsigned s, const struct op *op, enum ibv_wc_status status)
{
	const struct vb_xrc_rcv *rcv = &sim.store->rcv[sim.sender[s].rcv_qpn];

	if (op->bad && status == IBV_WC_REM_ACCESS_ERR)
		return true;
	return status == IBV_WC_RETRY_EXC_ERR &&
	       (sim.node[op->to].dead || !sim.node[op->to].xrcd ||
		rcv->at.attr.qp_state == IBV_QPS_ERR);
}

static void sent(unsigned s, const struct ibv_wc *wc)
{
	struct sender *sender = &sim.sender[s];
	unsigned number = sender->done++;
	const struct op *op = &sender->op[number];
	size_t at = (size_t)(number % OPS) * MESSAGE_MAX;
	const uint8_t *landing = memory[sim.receivers + s][1] + at;

	require(wc->wr_id == number && number < sender->posted);
	if (sender->broken) {
		require(wc->status == IBV_WC_WR_FLUSH_ERR);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		/* What is for others was done before, or comes after. */
		if (!may_fail(s, op, wc->status))
			failed("sender %u: work request %u to %u ends with status %d", s, number,
			       op->to, wc->status);
		sender->broken = true;
		broken_runs++;
		return;
	}
	if (op->bad)
		failed("sender %u: a bad key was taken for good", s);
	if (op->opcode == IBV_WR_RDMA_READ &&
	    !is_filled(landing, op->bytes, op->to, op->offset))
		failed("sender %u: READ %u is wrong", s, number);
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && memcmp(landing, &op->adds, 8) != 0)
		failed("sender %u: atomic %u is wrong", s, number);
}

/* --- receivers --- */

static void recv_post(struct node *node, unsigned at)
{
	struct ibv_sge sge = { (uintptr_t)memory[node->index][0] + (size_t)at * MESSAGE_MAX,
			       MESSAGE_MAX, node->mr[at / RECVS][0]->ibv.lkey };
	struct ibv_recv_wr wr = { .wr_id = at, .sg_list = &sge, .num_sge = 1 }, *bad;

	require(vb_srq_post(node->srq[at / RECVS], &wr, &bad) == 0);
	node->posted[at] = true;
}

static unsigned sender_of(uint32_t qpn)
{
	for (unsigned s = 0; s < sim.senders; s++) {
		if (sim.sender[s].rcv_qpn == qpn)
			return s;
	}
	failed("a receive on QP %06x, which is none", qpn);
}

/* The next message of that sender's for this receiver, and no other. */
static void received(struct node *node, const struct ibv_wc *wc)
{
	unsigned s = sender_of(wc->qp_num), q = (unsigned)wc->wr_id / RECVS, number;
	const uint8_t *data = memory[node->index][0] + wc->wr_id * MESSAGE_MAX;
	struct sender *sender = &sim.sender[s];
	const struct op *op = NULL;

	require(wc->wr_id < SRQS * RECVS && node->posted[wc->wr_id]);
	node->posted[wc->wr_id] = false;
	/* Of a message that never came to its end. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR && sender->broken)
		return;
	require(wc->status == IBV_WC_SUCCESS);
	for (number = sender->next_recv[node->index][q]; number < sender->posted; number++) {
		op = &sender->op[number];
		if (op->to == node->index && op->srq == q && takes_recv(op))
			break;
	}
	if (number == sender->posted)
		failed("receiver %u: what sender %u never sent", node->index, s);
	sender->next_recv[node->index][q] = number + 1;
	if (wc->byte_len != op->bytes ||
	    (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) != is_write(op) ||
	    !!(wc->wc_flags & IBV_WC_WITH_IMM) != (op->opcode != IBV_WR_SEND) ||
	    (op->opcode != IBV_WR_SEND && wc->imm_data != number) ||
	    (!is_write(op) && !is_filled(data, op->bytes, key_of(s, number), 0)))
		failed("receiver %u: message %u of sender %u is wrong", node->index, number, s);
}

/* --- time --- */

static void poll(struct node *node)
{
	struct ibv_wc wc[4];
	int n = vb_cq_poll(node->cq, 1 + (int)below(4), wc);

	for (int i = 0; i < n; i++) {
		if (node->index < sim.receivers)
			received(node, &wc[i]);
		else
			sent(node->index - sim.receivers, &wc[i]);
	}
}

static void application(struct node *node)
{
	rings_turn(node);
	poll(node);
	if (node->index >= sim.receivers) {
		const struct sender *sender = &sim.sender[node->index - sim.receivers];

		while (!sender->broken && sender->posted < sender->wanted &&
		       sender->posted - sender->done < QUEUE && (sim.calm || chance(60)))
			post(node->index - sim.receivers);
		return;
	}
	for (unsigned i = 0; i < SRQS * RECVS && node->srq[0]; i++) {
		if (!node->posted[i] && (sim.calm || chance(40)))
			recv_post(node, i);
	}
}

static void deaths_happen(void)
{
	struct node *dying = &sim.node[sim.dying];

	if (sim.dying >= sim.receivers)
		return;
	if (!dying->dead && sim.fabric.now_ns >= sim.death_ns) {
		dying->dead = sim.fabric.dead[sim.dying] = true;
		deaths++;
		/* The hub notices soon, or is itself not there for a while. */
		sim.collect_ns = sim.fabric.now_ns + below(chance(50) ? 10000 : 50000000);
	}
	if (dying->dead && sim.collect_ns && sim.fabric.now_ns >= sim.collect_ns) {
		vb_xrc_collect(sim.store, dying->slot);
		sim.collect_ns = 0;
	}
}

static void changes_happen(void)
{
	deaths_happen();
	paths_change();
}

static bool are_done(void)
{
	for (unsigned s = 0; s < sim.senders; s++) {
		const struct sender *sender = &sim.sender[s];

		if (sender->done < sender->posted ||
		    (!sender->broken && sender->done < sender->wanted))
			return false;
	}
	return true;
}

static const struct turns turns = { changes_happen, application, poll, are_done };

/* --- the end --- */

static void pair_check(unsigned r, unsigned s)
{
	const struct sender *sender = &sim.sender[s];
	const struct op *last_write = NULL;
	uint64_t adds = 0;
	unsigned number, sure = sender->broken ? 0 : sender->done;

	for (unsigned i = 0; i < sure; i++) {
		const struct op *op = &sender->op[i];

		if (op->to == r && is_write(op) && op->bytes)
			last_write = op;
		adds += op->to == r && op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		if (op->to == r && takes_recv(op) && i >= sender->next_recv[r][op->srq])
			failed("receiver %u: message %u of sender %u never came", r, i, s);
	}
	if (sender->broken)
		return;
	if (*counter_of(r, s) != adds)
		failed("receiver %u: sender %u added %llu, and not %llu times", r, s,
		       (unsigned long long)*counter_of(r, s), (unsigned long long)adds);
	number = last_write ? (unsigned)(last_write - sender->op) : 0;
	if (last_write &&
	    !is_filled(target_of(r, s), last_write->bytes, key_of(s, number), 0))
		failed("receiver %u: what sender %u wrote last is wrong", r, s);
}

/* The sender with the bad key is refused, the receive QP is in error, and it was noted. */
static void bad_key_check(void)
{
	const struct sender *sender = &sim.sender[0];
	const struct vb_xrc_rcv *rcv = &sim.store->rcv[sender->rcv_qpn];
	struct vb_xrc_note note = { 0 };
	uint64_t at = 0;

	if (!sim.bad_key || sender->done != sender->wanted)
		return;
	require(sender->broken);
	if (!atomic_load(&rcv->domain) || rcv->at.attr.qp_state != IBV_QPS_ERR)
		return;
	while (note.qpn != sender->rcv_qpn || note.type != IBV_EVENT_QP_ACCESS_ERR)
		require(vb_xrc_log_read(&sim.store->log, at++, &note));
	noted++;
}

/* All go, by themselves or not; and the senders that are whole try once more. */
static void last_reference_goes(void)
{
	bool killed = chance(50);

	for (unsigned i = 0; i < sim.receivers; i++) {
		struct node *node = &sim.node[i];

		if (killed)
			node->dead = sim.fabric.dead[i] = true;
		else if (!node->dead)
			receiver_leave(node);
		if (node->dead)
			vb_xrc_collect(sim.store, node->slot);
	}
	require(sim.store->domains_top == 1 && !atomic_load(&sim.store->domain[0].id));
	for (unsigned i = 0; i < sim.store->rcvs_top; i++)
		require(!atomic_load(&sim.store->rcv[i].domain));
	for (unsigned i = 0; i < sim.store->srqs.top; i++)
		require(!atomic_load(&sim.store->srqs.srq[i].domain));
	for (unsigned s = 0; s < sim.senders; s++) {
		if (sim.sender[s].broken)
			continue;
		sim.sender[s].wanted++;
		post(s);
	}
	turns_take(&turns, SRQS * RECVS);
	for (unsigned s = 0; s < sim.senders; s++)
		require(sim.sender[s].broken);
}

static bool run(uint64_t seed, bool trace)
{
	memset(&sim, 0, sizeof(sim));
	sim.seed = seed;
	sim.rng = seed * 0x9e3779b97f4a7c15u + 3;
	sim.trace = trace;
	if (setjmp(sim.failed)) {
		printf("seed %llu: %s\n", (unsigned long long)seed, sim.why);
		fflush(stdout);
		return false;
	}
	world_make();
	turns_take(&turns, SRQS * RECVS);
	for (unsigned r = 0; r < sim.receivers; r++) {
		for (unsigned s = 0; s < sim.senders && !sim.node[r].dead; s++)
			pair_check(r, s);
	}
	bad_key_check();
	paths_check();
	for (unsigned s = 0; s < sim.senders; s++)
		migrations += sim.sender[s].migrations;
	sim.calm = true;
	fabric_calm(&sim.fabric);
	last_reference_goes();
	by_ring += sim.ring_frames;
	world_unmake();
	return true;
}

int main(int argc, char **argv)
{
	struct sim_range range;
	uint64_t failures;

	if (sim_range_parse(argc, argv, "sim_xrc SEED | --count N [FROM]", &range))
		return SIM_BAD_USAGE;
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	failures = sim_runs(&range, run);
	if (range.count >= MANY && migrations < range.count / 4) {
		printf("only %llu migrations in %llu runs\n", migrations,
		       (unsigned long long)range.count);
		failures++;
	}
	printf("%llu runs, %llu failed; %llu deaths, %llu errors noted, %llu senders broken, "
	       "%llu migrations, %llu frames by rings\n",
	       (unsigned long long)range.count, (unsigned long long)failures, deaths, noted,
	       broken_runs, migrations, by_ring);
	return failures != 0;
}
