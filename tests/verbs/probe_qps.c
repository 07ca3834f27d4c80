/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of queue pairs: making, changing, asking; address handles and multicast groups. */
#include "probe.h"

/* --- making --- */

static int destroyed(struct ibv_qp *qp)
{
	return qp ? ibv_destroy_qp(qp) : probe_made(qp);
}

static int qp_type(uint64_t type)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = (enum ibv_qp_type)type,
	};
	int rc;

	errno = 0;
	rc = destroyed(ibv_create_qp(vt.pd, &attr));
	ibv_destroy_cq(cq);
	return rc;
}

static int qp(uint64_t unused)
{
	return qp_type(IBV_QPT_RC);
}

/* With one bit of comp_mask more, and what it stands for. */
static int qp_ex(enum ibv_qp_type type, uint32_t mask, uint32_t create_flags, uint64_t ops)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | mask,
		.pd = vt.pd,
		.create_flags = create_flags,
		.source_qpn = 77,
		.send_ops_flags = ops,
	};
	int rc;

	errno = 0;
	rc = destroyed(ibv_create_qp_ex(vt.ctx, &attr));
	ibv_destroy_cq(cq);
	return rc;
}

/* A QP that receives for a domain, which takes the place of the PD. */
static int qp_xrc_recv(uint64_t unused)
{
	struct ibv_xrcd *xrcd = probe_xrcd();
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	int rc;

	errno = 0;
	rc = destroyed(ibv_create_qp_ex(vt.ctx, &attr));
	if (xrcd)
		ibv_close_xrcd(xrcd);
	return rc;
}

static int qp_mask(uint64_t mask)
{
	return qp_ex(IBV_QPT_RC, (uint32_t)mask, 0,
		     mask == IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? IBV_QP_EX_WITH_SEND : 0);
}

static int qp_flag(uint64_t flag)
{
	return qp_ex(IBV_QPT_UD, IBV_QP_INIT_ATTR_CREATE_FLAGS, (uint32_t)flag, 0);
}

static int qp_op(uint64_t op)
{
	return qp_ex(IBV_QPT_RC, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, op);
}

static int qp_to_ex(uint64_t unused)
{
	struct vt_end end;
	int rc;

	probe_end_open(&end, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	rc = ibv_qp_to_qp_ex(end.qp) ? 0 : EOPNOTSUPP;
	vt_end_close(&end);
	return rc;
}

/* --- changing --- */

/* An end that stands in this state, by all the attributes that are required on the way. */
static struct vt_options end_in(struct vt_end *end, enum ibv_qp_type type, enum ibv_qp_state state)
{
	struct vt_options opt = { .type = type };

	vt_end_open(end, &opt);
	if (state != IBV_QPS_RESET)
		vt_climb(end->qp, &opt, state, end->qp->qp_num);
	return opt;
}

/* A probe of such an end, *end. */
#define PROBE_OF_END(f, type, state)                                                              \
	static int f##_of(struct vt_end *end, uint64_t value);                                    \
	static int f(uint64_t value)                                                              \
	{                                                                                         \
		struct vt_end end;                                                                \
		int rc;                                                                           \
                                                                                                  \
		end_in(&end, type, state);                                                        \
		rc = f##_of(&end, value);                                                         \
		vt_end_close(&end);                                                               \
		return rc;                                                                        \
	}                                                                                         \
	static int f##_of(struct vt_end *end, uint64_t value)

/* With one attribute more on the way to a state; values: what they are, besides those required. */
static int attr_set(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int bit)
{
	struct vt_end end;
	struct vt_options opt = end_in(&end, type, from);
	struct ibv_qp_attr attr;
	int rc, mask = IBV_QP_STATE;

	if (to > from)
		mask = vt_attr(&attr, &opt, to, end.qp->qp_num);
	else
		attr = (struct ibv_qp_attr){ .qp_state = to };
	attr.cur_qp_state = from;
	attr.en_sqd_async_notify = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	attr.qkey = VT_QKEY;
	attr.port_num = attr.alt_port_num = 1;
	attr.alt_timeout = 14;
	attr.alt_ah_attr = vt_address(&vt.gid);
	attr.path_mig_state = IBV_MIG_REARM;
	attr.rate_limit = 1000000;
	attr.cap = (struct ibv_qp_cap){ 8, 8, 1, 1, 0 };
	if (bit & IBV_QP_PATH_MIG_STATE)
		bit |= IBV_QP_ALT_PATH;
	rc = ibv_modify_qp(end.qp, &attr, mask | bit);
	vt_end_close(&end);
	return rc;
}

static int attr_at_init(uint64_t bit)
{
	return attr_set(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, (int)bit);
}

static int attr_at_init_ud(uint64_t bit)
{
	return attr_set(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, (int)bit);
}

static int attr_at_rtr(uint64_t bit)
{
	return attr_set(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, (int)bit);
}

static int attr_at_rts(uint64_t bit)
{
	return attr_set(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, (int)bit);
}

static int attr_in_rts(uint64_t bit)
{
	return attr_set(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, (int)bit);
}

static int attr_at_sqd(uint64_t bit)
{
	return attr_set(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, (int)bit);
}

PROBE_OF_END(reached, IBV_QPT_RC, value <= IBV_QPS_RTS ? (enum ibv_qp_state)value : IBV_QPS_RTS)
{
	if (value > IBV_QPS_RTS)
		vt_modify(end->qp, (enum ibv_qp_state)value);
	return vt_state(end->qp) == (enum ibv_qp_state)value ? 0 : EINVAL;
}

/* A datagram that its address does not allow to leave brings it there (IBA 10.3.1.6). */
PROBE_OF_END(reached_sqe, IBV_QPT_UD, IBV_QPS_RTS)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, end, end, 8);
	w.sge.lkey ^= 0x100;
	vt_done(end, &w, IBV_WC_LOC_PROT_ERR);
	return vt_state(end->qp) == (enum ibv_qp_state)value ? 0 : EINVAL;
}

