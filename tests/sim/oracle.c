/* SPDX-License-Identifier: BSD-2-Clause */

/* What must come of it all. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "sim.h"
#include "engine/rc_answer.h"
#include "nic/control/nic.h"
#include "wire/grh.h"

static uint8_t scratch[2][MESSAGE_MAX + 8192];

/* --- what work requests carry --- */

static void gather(const struct ibv_sge *sge, int count, uint32_t offset, uint32_t bytes,
		   uint8_t *out)
{
	for (int i = 0; i < count && bytes; i++) {
		uint32_t n = sge[i].length;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < bytes ? n - offset : bytes;
		memcpy(out, (const void *)(uintptr_t)(sge[i].addr + offset), n);
		out += n;
		bytes -= n;
		offset = 0;
	}
}

static void op_data(const struct op *op, uint32_t offset, uint32_t bytes, uint8_t *out)
{
	if (op->inlined)
		memcpy(out, op->inlined + offset, bytes);
	else
		gather(op->sge, op->num_sge, offset, bytes, out);
}

/* What the arena holds there is what it has to hold from now on. */
static void adopt(struct node *node, const struct ibv_sge *sge, int count, uint32_t bytes)
{
	for (int i = 0; i < count && bytes; i++) {
		uint32_t n = sge[i].length < bytes ? sge[i].length : bytes;
		size_t at = sge[i].addr - (uintptr_t)node->mem;

		memcpy(node->image + at, node->mem + at, n);
		bytes -= n;
	}
}

static bool covers(const struct op *op, uint32_t at)
{
	return (op_is_write(op) || op_is_atomic(op)) && !op->bad && !op->shared &&
	       at >= op->remote && at - op->remote < op->bytes;
}

/*
 * Can this octet have come from a work request in [from, to)? What an atomic would have left is
 * not worked out: it explains all.
 */
static bool explained(const struct end *end, unsigned from, unsigned to, uint32_t at, uint8_t octet)
{
	for (unsigned i = from; i < to; i++) {
		const struct op *op = &end->op[i];
		uint8_t data;

		if (!covers(op, at))
			continue;
		if (op_is_atomic(op))
			return true;
		op_data(op, at - op->remote, 1, &data);
		if (data == octet)
			return true;
	}
	return false;
}

/* All that a WRITE carries is in the target's memory, but for what came later. */
static bool is_placed(const struct end *from, unsigned number, const uint8_t *data)
{
	const struct op *op = &from->op[number];
	const uint8_t *target = from->peer->node->mem + op->remote;

	for (uint32_t i = 0; i < op->bytes; i++)
		if (target[i] != data[i] &&
		    !explained(from, number + 1, from->ops, op->remote + i, target[i]))
			return false;
	return true;
}

static void placed_check(const struct end *from, unsigned number, const char *when)
{
	const struct op *op = &from->op[number];

	if (from->type != IBV_QPT_RC || !op_is_write(op) || op->bad || op->shared)
		return;
	op_data(op, 0, op->bytes, scratch[0]);
	if (!is_placed(from, number, scratch[0]))
		sim_fail(from->sim, "end %u: WRITE %u is not in place %s", from->index, number,
			 when);
}

/* --- the requester's side --- */

/*
 * READs see all before them. What comes after them they may see or not (IBA 9.5, ordering rules),
 * unless a fence holds it back until they are done.
 */
static void read_done(struct end *end, unsigned number)
{
	struct op *op = &end->op[number];
	const uint8_t *expected = end->peer->node->image + op->remote;
	unsigned to = number + 1;

	while (to < end->ops && !(end->op[to].flags & IBV_SEND_FENCE))
		to++;
	gather(op->sge, op->num_sge, 0, op->bytes, scratch[0]);
	if (memcmp(scratch[0], expected, op->bytes) != 0) {
		for (uint32_t i = 0; i < op->bytes; i++)
			if (scratch[0][i] != expected[i] &&
			    !explained(end, number + 1, to, op->remote + i, scratch[0][i]))
				sim_fail(end->sim, "end %u: READ %u is wrong at octet %u",
					 end->index, number, i);
	}
	adopt(end->node, op->sge, op->num_sge, op->bytes);
}

