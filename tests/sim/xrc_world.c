/* SPDX-License-Identifier: BSD-2-Clause */

/* NICs that share a domain, and senders to it. */
#include "xrc_sim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/psn.h"
#include "nic/control/nic.h"
#include "nic/service/xrc/xrc_rcv.h"
#include "idle_host.h"

uint8_t memory[FABRIC_NICS_MAX][MEMORIES][AREA_BYTES + 64] __attribute__((aligned(64)));
struct sim sim;

/* --- what a NIC asks of its surroundings --- */

static struct vb_xrc_store *host_xrc_store(void *arg)
{
	return sim.store;
}

static void host_xrc_lock(void *arg)
{
	vb_check(!sim.locked++);
}

/* Another process may have it. */
static bool host_xrc_try_lock(void *arg)
{
	if (!below(8))
		return false;
	host_xrc_lock(arg);
	return true;
}

static void host_xrc_unlock(void *arg)
{
	vb_check(!--sim.locked);
}

static const struct vb_host_xrc store_host = {
	.store = host_xrc_store, .lock = host_xrc_lock, .try_lock = host_xrc_try_lock,
	.unlock = host_xrc_unlock, .tell = idle_xrc,
};

/* Nothing new goes to another NIC before all is acknowledged that went to the last one. */
static void one_at_a_time(const uint8_t *frame, unsigned slot)
{
	uint32_t qpn = frame[5] << 16 | frame[6] << 8 | frame[7];
	uint32_t psn = frame[9] << 16 | frame[10] << 8 | frame[11];

	for (unsigned s = 0; s < sim.senders; s++) {
		struct sender *sender = &sim.sender[s];

		if (sender->rcv_qpn != qpn || vb_psn_diff(psn, sender->top_psn) <= 0)
			continue;
		if (slot != sender->top_slot && vb_psn_diff(psn, sender->qp->req.una_psn) > 0)
			failed("sender %u begins with slot %u before it is done with %u", s, slot,
			       sender->top_slot);
		sender->top_psn = psn;
		sender->top_slot = slot;
	}
}

/* As the program that steers datagrams does (link/udp_socket.c). */
static int steer(const struct fabric *fabric, unsigned first, const uint8_t *frame)
{
	unsigned slot = (frame[5] << 8 | frame[6]) >> 6;

	if (first >= sim.receivers && !sim.one_host)
		return (int)first;
	if (!slot && (frame[0] & 0xe0) == 0xa0) {
		slot = (frame[13] << 8 | frame[14]) >> 6;
		one_at_a_time(frame, slot);
	}
	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		if (sim.node[i].slot == slot)
			return (int)i;
	}
	return -1;
}

/* --- the world --- */

static void node_make(unsigned index, bool ipv4)
{
	static const struct vb_gid_entry pattern[] = {
		{ .gid = { 0xfd }, .ifindex = 1, .mtu_bytes = 5000 },
		{ .gid = { [10] = 0xff, 0xff, 10, 0, 0, 0 }, .ifindex = 1, .mtu_bytes = 5000 },
	};
	struct node *node = &sim.node[index];
	struct vb_nic_host host = idle_host(node);
	struct vb_gid_entry entry[FABRIC_GIDS] = { pattern[ipv4], pattern[ipv4] };

	turns_host(&host);
	host.peers = &rings_host;
	host.xrc = &store_host;
	node->index = index;
	/* All receivers are on one host. */
	for (unsigned i = 0; i < FABRIC_GIDS; i++) {
		entry[i].gid[14] = (uint8_t)i;
		entry[i].gid[15] = (uint8_t)(index < sim.receivers || sim.one_host ? 1 : 1 + index);
		memcpy(sim.fabric.gid[index][i], entry[i].gid, VB_GID_BYTES);
	}
	require(vb_nic_create(&node->nic, &host, vb_prng_next(&sim.rng)) == 0);
	sim.fabric.nic[sim.fabric.nics++] = node->nic;
	vb_nic_gids_set(node->nic, entry, FABRIC_GIDS);
	require(vb_ctx_create(node->nic, 0, &node->ctx) == 0);
	memset(memory[index], 0, sizeof(memory[index]));
	require(vb_cq_create(node->ctx, 4 * OPS, NULL, 0, NULL, &node->cq) == 0);
	for (unsigned q = 0; q < SRQS; q++) {
		require(vb_pd_create(node->ctx, &node->pd[q]) == 0);
		for (unsigned i = 0; i < MEMORIES; i++) {
			uint8_t *at = memory[index][i];

			require(vb_mr_reg(node->pd[q], at, sizeof(memory[index][i]), (uintptr_t)at,
					  ACCESS, &node->mr[q][i]) == 0);
		}
	}
}

