/* SPDX-License-Identifier: BSD-2-Clause */

/* NICs and their objects for one run. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "idle_host.h"
#include "nic/control/nic.h"
#include "nic/control/qp_dv.h"
#include "nic/mem/mkey.h"
#include "nic/way/peer.h"
#include "sim.h"

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* --- what a NIC asks of its surroundings --- */

static uint64_t host_now_ns(void *arg)
{
	return ((struct node *)arg)->sim->fabric.now_ns;
}

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	struct node *node = arg;

	return fabric_tx(&node->sim->fabric, node->index, burst);
}

static unsigned host_burst_frames_max(void *arg)
{
	return ((struct node *)arg)->sim->fabric.frames_max;
}

static uint32_t host_frame_bytes_max(void *arg, const struct vb_path *path)
{
	return 5000;
}

static void host_kick(void *arg)
{
}

static void host_signal(void *arg, int fd)
{
	((struct node *)arg)->signals[fd]++;
}

static void host_unsignal(void *arg, int fd)
{
	((struct node *)arg)->signals[fd]--;
}

/* Who has a slot after another goes on counting, a little further. */
static int host_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	uint16_t slots[VB_SLOTS_PER_NIC_MAX];
	uint32_t next[VB_SLOTS_PER_NIC_MAX];
	struct node *node = arg;
	struct sim *sim = node->sim;

	if (node->heir_of) {
		sim_require(sim, vb_nic_slots(node->heir_of->nic, slots, next) == 1);
		*slot = slots[0];
		*next_index = (next[0] + sim_below(sim, 5)) % VB_INDICES;
	} else {
		*slot = (uint16_t)(1 + 37 * sim->slots_leased++);
		*next_index = sim_below(sim, VB_INDICES);
	}
	node->slot = *slot;
	return 0;
}

static int host_reach(void *arg, uint16_t own_slot, uint16_t slot)
{
	return process_reach(arg, slot);
}

static void host_ring_bell(void *arg, struct vb_peer *peer)
{
	process_bell(arg, peer);
}

static void host_release(void *arg, struct vb_peer *peer)
{
	process_release(peer);
}

static bool host_vm_write(void *arg, struct vb_peer *peer, uint64_t address,
			  const struct iovec *iov, unsigned count, bool paged)
{
	return process_vm(arg, peer, address, iov, count, true);
}

static bool host_vm_read(void *arg, struct vb_peer *peer, uint64_t address,
			 const struct iovec *iov, unsigned count, bool paged)
{
	return process_vm(arg, peer, address, iov, count, false);
}

static const struct vb_host_peers peers = {
	.reach = host_reach, .await = idle_await, .bell = host_ring_bell, .release = host_release,
};

static const struct vb_host_direct direct = {
	.write = host_vm_write, .read = host_vm_read, .map = idle_map, .unmap = idle_unmap,
	.may_reach = idle_may_reach, .tarry = idle_tarry,
};

/* --- memory --- */

struct area world_area(struct node *node, uint32_t bytes)
{
	struct area area;

	node->used += sim_range(node->sim, 16, 200);
	area = (struct area){ .at = (node->used + 63) & ~63u, .bytes = bytes };
	node->used = area.at + bytes;
	sim_require(node->sim, node->used + 256 < ARENA_BYTES);
	return area;
}

void world_register(struct node *node, struct area *area, struct vb_pd *pd, unsigned access)
{
	void *addr = node->mem + area->at;

	sim_require(node->sim, vb_mr_reg(pd, addr, area->bytes, (uintptr_t)addr, access,
					 &area->mr) == 0);
	mkey_make(node, area, pd);
}

/* The arenas are kept from run to run: fresh pages cost more than what happens in them. */
static void arena_make(struct node *node)
{
	static uint8_t *kept[NODES_MAX][2];

	for (unsigned i = 0; i < 2; i++) {
		if (!kept[node->index][i])
			kept[node->index][i] = aligned_alloc(4096, ARENA_BYTES);
		vb_check(kept[node->index][i]);
	}
	node->mem = kept[node->index][0];
	node->image = kept[node->index][1];
	node->used = 0;
}

/* --- nodes --- */

