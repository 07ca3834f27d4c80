/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of what RAW_PACKET QPs have: flags, sending with offloads, and spreading what comes. */
#include "probe.h"

enum { HEADER = 54, BYTES = 100 };

/* Ethernet, IPv4, TCP. */
static const uint8_t header[HEADER] = {
	[12] = 0x08, [14] = 0x45, [22] = 64, [23] = 6, [46] = 0x50, [47] = 0x10,
};

static struct ibv_qp *make(struct ibv_cq *cq, uint32_t mask, uint32_t create_flags, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | mask,
		.pd = vt.pd,
		.create_flags = create_flags,
		.max_tso_header = HEADER,
		.send_ops_flags = ops,
	};

	errno = 0;
	return ibv_create_qp_ex(vt.ctx, &attr);
}

static int made(uint32_t mask, uint32_t create_flags, uint64_t ops)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_qp *qp = make(cq, mask, create_flags, ops);
	int rc = qp ? ibv_destroy_qp(qp) : probe_made(qp);

	ibv_destroy_cq(cq);
	return rc;
}

static int qp_flag(uint64_t flag)
{
	return made(IBV_QP_INIT_ATTR_CREATE_FLAGS, (uint32_t)flag, 0);
}

static int qp_mask(uint64_t mask)
{
	return made((uint32_t)mask, 0, 0);
}

static int qp_op(uint64_t op)
{
	return made(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, op);
}

/* A QP that spreads over one queue; what it needs beside goes before it can be looked at. */
static int qp_spread(uint64_t unused)
{
	static uint8_t key[40];
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_wq_init_attr wq_attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 4,
		.max_sge = 1,
		.pd = vt.pd,
		.cq = cq,
	};
	struct ibv_wq *wq = ibv_create_wq(vt.ctx, &wq_attr);
	struct ibv_rwq_ind_table_init_attr table_attr = {.ind_tbl = &wq};
	struct ibv_rwq_ind_table *table = wq ? ibv_create_rwq_ind_table(vt.ctx, &table_attr) : NULL;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = vt.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, IBV_RX_HASH_SRC_IPV4},
	};
	struct ibv_qp *qp = table ? ibv_create_qp_ex(vt.ctx, &attr) : NULL;
	int rc = qp ? ibv_destroy_qp(qp) : probe_made(qp);

	if (table)
		ibv_destroy_rwq_ind_table(table);
	if (wq)
		ibv_destroy_wq(wq);
	ibv_destroy_cq(cq);
	return rc;
}

/* Bring it to where it sends. */
static int climb(struct ibv_qp *qp)
{
	int rc = 0;

	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS && !rc; state++) {
		struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)state, .port_num = 1};

		rc = ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
	}
	return rc;
}

static int post(struct ibv_qp *qp, struct ibv_sge *sge, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED | flags},
			   *bad;

	if (opcode == IBV_WR_TSO) {
		wr.tso.hdr = (void *)header;
		wr.tso.hdr_sz = HEADER;
		wr.tso.mss = 64;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static int build(struct ibv_qp *qp, struct ibv_sge *sge)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qpx);
	qpx->wr_id = 0;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_tso(qpx, (void *)header, HEADER, 64);
	ibv_wr_set_sge(qpx, sge->lkey, sge->addr, sge->length);
	return ibv_wr_complete(qpx);
}

/* Nobody is there to receive it: what counts is that it leaves. */
static int sent(bool built, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_qp *qp =
		make(cq, IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		     IBV_QP_EX_WITH_TSO);
	int rc = qp ? climb(qp) : probe_made(qp);
	uint8_t frame[BYTES] = {0};
	struct ibv_mr *mr = vt_mr(vt.pd, frame, BYTES, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)frame, .length = BYTES, .lkey = mr->lkey};

	memcpy(frame, header, HEADER);
	if (!rc)
		rc = built ? build(qp, &sge) : post(qp, &sge, opcode, flags);
	if (!rc)
		vt_expect(cq, 0, IBV_WC_SUCCESS);
	if (qp)
		ibv_destroy_qp(qp);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	return rc;
}

static int opcode(uint64_t which)
{
	return sent(false, (enum ibv_wr_opcode)which, 0);
}

static int send_flag(uint64_t flag)
{
	return sent(false, IBV_WR_SEND, (unsigned)flag);
}

static int built_tso(uint64_t unused)
{
	return sent(true, IBV_WR_TSO, 0);
}

/* clang-format off */
const struct probe probe_frames[] = {
	PROBE_FLAG(IBV_QP_INIT_ATTR_MAX_TSO_HEADER, qp_mask),
	PROBE(IBV_QP_INIT_ATTR_IND_TABLE, qp_spread),
	PROBE(IBV_QP_INIT_ATTR_RX_HASH, qp_spread),
	PROBE_FLAG(IBV_QP_CREATE_SCATTER_FCS, qp_flag),
	PROBE_FLAG(IBV_QP_CREATE_CVLAN_STRIPPING, qp_flag),
	PROBE_FLAG(IBV_QP_EX_WITH_TSO, qp_op),
	PROBE_FLAG(IBV_WR_TSO, opcode),
	PROBE_FLAG(IBV_SEND_IP_CSUM, send_flag),
	PROBE(ibv_wr_send_tso, built_tso),
	{ NULL },
};
