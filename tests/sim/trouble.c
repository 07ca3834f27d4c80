/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Runs in which something is meant to fail: a work request of the first end, its peer, or the QP
 * itself. Both ends of that pair may break then, in documented ways; nobody else may notice.
 */

#include <stdlib.h>

#include "base/check.h"
#include "engine/rc_answer.h"
#include "sim.h"

#define BIT(status) (1u << (status))
#define DEPENDS 0 /* may fail or not */

enum { WRITES = 1, READS = 2, ATOMICS = 4, SENDS = 8, ALL = 15, RETURNS = 16, LOCALS = 32 };

struct trouble_row {
	const char *name;
	unsigned opcodes;      /* what the bad work request may be; 0: there is none */
	enum ibv_wc_status status; /* of it, or of the first that fails */
	bool nak;	       /* the responder breaks too */
	bool touches_nothing;
	enum ibv_wc_status recv_status; /* at the responder, beside flushes */
};

static const struct trouble_row rows[TROUBLE_KINDS] = {
	[TROUBLE_RKEY] = { "a key that is none", WRITES | READS | ATOMICS, IBV_WC_REM_ACCESS_ERR,
			   true, true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_BOUNDS] = { "beyond the region", WRITES | READS | ATOMICS, IBV_WC_REM_ACCESS_ERR,
			     true, true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_RIGHTS] = { "no remote access", WRITES | READS | ATOMICS, IBV_WC_REM_ACCESS_ERR,
			     true, true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_PD] = { "another PD", WRITES | READS | ATOMICS, IBV_WC_REM_ACCESS_ERR, true,
			 true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_QP_ACCESS] = { "the QP forbids it", WRITES | READS | ATOMICS,
				IBV_WC_REM_ACCESS_ERR, true, true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_MISALIGNED] = { "misaligned", ATOMICS, IBV_WC_REM_INV_REQ_ERR, true, true },
	[TROUBLE_LKEY] = { "a local key that is none", ALL, IBV_WC_LOC_PROT_ERR, false, false },
	[TROUBLE_OVERSIZE] = { "beyond 2 GiB", WRITES | SENDS, IBV_WC_LOC_LEN_ERR, false, true },
	[TROUBLE_WINDOW] = { "no window for this", WRITES | READS | ATOMICS, IBV_WC_REM_ACCESS_ERR,
			     true, true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_INVALIDATE] = { "no window to give back", RETURNS, IBV_WC_RETRY_EXC_ERR, true,
				 true, IBV_WC_LOC_ACCESS_ERR },
	[TROUBLE_LOCAL] = { "no window to bind or take back", LOCALS, IBV_WC_MW_BIND_ERR, false,
			    true },
	[TROUBLE_RECV_SHORT] = { "a short receive buffer", 0, IBV_WC_REM_INV_REQ_ERR, true, false,
				 IBV_WC_LOC_LEN_ERR },
	[TROUBLE_RECV_LKEY] = { "a bad receive buffer", 0, IBV_WC_REM_OP_ERR, true, false,
				IBV_WC_LOC_PROT_ERR },
	[TROUBLE_RNR] = { "no receive buffer", 0, IBV_WC_RNR_RETRY_EXC_ERR },
	[TROUBLE_DEAD_PEER] = { "a dead peer", 0, IBV_WC_RETRY_EXC_ERR },
	[TROUBLE_TO_ERR] = { "ERR in the middle", 0, IBV_WC_WR_FLUSH_ERR },
	[TROUBLE_RESET] = { "RESET in the middle", 0, IBV_WC_WR_FLUSH_ERR },
	[TROUBLE_DESTROY] = { "destroyed in the middle", 0, IBV_WC_WR_FLUSH_ERR },
	[TROUBLE_DEATH] = { "a process dies", 0, IBV_WC_RETRY_EXC_ERR },
};

/* What bars the way of one kind of work request: which the victim may not use otherwise. */
static const struct {
	unsigned opcode, access, weight, weights;
} barred[] = {
	{ WRITES, IBV_ACCESS_REMOTE_WRITE, 2, 2 },
	{ READS, IBV_ACCESS_REMOTE_READ, 4, 1 },
	{ ATOMICS, IBV_ACCESS_REMOTE_ATOMIC, 5, 2 },
};

static bool has_bad_op(const struct sim *sim)
{
	return rows[sim->trouble].opcodes;
}

