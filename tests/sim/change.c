/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What applications change of their QPs while these work: they let queues drain and change what may
 * be changed then, have UC and UD fail and go on, and take connections to other paths, because they
 * want to or because a path is cut.
 */

#include <errno.h>

#include "base/check.h"
#include "nic/control/nic.h"
#include "sim.h"

enum { ROUNDS_MAX = 3 }; /* of path changes, of a pair */

static struct ibv_qp_attr query(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	sim_require(end->sim, vb_qp_query(end->qp, &attr, &init) == 0);
	return attr;
}

/* --- SQD --- */

/* A number that both sides have agreed on, for any time at which something may be under way. */
static void choose_reads(struct end *end, struct ibv_qp_attr *attr)
{
	struct end *peer = end->peer;
	uint8_t most = end->rts.max_rd_atomic;

	attr->max_rd_atomic = (uint8_t)sim_range(end->sim, 1, peer->rts.max_dest_rd_atomic);
	if (attr->max_rd_atomic > most)
		most = attr->max_rd_atomic;
	end->reads_most = most > end->reads_most ? most : end->reads_most;
	if (peer->rts.max_rd_atomic > peer->reads_most)
		peer->reads_most = peer->rts.max_rd_atomic;
	attr->max_dest_rd_atomic = (uint8_t)sim_range(end->sim, peer->reads_most, 16);
}

static void change_attributes(struct end *end)
{
	static const int may[] = { IBV_QP_MIN_RNR_TIMER, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT,
				   IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC,
				   IBV_QP_MAX_DEST_RD_ATOMIC };
	struct ibv_qp_attr attr = end->rts;
	struct sim *sim = end->sim;
	int mask = 0;

	attr.qp_access_flags = end->access;
	attr.qkey = 0x1234 + end->index;
	if (end->type == IBV_QPT_RC) {
		attr.min_rnr_timer = (uint8_t)sim_range(sim, 1, 14);
		attr.timeout = (uint8_t)sim_range(sim, 16, 18);
		for (unsigned i = 0; i < VB_ARRAY_LEN(may); i++)
			mask |= sim_chance(sim, 50) ? may[i] : 0;
		if (mask & (IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC))
			choose_reads(end, &attr);
		if (!(mask & IBV_QP_MAX_QP_RD_ATOMIC))
			attr.max_rd_atomic = end->rts.max_rd_atomic;
		if (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC))
			attr.max_dest_rd_atomic = end->rts.max_dest_rd_atomic;
		end->rts = attr;
	}
	mask |= end->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	sim_trace(sim, "end %u: changes %x in SQD", end->index, mask);
	sim_require(sim, vb_qp_modify(end->qp, &attr, mask) == 0);
	sim->changes++;
}

static void drain_or_go_on(struct end *end)
{
	struct sim *sim = end->sim;

	if (!end->sqd && !sim->calm && sim_chance(sim, 5)) {
		sim_trace(sim, "end %u: SQD", end->index);
		end->sqd = true;
		end->sqd_ops = end->ops;
		end->drained = false;
		sim_require(sim, world_modify(end, IBV_QPS_SQD) == 0);
	} else if (end->sqd && !sim->calm && sim_chance(sim, 15)) {
		change_attributes(end);
	} else if (end->sqd && end->drained) {
		sim_trace(sim, "end %u: RTS again", end->index);
		sim_require(sim, end->qp->req.top_psn == end->drained_psn);
		end->sqd = false;
		sim_require(sim, world_modify(end, IBV_QPS_RTS) == 0);
	}
}

/* --- SQE --- */

/* Where there are windows, what is flushed would have to be undone in what we know of those. */
void change_op(struct end *end, struct op *op)
{
	struct sim *sim = end->sim;

	if (end->type == IBV_QPT_RC || end->trouble || sim->calm || sim->windows || op->inlined ||
	    !op->bytes || !sim_chance(sim, 4))
		return;
	for (int i = 0; i < op->num_sge; i++)
		op->sge[i].lkey ^= 0x80;
	op->stumbles = true;
}

enum ibv_wc_status change_status(struct end *end, unsigned number)
{
	const struct op *op = &end->op[number];

	if (op->flushed || (end->sqe && number > end->sqe_at))
		return IBV_WC_WR_FLUSH_ERR;
	return op->stumbles ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* Whoever does not know what has happened is refused. */
static void go_on(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTS };
	struct sim *sim = end->sim;
	int mask = IBV_QP_STATE | IBV_QP_CUR_STATE;

	sim_trace(sim, "end %u: goes on", end->index);
	if (sim_chance(sim, 30))
		sim_require(sim, vb_qp_modify(end->qp, &attr, mask) == EINVAL);
	attr.cur_qp_state = IBV_QPS_SQE;
	sim_require(sim, vb_qp_modify(end->qp, &attr, mask) == 0);
	for (unsigned i = end->sqe_at + 1; i < end->ops; i++)
		end->op[i].flushed = end->op[i].bad = true;
	end->sqe = end->sqd = false;
	sim->stumbles++;
}

/* --- paths --- */

static struct ibv_ah_attr way_to_peer(const struct end *end, unsigned way)
{
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };

	av.grh.sgid_index = (uint8_t)way;
	memcpy(av.grh.dgid.raw, end->sim->fabric.gid[end->peer->node->index][way], VB_GID_BYTES);
	return av;
}

