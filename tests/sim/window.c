/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Memory windows of type 2. Each end binds some over its target, at random; its peer uses those
 * that it knows to be bound, beside the region's own key, and gives some back with a SEND; others
 * their owner takes back when nobody is at them. What is used by the rules must never fail.
 *
 * Who knows what: a window is bound for its peer when the BIND is known to be done, or when a
 * message has come that was posted behind it. It is free again when its owner knows that it was
 * invalidated, by a completion of the one kind or the other.
 */

#include "nic/data/window.h"

#include "base/check.h"
#include "sim.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Chance of its own, so that runs without windows are what they were. */
static uint32_t below(struct sim *sim, uint32_t n)
{
	return (uint32_t)(vb_prng_next(&sim->window_rng) % n);
}

void windows_begin(struct sim *sim)
{
	sim->window_rng = sim->seed * 0xd1342543de82ef95u + 7;
	sim->windows = below(sim, 2) || sim->trouble == TROUBLE_WINDOW ||
		       sim->trouble == TROUBLE_INVALIDATE || sim->trouble == TROUBLE_LOCAL;
}

void windows_make(struct end *end)
{
	if (!end->sim->windows || end->type == IBV_QPT_UD)
		return;
	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		struct window *w = &end->window[i];

		sim_require(end->sim, vb_mw_alloc(end->node->pd, IBV_MW_TYPE_2, &w->mw) == 0);
		w->key = w->mw->ibv.rkey;
	}
}

void windows_unmake(struct end *end)
{
	for (unsigned i = 0; i < WINDOWS_MAX; i++)
		if (end->window[i].mw)
			sim_require(end->sim, vb_mw_dealloc(end->window[i].mw) == 0);
}

/* --- what is done with them --- */

/* One of the end's windows in that state, or NULL. */
static struct window *pick(struct end *end, enum window_state state)
{
	unsigned from = below(end->sim, WINDOWS_MAX);

	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		struct window *w = &end->window[(from + i) % WINDOWS_MAX];

		if (w->mw && w->state == state)
			return w;
	}
	return NULL;
}

static bool plan_bind(struct end *end, struct op *op)
{
	struct window *w = pick(end, WINDOW_FREE);
	struct sim *sim = end->sim;
	uint32_t size = end->target.bytes;

	if (!w)
		return false;
	w->state = WINDOW_BINDING;
	w->bind_op = end->ops;
	w->key = ibv_inc_rkey(w->key);
	w->at = end->target.at + below(sim, size / 16) * 8;
	w->bytes = 1 + below(sim, end->target.at + size - w->at);
	w->zero_based = below(sim, 3) == 0;
	w->access = below(sim, 2) ? REMOTE : below(sim, 8) << 1;
	w->last_use = 0;
	op->opcode = IBV_WR_BIND_MW;
	op->window = w;
	sim_trace(sim, "end %u will bind %08x: rights %x, %u octets at %u", end->index, w->key,
		  w->access, w->bytes, w->at);
	return true;
}

static bool plan_local_inv(struct end *end, struct op *op)
{
	struct window *w = pick(end, WINDOW_BOUND);

	if (!w || w->last_use > end->peer->done)
		return false;
	w->state = WINDOW_LEAVING;
	op->opcode = IBV_WR_LOCAL_INV;
	op->window = w;
	sim_trace(end->sim, "end %u will take back %08x", end->index, w->key);
	return true;
}

/* IBA 10.8.3.3: READs and atomics through it may come after a SEND that nothing holds back. */
static bool plan_send_inv(struct end *end, struct op *op)
{
	struct window *w = pick(end->peer, WINDOW_BOUND);

	if (!w || end->type != IBV_QPT_RC)
		return false;
	w->state = WINDOW_LEAVING;
	op->opcode = IBV_WR_SEND_WITH_INV;
	op->flags |= IBV_SEND_FENCE;
	op->window = w;
	sim_trace(end->sim, "end %u will give back %08x", end->index, w->key);
	return true;
}