/* Its own addresses, and behind them those of the others on its host. */
static void node_gids(struct node *node)
{
	static const struct vb_gid_entry pattern[FABRIC_GIDS] = {
		{ .gid = { [10] = 0xff, 0xff, 10, 0, 0, 0 }, .ifindex = 1 },
		{ .gid = { 0xfd }, .ifindex = 1 },
	};
	struct vb_gid_entry entry[FABRIC_GIDS * NODES_MAX];
	uint32_t mtu_bytes = sim_chance(node->sim, 50) ? 5000 : sim_range(node->sim, 576, 5000);
	unsigned nodes = node->sim->one_host ? NODES_MAX : 1;

	for (unsigned i = 0; i < FABRIC_GIDS * nodes; i++) {
		entry[i] = pattern[i % FABRIC_GIDS];
		entry[i].gid[15] = (uint8_t)(1 + (node->index + i / FABRIC_GIDS) % NODES_MAX);
		entry[i].mtu_bytes = mtu_bytes;
	}
	for (unsigned i = 0; i < FABRIC_GIDS; i++)
		memcpy(node->sim->fabric.gid[node->index][i], entry[i].gid, VB_GID_BYTES);
	vb_nic_gids_set(node->nic, entry, FABRIC_GIDS * nodes);
}

/* Time for others to look at what is done by halves. */
static void dawdle(void *arg, uint64_t ns)
{
	workload_look(arg);
}

/* With ORDER in the environment each NIC has another order; ORDER=iba: by IBA alone. */
static const struct vb_host_order *node_order(struct node *node)
{
	const char *order = getenv("ORDER");

	node->order = (struct vb_host_order){
		.seed = node->sim->seed + node->index,
		.iba = order && strcmp(order, "iba") == 0,
		.dawdle = dawdle,
	};
	node->sim->fabric.disorder = order != NULL;
	return node->sim->fabric.disorder ? &node->order : NULL;
}

static void node_make(struct sim *sim, unsigned index)
{
	struct node *node = &sim->node[index];
	struct vb_nic_host host = idle_host(node);

	node->sim = sim;
	node->index = index;
	host.clock = (struct vb_host_clock){ host_now_ns, host_kick, idle_pause };
	host.wire.lease = host_lease;
	host.wire.tx = host_tx;
	host.wire.burst_frames_max = host_burst_frames_max;
	host.wire.frame_bytes_max = host_frame_bytes_max;
	host.process.signal = host_signal;
	host.process.unsignal = host_unsignal;
	host.peers = &peers;
	host.direct = &direct;
	host.order = node_order(node);
	host.export_memory = process_export(node);
	arena_make(node);
	sim_require(sim, vb_nic_create(&node->nic, &host, sim_random(sim)) == 0);
	sim->fabric.nic[sim->fabric.nics++] = node->nic;
	if (sim_chance(sim, 60))
		vb_nic_rx_buffer_set(node->nic,
				     sim_chance(sim, 50) ? 212992 : sim_below(sim, 1 << 19));
	node_gids(node);
	sim_require(sim, vb_ctx_create(node->nic, 0, &node->ctx) == 0);
	sim_require(sim, vb_pd_create(node->ctx, &node->pd) == 0);
	sim_require(sim, vb_pd_create(node->ctx, &node->other_pd) == 0);
	node->shared = world_area(node, 2 * WORDS * 8);
	world_register(node, &node->shared, node->pd, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	node->foreign = world_area(node, 8192);
	world_register(node, &node->foreign, node->other_pd, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	node->private = world_area(node, 8192);
	world_register(node, &node->private, node->pd, IBV_ACCESS_LOCAL_WRITE);
	node->cq_count = sim_range(sim, 1, CQS_MAX);
}

/* The queues were counted by their users: no CQ can overrun, and none has room to spare. */
static void cqs_make(struct node *node)
{
	for (unsigned i = 0; i < node->cq_count; i++) {
		struct sim_cq *cq = &node->cq[i];

		cq->node = node;
		cq->fd = (int)i + 1;
		if (sim_chance(node->sim, 30))
			sim_require(node->sim,
				    vb_channel_create(node->ctx, cq->fd, &cq->channel) == 0);
		sim_require(node->sim, vb_cq_create(node->ctx, cq->users ? (int)cq->users : 1,
						    cq->channel, 0, cq, &cq->cq) == 0);
		if (cq->channel)
			vb_cq_arm_notify(cq->cq, false);
	}
}

static void srq_make(struct node *node)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = node->srq.depth,
						    .max_sge = SGES_MAX } };

	if (!node->srq.depth)
		return;
	sim_require(node->sim, vb_srq_create(node->pd, &attr, &node->srq.srq) == 0);
}

