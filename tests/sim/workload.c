/* SPDX-License-Identifier: BSD-2-Clause */

/* What applications do with their QPs: at random, but never what they must not do. */

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "nic/queue/shuffle.h"
#include "sim.h"

static uint32_t choose_bytes(struct end *end)
{
	struct sim *sim = end->sim;
	uint32_t max = end->message_max, bytes;

	switch (sim_below(sim, 8)) {
	case 0:
		bytes = 0;
		break;
	case 1:
		bytes = sim_range(sim, 1, 16);
		break;
	case 2:
	case 3:
		bytes = sim_range(sim, 1, 4) * end->unit + sim_below(sim, 3) - 1;
		break;
	case 4:
		bytes = sim_range(sim, 1, max);
		break;
	default:
		bytes = sim_range(sim, 1, 2 * end->unit);
	}
	return bytes < max ? bytes : max;
}

/* Cut a length into pieces, some of them empty; returns how many. */
static int cut(struct sim *sim, uint32_t bytes, struct ibv_sge sge[SGES_MAX])
{
	int n = (int)sim_range(sim, bytes ? 1 : 0, SGES_MAX);

	for (int i = 0; i < n; i++) {
		sge[i].length = i + 1 == n ? bytes : sim_below(sim, bytes + 1);
		bytes -= sge[i].length;
	}
	return n;
}

/* Pieces of the source, which never changes, so they may overlap. */
static void aim_source(struct end *end, struct op *op)
{
	op->num_sge = cut(end->sim, op->bytes, op->sge);
	for (int i = 0; i < op->num_sge; i++) {
		uint32_t at = sim_below(end->sim, end->source.bytes - op->sge[i].length + 1);

		op->sge[i].addr = node_addr(end->node, end->source.at + at);
		op->sge[i].lkey = end->source.mr->ibv.lkey;
	}
}

/* Fetched data lands in a ring of its own, each piece once. False: no room now. */
static bool aim_landing(struct end *end, struct op *op)
{
	uint32_t size = end->landing.bytes, at = end->landing_head;
	uint32_t need = op->bytes + 24 * SGES_MAX;

	if (at % size + need > size)
		at += size - at % size;
	if (at + need - end->landing_tail > size)
		return false;
	op->num_sge = cut(end->sim, op->bytes, op->sge);
	for (int i = 0; i < op->num_sge; i++) {
		at += sim_below(end->sim, 24);
		op->sge[i].addr = node_addr(end->node, end->landing.at + at % size);
		op->sge[i].lkey = end->landing.mr->ibv.lkey;
		at += op->sge[i].length;
	}
	end->landing_head = op->landing_end = at;
	return true;
}

static unsigned op_access(const struct op *op)
{
	if (op_is_atomic(op))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return op_is_write(op) ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
}

static void aim_remote(struct end *end, struct op *op, uint32_t align)
{
	const struct area *target = &end->peer->target;
	uint32_t at = sim_below(end->sim, (target->bytes - op->bytes) / align + 1) * align;

	op->remote = target->at + at;
	op->rkey = target->mr->ibv.rkey;
	op->va = node_addr(end->peer->node, op->remote);
	if (!trouble_is_bad(end, end->ops))
		window_aim(end, op, op_access(op), align);
}

/* Some atomics go to words that everybody's atomics go to. */
static void aim_atomic(struct end *end, struct op *op)
{
	struct sim *sim = end->sim;
	struct node *node = end->peer->node;
	bool add = op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint64_t found;

	aim_remote(end, op, 8);
	op->operand = sim_random(sim);
	if (!end->trouble && sim_chance(sim, 40)) {
		op->shared = add ? SHARED_ADD : SHARED_SWAP;
		op->shared_node = node->index;
		op->shared_word = sim_below(sim, WORDS) + (add ? 0 : WORDS);
		op->remote = node->shared.at + 8 * op->shared_word;
		op->rkey = node->shared.mr->ibv.rkey;
		op->va = node_addr(node, op->remote);
		op->operand = add ? sim_range(sim, 1, 1000)
				  : (uint64_t)(end->index + 1) << 32 | (end->ops + 1);
	}
	memcpy(&found, node->mem + op->remote, 8);
	if (!add)
		op->compare = sim_chance(sim, 70) ? found : sim_random(sim);
}