void window_plan(struct end *end, struct op *op)
{
	struct sim *sim = end->sim;

	if (!sim->windows || end->type == IBV_QPT_UD || trouble_is_bad(end, end->ops))
		return;
	if (op->opcode == IBV_WR_RDMA_WRITE && end->type == IBV_QPT_RC && below(sim, 4) == 0) {
		op->opcode = IBV_WR_ATOMIC_WRITE;
		return;
	}
	if (op->opcode == IBV_WR_SEND && below(sim, 2) && plan_send_inv(end, op))
		return;
	switch (below(sim, sim->trouble == TROUBLE_WINDOW ? 6 : 12)) {
	case 0:
	case 1:
		plan_bind(end, op);
		break;
	case 2:
		plan_local_inv(end, op);
		break;
	default:
		break;
	}
}

/* Where the peer's access goes, if it goes through a window. */
void window_aim(struct end *end, struct op *op, unsigned access, uint32_t align)
{
	struct window *w;
	uint32_t at;

	if (!end->sim->windows || below(end->sim, 2))
		return;
	w = pick(end->peer, WINDOW_BOUND);
	if (!w || (w->access & access) != access || w->bytes < op->bytes)
		return;
	at = below(end->sim, (w->bytes - op->bytes) / align + 1) * align;
	op->remote = w->at + at;
	op->rkey = w->key;
	op->va = w->zero_based ? at : node_addr(end->peer->node, op->remote);
	w->last_use = end->ops + 1;
	sim_trace(end->sim, "end %u will use %08x for %u", end->index, w->key, end->ops);
}

void window_wr(struct end *end, const struct op *op, struct ibv_send_wr *wr)
{
	const struct window *w = op->window;

	if (op->opcode != IBV_WR_BIND_MW) {
		wr->invalidate_rkey = w ? w->key : op->rkey;
		return;
	}
	wr->num_sge = 0;
	wr->bind_mw.mw = w ? &w->mw->ibv : &op->bad_bind.mw->ibv;
	wr->bind_mw.rkey = w ? w->key : op->rkey;
	wr->bind_mw.bind_info = w ? (struct ibv_mw_bind_info){
		.mr = &end->target.mr->ibv,
		.addr = node_addr(end->node, w->at),
		.length = w->bytes,
		.mw_access_flags = w->access | (w->zero_based ? IBV_ACCESS_ZERO_BASED : 0),
	} : op->bad_bind.info;
}

/* --- what is known of them --- */

/* That a BIND is done may be known later than that what it bound was given back. */
void window_op_done(struct end *end, unsigned number)
{
	struct op *op = &end->op[number];

	if (!op->window)
		return;
	if (op->opcode == IBV_WR_BIND_MW && op->window->state == WINDOW_BINDING &&
	    op->window->bind_op == number)
		op->window->state = WINDOW_BOUND;
	else if (op->opcode == IBV_WR_LOCAL_INV)
		op->window->state = WINDOW_FREE;
}

void window_message(struct end *end, struct end *from, unsigned number, const struct ibv_wc *wc)
{
	const struct op *op = &from->op[number];

	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		struct window *w = &from->window[i];

		if (w->state == WINDOW_BINDING && w->bind_op < number) {
			w->state = WINDOW_BOUND;
			sim_trace(end->sim, "end %u knows from %u that %08x is bound", end->index,
				  number, w->key);
		}
	}
	if (op->opcode == IBV_WR_SEND_WITH_INV && op->window) {
		sim_require(end->sim, wc->invalidated_rkey == op->window->key);
		op->window->state = WINDOW_FREE;
	}
}

/* In the end the NIC knows of each window what we know of it. */
void windows_check(struct end *end)
{
	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		const struct window *w = &end->window[i];

		if (!w->mw)
			continue;
		sim_require(end->sim, w->state == WINDOW_FREE || w->state == WINDOW_BOUND);
		sim_require(end->sim, (w->mw->mr != NULL) == (w->state == WINDOW_BOUND));
		sim_require(end->sim, w->mw->key == w->key);
	}
}