static int mtu(uint64_t code)
{
	struct vt_end end;
	struct vt_options opt = { .mtu = (enum ibv_mtu)code };
	struct ibv_qp_attr attr;
	int mask, rc;

	vt_end_open(&end, &opt);
	vt_climb(end.qp, &opt, IBV_QPS_INIT, end.qp->qp_num);
	mask = vt_attr(&attr, &opt, IBV_QPS_RTR, end.qp->qp_num);
	rc = ibv_modify_qp(end.qp, &attr, mask);
	vt_end_close(&end);
	return rc;
}

PROBE_OF_END(mig_state, IBV_QPT_RC, IBV_QPS_RTS)
{
	struct ibv_qp_attr attr = { .path_mig_state = (enum ibv_mig_state)value };

	attr.alt_ah_attr = vt_address(&vt.gid);
	attr.alt_port_num = 1;
	return ibv_modify_qp(end->qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

PROBE_OF_END(rate_limit, IBV_QPT_RC, IBV_QPS_RTS)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 1000000 };

	return ibv_modify_qp_rate_limit(end->qp, &attr);
}

/* --- asking --- */

PROBE_OF_END(data_in_order, IBV_QPT_RC, IBV_QPS_RTS)
{
	int rc;

	rc = ibv_query_qp_data_in_order(end->qp, IBV_WR_RDMA_WRITE, 0);
	return rc == 0 || rc == 1 ? 0 : EPROTO;
}

PROBE_OF_END(ece_query, IBV_QPT_RC, IBV_QPS_RESET)
{
	struct ibv_ece ece;

	return ibv_query_ece(end->qp, &ece);
}

PROBE_OF_END(ece_set, IBV_QPT_RC, IBV_QPS_RESET)
{
	struct ibv_ece ece = { .vendor_id = 0 };
	int rc;

	rc = ibv_query_ece(end->qp, &ece);
	if (!rc)
		rc = ibv_set_ece(end->qp, &ece);
	return rc;
}

/* --- addresses and groups --- */

static int ah(uint64_t rate)
{
	struct ibv_ah_attr attr = vt_address(&vt.gid);
	struct ibv_ah *made;

	attr.static_rate = (uint8_t)rate;
	made = ibv_create_ah(vt.pd, &attr);
	return made ? ibv_destroy_ah(made) : probe_made(made);
}

/* The address of whoever sent a datagram that did not say where it came from. */
static int ah_attr_from_wc(uint64_t unused)
{
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_ah_attr attr;

	return probe_counted(ibv_init_ah_from_wc(vt.ctx, 1, &wc, NULL, &attr));
}