/* All that has to do with the dying process may fail, and nothing else. */
static void plan_death(struct sim *sim)
{
	const struct node *dying = sim->victim->peer->node;

	for (unsigned i = 0; i < sim->ends; i++) {
		struct end *end = &sim->end[i];

		if (end->node == dying)
			end->trouble = true;
		if (end->peer->node == dying && end->type == IBV_QPT_RC) {
			end->trouble = true;
			end->allowed = BIT(IBV_WC_RETRY_EXC_ERR);
			end->allowed_recv = BIT(IBV_WC_WR_FLUSH_ERR);
		}
	}
}

static void die(struct sim *sim)
{
	struct node *dying = sim->victim->peer->node;

	for (unsigned i = 0; i < sim->ends; i++) {
		if (sim->end[i].node == dying)
			sim->end[i].gone = true;
	}
	process_die(dying);
}

/* Before the others hear of the death, or after. */
static void birth_tick(struct sim *sim)
{
	if (!sim->heir || !sim->end[sim->ends - 1].unborn || !sim->trouble_done)
		return;
	if (!sim->birth_ns)
		sim->birth_ns = sim->fabric.now_ns + sim_below(sim, 2000000);
	if (sim->fabric.now_ns < sim->birth_ns)
		return;
	sim_trace(sim, "now: another process");
	world_birth(sim);
}

void trouble_plan(struct sim *sim)
{
	struct end *victim = &sim->end[0], *peer = victim->peer;
	const struct trouble_row *row = &rows[sim->trouble];
	unsigned which;

	if (sim->trouble == TROUBLE_NONE)
		return;
	sim_trace(sim, "trouble: %s", row->name);
	sim->victim = victim;
	victim->trouble = peer->trouble = true;
	victim->wanted = sim_range(sim, 1, OPS_MAX * 2 / 3);
	sim->trouble_at = sim_below(sim, victim->wanted);
	/* An answer that is lost on the way looks like no answer. */
	victim->allowed = BIT(row->status) | (sim->faulty ? BIT(IBV_WC_RETRY_EXC_ERR) : 0);
	victim->allowed_recv = BIT(IBV_WC_WR_FLUSH_ERR);
	peer->allowed = BIT(IBV_WC_RETRY_EXC_ERR) | (row->nak ? BIT(IBV_WC_WR_FLUSH_ERR) : 0);
	peer->allowed_recv = BIT(IBV_WC_WR_FLUSH_ERR) |
			     (row->recv_status ? BIT(row->recv_status) : 0);
	if (sim->trouble == TROUBLE_RNR)
		victim->rts.rnr_retry = (uint8_t)sim_below(sim, 4);
	if (sim->trouble == TROUBLE_DEAD_PEER) {
		victim->rts.timeout = (uint8_t)sim_range(sim, 1, 14);
		victim->rts.retry_cnt = (uint8_t)sim_below(sim, 8);
	}
	/* Nothing is lost in a ring; who dies there dies as a process. */
	if (sim->trouble == TROUBLE_DEAD_PEER)
		process_by_wire(sim, victim->node, peer->node);
	if (sim->trouble == TROUBLE_DEATH)
		plan_death(sim);
	if (sim->trouble == TROUBLE_QP_ACCESS) {
		which = sim_below(sim, VB_ARRAY_LEN(barred));
		sim->trouble_opcodes = barred[which].opcode;
		peer->access &= ~barred[which].access;
		for (unsigned i = 0; i < barred[which].weights; i++)
			victim->weights[barred[which].weight + i] = 0;
		/* WRITE with immediate is a WRITE too. */
		if (barred[which].opcode == WRITES)
			victim->weights[3] = 0;
	} else {
		sim->trouble_opcodes = row->opcodes;
	}
}

bool trouble_is_bad(const struct end *end, unsigned number)
{
	const struct sim *sim = end->sim;

	return end == sim->victim && has_bad_op(sim) && number == sim->trouble_at;
}

enum ibv_wr_opcode trouble_opcode(struct end *end, enum ibv_wr_opcode opcode)
{
	static const struct {
		unsigned set;
		enum ibv_wr_opcode opcode;
	} choice[] = {
		{ WRITES, IBV_WR_RDMA_WRITE }, { WRITES, IBV_WR_RDMA_WRITE_WITH_IMM },
		{ READS, IBV_WR_RDMA_READ }, { ATOMICS, IBV_WR_ATOMIC_CMP_AND_SWP },
		{ ATOMICS, IBV_WR_ATOMIC_FETCH_AND_ADD }, { SENDS, IBV_WR_SEND },
		{ SENDS, IBV_WR_SEND_WITH_IMM }, { WRITES, IBV_WR_ATOMIC_WRITE },
		{ RETURNS, IBV_WR_SEND_WITH_INV }, { LOCALS, IBV_WR_BIND_MW },
		{ LOCALS, IBV_WR_LOCAL_INV },
	};
	unsigned i;