/* --- what must be refused --- */

/* A key that this window had before, or has no more; it never has it again in this run. */
static uint32_t stale_key(const struct window *w)
{
	return w->state == WINDOW_FREE ? w->key : (w->key & ~0xffu) | ((w->key - 1) & 0xff);
}

/* A window that another QP has bound at the same node: NULL if none is. */
static struct window *foreign_window(struct end *owner, uint32_t bytes)
{
	struct sim *sim = owner->sim;

	for (unsigned i = 0; i < sim->ends; i++) {
		struct end *end = &sim->end[i];
		struct window *w = end == owner ? NULL : pick(end, WINDOW_BOUND);

		if (w && end->node == owner->node && w->bytes >= bytes)
			return w;
	}
	return NULL;
}

/* One of the end's bound windows that has, or has not, this right; NULL: there is none. */
static struct window *bound(struct end *end, unsigned access, bool grants)
{
	unsigned from = below(end->sim, WINDOWS_MAX);

	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		struct window *w = &end->window[(from + i) % WINDOWS_MAX];

		if (w->state == WINDOW_BOUND && ((w->access & access) == access) == grants)
			return w;
	}
	return NULL;
}

static uint64_t window_va(const struct end *owner, const struct window *w, uint32_t offset)
{
	return (w->zero_based ? 0 : node_addr(owner->node, w->at)) + offset;
}

/* Through one that lacks the right, one of another QP, beyond one's bounds, or by a stale key. */
void window_trouble(struct end *end, struct op *op, unsigned access)
{
	struct end *owner = end->peer;
	struct window *granting = bound(owner, access, true);
	struct window *choice[] = { bound(owner, access, false), foreign_window(owner, op->bytes),
				    granting };
	unsigned which = below(end->sim, 4);
	struct window *w;

	for (unsigned i = 0; i < 4 && which < 3 && !choice[which]; i++)
		which = (which + 1) % 4;
	if (which == 3 || !choice[which]) {
		op->rkey = stale_key(&owner->window[below(end->sim, WINDOWS_MAX)]);
		return;
	}
	w = choice[which];
	op->rkey = w->key;
	op->va = window_va(owner, w, 0);
	if (w != granting)
		return;
	/* All of it is before the beginning, or the last octets are beyond the end. */
	op->va -= 8;
	if (w->bytes >= op->bytes && below(end->sim, 2))
		op->va += (w->bytes - op->bytes + 16) & ~7u;
}

void window_trouble_invalidate(struct end *end, struct op *op)
{
	struct window *foreign = foreign_window(end->peer, 0);

	op->rkey = stale_key(&end->peer->window[below(end->sim, WINDOWS_MAX)]);
	if (below(end->sim, 3) == 0)
		op->rkey = end->peer->target.mr->ibv.rkey;
	else if (foreign && below(end->sim, 2))
		op->rkey = foreign->key;
}

/* The end's own send queue: a LOCAL_INV, or a BIND that breaks a rule. */
void window_trouble_local(struct end *end, struct op *op)
{
	struct window *w = &end->window[below(end->sim, WINDOWS_MAX)];
	struct window *foreign = foreign_window(end, 0);
	struct area *area = &end->target;

	op->rkey = stale_key(w);
	if (op->opcode == IBV_WR_LOCAL_INV) {
		if (foreign && below(end->sim, 2))
			op->rkey = foreign->key;
		return;
	}
	op->bad_bind.mw = w->mw;
	op->bad_bind.info = (struct ibv_mw_bind_info){ .mr = &area->mr->ibv,
						       .addr = node_addr(end->node, area->at),
						       .length = area->bytes + 1,
						       .mw_access_flags = REMOTE };
	if (below(end->sim, 2)) { /* no MW_BIND */
		op->bad_bind.info.mr = &end->source.mr->ibv;
		op->bad_bind.info.addr = node_addr(end->node, end->source.at);
		op->bad_bind.info.length = 8;
	}
}