static void atomic_done(struct end *end, unsigned number)
{
	struct op *op = &end->op[number];
	uint8_t *word = end->peer->node->image + op->remote;
	uint64_t found;

	gather(op->sge, op->num_sge, 0, 8, (uint8_t *)&op->fetched);
	adopt(end->node, op->sge, op->num_sge, 8);
	if (op->shared)
		return;
	memcpy(&found, word, 8);
	if (op->fetched != found)
		sim_fail(end->sim, "end %u: atomic %u found %" PRIx64 ", not %" PRIx64,
			 end->index, number, op->fetched, found);
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		found += op->operand;
	else if (found == op->compare)
		found = op->operand;
	memcpy(word, &found, 8);
}

static void op_done(struct end *end, unsigned number)
{
	struct op *op = &end->op[number];

	if (trouble_is_bad(end, number))
		sim_fail(end->sim, "end %u: work request %u must fail", end->index, number);
	window_op_done(end, number);
	if (op->opcode == IBV_WR_RDMA_READ)
		read_done(end, number);
	else if (op_is_atomic(op))
		atomic_done(end, number);
	else if (op_is_write(op) && end->type == IBV_QPT_RC)
		op_data(op, 0, op->bytes, end->peer->node->image + op->remote);
	/* ibv_reg_mr(3): a completion ensures that all data is visible. IBA does not say so. */
	if (!end->peer->node->order.iba)
		placed_check(end, number, "at its completion");
}

static void send_failed(struct end *end, unsigned number, const struct ibv_wc *wc)
{
	struct sim *sim = end->sim;

	if (!end->trouble || (!end->broken && !(end->allowed >> wc->status & 1)))
		sim_fail(sim, "end %u: work request %u fails with status %d", end->index, number,
			 wc->status);
	if (!end->broken) {
		end->broken = true;
		end->status = wc->status;
		end->broken_at = number;
		if (end == sim->victim)
			sim->broken_ns = sim->fabric.now_ns;
		return;
	}
	sim_require(sim, wc->status == IBV_WC_WR_FLUSH_ERR);
}

void oracle_send_wc(struct sim_cq *cq, struct end *end, const struct ibv_wc *wc)
{
	struct sim *sim = end->sim;
	unsigned number = (unsigned)wc->wr_id;

	sim_require(sim, cq == end->scq && !end->gone);
	sim_require(sim, wc->wr_id >> 32 == end->index && number < end->ops);
	if (number < end->done)
		sim_fail(sim, "end %u: work request %u is done twice", end->index, number);
	if (end->sqd && number >= end->sqd_ops && wc->status == IBV_WC_SUCCESS)
		sim_fail(sim, "end %u: work request %u is done though it drains", end->index,
			 number);
	/* Those before it said nothing: they were not asked to, and did not fail. */
	for (; end->done < number; end->done++) {
		const struct op *op = &end->op[end->done];

		if (end->init.sq_sig_all || (op->flags & IBV_SEND_SIGNALED) || end->broken ||
		    change_status(end, end->done) != IBV_WC_SUCCESS)
			sim_fail(sim, "end %u: %u completes before %u", end->index, number,
				 end->done);
		op_done(end, end->done);
	}
	end->op[number].status = wc->status;
	if (!end->trouble && change_status(end, number) != IBV_WC_SUCCESS) {
		sim_require(sim, wc->status == change_status(end, number));
		if (wc->status == IBV_WC_LOC_PROT_ERR)
			end->sqe_at = number;
		end->sqe = end->sqe || wc->status == IBV_WC_LOC_PROT_ERR;
	} else if (wc->status != IBV_WC_SUCCESS) {
		send_failed(end, number, wc);
	} else {
		sim_require(sim, !end->broken);
		sim_require(sim, end->init.sq_sig_all ||
					 (end->op[number].flags & IBV_SEND_SIGNALED));
		if (op_is_fetch(&end->op[number]))
			sim_require(sim, wc->byte_len == end->op[number].bytes);
		op_done(end, number);
	}
	for (unsigned i = end->released; i <= number; i++)
		if (op_is_fetch(&end->op[i]))
			end->landing_tail = end->op[i].landing_end;
	end->done = end->released = number + 1;
}

/* --- the responder's side --- */

static bool imm_fits(const struct op *op, const struct ibv_wc *wc)
{
	if (op_has_imm(op) != !!(wc->wc_flags & IBV_WC_WITH_IMM))
		return false;
	if ((op->opcode == IBV_WR_SEND_WITH_INV) != !!(wc->wc_flags & IBV_WC_WITH_INV))
		return false;
	return !op_has_imm(op) || op->imm_be == wc->imm_data;
}

