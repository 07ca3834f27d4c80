/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The paths of XRC's connections, as change.c has it for RC: both ends are given another, and one
 * of them is told to take it, or the one in use is cut. Nobody but packets tells the other, and the
 * store is where the NICs of a receive QP learn how far it has come.
 */
#include <string.h>

#include "nic/service/xrc/xrc.h"
#include "nic/service/xrc/xrc_rcv.h"
#include "xrc_sim.h"

enum {
	ROUNDS_MAX = 3,
	PATH = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
};

/* Chance of its own, so that runs without migrations are what they were. */
static bool chance_of(unsigned percent)
{
	return vb_prng_next(&sim.paths_rng) % 100 < percent;
}

/* Any process that is still in the domain may change its receive QPs. */
static struct vb_xrcd *domain(void)
{
	for (unsigned i = 0; i < sim.receivers; i++) {
		if (!sim.node[i].dead && sim.node[i].xrcd)
			return sim.node[i].xrcd;
	}
	return NULL;
}

static void modify(struct sender *sender, bool receiver, const struct ibv_qp_attr *attr, int mask)
{
	int err = receiver ? vb_xrc_rcv_modify(domain(), sender->rcv_qpn, attr, mask)
			   : vb_qp_modify(sender->qp, attr, mask);

	require(!err);
}

/* Both ends, if there are both, and neither has failed. */
static bool look(struct sender *sender, struct ibv_qp_attr *from, struct ibv_qp_attr *to)
{
	struct ibv_qp_init_attr init;

	if (sender->broken || !domain())
		return false;
	require(vb_qp_query(sender->qp, from, &init) == 0);
	require(vb_xrc_rcv_query(domain(), sender->rcv_qpn, to, &init) == 0);
	return from->qp_state == IBV_QPS_RTS && to->qp_state != IBV_QPS_ERR;
}

/* Only there may a path be loaded. A receive QP does its work in RTR, too. */
static void to_rts(struct sender *sender, uint32_t psn)
{
	const struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 12, .sq_psn = psn };

	modify(sender, true, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN);
}

static bool agree(const struct ibv_qp_attr *from, const struct ibv_qp_attr *to)
{
	return from->path_mig_state == to->path_mig_state &&
	       from->ah_attr.grh.sgid_index == to->ah_attr.grh.sgid_index;
}

static void rearm(struct sender *sender, bool receiver, unsigned way)
{
	unsigned peer = receiver ? sim.receivers + (unsigned)(sender - sim.sender) : 0;
	struct ibv_qp_attr attr = {
		.alt_ah_attr = { .is_global = 1, .port_num = 1,
				 .grh = { .sgid_index = (uint8_t)way, .hop_limit = 64 } },
		.alt_port_num = 1,
		.alt_timeout = 12,
		.path_mig_state = IBV_MIG_REARM,
	};

	memcpy(attr.alt_ah_attr.grh.dgid.raw, sim.fabric.gid[peer][way], VB_GID_BYTES);
	modify(sender, receiver, &attr, PATH);
}

static void migrate(struct sender *sender, bool receiver)
{
	const struct ibv_qp_attr attr = { .path_mig_state = IBV_MIG_MIGRATED };

	modify(sender, receiver, &attr, IBV_QP_PATH_MIG_STATE);
}

static void cut(struct sender *sender, unsigned way)
{
	unsigned s = (unsigned)(sender - sim.sender);

	sim.cut = sender;
	sim.fabric.cut.on = true;
	sim.fabric.cut.qpn[0] = sender->qp->ibv.qp.qp_num;
	sim.fabric.cut.qpn[1] = sender->rcv_qpn;
	memcpy(sim.fabric.cut.gid[0], sim.fabric.gid[sim.receivers + s][way], VB_GID_BYTES);
	memcpy(sim.fabric.cut.gid[1], sim.fabric.gid[0][way], VB_GID_BYTES);
}

/* What an armed pair of ends makes of it. */
static void go(struct sender *sender, unsigned way)
{
	if (!sender->qp->to.peer && !sim.cut && chance_of(50))
		cut(sender, way);
	else
		migrate(sender, chance_of(50));
}

void paths_change(void)
{
	struct ibv_qp_attr from, to;

	for (unsigned s = 0; s < sim.senders && sim.migrates; s++) {
		struct sender *sender = &sim.sender[s];
		unsigned way;

		if (!look(sender, &from, &to))
			continue;
		way = from.ah_attr.grh.sgid_index;
		sender->migrations += way != sender->way;
		sender->way = way;
		if (!agree(&from, &to) || sim.calm)
			continue;
		if (from.path_mig_state == IBV_MIG_MIGRATED && sim.cut == sender) {
			sim.cut = NULL;
			sim.fabric.cut.on = false;
		} else if (from.path_mig_state == IBV_MIG_MIGRATED) {
			if (sender->rounds >= ROUNDS_MAX || !chance_of(30))
				continue;
			sender->rounds++;
			if (to.qp_state == IBV_QPS_RTR)
				to_rts(sender, to.rq_psn);
			rearm(sender, false, 1 - way);
			rearm(sender, true, 1 - way);
		} else if (from.path_mig_state == IBV_MIG_ARMED && sim.cut != sender &&
			   chance_of(40)) {
			go(sender, way);
		}
	}
}

/* How often it was noted that the receive QP has migrated. */
static unsigned migrations_noted(uint32_t qpn)
{
	struct vb_xrc_note note;
	unsigned count = 0;

	for (uint64_t at = 0; vb_xrc_log_read(&sim.store->log, at, &note); at++)
		count += note.qpn == qpn && note.type == IBV_EVENT_PATH_MIG;
	return count;
}

void paths_check(void)
{
	struct ibv_qp_attr from, to;

	for (unsigned s = 0; s < sim.senders; s++) {
		struct sender *sender = &sim.sender[s];

		/* Each round may take it from one way to the other, once. */
		require(sender->migrations <= sender->rounds);
		require(migrations_noted(sender->rcv_qpn) <= sender->rounds);
		if (!look(sender, &from, &to))
			continue;
		if (!sim.faulty && sim.dying >= sim.receivers &&
		    from.path_mig_state == to.path_mig_state)
			require(agree(&from, &to));
	}
}
