/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC, simulated: processes, each with initiators and a target, on hosts of their own over a fabric
 * that loses, doubles, delays and damages, or on one host, by rings where there are any; and with
 * the end of a target, or of its whole process. Arguments and output as those of sim_xrc.
 *
 * What must come of it: every message once, in its order, with its data; what is written, read and
 * counted is right; who fails, fails for a reason, and by the status that belongs to it: a wrong
 * key, or a target that is gone. With streams, nothing but the stream suffers; without, the
 * initiator recovers by ibv_modify_qp(3) and goes on.
 */
#include "dc_sim.h"
#include "arguments.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "nic/core/timer.h"
#include "nic/data/qp_error.h"

static unsigned long long deaths, errors, recovered, streams_reset, by_ring, connects, arrived;

/* --- work requests --- */

static uint32_t key_of(const struct sender *sender, unsigned number)
{
	return sender->index * OPS + number + 11;
}

static bool takes_recv(const struct op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_write(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool lands(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_READ || op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static unsigned dci_of(const struct sender *sender)
{
	return sender->index % DCIS;
}

static void op_choose(struct sender *sender, struct op *op)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	const struct op *before = op == sender->op ? NULL : op - 1;

	*op = (struct op){ .opcode = opcodes[below(VB_ARRAY_LEN(opcodes))] };
	op->bytes = chance(40) ? below(64) : below(MESSAGE_MAX);
	/* Of two without data or number one would not know which came. */
	op->bytes |= op->opcode == IBV_WR_SEND;
	op->to = before && chance(30) ? before->to : below(sim.nodes);
	op->stream = 1 + below(STREAMS);
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		op->bytes = 8;
		op->adds = sender->adds[op->to];
	}
	op->offset = below(PATTERN_BYTES - op->bytes);
	if (!sim.bad || !chance(8))
		return;
	op->bad = (enum bad)(1 + below(3));
	/* What has no data needs no key. */
	if (op->bad == BAD_RKEY)
		op->opcode = IBV_WR_RDMA_WRITE;
	op->bytes |= op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 0 : 1;
	if (op->opcode == IBV_WR_RDMA_READ && op->bad == BAD_LKEY)
		op->opcode = IBV_WR_SEND;
	op->offset = 0;
}

static void post(struct sender *sender)
{
	unsigned number = sender->posted;
	struct op *op = &sender->op[number];
	struct node *node = sender->node, *to;
	struct area *mine = &area[node->index];
	struct vb_post post = { .wr = { .wr_id = number, .num_sge = 1, .imm_data = number } };
	struct ibv_send_wr *wr = &post.wr;
	struct ibv_sge sge;
	uint8_t *at = mine->source[dci_of(sender)][number];

	op_choose(sender, op);
	/* One that has failed is let alone until it is reset. */
	if (sender->streams && sender->errored >> op->stream & 1)
		return;
	sender->posted++;
	to = &sim.node[op->to];
	if (lands(op))
		at = mine->landing[dci_of(sender)][number];
	else
		fill(at, op->bytes, key_of(sender, number));
	sge = (struct ibv_sge){ (uintptr_t)at, op->bytes,
				node->mr->ibv.lkey ^ (op->bad == BAD_LKEY) };
	post.dc = (struct vb_dc_address){
		.ah = &node->ah[op->to]->ibv,
		.dctn = to->dctn,
		.key = to->key ^ (op->bad == BAD_KEY),
		.stream = (uint16_t)op->stream,
	};
	wr->sg_list = &sge;
	wr->opcode = op->opcode;
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sender->adds[op->to]++;
		wr->wr.atomic.remote_addr = (uintptr_t)&area[op->to].counter[sender->index];
		wr->wr.atomic.rkey = to->mr->ibv.rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr =
			op->opcode == IBV_WR_RDMA_READ
				? (uintptr_t)area[op->to].pattern + op->offset
				: (uintptr_t)area[op->to].written[sender->index][number];
		wr->wr.rdma.rkey = to->mr->ibv.rkey ^ (op->bad == BAD_RKEY);
	}
	if (sim.trace)
		printf("%12llu sender %u posts %u: opcode %d to %u, stream %u, %u octets%s\n",
		       (unsigned long long)sim.fabric.now_ns, sender->index, number, op->opcode,
		       op->to, op->stream, op->bytes, op->bad ? ", bad" : "");
	require(vb_qp_post_batch(sender->qp, &post, 1) == 0);
}

static bool is_gone(const struct node *node)
{
	return node->dead || !node->target;
}

static bool may_fail(const struct op *op, enum ibv_wc_status status)
{
	if (status == IBV_WC_RETRY_EXC_ERR)
		return is_gone(&sim.node[op->to]);
	if (status == IBV_WC_REM_ACCESS_ERR)
		return op->bad == BAD_KEY || op->bad == BAD_RKEY;
	return status == IBV_WC_LOC_PROT_ERR && op->bad == BAD_LKEY;
}