/* The first other that comes to mind; a QP may write to itself. */
static void aim_datagram(struct end *end, struct op *op)
{
	struct sim *sim = end->sim;
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct end *dest = &sim->end[sim_below(sim, sim->ends)];

	if (dest->type != IBV_QPT_UD)
		dest = end->peer;
	op->dest = dest;
	attr.grh.sgid_index = (uint8_t)end->gid;
	attr.grh.traffic_class = (uint8_t)sim_below(sim, 256);
	attr.grh.flow_label = sim_below(sim, 1 << 20);
	memcpy(attr.grh.dgid.raw, sim->fabric.gid[dest->node->index][end->gid], VB_GID_BYTES);
	sim_require(sim, vb_ah_create(end->node->pd, &attr, &op->ah) == 0);
}

static bool weigh(struct end *end, enum ibv_wr_opcode *opcode)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	unsigned usable = end->type == IBV_QPT_RC ? 7 : end->type == IBV_QPT_UC ? 4 : 2;
	unsigned sum = 0, at;

	for (unsigned i = 0; i < usable; i++)
		sum += end->weights[i];
	if (!sum) {
		*opcode = IBV_WR_SEND;
		return true;
	}
	at = sim_below(end->sim, sum);
	for (unsigned i = 0; i < usable; i++) {
		if (at < end->weights[i]) {
			*opcode = opcodes[i];
			return true;
		}
		at -= end->weights[i];
	}
	return false;
}

static void choose_flags(struct end *end, struct op *op)
{
	struct sim *sim = end->sim;
	bool last = end->ops + 1 >= end->wanted;
	bool full = end->unsignaled + 1 >= end->init.cap.max_send_wr;
	/* What is fetched lies there until a completion says so: none may be waited for in vain. */
	bool tight = op_is_fetch(op) &&
		     end->landing_head - end->landing_tail > end->landing.bytes / 2;

	if (last || full || sim_chance(sim, 40) || tight)
		op->flags |= IBV_SEND_SIGNALED;
	if (sim_chance(sim, 20))
		op->flags |= IBV_SEND_FENCE;
	if (sim_chance(sim, 20))
		op->flags |= IBV_SEND_SOLICITED;
}

/* Inline data may be overwritten as soon as posting is through: it will be. */
static void choose_inline(struct end *end, struct op *op)
{
	if (op_is_fetch(op) || op_is_local(op) || op->bytes > end->init.cap.max_inline_data ||
	    trouble_is_bad(end, end->ops) || !sim_chance(end->sim, 40))
		return;
	op->flags |= IBV_SEND_INLINE;
	op->inlined = malloc(op->bytes + 1);
	vb_check(op->inlined);
	for (uint32_t i = 0; i < op->bytes; i++)
		op->inlined[i] = (uint8_t)sim_random(end->sim);
}

/* Fill in a work request. False: not now. */
static bool op_make(struct end *end, struct op *op)
{
	*op = (struct op){ .status = IBV_WC_SUCCESS };
	if (!weigh(end, &op->opcode))
		return false;
	op->opcode = trouble_opcode(end, op->opcode);
	window_plan(end, op);
	op->bytes = op_is_word(op) ? 8 : choose_bytes(end);
	if (trouble_is_bad(end, end->ops) && !op_is_word(op))
		op->bytes = sim_range(end->sim, 1, end->message_max < 8192 ? end->message_max
									    : 8192);
	op->imm_be = (uint32_t)sim_random(end->sim);
	if (op_is_local(op))
		op->bytes = 0;
	else if (op_is_fetch(op) ? !aim_landing(end, op) : (aim_source(end, op), false))
		return false;
	if (op_is_atomic(op))
		aim_atomic(end, op);
	else if (op_is_word(op))
		aim_remote(end, op, 8);
	else if (op_is_write(op) || op->opcode == IBV_WR_RDMA_READ)
		aim_remote(end, op, 1);
	else if (end->type == IBV_QPT_UD)
		aim_datagram(end, op);
	choose_flags(end, op);
	choose_inline(end, op);
	trouble_op(end, op);
	change_op(end, op);
	return true;
}