static void rq_area(struct sim_rq *rq)
{
	if (!rq->depth)
		return;
	/* Room for gaps between the pieces. */
	rq->slot_bytes = rq->need_bytes + 32 * SGES_MAX;
	rq->area = world_area(rq->node, rq->slot_bytes * rq->depth);
	world_register(rq->node, &rq->area, rq->node->pd, IBV_ACCESS_LOCAL_WRITE);
}

/* --- ends --- */

static uint32_t largest_message(struct sim *sim, const struct end *end)
{
	if (end->type == IBV_QPT_UD)
		return end->mtu;
	if (end->index < 2 && sim_chance(sim, 4))
		return MESSAGE_MAX;
	return sim_chance(sim, 30) ? sim_range(sim, 1, 3) * end->unit
				   : sim_range(sim, 8, (end->unit > 4096 ? 4 : 7) * end->unit);
}

static bool goes_through_ring(const struct end *end)
{
	return end->type != IBV_QPT_UD &&
	       end->sim->link[end->node->index][end->peer->node->index].open;
}

static void end_choose_rts(struct sim *sim, struct end *end)
{
	end->rts = (struct ibv_qp_attr){
		.timeout = (uint8_t)sim_range(sim, 16, 18),
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = (uint8_t)sim_range(sim, 1, 14),
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};
	/* ibv_query_port: the MTU of datagrams is the port's. */
	if (end->type == IBV_QPT_UD) {
		struct ibv_port_attr port;

		vb_nic_query_port(end->node->nic, 1, &port);
		end->mtu_code = port.active_mtu;
	}
	end->mtu = 128u << end->mtu_code;
	end->unit = goes_through_ring(end) && sim_chance(sim, 30) ? VB_LANE_MTU_BYTES : end->mtu;
	end->sq_psn = sim_chance(sim, 40) ? 0xffffff - sim_below(sim, 60)
					  : sim_below(sim, 1 << 24);
	end->wanted = sim_chance(sim, 10) ? 0 : sim_range(sim, 1, OPS_MAX * 2 / 3);
	for (unsigned i = 0; i < VB_ARRAY_LEN(end->weights); i++)
		end->weights[i] = sim_chance(sim, 25) ? 0 : sim_range(sim, 1, 5);
}

static void end_choose_queues(struct sim *sim, struct end *end)
{
	struct node *node = end->node;
	struct ibv_qp_init_attr *init = &end->init;

	end->scq = &node->cq[sim_below(sim, node->cq_count)];
	end->rcq = &node->cq[sim_below(sim, node->cq_count)];
	init->cap = (struct ibv_qp_cap){
		.max_send_wr = sim_chance(sim, 10) ? 1 : sim_range(sim, 2, 24),
		.max_send_sge = SGES_MAX,
		.max_inline_data = sim_below(sim, 400),
		.max_recv_wr = sim_chance(sim, 15) ? 1 : sim_range(sim, 2, 16),
		.max_recv_sge = SGES_MAX,
	};
	init->qp_type = end->type;
	init->sq_sig_all = sim_chance(sim, 15);
	end->scq->users += init->cap.max_send_wr;
	if (end->type != IBV_QPT_UC && sim_chance(sim, 30) &&
	    !(end->index < 2 && sim->trouble >= TROUBLE_RECV_SHORT)) {
		end->rq = &node->srq;
		node->srq.depth = DEPTH_MAX;
	} else {
		end->rq = &end->own_rq;
		end->own_rq.depth = init->cap.max_recv_wr;
		end->own_rq.end = end;
		end->rcq->users += end->own_rq.depth;
	}
	end->rq->node = node;
}

static struct end *end_add(struct sim *sim, enum ibv_qp_type type, struct node *node)
{
	struct end *end = &sim->end[sim->ends];

	end->sim = sim;
	end->index = sim->ends++;
	end->type = type;
	end->node = node;
	end->access = REMOTE;
	return end;
}

/* Two ends that belong together; b's is returned. */
static struct end *pair_add(struct sim *sim, enum ibv_qp_type type, struct node *from,
			    struct node *to)
{
	struct end *a = end_add(sim, type, from), *b = end_add(sim, type, to);

