/* SPDX-License-Identifier: BSD-2-Clause */

/* NICs, each with a target and some initiators. */
#include "dc_sim.h"

#include "nodes.h"
#include "nic/control/qp_dv.h"

static void target_make(struct node *node)
{
	struct vb_dc_attr dc = { .target = true };
	struct vb_qp_dv_attr dv = { .dc = &dc };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_DRIVER,
					    .comp_mask = IBV_QP_INIT_ATTR_PD };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = (uint8_t)(1 + below(14)),
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } },
	};

	node->key = dc.access_key = vb_prng_next(&sim.rng);
	require(vb_srq_create(node->pd, &srq, &node->srq) == 0);
	init.pd = &node->pd->ibv;
	init.srq = &node->srq->ibv;
	init.recv_cq = &node->recv_cq->ibv.cq;
	require(vb_qp_create_dv(&init, &dv, &node->target) == 0);
	node->dctn = node->target->ibv.qp.qp_num;
	memcpy(attr.ah_attr.grh.dgid.raw, sim.fabric.gid[node->index][0], VB_GID_BYTES);
	require(vb_qp_modify(node->target, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							   IBV_QP_ACCESS_FLAGS) == 0);
	attr.qp_state = IBV_QPS_RTR;
	require(vb_qp_modify(node->target, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
							   IBV_QP_MIN_RNR_TIMER) == 0);
}

void sender_connect(struct sender *sender, bool again)
{
	uint32_t psn = chance(30) ? 0xfffff0 + below(16) : below(1 << 24);
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = sender->mtu,
		.sq_psn = psn,
		.max_rd_atomic = (uint8_t)(1 + below(20)),
		.timeout = 12,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	if (again) {
		attr.qp_state = IBV_QPS_RESET;
		require(vb_qp_modify(sender->qp, &attr, IBV_QP_STATE) == 0);
	}
	attr.qp_state = IBV_QPS_INIT;
	require(vb_qp_modify(sender->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) ==
		0);
	attr.qp_state = IBV_QPS_RTR;
	require(vb_qp_modify(sender->qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU) == 0);
	attr.qp_state = IBV_QPS_RTS;
	require(vb_qp_modify(sender->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void sender_make(struct node *node)
{
	struct sender *sender = &sim.sender[sim.senders];
	struct vb_dc_attr dc = { .streams = chance(50), .streams_log = 3,
				 .errored_log = ERRORED_LOG };
	struct vb_qp_dv_attr dv = { .dc = &dc };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = &node->cq->ibv.cq,
		.cap = { .max_send_wr = QUEUE, .max_send_sge = 1 },
		.qp_type = IBV_QPT_DRIVER,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = &node->pd->ibv,
	};

	sender->index = sim.senders++;
	sender->node = node;
	sender->streams = dc.streams;
	sender->mtu = (enum ibv_mtu)(IBV_MTU_256 + below(5));
	sender->wanted = 1 + below(OPS);
	require(vb_qp_create_dv(&init, &dv, &sender->qp) == 0);
	sender_connect(sender, false);
}

void world_make(void)
{
	bool ipv4 = nodes_begin();

	sim.bad = chance(30);
	sim.dying = chance(40) ? below(sim.nodes) : FABRIC_NICS_MAX;
	sim.only_target = chance(40);
	sim.death_ns = chance(50) ? below(300000) : below(20000000);
	nodes_make(ipv4);
	for (unsigned i = 0; i < sim.nodes; i++) {
		target_make(&sim.node[i]);
		node_ahs_make(&sim.node[i]);
	}
	for (unsigned i = 0; i < sim.nodes; i++) {
		for (unsigned k = 0; k < DCIS; k++)
			sender_make(&sim.node[i]);
	}
}

void target_destroy(struct node *node)
{
	if (!node->target)
		return;
	require(vb_qp_destroy(node->target) == 0);
	vb_qp_free(node->target);
	node->target = NULL;
}

void world_unmake(void)
{
	for (unsigned s = 0; s < sim.senders; s++) {
		require(vb_qp_destroy(sim.sender[s].qp) == 0);
		vb_qp_free(sim.sender[s].qp);
	}
	for (unsigned i = 0; i < sim.nodes; i++) {
		struct node *node = &sim.node[i];

		target_destroy(node);
		require(vb_srq_destroy(node->srq) == 0);
		vb_srq_free(node->srq);
		node_unmake(node);
	}
	nodes_end();
}