static void wr_fill(struct end *end, struct op *op, unsigned number, struct ibv_send_wr *wr)
{
	*wr = (struct ibv_send_wr){
		.wr_id = (uint64_t)end->index << 32 | number,
		.sg_list = op->sge,
		.num_sge = op->num_sge,
		.opcode = op->opcode,
		.send_flags = op->flags,
		.imm_data = op->imm_be,
	};
	if (op_is_atomic(op)) {
		bool add = op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

		wr->wr.atomic.remote_addr = op->va;
		wr->wr.atomic.rkey = op->rkey;
		wr->wr.atomic.compare_add = add ? op->operand : op->compare;
		wr->wr.atomic.swap = op->operand;
	} else if (op_is_local(op) || op->opcode == IBV_WR_SEND_WITH_INV) {
		window_wr(end, op, wr);
	} else if (end->type == IBV_QPT_UD) {
		wr->wr.ud.ah = &op->ah->ibv;
		wr->wr.ud.remote_qpn = op->dest->qp->ibv.qp.qp_num;
		wr->wr.ud.remote_qkey = 0x1234 + op->dest->index;
	} else {
		wr->wr.rdma.remote_addr = op->va;
		wr->wr.rdma.rkey = op->rkey;
	}
}

/* What the op says of plain memory goes partly by indirect keys, if it is meant to succeed. */
static void wr_aim(struct end *end, const struct op *op, unsigned number, struct ibv_send_wr *wr,
		   struct ibv_sge *sge)
{
	uint64_t draw = (uint64_t)(end->index + 1) << 40 | (uint64_t)number << 8;

	if (end->trouble || op->inlined)
		return;
	for (int i = 0; i < wr->num_sge; i++) {
		sge[i] = op->sge[i];
		mkey_aim(end->node, op_is_fetch(op) ? &end->landing : &end->source,
			 draw + (unsigned)i, &sge[i].lkey, &sge[i].addr, sge[i].length);
	}
	wr->sg_list = sge;
	/* A word has to be in one piece. */
	if (end->type != IBV_QPT_UD && !op_is_word(op) &&
	    (op_is_write(op) || op->opcode == IBV_WR_RDMA_READ))
		mkey_aim(end->peer->node, &end->peer->target, draw + SGES_MAX, &wr->wr.rdma.rkey,
			 &wr->wr.rdma.remote_addr, op->bytes);
}

/* The QP's queue is full as far as we can know: it must say so, and where. */
static void post_too_many(struct end *end)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	struct op dummy = { .opcode = IBV_WR_SEND };

	if (end->type == IBV_QPT_UD)
		return;
	wr_fill(end, &dummy, 0, &wr);
	sim_require(end->sim, vb_qp_post_send(end->qp, &wr, &bad) == ENOMEM);
	sim_require(end->sim, bad == &wr);
}

void workload_post(struct end *end, unsigned count)
{
	struct ibv_send_wr wr[8], *bad = NULL;
	struct ibv_sge scratch[8], sges[8][SGES_MAX];
	unsigned n = 0;
	int err;

	if (!end_is_ready(end))
		return;
	for (; n < count && n < 8 && end->ops < end->wanted; n++) {
		struct op *op = &end->op[end->ops];

		if (end->ops - end->released >= end->init.cap.max_send_wr || !op_make(end, op))
			break;
		wr_fill(end, op, end->ops, &wr[n]);
		wr_aim(end, op, end->ops, &wr[n], sges[n]);
		if (op->inlined) {
			scratch[n] = (struct ibv_sge){ (uintptr_t)op->inlined, op->bytes, 0 };
			wr[n].sg_list = &scratch[n];
			wr[n].num_sge = op->bytes || sim_chance(end->sim, 50);
			op->num_sge = 0;
		}
		if (n)
			wr[n - 1].next = &wr[n];
		end->unsignaled = op->flags & IBV_SEND_SIGNALED || end->init.sq_sig_all
					  ? 0 : end->unsignaled + 1;
		sim_trace(end->sim, "end %u posts %u: opcode %d flags %x bytes %u at %u",
			  end->index, end->ops, op->opcode, op->flags, op->bytes, op->remote);
		end->ops++;
	}
	if (!n) {
		if (end->ops - end->released >= end->init.cap.max_send_wr)
			post_too_many(end);
		return;
	}
	end->posted_ns = end->sim->fabric.now_ns;
	err = vb_qp_post_send(end->qp, wr, &bad);
	if (err)
		sim_fail(end->sim, "end %u: posting fails: errno %d at %d", end->index, err,
			 bad ? (int)(bad - wr) : -1);
}