static void rearm(struct end *end, unsigned way)
{
	struct ibv_qp_attr attr = {
		.alt_ah_attr = way_to_peer(end, way), .alt_port_num = 1,
		.alt_timeout = end->rts.timeout, .path_mig_state = IBV_MIG_REARM,
	};

	sim_trace(end->sim, "end %u: waits, to migrate to %u", end->index, way);
	sim_require(end->sim,
		    vb_qp_modify(end->qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) == 0);
}

static void migrate(struct end *end)
{
	struct ibv_qp_attr attr = { .path_mig_state = IBV_MIG_MIGRATED };

	sim_trace(end->sim, "end %u: migrates", end->index);
	sim_require(end->sim, vb_qp_modify(end->qp, &attr, IBV_QP_PATH_MIG_STATE) == 0);
}

/* Nothing gets through any more: whoever has something to send finds out by himself. */
static void cut(struct end *end, unsigned way)
{
	struct sim *sim = end->sim;
	struct fabric *fabric = &sim->fabric;

	sim_trace(sim, "path %u of ends %u and %u is cut", way, end->index, end->peer->index);
	sim->cut = end;
	fabric->cut.on = true;
	for (unsigned i = 0; i < 2; i++) {
		const struct end *one = i ? end->peer : end;

		fabric->cut.qpn[i] = one->qp->ibv.qp.qp_num;
		memcpy(fabric->cut.gid[i], fabric->gid[one->node->index][way], VB_GID_BYTES);
	}
}

static void mend(struct sim *sim)
{
	sim_trace(sim, "the path is mended");
	sim->cut = NULL;
	sim->fabric.cut.on = false;
}

static bool may_change(const struct end *end)
{
	enum ibv_qp_state state;

	if (!end_is_ready(end) || end->trouble || end->type == IBV_QPT_UD || end->node->dead)
		return false;
	state = vb_qp_state(end->qp);
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/*
 * The first of a pair acts for both. In good weather they are of one mind whenever both have
 * migrated; in bad weather a late packet may take one to where it does not want to go.
 */
static void change_path(struct end *end)
{
	struct end *peer = end->peer;
	struct sim *sim = end->sim;
	struct ibv_qp_attr a, b;
	unsigned way;
	bool agree;

	if (end->index > peer->index || !may_change(end) || !may_change(peer))
		return;
	a = query(end);
	b = query(peer);
	way = a.ah_attr.grh.sgid_index;
	agree = a.path_mig_state == b.path_mig_state && way == b.ah_attr.grh.sgid_index;
	if (!sim->faulty && a.path_mig_state == b.path_mig_state)
		sim_require(sim, agree);
	if (!agree || sim->calm)
		return;
	if (a.path_mig_state == IBV_MIG_MIGRATED) {
		if (sim->cut == end)
			mend(sim);
		else if (end->path_changes < ROUNDS_MAX && sim_chance(sim, 10)) {
			end->path_changes++;
			rearm(end, 1 - way);
			rearm(peer, 1 - way);
		}
	} else if (a.path_mig_state == IBV_MIG_ARMED && sim->cut != end && sim_chance(sim, 20)) {
		if (end->type == IBV_QPT_RC && !end->qp->to.peer && !sim->cut &&
		    sim_chance(sim, 60))
			cut(end, way);
		else
			migrate(sim_chance(sim, 50) ? end : peer);
	}
}

/* --- together --- */

void change_event(struct end *end, enum ibv_event_type type)
{
	struct sim *sim = end->sim;

	if (type == IBV_EVENT_SQ_DRAINED) {
		sim_require(sim, end->sqd);
		end->drained = true;
		end->drained_psn = end->qp->req.top_psn;
	} else if (type == IBV_EVENT_PATH_MIG) {
		struct end *first = end->index < end->peer->index ? end : end->peer;

		end->migrations++;
		sim->migrations++;
		if (!sim->faulty)
			sim_require(sim, end->migrations <= first->path_changes);
	} else {
		/* A packet that was late may say that the peer has been where it was. */
		sim_require(sim, sim->faulty);
	}
}

void change_act(struct end *end)
{
	enum ibv_qp_state state;

	if (!end_is_ready(end) || end->broken || end->trouble)
		return;
	state = vb_qp_state(end->qp);
	if (end->sqe)
		go_on(end);
	else if (state == IBV_QPS_RTS || state == IBV_QPS_SQD)
		drain_or_go_on(end);
	change_path(end);
}

/* Each migration of which it was told took it from one path to the other. */
void change_end(struct end *end)
{
	if (end->type == IBV_QPT_UD || end->trouble || end->node->dead || !end_is_ready(end))
		return;
	sim_require(end->sim, query(end).ah_attr.grh.sgid_index ==
				      (end->gid + end->migrations) % FABRIC_GIDS);
	if (!end->sim->faulty && end->sim->trouble == TROUBLE_NONE)
		sim_require(end->sim, !atomic_load(&vb_nic_stats(end->node->nic)
							    ->count[VB_STAT_DROP_STRANGER]));
}

bool change_finished(const struct end *end)
{
	return !end->sqd && !end->sqe;
}