	a->peer = b;
	b->peer = a;
	a->gid = b->gid = sim_below(sim, FABRIC_GIDS);
	a->mtu_code = b->mtu_code = (enum ibv_mtu)sim_range(sim, IBV_MTU_256, IBV_MTU_4096);
	end_choose_rts(sim, a);
	end_choose_rts(sim, b);
	a->rts.max_dest_rd_atomic = (uint8_t)sim_range(sim, 1, 16);
	b->rts.max_dest_rd_atomic = (uint8_t)sim_range(sim, 1, 16);
	a->rts.max_rd_atomic = (uint8_t)sim_range(sim, 1, b->rts.max_dest_rd_atomic);
	b->rts.max_rd_atomic = (uint8_t)sim_range(sim, 1, a->rts.max_dest_rd_atomic);
	end_choose_queues(sim, a);
	end_choose_queues(sim, b);
	return b;
}

static void choose_pairs(struct sim *sim)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	unsigned pairs = sim_chance(sim, 40) ? 1 : sim_range(sim, 1, PAIRS_MAX);

	for (unsigned i = 0; i < pairs; i++) {
		enum ibv_qp_type type = types[sim_below(sim, VB_ARRAY_LEN(types))];
		struct node *from = &sim->node[sim_below(sim, sim->nodes)];
		struct node *to = &sim->node[(from->index + 1) % sim->nodes];
		bool first = i == 0 && sim->trouble != TROUBLE_NONE;
		struct end *end;

		if (sim_chance(sim, 10) && !(first && sim->trouble == TROUBLE_DEATH))
			to = from;
		end = pair_add(sim, first ? IBV_QPT_RC : type, from, to);
		/* It is connected some time after the other, whose first packets it drops. */
		if (!first && sim_chance(sim, 15))
			end->ready_ns = 1 + sim_below(sim, 30000000);
	}
}

/* Another process comes by the slot of the one that dies, and has to do with those that live. */
static void choose_heir(struct sim *sim)
{
	struct node *heir = &sim->node[sim->nodes], *dead;

	if (sim->trouble != TROUBLE_DEATH || !sim_chance(sim, 60))
		return;
	node_make(sim, sim->nodes++);
	dead = sim->end[0].peer->node;
	heir->heir_of = dead;
	sim->heir = heir;
	for (unsigned i = 0; i < sim->nodes - 1; i++) {
		struct end *end;

		if (&sim->node[i] == dead)
			continue;
		end = pair_add(sim, sim_chance(sim, 70) ? IBV_QPT_RC : IBV_QPT_UC, heir,
			       &sim->node[i]);
		end->unborn = end->peer->unborn = true;
	}
}

static void need(struct sim_rq *rq, uint32_t bytes)
{
	if (rq->need_bytes < bytes)
		rq->need_bytes = bytes;
}

/* Messages of a datagram QP may come from any other: the longest of them all counts. */
static void choose_sizes(struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++) {
		struct end *end = &sim->end[i];

		end->message_max = largest_message(sim, end);
		if (end->type == IBV_QPT_UD)
			need(end->rq, 4096 + 40);
		else
			need(end->peer->rq, end->message_max);
		if (end->message_max > 16 * 4096) {
			struct sim_rq *rq = end->peer->rq;

			rq->depth = rq->depth > 3 ? 3 : rq->depth;
		}
	}
	for (unsigned i = 0; i < sim->ends; i++) {
		struct end *end = &sim->end[i];

		if (end->rq == &end->node->srq)
			end->rcq->users += end->rq->depth;
	}
}

static void end_areas(struct end *end)
{
	struct node *node = end->node;
	uint32_t reach = end->peer->message_max;

	if (reach < 512)
		reach = 512;
	end->source = world_area(node, end->message_max + 1024);
	world_register(node, &end->source, node->pd, 0);
	end->landing = world_area(node, 2 * end->message_max + 4096);
	world_register(node, &end->landing, node->pd, IBV_ACCESS_LOCAL_WRITE);
	/* Not much larger than what is written there, so that things meet. */
	end->target = world_area(node, reach + sim_below(node->sim, 2048));
	world_register(node, &end->target, node->pd,
		       IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND);
	windows_make(end);
	if (end->rq == &end->own_rq)
		rq_area(end->rq);
}

