/* SPDX-License-Identifier: BSD-2-Clause */

/* NICs, each with a QP of SRD. */
#include "srd_sim.h"

#include <stdlib.h>

#include "idle_host.h"
#include "nic/control/nic.h"

struct area area[FABRIC_NICS_MAX];
struct sim sim;

/* As the program that steers datagrams does (link/udp_socket.c). */
static int steer(const struct fabric *fabric, unsigned first, const uint8_t *frame)
{
	unsigned slot = (frame[5] << 8 | frame[6]) >> 6;

	for (unsigned i = 0; i < sim.fabric.nics; i++) {
		if (sim.node[i].slot == slot && (sim.one_host || i == first))
			return (int)i;
	}
	return -1;
}

/* --- the world --- */

static void node_make(unsigned index, bool ipv4)
{
	static const struct vb_gid_entry pattern[2] = {
		{ .gid = { 0xfd }, .ifindex = 1, .mtu_bytes = 5000 },
		{ .gid = { [10] = 0xff, 0xff, 10, 0, 0, 0 }, .ifindex = 1, .mtu_bytes = 5000 },
	};
	struct node *node = &sim.node[index];
	struct vb_nic_host host = idle_host(node);
	struct vb_gid_entry entry = pattern[ipv4];

	turns_host(&host);
	host.peers = &rings_host;
	node->index = index;
	entry.gid[15] = (uint8_t)(sim.one_host ? 1 : 1 + index);
	require(vb_nic_create(&node->nic, &host, vb_prng_next(&sim.rng)) == 0);
	sim.fabric.nic[sim.fabric.nics++] = node->nic;
	memcpy(sim.fabric.gid[index][0], entry.gid, VB_GID_BYTES);
	memset(sim.fabric.gid[index][1], 0xee, VB_GID_BYTES);
	vb_nic_gids_set(node->nic, &entry, 1);
	require(vb_ctx_create(node->nic, 0, &node->ctx) == 0);
	require(vb_pd_create(node->ctx, &node->pd) == 0);
	require(vb_cq_create(node->ctx, 4 * OPS, NULL, 0, NULL, &node->cq) == 0);
	require(vb_cq_create(node->ctx, 4 * OPS, NULL, 0, NULL, &node->recv_cq) == 0);
	memset(&area[index], 0, sizeof(area[index]));
	fill(area[index].pattern, PATTERN_BYTES, index);
	require(vb_mr_reg(node->pd, &area[index], sizeof(area[index]), (uintptr_t)&area[index],
			  ACCESS, &node->mr) == 0);
}

static void ahs_make(struct node *node)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };

	for (unsigned i = 0; i < sim.nodes; i++) {
		memcpy(attr.grh.dgid.raw, sim.fabric.gid[i][0], VB_GID_BYTES);
		require(vb_ah_create(node->pd, &attr, &node->ah[i]) == 0);
		if (sim.numbered)
			node->ahn[i] = vb_ah_number(node->ah[i]);
	}
}

static void qp_climb(struct node *node)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = node->qkey,
		.sq_psn = chance(30) ? 0xfffff0 + below(16) : below(1 << 24),
		.rnr_retry = node->rnr_retry,
	};
	int rnr = node->rnr_retry < 7 || chance(50) ? IBV_QP_RNR_RETRY : 0;

	require(vb_qp_modify(node->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_QKEY) == 0);
	attr.qp_state = IBV_QPS_RTR;
	require(vb_qp_modify(node->qp, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	require(vb_qp_modify(node->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | rnr) == 0);
}

static void qp_make(struct node *node)
{
	struct vb_dc_attr dc = { .srd = true };
	struct vb_qp_dv_attr dv = { .dc = &dc };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = &node->cq->ibv.cq,
		.recv_cq = &node->recv_cq->ibv.cq,
		.cap = { .max_send_wr = QUEUE, .max_send_sge = 1, .max_recv_wr = RECVS,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_DRIVER,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = &node->pd->ibv,
	};

	require(vb_qp_create_dv(&init, &dv, &node->qp) == 0);
	node->qpn = node->qp->ibv.qp.qp_num;
	node->qkey = below(UINT32_MAX);
	node->rnr_retry = sim.bad && chance(20) ? (uint8_t)below(7) : 7;
	node->wanted = 1 + below(OPS);
	qp_climb(node);
}

void world_make(void)
{
	static const uint32_t most_ppm[] = { 0, 10000, 30000, 50000 };
	uint32_t most = most_ppm[below(VB_ARRAY_LEN(most_ppm))];
	struct fabric_faults faults = { .queue_max = UINT32_MAX, .late_ns = 1 };
	bool ipv4 = chance(50);

	if (most) {
		faults.loss = below(most);
		faults.dup = below(most);
		faults.reorder = below(most);
		faults.corrupt = below(most / 2);
		faults.full = chance(30) ? below(200000) : 0;
		faults.late_ns = chance(30) ? 5000000 : 100000;
	}
	fabric_init(&sim.fabric, vb_prng_next(&sim.rng), &faults);
	sim.fabric.trace = sim.trace;
	sim.fabric.steer = steer;
	sim.nodes = 2 + below(FABRIC_NICS_MAX - 1);
	sim.one_host = chance(50);
	rings_begin();
	sim.bad = chance(40);
	sim.numbered = chance(50);
	sim.dying = chance(40) ? below(sim.nodes) : FABRIC_NICS_MAX;
	sim.only_qp = chance(40);
	sim.death_ns = chance(50) ? below(300000) : below(20000000);
	for (unsigned i = 0; i < sim.nodes; i++)
		node_make(i, ipv4);
	for (unsigned i = 0; i < sim.nodes; i++) {
		qp_make(&sim.node[i]);
		ahs_make(&sim.node[i]);
	}
}

void qp_end(struct node *node)
{
	if (!node->qp)
		return;
	require(vb_qp_destroy(node->qp) == 0);
	vb_qp_free(node->qp);
	node->qp = NULL;
}

void world_unmake(void)
{
	/* They part from each other. */
	for (unsigned i = 0; i < sim.nodes; i++)
		qp_end(&sim.node[i]);
	for (unsigned i = 0; i < sim.nodes; i++) {
		struct node *node = &sim.node[i];

		require(vb_cq_destroy(node->cq) == 0);
		vb_cq_free(node->cq);
		require(vb_cq_destroy(node->recv_cq) == 0);
		vb_cq_free(node->recv_cq);
		require(vb_mr_dereg(node->mr) == 0);
		for (unsigned k = 0; k < sim.nodes; k++)
			vb_ah_destroy(node->ah[k]);
		require(vb_pd_destroy(node->pd) == 0);
		vb_ctx_destroy(node->ctx);
		vb_nic_destroy(node->nic);
	}
	fabric_fini(&sim.fabric);
	rings_end();
}