	if (!trouble_is_bad(end, end->ops))
		return opcode;
	do
		i = sim_below(end->sim, VB_ARRAY_LEN(choice));
	while (!(choice[i].set & end->sim->trouble_opcodes));
	return choice[i].opcode;
}

static void break_lkey(struct sim *sim, struct ibv_sge *sge, int count)
{
	int i;

	do
		i = (int)sim_below(sim, (uint32_t)count);
	while (!sge[i].length);
	sge[i].lkey ^= sim_chance(sim, 50) ? 0x80 : 0x8000;
}

void trouble_op(struct end *end, struct op *op)
{
	struct sim *sim = end->sim;
	struct node *there = end->peer->node;
	const struct area *target = &end->peer->target;

	if (!trouble_is_bad(end, end->ops))
		return;
	op->bad = rows[sim->trouble].touches_nothing;
	sim_trace(sim, "end %u: work request %u will fail", end->index, end->ops);
	if (sim->trouble == TROUBLE_RKEY) {
		op->rkey ^= sim_chance(sim, 50) ? 1 : 0x100;
	} else if (sim->trouble == TROUBLE_BOUNDS) {
		op->va = node_addr(there, target->at) & ~7ull;
		op->va += sim_chance(sim, 30) ? -8ull
					      : ((target->bytes - op->bytes) & ~7ull) + 8;
	} else if (sim->trouble == TROUBLE_RIGHTS) {
		op->rkey = there->private.mr->ibv.rkey;
		op->va = node_addr(there, there->private.at);
	} else if (sim->trouble == TROUBLE_PD) {
		op->rkey = there->foreign.mr->ibv.rkey;
		op->va = node_addr(there, there->foreign.at);
	} else if (sim->trouble == TROUBLE_MISALIGNED) {
		op->va += sim_range(sim, 1, 7);
		op->va -= op->va > node_addr(there, target->at + target->bytes - 8) ? 8 : 0;
	} else if (sim->trouble == TROUBLE_WINDOW) {
		window_trouble(end, op, op_is_atomic(op) ? IBV_ACCESS_REMOTE_ATOMIC
					: op_is_write(op) ? IBV_ACCESS_REMOTE_WRITE
							  : IBV_ACCESS_REMOTE_READ);
	} else if (sim->trouble == TROUBLE_INVALIDATE) {
		window_trouble_invalidate(end, op);
	} else if (sim->trouble == TROUBLE_LOCAL) {
		window_trouble_local(end, op);
	} else if (sim->trouble == TROUBLE_LKEY) {
		break_lkey(sim, op->sge, op->num_sge);
	} else if (sim->trouble == TROUBLE_OVERSIZE) {
		op->num_sge = 2;
		op->sge[0].length = 1u << 31;
		op->sge[1] = op->sge[0];
		op->sge[1].length = 1 + sim_below(sim, 1u << 31);
	}
}

void trouble_recv(struct sim_rq *rq, struct buffer *buffer)
{
	struct sim *sim = rq->node->sim;

	if (!sim->victim || rq->end != sim->victim->peer || !sim_chance(sim, 15))
		return;
	if (sim->trouble == TROUBLE_RECV_SHORT) {
		int i = (int)sim_below(sim, (uint32_t)buffer->num_sge);

		buffer->bytes -= buffer->sge[i].length;
		buffer->sge[i].length = 0;
	} else if (sim->trouble == TROUBLE_RECV_LKEY) {
		break_lkey(sim, buffer->sge, buffer->num_sge);
	}
}

static bool holds_any(const struct sim_cq *cq)
{
	return atomic_load(&cq->cq->head) != atomic_load(&cq->cq->tail);
}

/*
 * Once its QP is in error or gone, nothing of an end's memory changes any more, but by completions
 * from before that bring data along.
 */
static void freeze(struct end *end)
{
	if (end->frozen || (!end->gone && vb_qp_state(end->qp) != IBV_QPS_ERR))
		return;
	if (!end->gone && end->qp->user.has_parcels && (holds_any(end->scq) || holds_any(end->rcq)))
		return;
	end->frozen = malloc(end->target.bytes + end->landing.bytes);
	vb_check(end->frozen);
	memcpy(end->frozen, end->node->mem + end->target.at, end->target.bytes);
	memcpy(end->frozen + end->target.bytes, end->node->mem + end->landing.at,
	       end->landing.bytes);
}