/* Is this what work request `number` of `from` sends, given what was received? */
static bool message_fits(struct end *end, const struct end *from, unsigned number,
			 const struct buffer *buffer, const struct ibv_wc *wc)
{
	const struct op *op = &from->op[number];
	uint32_t skip = end->type == IBV_QPT_UD ? VB_GRH_BYTES : 0;

	if (!op_takes_recv(op) || !imm_fits(op, wc) || wc->byte_len != op->bytes + skip)
		return false;
	if (op_is_write(op) != (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM))
		return false;
	op_data(op, 0, op->bytes, scratch[0]);
	if (!op_is_write(op)) {
		gather(buffer->sge, buffer->num_sge, skip, op->bytes, scratch[1]);
		return memcmp(scratch[0], scratch[1], op->bytes) == 0;
	}
	return is_placed(from, number, scratch[0]);
}

static void grh_check(struct end *end, const struct end *from, const struct buffer *buffer)
{
	const struct sim *sim = end->sim;
	uint8_t octets[VB_GRH_BYTES];
	struct vb_grh grh;

	gather(buffer->sge, buffer->num_sge, 0, VB_GRH_BYTES, octets);
	sim_require(end->sim, vb_grh_parse(&grh, octets));
	sim_require(end->sim, !memcmp(grh.sgid, sim->fabric.gid[from->node->index][from->gid],
				      VB_GID_BYTES));
	sim_require(end->sim, !memcmp(grh.dgid, sim->fabric.gid[end->node->index][from->gid],
				      VB_GID_BYTES));
}

static struct end *datagram_from(struct end *end, const struct ibv_wc *wc)
{
	struct sim *sim = end->sim;

	sim_require(sim, wc->wc_flags & IBV_WC_GRH);
	for (unsigned i = 0; i < sim->ends; i++)
		if (sim->end[i].type == IBV_QPT_UD && sim->end[i].qp->ibv.qp.qp_num == wc->src_qp)
			return &sim->end[i];
	sim_fail(sim, "end %u: a datagram from QP %06x, which is none", end->index, wc->src_qp);
}

/* Which message is it? RC: the next one. UC: one after the last. UD: any of those sent here. */
static void message_check(struct end *end, const struct buffer *buffer, const struct ibv_wc *wc)
{
	struct end *from = end->type == IBV_QPT_UD ? datagram_from(end, wc) : end->peer;
	unsigned i = end->type == IBV_QPT_UD ? 0 : end->recv_next;

	for (; i < from->ops; i++) {
		if (!op_takes_recv(&from->op[i]) || from->op[i].stumbles || from->op[i].flushed ||
		    (end->type == IBV_QPT_UD && from->op[i].dest != end))
			continue;
		if (message_fits(end, from, i, buffer, wc))
			break;
		if (end->type == IBV_QPT_RC)
			sim_fail(end->sim, "end %u: message %u of its peer came wrong (%u octets)",
				 end->index, i, wc->byte_len);
	}
	if (i == from->ops)
		sim_fail(end->sim, "end %u: received what nobody sent", end->index);
	/* C9-28: so are all WRITEs before it. */
	for (unsigned before = end->recv_next; end->type == IBV_QPT_RC && before < i; before++)
		placed_check(from, before, "when a later message is");
	end->recv_next = i + 1;
	window_message(end, from, i, wc);
	if (end->type == IBV_QPT_UD)
		grh_check(end, from, buffer);
	/* Of a UC message that was lost on its way, a part may have come into the same buffer. */
	if (end->type == IBV_QPT_UC)
		adopt(end->node, buffer->sge, buffer->num_sge, UINT32_MAX);
	else if (wc->opcode == IBV_WC_RECV)
		adopt(end->node, buffer->sge, buffer->num_sge, wc->byte_len);
}

static void recv_failed(struct end *end, const struct buffer *buffer, const struct ibv_wc *wc)
{
	if (!end->trouble || (!end->recv_broken && !(end->allowed_recv >> wc->status & 1)))
		sim_fail(end->sim, "end %u: a receive fails with status %d", end->index,
			 wc->status);
	if (end->recv_broken)
		sim_require(end->sim, wc->status == IBV_WC_WR_FLUSH_ERR);
	else
		end->recv_status = wc->status;
	end->recv_broken = true;
	if (end->rq == &end->own_rq)
		end->rq->closed = true;
	/* A part of a message may be in it. */
	adopt(end->node, buffer->sge, buffer->num_sge, UINT32_MAX);
}