/*
 * Some pairs count credits in packets, and some QPs have small data travel inside completions. That
 * is drawn beside the run's own numbers, so that older seeds are what they were.
 */
static int create(struct end *end, struct ibv_qp_init_attr *init)
{
	uint64_t drawn = end->sim->seed ^ (uint64_t)(end->index / 2) << 32;
	struct ibv_qp_init_attr_ex attr;
	struct vb_qp_dv_attr dv = { .flags = 0 };
	int err;

	vb_prng_next(&drawn);
	if (end->type == IBV_QPT_RC && vb_prng_next(&drawn) % 4 == 0)
		dv.flags |= VB_QP_PACKET_CREDITS;
	if (vb_prng_next(&drawn) % 4)
		dv.flags |= VB_QP_SCATTER_TO_CQE_OFF;
	else if (vb_prng_next(&drawn) % 2)
		dv.flags |= VB_QP_SCATTER_TO_CQE_ON;
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, init, sizeof(*init));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = &end->node->pd->ibv;
	err = vb_qp_create_dv(&attr, &dv, &end->qp);
	init->cap = attr.cap;
	return err;
}

static void end_make(struct end *end)
{
	struct ibv_qp_init_attr *init = &end->init;

	init->qp_context = end;
	init->send_cq = &end->scq->cq->ibv.cq;
	init->recv_cq = &end->rcq->cq->ibv.cq;
	init->srq = end->rq->srq ? &end->rq->srq->ibv : NULL;
	sim_require(end->sim, create(end, init) == 0);
}