static void receiver_make(struct node *node)
{
	static const uint64_t file[2] = { 5, 77 };
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = RECVS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.cq = &node->cq->ibv.cq,
	};

	require(vb_xrcd_open(node->ctx, file, O_CREAT, &node->xrcd) == 0);
	attr.xrcd = &node->xrcd->ibv;
	for (unsigned q = 0; q < SRQS; q++) {
		attr.pd = &node->pd[q]->ibv;
		require(vb_srq_create_ex(node->ctx, &attr, &node->srq[q]) == 0);
	}
	fill(memory[node->index][2], AREA_BYTES, node->index);
}

static void sender_make(unsigned s)
{
	struct node *node = &sim.node[sim.receivers + s];
	struct sender *sender = &sim.sender[s];
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &node->cq->ibv.cq,
		.cap = { .max_send_wr = QUEUE, .max_send_sge = 1 },
		.qp_type = IBV_QPT_XRC_SEND,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = &node->pd[0]->ibv,
	};

	require(vb_qp_create_ex(&attr, &sender->qp) == 0);
	sender->wanted = 1 + below(OPS);
	while (!sender->targets)
		sender->targets = below(1u << sim.receivers);
	for (unsigned i = 0; i <= OPS; i++)
		sender->op[i].bytes = chance(30) ? below(64) : below(MESSAGE_MAX);
}

static struct ibv_qp_attr attr_to(const struct node *peer, uint32_t qpn, enum ibv_mtu mtu,
				  uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = ACCESS,
		.port_num = 1,
		.path_mtu = mtu,
		.dest_qp_num = qpn,
		.rq_psn = psn,
		.sq_psn = psn,
		.max_dest_rd_atomic = 3,
		.max_rd_atomic = 3,
		.min_rnr_timer = 1,
		.timeout = 12,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } },
	};

	memcpy(attr.ah_attr.grh.dgid.raw, sim.fabric.gid[peer->index][0], VB_GID_BYTES);
	return attr;
}

enum {
	TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	TO_RTR_RECV = TO_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT |
		 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

/* The receive QP for a sender, made by the first receiver, by its number or as an object. */
static void rcv_make(unsigned s, struct ibv_qp_attr *attr)
{
	struct node *node = &sim.node[0];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = &node->xrcd->ibv,
	};
	uint32_t *qpn = &sim.sender[s].rcv_qpn;

	attr->qp_state = IBV_QPS_INIT;
	if (sim.by_number) {
		require(vb_xrc_rcv_new(node->xrcd, qpn) == 0);
		require(vb_xrc_rcv_modify(node->xrcd, *qpn, attr, TO_INIT) == 0);
		attr->qp_state = IBV_QPS_RTR;
		require(vb_xrc_rcv_modify(node->xrcd, *qpn, attr, TO_RTR_RECV) == 0);
		vb_xrc_rcv_keep(node->xrcd, *qpn);
		require(vb_xrc_rcv_leave(node->xrcd, *qpn) == 0);
		return;
	}
	require(vb_qp_create_ex(&init, &node->handle[s]) == 0);
	*qpn = node->handle[s]->ibv.qp.qp_num;
	require(vb_qp_modify(node->handle[s], attr, TO_INIT) == 0);
	attr->qp_state = IBV_QPS_RTR;
	require(vb_qp_modify(node->handle[s], attr, TO_RTR_RECV) == 0);
}