/* --- receiving --- */

static unsigned rq_id(const struct sim_rq *rq)
{
	return rq->end ? rq->end->index : ENDS_MAX + rq->node->index;
}

static void buffer_make(struct sim_rq *rq, uint32_t index)
{
	struct buffer *buffer = &rq->buffer[index];
	struct sim *sim = rq->node->sim;
	uint32_t at = rq->area.at + index * rq->slot_bytes;

	buffer->posted = true;
	buffer->bytes = rq->need_bytes;
	if (sim_chance(sim, 20) && rq->slot_bytes > rq->need_bytes + 100)
		buffer->bytes += sim_below(sim, 30);
	buffer->num_sge = cut(sim, buffer->bytes, buffer->sge);
	for (int i = 0; i < buffer->num_sge; i++) {
		at += sim_below(sim, 24);
		buffer->sge[i].addr = node_addr(rq->node, at);
		buffer->sge[i].lkey = rq->area.mr->ibv.lkey;
		at += buffer->sge[i].length;
	}
	trouble_recv(rq, buffer);
	rq->fifo[rq->tail++ % DEPTH_MAX] = index;
	rq->posted++;
}

void workload_recv(struct sim_rq *rq, uint32_t count)
{
	struct ibv_recv_wr wr[8], *bad = NULL;
	struct ibv_sge sges[8][SGES_MAX];
	uint32_t n = 0;
	int err;

	if (rq->closed || !rq->depth || rq->node->dead || (rq->end && rq->end->unborn))
		return;
	for (; n < count && n < 8 && rq->posted < rq->depth; n++) {
		uint32_t index = 0;

		while (rq->buffer[index].posted)
			index++;
		buffer_make(rq, index);
		wr[n] = (struct ibv_recv_wr){
			.wr_id = 1ull << 63 | (uint64_t)rq_id(rq) << 32 | index,
			.sg_list = sges[n],
			.num_sge = rq->buffer[index].num_sge,
		};
		for (int i = 0; i < wr[n].num_sge; i++) {
			sges[n][i] = rq->buffer[index].sge[i];
			mkey_aim(rq->node, &rq->area, (uint64_t)rq->tail << 8 | (unsigned)i,
				 &sges[n][i].lkey, &sges[n][i].addr, sges[n][i].length);
		}
		if (n)
			wr[n - 1].next = &wr[n];
	}
	if (!n)
		return;
	err = rq->srq ? vb_srq_post(rq->srq, wr, &bad) : vb_qp_post_recv(rq->end->qp, wr, &bad);
	sim_trace(rq->node->sim, "queue %u: %u receives posted", rq_id(rq), n);
	sim_require(rq->node->sim, err == 0);
}

/* --- completions and events --- */

static struct end *find_end(struct sim *sim, uint32_t qpn)
{
	for (unsigned i = 0; i < sim->ends; i++)
		if (sim->end[i].qp && sim->end[i].qp->ibv.qp.qp_num == qpn)
			return &sim->end[i];
	sim_fail(sim, "a completion of QP %06x, which is none", qpn);
}

static int poll_some(struct sim_cq *cq, int count)
{
	struct sim *sim = cq->node->sim;
	struct ibv_wc wc[16];
	int n;

	if (sim->fabric.disorder)
		vb_cq_shuffle(cq->cq);
	n = vb_cq_poll(cq->cq, count < 16 ? count : 16, wc);
	for (int i = 0; i < n; i++) {
		struct end *end = find_end(sim, wc[i].qp_num);

		sim_trace(sim, "end %u: %s %u: %d", end->index,
			  wc[i].wr_id >> 63 ? "receive" : "send", (unsigned)wc[i].wr_id,
			  wc[i].status);
		if (wc[i].wr_id >> 63)
			oracle_recv_wc(cq, end, &wc[i]);
		else
			oracle_send_wc(cq, end, &wc[i]);
	}
	return n;
}