void oracle_recv_wc(struct sim_cq *cq, struct end *end, const struct ibv_wc *wc)
{
	struct sim *sim = end->sim;
	struct sim_rq *rq = end->rq;
	uint32_t index = (uint32_t)wc->wr_id;
	uint32_t id = rq->end ? rq->end->index : ENDS_MAX + rq->node->index;

	sim_require(sim, cq == end->rcq && !end->gone);
	sim_require(sim, (wc->wr_id >> 32 & 0x7fffffff) == id && index < rq->depth);
	sim_require(sim, rq->buffer[index].posted);
	if (!rq->srq)
		sim_require(sim, rq->fifo[rq->head++ % DEPTH_MAX] == index);
	rq->buffer[index].posted = false;
	rq->posted--;
	if (wc->status != IBV_WC_SUCCESS) {
		recv_failed(end, &rq->buffer[index], wc);
		return;
	}
	sim_require(sim, !end->recv_broken);
	message_check(end, &rq->buffer[index], wc);
}

/* --- words that everybody's atomics went to --- */

static struct op *shared_find(struct sim *sim, unsigned node, unsigned word, uint64_t found,
			      bool changes)
{
	for (unsigned i = 0; i < sim->ends; i++) {
		for (unsigned j = 0; j < sim->end[i].ops; j++) {
			struct op *op = &sim->end[i].op[j];

			if (op->shared && op->shared_node == node && op->shared_word == word &&
			    op->fetched == found &&
			    (!changes || op->shared == SHARED_ADD || op->compare == found))
				return op;
		}
	}
	return NULL;
}

static unsigned shared_count(const struct sim *sim, unsigned node, unsigned word, bool changes)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sim->ends; i++) {
		for (unsigned j = 0; j < sim->end[i].ops; j++) {
			const struct op *op = &sim->end[i].op[j];

			n += op->shared && op->shared_node == node && op->shared_word == word &&
			     (!changes || op->shared == SHARED_ADD || op->compare == op->fetched);
		}
	}
	return n;
}

/*
 * Each atomic that changes the word finds what another one left: they make one chain from the
 * first value to the last. An atomic that changes nothing finds a value of that chain.
 */
static void shared_check(struct sim *sim, struct node *node, unsigned word)
{
	uint32_t at = node->shared.at + 8 * word;
	unsigned changes = shared_count(sim, node->index, word, true), seen = 0, steps = 0;
	uint64_t value, last;
	struct op *op;

	memcpy(&value, node->image + at, 8);
	memcpy(&last, node->mem + at, 8);
	for (;;) {
		op = shared_find(sim, node->index, word, value, true);
		for (unsigned i = 0; i < sim->ends; i++)
			for (unsigned j = 0; j < sim->end[i].ops; j++) {
				const struct op *o = &sim->end[i].op[j];

				seen += o->shared && o->shared_node == node->index &&
					o->shared_word == word && o->fetched == value;
			}
		if (!op || steps == changes)
			break;
		value = op->shared == SHARED_ADD ? value + op->operand : op->operand;
		steps++;
	}
	if (steps != changes || value != last ||
	    seen != shared_count(sim, node->index, word, false))
		sim_fail(sim, "node %u: atomics on word %u are not one after another: %u of %u",
			 node->index, word, steps, changes);
	memcpy(node->image + at, &last, 8);
}

/* --- the end --- */

/* Octets of the target that differ must come from work requests that are not known to be done. */
static void loose_target(struct end *end)
{
	const struct end *peer = end->peer;
	unsigned number = peer->broken ? peer->broken_at : peer->done;
	struct node *node = end->node;

	if (end->type == IBV_QPT_UC)
		number = 0;

	for (uint32_t i = end->target.at; i < end->target.at + end->target.bytes; i++) {
		if (node->mem[i] != node->image[i] &&
		    !explained(end->peer, number, end->peer->ops, i, node->mem[i]))
			sim_fail(end->sim, "end %u: octet %u of its target was never sent",
				 end->index, i - end->target.at);
		node->image[i] = node->mem[i];
	}
}