/* A datagram to itself, which is answered. */
PROBE_OF_END(ah_from_wc, IBV_QPT_UD, IBV_QPS_RTS)
{
	struct ibv_ah *back;
	struct ibv_wc wc;
	struct vt_wr w;

	vt_recv(end, 2);
	vt_wr(&w, IBV_WR_SEND, end, end, 8);
	w.wr.send_flags = 0;
	vt_post(end, &w);
	wc = vt_expect(end->cq, 2, IBV_WC_SUCCESS);
	back = ibv_create_ah_from_wc(vt.pd, &wc, (struct ibv_grh *)end->buf, 1);
	return back ? ibv_destroy_ah(back) : probe_made(back);
}

static const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } };

PROBE_OF_END(attach, IBV_QPT_UD, IBV_QPS_RTS)
{
	int rc;

	rc = ibv_attach_mcast(end->qp, &group, 0);
	if (!rc)
		rc = ibv_detach_mcast(end->qp, &group, 0);
	return rc;
}

/* clang-format off */
const struct probe probe_qps[] = {
	PROBE(ibv_create_qp, qp),
	PROBE(ibv_destroy_qp, qp),
	PROBE_FLAG(IBV_QPT_RC, qp_type),
	PROBE_FLAG(IBV_QPT_UC, qp_type),
	PROBE_FLAG(IBV_QPT_UD, qp_type),
	PROBE_FLAG(IBV_QPT_RAW_PACKET, qp_type),
	PROBE_FLAG(IBV_QPT_XRC_SEND, qp_type),
	PROBE(IBV_QPT_XRC_RECV, qp_xrc_recv),
	PROBE_FLAG(IBV_QPT_DRIVER, qp_type),
	PROBE(ibv_create_qp_ex, qp_mask),
	PROBE_FLAG(IBV_QP_INIT_ATTR_PD, qp_mask),
	PROBE(IBV_QP_INIT_ATTR_XRCD, qp_xrc_recv),
	PROBE_FLAG(IBV_QP_INIT_ATTR_CREATE_FLAGS, qp_mask),
	PROBE_FLAG(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, qp_mask),
	PROBE_FLAG(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, qp_flag),
	PROBE_FLAG(IBV_QP_CREATE_SOURCE_QPN, qp_flag),
	PROBE_FLAG(IBV_QP_CREATE_PCI_WRITE_END_PADDING, qp_flag),
	PROBE_FLAG(IBV_QP_EX_WITH_RDMA_WRITE, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_SEND, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_SEND_WITH_IMM, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_RDMA_READ, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_LOCAL_INV, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_BIND_MW, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_SEND_WITH_INV, qp_op),
	PROBE_FLAG(IBV_QP_EX_WITH_ATOMIC_WRITE, qp_op),
	PROBE(ibv_qp_to_qp_ex, qp_to_ex),

	PROBE_OF(ibv_modify_qp, attr_at_init, 0),
	PROBE_FLAG(IBV_QP_STATE, attr_at_init),
	PROBE_FLAG(IBV_QP_CUR_STATE, attr_at_rts),
	PROBE_FLAG(IBV_QP_EN_SQD_ASYNC_NOTIFY, attr_at_sqd),
	PROBE_FLAG(IBV_QP_ACCESS_FLAGS, attr_at_init),
	PROBE_FLAG(IBV_QP_PKEY_INDEX, attr_at_init),
	PROBE_FLAG(IBV_QP_PORT, attr_at_init),
	PROBE_FLAG(IBV_QP_QKEY, attr_at_init_ud),
	PROBE_FLAG(IBV_QP_AV, attr_at_rtr),
	PROBE_FLAG(IBV_QP_PATH_MTU, attr_at_rtr),
	PROBE_FLAG(IBV_QP_DEST_QPN, attr_at_rtr),
	PROBE_FLAG(IBV_QP_RQ_PSN, attr_at_rtr),
	PROBE_FLAG(IBV_QP_MAX_DEST_RD_ATOMIC, attr_at_rtr),
	PROBE_FLAG(IBV_QP_MIN_RNR_TIMER, attr_at_rtr),
	PROBE_FLAG(IBV_QP_TIMEOUT, attr_at_rts),
	PROBE_FLAG(IBV_QP_RETRY_CNT, attr_at_rts),
	PROBE_FLAG(IBV_QP_RNR_RETRY, attr_at_rts),
	PROBE_FLAG(IBV_QP_SQ_PSN, attr_at_rts),
	PROBE_FLAG(IBV_QP_MAX_QP_RD_ATOMIC, attr_at_rts),
	PROBE_FLAG(IBV_QP_ALT_PATH, attr_in_rts),
	PROBE_FLAG(IBV_QP_PATH_MIG_STATE, attr_in_rts),
	PROBE_FLAG(IBV_QP_CAP, attr_at_init),
	PROBE_FLAG(IBV_QP_RATE_LIMIT, attr_in_rts),
	PROBE_FLAG(IBV_QPS_RESET, reached),
	PROBE_FLAG(IBV_QPS_INIT, reached),
	PROBE_FLAG(IBV_QPS_RTR, reached),
	PROBE_FLAG(IBV_QPS_RTS, reached),
	PROBE_FLAG(IBV_QPS_SQD, reached),
	PROBE_FLAG(IBV_QPS_SQE, reached_sqe),
	PROBE_FLAG(IBV_QPS_ERR, reached),
	PROBE_FLAG(IBV_QPS_UNKNOWN, reached),
	PROBE_FLAG(IBV_MTU_256, mtu),
	PROBE_FLAG(IBV_MTU_512, mtu),
	PROBE_FLAG(IBV_MTU_1024, mtu),
	PROBE_FLAG(IBV_MTU_2048, mtu),
	PROBE_FLAG(IBV_MTU_4096, mtu),
	PROBE_FLAG(IBV_MIG_MIGRATED, mig_state),
	PROBE_FLAG(IBV_MIG_REARM, mig_state),
	PROBE(ibv_modify_qp_rate_limit, rate_limit),
	PROBE_OF(ibv_query_qp, reached, IBV_QPS_RTS),
	PROBE(ibv_query_qp_data_in_order, data_in_order),
	PROBE(ibv_query_ece, ece_query),
	PROBE(ibv_set_ece, ece_set),

	PROBE(ibv_create_ah, ah),
	PROBE(ibv_destroy_ah, ah),
	PROBE(ibv_init_ah_from_wc, ah_attr_from_wc),
	PROBE(ibv_create_ah_from_wc, ah_from_wc),
	PROBE_FLAG(IBV_RATE_MAX, ah),
	PROBE_FLAG(IBV_RATE_2_5_GBPS, ah),
	PROBE_FLAG(IBV_RATE_5_GBPS, ah),
	PROBE_FLAG(IBV_RATE_10_GBPS, ah),
	PROBE_FLAG(IBV_RATE_14_GBPS, ah),
	PROBE_FLAG(IBV_RATE_20_GBPS, ah),
	PROBE_FLAG(IBV_RATE_25_GBPS, ah),
	PROBE_FLAG(IBV_RATE_28_GBPS, ah),
	PROBE_FLAG(IBV_RATE_30_GBPS, ah),
	PROBE_FLAG(IBV_RATE_40_GBPS, ah),
	PROBE_FLAG(IBV_RATE_50_GBPS, ah),
	PROBE_FLAG(IBV_RATE_56_GBPS, ah),
	PROBE_FLAG(IBV_RATE_60_GBPS, ah),
	PROBE_FLAG(IBV_RATE_80_GBPS, ah),
	PROBE_FLAG(IBV_RATE_100_GBPS, ah),
	PROBE_FLAG(IBV_RATE_112_GBPS, ah),
	PROBE_FLAG(IBV_RATE_120_GBPS, ah),
	PROBE_FLAG(IBV_RATE_168_GBPS, ah),
	PROBE_FLAG(IBV_RATE_200_GBPS, ah),
	PROBE_FLAG(IBV_RATE_300_GBPS, ah),
	PROBE_FLAG(IBV_RATE_400_GBPS, ah),
	PROBE_FLAG(IBV_RATE_600_GBPS, ah),
	PROBE_FLAG(IBV_RATE_800_GBPS, ah),
	PROBE_FLAG(IBV_RATE_1200_GBPS, ah),
	PROBE(ibv_attach_mcast, attach),
	PROBE(ibv_detach_mcast, attach),
	{ NULL },
};