/* A CQ with a channel is only looked at after an event, and then until it is empty. */
void workload_poll(struct sim_cq *cq, int count)
{
	struct sim *sim = cq->node->sim;

	if (cq->node->dead)
		return;
	/* A poll turns the NIC, unless its thread does all of that. */
	if (!cq->node->threaded || (!sim->calm && sim_chance(sim, 30)))
		process_poll(cq->node);
	if (!cq->channel) {
		poll_some(cq, count);
		return;
	}
	if (!cq->node->signals[cq->fd])
		return;
	cq->node->signals[cq->fd]--;
	sim_require(cq->node->sim, vb_channel_pop(cq->channel) == cq->cq);
	vb_cq_arm_notify(cq->cq, false);
	while (poll_some(cq, 16))
		;
}

void workload_look(struct node *node)
{
	for (unsigned i = 0; i < node->cq_count && !node->dead; i++) {
		if (!node->cq[i].channel)
			poll_some(&node->cq[i], 16);
	}
}

void workload_events(struct node *node)
{
	struct ibv_async_event event;

	while (node->signals[0] && !node->dead) {
		node->signals[0]--;
		sim_require(node->sim, vb_ctx_event_pop(node->ctx, &event));
		sim_trace(node->sim, "node %u: event %d", node->index, event.event_type);
		if (event.event_type == IBV_EVENT_CQ_ERR)
			sim_fail(node->sim, "a CQ that is large enough overran");
		if (event.event_type == IBV_EVENT_SQ_DRAINED ||
		    event.event_type == IBV_EVENT_PATH_MIG ||
		    event.event_type == IBV_EVENT_PATH_MIG_ERR)
			change_event(event.element.qp->qp_context, event.event_type);
	}
}

/* The room that is needed stays, and what waits in it. */
static void resize(struct sim_cq *cq)
{
	struct sim *sim = cq->node->sim;
	uint32_t least = cq->users ? cq->users : 1;

	sim_require(sim, vb_cq_resize(cq->cq, (int)sim_range(sim, least, 3 * least)) == 0);
}

static void act(struct sim *sim, unsigned what)
{
	struct end *end = &sim->end[sim_below(sim, sim->ends)];
	struct node *node = &sim->node[sim_below(sim, sim->nodes)];

	switch (what) {
	case 0:
	case 1:
		workload_post(end, sim_range(sim, 1, 8));
		break;
	case 2:
		workload_recv(end->rq, sim_range(sim, 1, 8));
		break;
	case 3:
	case 4:
		workload_poll(&node->cq[sim_below(sim, node->cq_count)],
			      (int)sim_range(sim, 1, 16));
		break;
	case 5:
		workload_events(node);
		if (sim_chance(sim, 5))
			resize(&node->cq[sim_below(sim, node->cq_count)]);
		break;
	default:
		change_act(end);
	}
}

void workload_tick(struct sim *sim)
{
	if (!sim->calm) {
		for (unsigned n = sim_range(sim, 1, sim->ends + 2); n; n--)
			act(sim, sim_below(sim, 7));
		return;
	}
	for (unsigned i = 0; i < sim->nodes; i++) {
		workload_events(&sim->node[i]);
		for (unsigned j = 0; j < sim->node[i].cq_count; j++)
			workload_poll(&sim->node[i].cq[j], 16);
		workload_recv(&sim->node[i].srq, 8);
	}
	for (unsigned i = 0; i < sim->ends; i++) {
		change_act(&sim->end[i]);
		workload_recv(&sim->end[i].own_rq, 8);
		workload_post(&sim->end[i], 8);
	}
	for (unsigned i = 0; i < sim->nodes; i++) {
		if (!sim->node[i].dead)
			process_rest(&sim->node[i]);
	}
}

bool workload_finished(const struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++) {
		const struct end *end = &sim->end[i];

		if (!end->gone && (end->done < end->wanted || !change_finished(end)))
			return false;
	}
	return true;
}