static void frozen_check(struct end *end)
{
	if (!end->frozen)
		return;
	if (memcmp(end->frozen, end->node->mem + end->target.at, end->target.bytes) ||
	    memcmp(end->frozen + end->target.bytes, end->node->mem + end->landing.at,
		   end->landing.bytes))
		sim_fail(end->sim, "end %u: its memory changed although its QP had stopped",
			 end->index);
}

static void strike(struct sim *sim)
{
	struct end *victim = sim->victim;

	sim_trace(sim, "now: %s", rows[sim->trouble].name);
	sim->trouble_done = true;
	sim->trouble_ns = sim->fabric.now_ns;
	if (sim->trouble == TROUBLE_RNR) {
		victim->peer->rq->closed = true;
	} else if (sim->trouble == TROUBLE_DEAD_PEER) {
		sim->fabric.dead_qpn = victim->peer->qp->ibv.qp.qp_num;
	} else if (sim->trouble == TROUBLE_TO_ERR) {
		sim_require(sim, world_modify(victim, IBV_QPS_ERR) == 0);
	} else if (sim->trouble == TROUBLE_RESET) {
		sim_require(sim, world_modify(victim, IBV_QPS_RESET) == 0);
		victim->gone = true;
	} else if (sim->trouble == TROUBLE_DEATH) {
		die(sim);
	} else if (sim->trouble == TROUBLE_DESTROY) {
		sim_require(sim, vb_qp_destroy(victim->qp) == 0);
		process_fence(victim->node);
		vb_qp_free(victim->qp);
		victim->qp = NULL;
		victim->gone = true;
	}
	if (victim->gone)
		victim->own_rq.closed = true;
}

void trouble_tick(struct sim *sim)
{
	struct end *victim = sim->victim;

	if (!victim)
		return;
	if (!sim->trouble_done && !has_bad_op(sim) && victim->ops > sim->trouble_at)
		strike(sim);
	birth_tick(sim);
	freeze(victim);
	freeze(victim->peer);
}

/* IBA 9.7.6.1.3 and ibv_modify_qp(3): retry_cnt + 1 timeouts, and one more to notice. */
static void dead_peer_check(const struct sim *sim)
{
	const struct end *victim = sim->victim;
	uint64_t timeout_ns = vb_req_ack_timeout_ns(&victim->qp->req);
	uint64_t from_ns = sim->trouble_ns > victim->posted_ns ? sim->trouble_ns
							       : victim->posted_ns;
	uint64_t limit_ns = (victim->rts.retry_cnt + 2) * timeout_ns + 20000000;

	if (victim->status != IBV_WC_RETRY_EXC_ERR)
		return;
	if (sim->broken_ns > from_ns + limit_ns)
		sim_fail((struct sim *)sim, "a dead peer was noticed after %llu ms only",
			 (unsigned long long)(sim->broken_ns - from_ns) / 1000000);
	/* Where nothing is lost, what was sent before was answered a moment before. */
	if (!sim->faulty && sim->broken_ns + timeout_ns / 2 <
				    sim->trouble_ns + (victim->rts.retry_cnt + 1) * timeout_ns)
		sim_fail((struct sim *)sim, "a peer was given up after %llu ms",
			 (unsigned long long)(sim->broken_ns - sim->trouble_ns) / 1000000);
}

/* All that was posted to a QP that has failed came back. */
static void flushed_check(struct end *end)
{
	if (end->gone || end->unborn || end->node->dead || end->rq != &end->own_rq ||
	    vb_qp_state(end->qp) != IBV_QPS_ERR)
		return;
	if (end->own_rq.posted)
		sim_fail(end->sim, "end %u: %u receive requests were not flushed", end->index,
			 end->own_rq.posted);
}

void trouble_end(struct sim *sim)
{
	struct end *victim = sim->victim;
	const struct trouble_row *row = &rows[sim->trouble];

	if (!victim)
		return;
	frozen_check(victim);
	frozen_check(victim->peer);
	flushed_check(victim);
	flushed_check(victim->peer);
	free(victim->frozen);
	free(victim->peer->frozen);
	if (has_bad_op(sim)) {
		/* No answer came: it would have told of those before, too. */
		bool silent = sim->faulty || row->status == IBV_WC_RETRY_EXC_ERR;

		sim_require(sim, victim->broken);
		sim_require(sim, victim->broken_at == sim->trouble_at || (silent && row->nak));
	}
	if (sim->trouble == TROUBLE_DEAD_PEER)
		dead_peer_check(sim);
	if (row->recv_status && victim->peer->recv_broken)
		sim_require(sim, victim->broken);
}
