/* SPDX-License-Identifier: BSD-2-Clause */

/* NICs, each with a QP of SRD. */
#include "srd_sim.h"

#include "nodes.h"

static void ahs_make(struct node *node)
{
	node_ahs_make(node);
	for (unsigned i = 0; sim.numbered && i < sim.nodes; i++)
		node->ahn[i] = vb_ah_number(node->ah[i]);
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
	bool ipv4 = nodes_begin();

	sim.bad = chance(40);
	sim.numbered = chance(50);
	sim.dying = chance(40) ? below(sim.nodes) : FABRIC_NICS_MAX;
	sim.only_qp = chance(40);
	sim.death_ns = chance(50) ? below(300000) : below(20000000);
	nodes_make(ipv4);
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
	for (unsigned i = 0; i < sim.nodes; i++)
		node_unmake(&sim.node[i]);
	nodes_end();
}