static int to_init(struct end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = end->access,
		.qkey = 0x1234 + end->index,
	};
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX;

	return vb_qp_modify(end->qp, &attr,
			    mask | (end->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int to_rtr(struct end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->mtu_code,
		.dest_qp_num = end->peer->qp->ibv.qp.qp_num,
		.rq_psn = end->peer->sq_psn,
		.max_dest_rd_atomic = end->rts.max_dest_rd_atomic,
		.min_rnr_timer = end->rts.min_rnr_timer,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	int mask = IBV_QP_STATE;

	attr.ah_attr.grh.sgid_index = (uint8_t)end->gid;
	memcpy(attr.ah_attr.grh.dgid.raw,
	       end->sim->fabric.gid[end->peer->node->index][end->gid], VB_GID_BYTES);
	if (end->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (end->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return vb_qp_modify(end->qp, &attr, mask);
}

static int to_rts(struct end *end)
{
	struct ibv_qp_attr attr = end->rts;
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = end->sq_psn;
	if (end->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return vb_qp_modify(end->qp, &attr, mask);
}

int world_modify(struct end *end, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = { .qp_state = to };

	switch (to) {
	case IBV_QPS_INIT:
		return to_init(end);
	case IBV_QPS_RTR:
		return to_rtr(end);
	case IBV_QPS_RTS:
		if (vb_qp_state(end->qp) == IBV_QPS_RTR)
			return to_rts(end);
		break;
	case IBV_QPS_SQD:
		attr.en_sqd_async_notify = 1;
		return vb_qp_modify(end->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	default:
		break;
	}
	return vb_qp_modify(end->qp, &attr, IBV_QP_STATE);
}

static const enum ibv_qp_state steps[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };

static void make_ends(struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++)
		if (!sim->end[i].unborn)
			end_make(&sim->end[i]);
	for (unsigned step = 0; step < VB_ARRAY_LEN(steps); step++)
		for (unsigned i = 0; i < sim->ends; i++)
			if (!sim->end[i].unborn && (step == 0 || !sim->end[i].ready_ns))
				sim_require(sim, world_modify(&sim->end[i], steps[step]) == 0);
}

/* Those that come late. */
void world_tick(struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++) {
		struct end *end = &sim->end[i];

		if (!end->ready_ns || end->ready_ns > sim->fabric.now_ns || end->node->dead)
			continue;
		sim_trace(sim, "end %u is ready", i);
		end->ready_ns = 0;
		for (unsigned step = 1; step < VB_ARRAY_LEN(steps); step++)
			sim_require(sim, world_modify(end, steps[step]) == 0);
	}
}

/* The heir's side first: so others hear of it before they have to do with it. */
void world_birth(struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++)
		if (sim->end[i].unborn)
			end_make(&sim->end[i]);
	for (unsigned i = 0; i < sim->ends; i++)
		if (sim->end[i].unborn && sim->end[i].node == sim->heir)
			for (unsigned step = 0; step < VB_ARRAY_LEN(steps); step++)
				sim_require(sim, world_modify(&sim->end[i], steps[step]) == 0);
	for (unsigned i = 0; i < sim->nodes; i++)
		process_hear_rings(&sim->node[i]);
	for (unsigned i = 0; i < sim->ends; i++)
		if (sim->end[i].unborn && sim->end[i].node != sim->heir)
			for (unsigned step = 0; step < VB_ARRAY_LEN(steps); step++)
				sim_require(sim, world_modify(&sim->end[i], steps[step]) == 0);
	for (unsigned i = 0; i < sim->ends; i++)
		sim->end[i].unborn = false;
}

static void fill(struct node *node)
{
	uint64_t rng = node->sim->seed + node->index;

	for (uint32_t i = 0; i < node->used + 256; i += 8) {
		uint64_t r = vb_prng_next(&rng);

		memcpy(node->mem + i, &r, 8);
	}
	memcpy(node->image, node->mem, node->used + 256);
}

void world_make(struct sim *sim)
{
	sim->nodes = sim_chance(sim, 10) ? 1 : sim_chance(sim, 20) ? 3 : 2;
	if (sim->nodes == 1 && sim->trouble == TROUBLE_DEATH)
		sim->nodes = 2;
	process_links(sim);
	for (unsigned i = 0; i < sim->nodes; i++)
		node_make(sim, i);
	choose_pairs(sim);
	choose_heir(sim);
	choose_sizes(sim);
	trouble_plan(sim);
	for (unsigned i = 0; i < sim->ends; i++)
		end_areas(&sim->end[i]);
	for (unsigned i = 0; i < sim->nodes; i++) {
		rq_area(&sim->node[i].srq);
		cqs_make(&sim->node[i]);
		srq_make(&sim->node[i]);
		fill(&sim->node[i]);
	}
	make_ends(sim);
}

/* --- the end of all things: whatever is still counted as used says EBUSY --- */

static void area_drop(struct sim *sim, struct area *area)
{
	if (area->mkey)
		sim_require(sim, vb_mkey_destroy(area->mkey) == 0);
	if (area->mr)
		sim_require(sim, vb_mr_dereg(area->mr) == 0);
}

static void end_unmake(struct sim *sim, struct end *end)
{
	if (end->qp) {
		sim_require(sim, vb_qp_destroy(end->qp) == 0);
		vb_qp_free(end->qp);
	}
	for (unsigned i = 0; i < end->ops; i++) {
		free(end->op[i].inlined);
		if (end->op[i].ah)
			sim_require(sim, vb_ah_destroy(end->op[i].ah) == 0);
	}
	windows_unmake(end);
	area_drop(sim, &end->source);
	area_drop(sim, &end->landing);
	area_drop(sim, &end->target);
	area_drop(sim, &end->own_rq.area);
}

static void node_unmake(struct sim *sim, struct node *node)
{
	for (unsigned i = 0; i < node->cq_count; i++) {
		struct sim_cq *cq = &node->cq[i];

		sim_require(sim, vb_cq_destroy(cq->cq) == 0);
		vb_cq_free(cq->cq);
		if (cq->channel)
			sim_require(sim, vb_channel_destroy(cq->channel) == 0);
		sim_require(sim, node->dead || node->signals[cq->fd] == 0);
	}
	if (node->srq.srq) {
		sim_require(sim, vb_srq_destroy(node->srq.srq) == 0);
		vb_srq_free(node->srq.srq);
	}
	area_drop(sim, &node->srq.area);
	area_drop(sim, &node->shared);
	area_drop(sim, &node->foreign);
	area_drop(sim, &node->private);
	sim_require(sim, vb_pd_destroy(node->pd) == 0);
	sim_require(sim, vb_pd_destroy(node->other_pd) == 0);
	vb_ctx_destroy(node->ctx);
	vb_nic_destroy(node->nic);
}

void world_unmake(struct sim *sim)
{
	for (unsigned i = 0; i < sim->ends; i++)
		end_unmake(sim, &sim->end[i]);
	for (unsigned i = 0; i < sim->nodes; i++)
		node_unmake(sim, &sim->node[i]);
	fabric_fini(&sim->fabric);
}