static void sent_well(const struct sender *sender, unsigned number)
{
	const struct op *op = &sender->op[number];
	const uint8_t *landing = area[sender->node->index].landing[dci_of(sender)][number];
	uint64_t found;

	if (op->bad)
		failed("sender %u: a bad key was taken for good", sender->index);
	if (op->opcode == IBV_WR_RDMA_READ && !is_filled(landing, op->bytes, op->to, op->offset))
		failed("sender %u: READ %u is wrong", sender->index, number);
	if (op->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
		return;
	memcpy(&found, landing, sizeof(found));
	if (found < sender->lowest[op->to] || found > op->adds)
		failed("sender %u: atomic %u found %llu, of %u to %u", sender->index, number,
		       (unsigned long long)found, sender->lowest[op->to], op->adds);
	((struct sender *)sender)->lowest[op->to] = (unsigned)found + 1;
}

static unsigned bits(unsigned word)
{
	return (unsigned)__builtin_popcount(word);
}

static void went_wrong(struct sender *sender, const struct op *op, enum ibv_wc_status status)
{
	unsigned bit = 1u << op->stream;

	if (status == IBV_WC_WR_FLUSH_ERR) {
		require(sender->failed || (sender->streams && (sender->errored & bit)));
		return;
	}
	if (sender->failed || !may_fail(op, status))
		failed("sender %u: work request %u to %u ends with status %d", sender->index,
		       (unsigned)(op - sender->op), op->to, status);
	errors++;
	if (sender->streams) {
		/* mlx5dv_dci_stream_id_reset(3): none fails twice, and so many fail all. */
		require(!(sender->errored & bit));
		sender->errored |= bit;
		sender->failed = bits(sender->errored) == 1 << ERRORED_LOG;
	} else {
		sender->failed = true;
	}
	require((vb_qp_state(sender->qp) == IBV_QPS_ERR) >= sender->failed);
}

static void sent(struct sender *sender, const struct ibv_wc *wc)
{
	unsigned number = sender->done++;
	struct op *op = &sender->op[number];

	require(wc->wr_id == number && number < sender->posted);
	op->done = true;
	op->status = wc->status;
	if (wc->status == IBV_WC_SUCCESS)
		sent_well(sender, number);
	else
		went_wrong(sender, op, wc->status);
}

/* Once nothing is outstanding, what failed is made good. */
static void recover(struct sender *sender)
{
	if (sender->done != sender->posted)
		return;
	if (sender->failed) {
		sender_connect(sender, true);
		sender->failed = false;
		sender->errored = 0;
		recovered++;
	}
	for (unsigned i = 1; i <= STREAMS; i++) {
		if (!sender->streams)
			break;
		if (sender->errored >> i & 1) {
			require(vb_dc_stream_reset(sender->qp, (uint16_t)i) == 0);
			streams_reset++;
		} else {
			require(vb_dc_stream_reset(sender->qp, (uint16_t)i) == EINVAL);
		}
		sender->errored &= ~(1u << i);
	}
}

/* --- targets --- */

static void recv_post(struct node *node, unsigned at)
{
	struct ibv_sge sge = { (uintptr_t)area[node->index].recv[at], MESSAGE_MAX,
			       node->mr->ibv.lkey };
	struct ibv_recv_wr wr = { .wr_id = at, .sg_list = &sge, .num_sge = 1 }, *bad;

	require(vb_srq_post(node->srq, &wr, &bad) == 0);
	node->posted[at] = true;
}

static struct sender *sender_of(uint32_t qpn)
{
	for (unsigned s = 0; s < sim.senders; s++) {
		if (sim.sender[s].qp->ibv.qp.qp_num == qpn)
			return &sim.sender[s];
	}
	failed("a message of QP %06x, which is none", qpn);
}

/* Which one that was, its data or its immediate value say. */
static unsigned number_of(const struct sender *sender, struct node *node, const struct ibv_wc *wc)
{
	unsigned number;

	if (wc->wc_flags & IBV_WC_WITH_IMM)
		return wc->imm_data;
	for (number = sender->last_came[node->index]; number < sender->posted; number++) {
		const struct op *op = &sender->op[number];

		if (op->to == node->index && op->opcode == IBV_WR_SEND && !op->bad &&
		    op->bytes == wc->byte_len &&
		    is_filled(area[node->index].recv[wc->wr_id], op->bytes,
			      key_of(sender, number), 0))
			return number;
	}
	failed("target %u: nothing that sender %u sent", node->index, sender->index);
}

/* A later message of that sender's for this target than the last one. */
static void received(struct node *node, const struct ibv_wc *wc)
{
	struct sender *sender = sender_of(wc->src_qp);
	unsigned number;
	struct op *op;

	require(wc->wr_id < RECVS && node->posted[wc->wr_id]);
	node->posted[wc->wr_id] = false;
	require(wc->status == IBV_WC_SUCCESS && wc->qp_num == node->dctn);
	number = number_of(sender, node, wc);
	require(number >= sender->last_came[node->index] && number < sender->posted);
	op = &sender->op[number];
	if (op->came || op->to != node->index || !takes_recv(op) || op->bad ||
	    wc->byte_len != op->bytes ||
	    (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) != is_write(op) ||
	    !!(wc->wc_flags & IBV_WC_WITH_IMM) != (op->opcode != IBV_WR_SEND) ||
	    (!is_write(op) && !is_filled(area[node->index].recv[wc->wr_id], op->bytes,
					 key_of(sender, number), 0)))
		failed("target %u: message %u of sender %u is wrong", node->index, number,
		       sender->index);
	op->came = true;
	arrived++;
	sender->last_came[node->index] = number + 1;
}

/* --- time --- */

static void poll(struct node *node)
{
	struct ibv_wc wc[4];
	int n = vb_cq_poll(node->recv_cq, 1 + (int)below(4), wc);

	for (int i = 0; i < n; i++)
		received(node, &wc[i]);
	n = vb_cq_poll(node->cq, 1 + (int)below(4), wc);
	for (int i = 0; i < n; i++) {
		for (unsigned s = 0; s < sim.senders; s++) {
			if (sim.sender[s].qp->ibv.qp.qp_num == wc[i].qp_num)
				sent(&sim.sender[s], &wc[i]);
		}
	}
}

static void application(struct node *node)
{
	rings_turn(node);
	poll(node);
	for (unsigned s = 0; s < sim.senders; s++) {
		struct sender *sender = &sim.sender[s];

		if (sender->node != node)
			continue;
		if (sender->failed || sender->errored)
			recover(sender);
		while (!sender->failed && sender->posted < sender->wanted &&
		       sender->posted - sender->done < QUEUE && (sim.calm || chance(60)))
			post(sender);
	}
	for (unsigned i = 0; i < RECVS; i++) {
		if (!node->posted[i] && (sim.calm || chance(40)))
			recv_post(node, i);
	}
}

static void deaths_happen(void)
{
	struct node *dying = &sim.node[sim.dying];

	if (sim.dying >= sim.nodes || is_gone(dying) || sim.fabric.now_ns < sim.death_ns)
		return;
	deaths++;
	if (sim.only_target)
		target_destroy(dying);
	else
		dying->dead = sim.fabric.dead[sim.dying] = true;
}

static bool are_done(void)
{
	for (unsigned s = 0; s < sim.senders; s++) {
		const struct sender *sender = &sim.sender[s];

		if (sender->node->dead)
			continue;
		if (sender->done < sender->posted || sender->done < sender->wanted)
			return false;
	}
	return true;
}

static const struct turns turns = { deaths_happen, application, poll, are_done };

/* --- the end --- */

static void op_check(const struct sender *sender, unsigned number)
{
	const struct op *op = &sender->op[number];
	const uint8_t *written = area[op->to].written[sender->index][number];

	if (op->status != IBV_WC_SUCCESS || !op->done)
		return;
	/* What a process that died had taken in, nobody will tell. */
	if (!sim.node[op->to].dead && sim.node[op->to].target && takes_recv(op) && !op->came)
		failed("target %u: message %u of sender %u never came", op->to, number,
		       sender->index);
	if (is_write(op) && !is_filled(written, op->bytes, key_of(sender, number), 0))
		failed("target %u: what sender %u wrote by %u is wrong", op->to, sender->index,
		       number);
}

static void sender_check(const struct sender *sender)
{
	unsigned sure[FABRIC_NICS_MAX] = { 0 };

	connects += ((struct vb_dci *)sender->qp->special.dc)->run;
	for (unsigned i = 0; i < sender->done; i++) {
		const struct op *op = &sender->op[i];

		op_check(sender, i);
		sure[op->to] += op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD &&
				op->status == IBV_WC_SUCCESS;
	}
	for (unsigned i = 0; i < sim.nodes; i++) {
		uint64_t count = area[i].counter[sender->index];

		if (count < sure[i] || count > sender->adds[i])
			failed("target %u: sender %u added %llu, of %u to %u times", i,
			       sender->index, (unsigned long long)count, sure[i],
			       sender->adds[i]);
	}
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
	turns_take(&turns, RECVS + 4);
	for (unsigned s = 0; s < sim.senders; s++)
		sender_check(&sim.sender[s]);
	by_ring += sim.ring_frames;
	world_unmake();
	return true;
}

int main(int argc, char **argv)
{
	struct sim_range range;
	uint64_t failures;

	if (sim_range_parse(argc, argv, "sim_dc SEED | --count N [FROM]", &range))
		return SIM_BAD_USAGE;
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	failures = sim_runs(&range, run);
	printf("%llu runs, %llu failed; %llu connections, %llu messages, %llu ends of targets, "
	       "%llu errors, %llu resets of QPs, %llu of streams, %llu frames by rings\n",
	       (unsigned long long)range.count, (unsigned long long)failures, connects, arrived,
	       deaths, errors, recovered, streams_reset, by_ring);
	return failures != 0;
}