static void connect(unsigned s)
{
	struct node *node = &sim.node[sim.receivers + s];
	struct vb_qp *qp = sim.sender[s].qp;
	enum ibv_mtu mtu = (enum ibv_mtu)(IBV_MTU_256 + below(5));
	uint32_t psn = chance(30) ? 0xfffff0 + below(16) : below(1 << 24);
	struct ibv_qp_attr attr = attr_to(node, qp->ibv.qp.qp_num, mtu, psn);

	rcv_make(s, &attr);
	attr = attr_to(&sim.node[0], sim.sender[s].rcv_qpn, mtu, psn);
	sim.sender[s].top_psn = (psn - 1) & 0xffffff;
	attr.qp_state = IBV_QPS_INIT;
	require(vb_qp_modify(qp, &attr, TO_INIT) == 0);
	attr.qp_state = IBV_QPS_RTR;
	require(vb_qp_modify(qp, &attr, TO_RTR) == 0);
	attr.qp_state = IBV_QPS_RTS;
	require(vb_qp_modify(qp, &attr, TO_RTS) == 0);
}

void world_make(void)
{
	struct fabric_faults faults;
	bool ipv4;

	sim.faulty = faults_draw(&faults, &ipv4);
	sim.paths_rng = sim.seed * 0xd1342543de82ef95u + 7;
	sim.migrates = vb_prng_next(&sim.paths_rng) % 2;
	fabric_init(&sim.fabric, vb_prng_next(&sim.rng), &faults);
	sim.fabric.trace = sim.trace;
	sim.fabric.steer = steer;
	sim.store = calloc(1, sizeof(*sim.store));
	vb_check(sim.store);
	vb_xrc_store_init(sim.store);
	sim.senders = 1 + below(SENDERS_MAX);
	sim.receivers = 1 + below(RECEIVERS_MAX);
	if (sim.receivers + sim.senders > FABRIC_NICS_MAX)
		sim.receivers = FABRIC_NICS_MAX - sim.senders;
	sim.one_host = chance(60);
	rings_begin();
	sim.by_number = chance(50);
	sim.bad_key = chance(20);
	sim.dying = chance(40) ? below(sim.receivers) : RECEIVERS_MAX;
	sim.death_ns = chance(50) ? below(300000) : below(20000000);
	for (unsigned i = 0; i < sim.receivers + sim.senders; i++)
		node_make(i, ipv4);
	for (unsigned i = 0; i < sim.receivers; i++)
		receiver_make(&sim.node[i]);
	for (unsigned s = 0; s < sim.senders; s++) {
		sender_make(s);
		connect(s);
	}
}

void receiver_leave(struct node *node)
{
	for (unsigned q = 0; q < SRQS; q++) {
		if (!node->srq[q])
			continue;
		require(vb_srq_destroy(node->srq[q]) == 0);
		vb_srq_free(node->srq[q]);
		node->srq[q] = NULL;
	}
	for (unsigned s = 0; s < SENDERS_MAX; s++) {
		if (!node->handle[s])
			continue;
		require(vb_qp_destroy(node->handle[s]) == 0);
		vb_qp_free(node->handle[s]);
		node->handle[s] = NULL;
	}
	if (node->xrcd)
		require(vb_xrcd_close(node->xrcd) == 0);
	node->xrcd = NULL;
}

void world_unmake(void)
{
	for (unsigned s = 0; s < sim.senders; s++) {
		require(vb_qp_destroy(sim.sender[s].qp) == 0);
		vb_qp_free(sim.sender[s].qp);
	}
	for (unsigned i = 0; i < sim.receivers + sim.senders; i++) {
		struct node *node = &sim.node[i];

		receiver_leave(node);
		require(vb_cq_destroy(node->cq) == 0);
		vb_cq_free(node->cq);
		for (unsigned k = 0; k < SRQS * MEMORIES; k++)
			require(vb_mr_dereg(node->mr[k / MEMORIES][k % MEMORIES]) == 0);
		for (unsigned q = 0; q < SRQS; q++)
			require(vb_pd_destroy(node->pd[q]) == 0);
		vb_ctx_destroy(node->ctx);
		vb_nic_destroy(node->nic);
	}
	fabric_fini(&sim.fabric);
	rings_end();
	free(sim.store);
}