/* Where an exchange was broken off, or UC: parts may have come. */
static void loosen(struct end *end)
{
	struct sim_rq *rq = end->rq;

	loose_target(end);
	if (end->type == IBV_QPT_RC)
		for (unsigned i = 0; i < end->ops; i++)
			if (op_is_fetch(&end->op[i]) && !end->op[i].bad &&
			    (i >= end->done || end->op[i].status))
				adopt(end->node, end->op[i].sge, end->op[i].num_sge, UINT32_MAX);
	for (uint32_t i = 0; i < rq->depth; i++)
		if (rq->buffer[i].posted)
			adopt(end->node, rq->buffer[i].sge, rq->buffer[i].num_sge, UINT32_MAX);
}

static void end_check(struct end *end)
{
	struct sim *sim = end->sim;

	if (end->trouble || end->type == IBV_QPT_UC)
		loosen(end);
	if (end->gone)
		return;
	change_end(end);
	sim_require(sim, end->done == end->ops);
	sim_require(sim, end->qp->req.head == end->qp->req.tail);
	sim_require(sim, vb_rc_deadline_ns(&end->qp->req) == VB_NEVER_NS);
	if (!end->trouble)
		windows_check(end);
	if (end->type != IBV_QPT_RC || end->trouble)
		return;
	for (unsigned i = end->recv_next; i < end->peer->ops; i++)
		if (op_takes_recv(&end->peer->op[i]))
			sim_fail(sim, "end %u: message %u never came", end->index, i);
}

static void arena_check(struct node *node)
{
	uint32_t i = 0;

	if (memcmp(node->mem, node->image, node->used + 256) == 0)
		return;
	while (node->mem[i] == node->image[i])
		i++;
	for (unsigned e = 0; e < node->sim->ends; e++) {
		const struct end *end = &node->sim->end[e];
		const struct area *areas[] = { &end->source, &end->landing, &end->target,
					       &end->own_rq.area };
		static const char *const names[] = { "source", "landing", "target", "receives" };

		for (unsigned a = 0; a < 4 && end->node == node; a++)
			if (i >= areas[a]->at && i - areas[a]->at < areas[a]->bytes)
				sim_fail(node->sim, "end %u: its %s are wrong at octet %u", e,
					 names[a], i - areas[a]->at);
	}
	sim_fail(node->sim, "node %u: octet %u of its memory was changed", node->index, i);
}

/*
 * Was nothing lost, not even because a QP was not ready for it? Where there are rings, a connection
 * may change to them with something on its way.
 */
static bool is_fair(const struct sim *sim)
{
	bool fair = !sim->faulty && !sim->fabric.lost && sim->trouble == TROUBLE_NONE;

	for (unsigned i = 0; i < sim->nodes; i++) {
		const struct vb_stats *stats = vb_nic_stats(sim->node[i].nic);

		fair &= !atomic_load(&stats->count[VB_STAT_RX_LANE_FRAMES]) &&
			!atomic_load(&stats->count[VB_STAT_DROP_STATE]);
	}
	return fair;
}

/* Then nothing comes twice or is missed. */
static void fair_check(struct node *node)
{
	static const enum vb_stat none[] = {
		VB_STAT_PSN_NAKS_SENT, VB_STAT_DUPLICATES, VB_STAT_DROP_STALE,
	};
	const struct vb_stats *stats = vb_nic_stats(node->nic);

	for (unsigned i = 0; i < VB_ARRAY_LEN(none); i++) {
		uint64_t count = atomic_load(&stats->count[none[i]]);

		if (count)
			sim_fail(node->sim, "node %u: in good weather, %llu of %s", node->index,
				 (unsigned long long)count, vb_stat_name(none[i]));
	}
}

void oracle_end(struct sim *sim)
{
	for (unsigned i = 0; i < sim->nodes && is_fair(sim); i++)
		fair_check(&sim->node[i]);
	for (unsigned i = 0; i < sim->nodes; i++)
		for (unsigned word = 0; word < 2 * WORDS; word++)
			shared_check(sim, &sim->node[i], word);
	for (unsigned i = 0; i < sim->ends; i++)
		end_check(&sim->end[i]);
	for (unsigned i = 0; i < sim->nodes; i++)
		arena_check(&sim->node[i]);
}
