/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of XRC, work queues, flows and counters. Of what cannot be made, the functions that take
 * one are called with a structure that has a context and nothing else: they must not look further.
 */
#include "probe.h"

#include <fcntl.h>

/* --- extended reliable connections --- */

struct ibv_xrcd *probe_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(vt.ctx, &attr);
}

static int xrcd_open(uint64_t unused)
{
	return PROBE_ONCE(probe_xrcd(), ibv_close_xrcd);
}

static int xrcd_close(uint64_t unused)
{
	struct ibv_xrcd *made = probe_xrcd(), none = { .context = vt.ctx };

	return ibv_close_xrcd(made ? made : &none);
}

/* The QP of a domain, by its number. */
static int qp_open(uint64_t unused)
{
	struct ibv_xrcd *xrcd = probe_xrcd();
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = xrcd ? ibv_create_qp_ex(vt.ctx, &init) : NULL;
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qp ? qp->qp_num : 0,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	int rc;

	rc = PROBE_ONCE(ibv_open_qp(vt.ctx, &attr), ibv_destroy_qp);
	if (qp)
		ibv_destroy_qp(qp);
	if (xrcd)
		ibv_close_xrcd(xrcd);
	return rc;
}

/* --- work queues --- */

static int wq_create(uint64_t flags)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 4,
		.max_sge = 1,
		.pd = vt.pd,
		.cq = cq,
		.comp_mask = flags ? IBV_WQ_INIT_ATTR_FLAGS : 0,
		.create_flags = (uint32_t)flags,
	};
	int rc;

	rc = PROBE_ONCE(ibv_create_wq(vt.ctx, &attr), ibv_destroy_wq);
	ibv_destroy_cq(cq);
	return rc;
}

/* A queue, what is done with it, and its end. */
static int with_wq(int (*act)(struct ibv_wq *wq, uint64_t value), uint64_t value)
{
	struct ibv_cq *cq = vt_cq(16, NULL);
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = vt.pd, .cq = cq,
	};
	struct ibv_wq *wq;
	int rc;

	errno = 0;
	wq = ibv_create_wq(vt.ctx, &attr);
	rc = wq ? act(wq, value) : probe_made(wq);
	if (wq)
		ibv_destroy_wq(wq);
	ibv_destroy_cq(cq);
	return rc;
}

static int modify_act(struct ibv_wq *wq, uint64_t mask)
{
	struct ibv_wq_attr attr = {
		.attr_mask = (uint32_t)mask, .wq_state = IBV_WQS_RDY,
		.curr_wq_state = IBV_WQS_RESET, .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING,
	};

	/* The state that it has goes with the one that it is to have. */
	if (mask == IBV_WQ_ATTR_CURR_STATE)
		attr.attr_mask |= IBV_WQ_ATTR_STATE;
	return ibv_modify_wq(wq, &attr);
}

static int wq_modify(uint64_t mask)
{
	return with_wq(modify_act, mask ? mask : IBV_WQ_ATTR_STATE);
}

static int state_act(struct ibv_wq *wq, uint64_t state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };

	if (state == IBV_WQS_ERR) /* only from there */
		ibv_modify_wq(wq, &attr);
	attr.wq_state = (enum ibv_wq_state)state;
	return ibv_modify_wq(wq, &attr);
}

static int wq_state(uint64_t state)
{
	return with_wq(state_act, state);
}

static int table_act(struct ibv_wq *wq, uint64_t mask)
{
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq, .comp_mask = (uint32_t)mask };

	return PROBE_ONCE(ibv_create_rwq_ind_table(vt.ctx, &attr), ibv_destroy_rwq_ind_table);
}

static int table_plain(uint64_t unused)
{
	return with_wq(table_act, 0);
}

/* --- flows --- */

static const struct {
	unsigned type;
	uint16_t bytes;
} specs[] = {
	{ IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth) },
	{ IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4) },
	{ IBV_FLOW_SPEC_IPV6, sizeof(struct ibv_flow_spec_ipv6) },
	{ IBV_FLOW_SPEC_IPV4_EXT, sizeof(struct ibv_flow_spec_ipv4_ext) },
	{ IBV_FLOW_SPEC_ESP, sizeof(struct ibv_flow_spec_esp) },
	{ IBV_FLOW_SPEC_TCP, sizeof(struct ibv_flow_spec_tcp_udp) },
	{ IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp) },
	{ IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(struct ibv_flow_spec_tunnel) },
	{ IBV_FLOW_SPEC_GRE, sizeof(struct ibv_flow_spec_gre) },
	{ IBV_FLOW_SPEC_MPLS, sizeof(struct ibv_flow_spec_mpls) },
	{ IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER, sizeof(struct ibv_flow_spec_eth) },
	{ IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag) },
	{ IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop) },
	{ IBV_FLOW_SPEC_ACTION_HANDLE, sizeof(struct ibv_flow_spec_action_handle) },
	{ IBV_FLOW_SPEC_ACTION_COUNT, sizeof(struct ibv_flow_spec_counter_action) },
};

/* Make a rule of one specification, and destroy it. */
static int flow(enum ibv_flow_attr_type type, uint32_t flags, const struct ibv_flow_spec *spec)
{
	struct {
		struct ibv_flow_attr attr;
		uint8_t spec[sizeof(struct ibv_flow_spec)];
	} rule = {
		.attr = { .type = type, .size = sizeof(rule.attr), .num_of_specs = !!spec,
			  .port = 1, .flags = flags },
	};
	struct ibv_cq *cq = vt_cq(1, NULL);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(vt.pd, &init);
	int rc = probe_made(qp);

	if (qp) {
		if (spec)
			memcpy((uint8_t *)&rule + rule.attr.size, spec, spec->hdr.size);
		rc = PROBE_ONCE(ibv_create_flow(qp, &rule.attr), ibv_destroy_flow);
		ibv_destroy_qp(qp);
	}
	ibv_destroy_cq(cq);
	return rc;
}

static int flow_plain(uint64_t unused)
{
	return flow(IBV_FLOW_ATTR_NORMAL, 0, NULL);
}

static int flow_type(uint64_t type)
{
	return flow((enum ibv_flow_attr_type)type, 0, NULL);
}

static int flow_flag(uint64_t flag)
{
	return flow(IBV_FLOW_ATTR_NORMAL, (uint32_t)flag, NULL);
}

static int flow_spec(uint64_t type)
{
	struct ibv_counters_init_attr attr = { .comp_mask = 0 };
	struct ibv_counters *counters = ibv_create_counters(vt.ctx, &attr);
	struct ibv_flow_spec spec;
	unsigned i = 0;
	int rc;

	memset(&spec, 0, sizeof(spec));
	while (specs[i].type != type && specs[i].type != (type | IBV_FLOW_SPEC_ETH))
		i++;
	spec.hdr.type = (enum ibv_flow_spec_type)specs[i].type;
	spec.hdr.size = specs[i].bytes;
	if (type == IBV_FLOW_SPEC_ACTION_COUNT)
		spec.flow_count.counters = counters;
	rc = flow(IBV_FLOW_ATTR_NORMAL, 0, &spec);
	ibv_destroy_counters(counters);
	return rc;
}

static int action_create(uint64_t unused)
{
	struct ibv_flow_action_esp esp = { .spi = 1 };
	struct ibv_flow_action_esp_attr attr = { .esp_attr = &esp };

	return probe_made(ibv_create_flow_action_esp(vt.ctx, &attr));
}

static int action_modify(uint64_t unused)
{
	struct ibv_flow_action none = { .context = vt.ctx };
	struct ibv_flow_action_esp_attr attr = { .esp_attr = NULL };

	return ibv_modify_flow_action_esp(&none, &attr);
}

static int action_destroy(uint64_t unused)
{
	struct ibv_flow_action none = { .context = vt.ctx };

	return ibv_destroy_flow_action(&none);
}

/* --- counters --- */

static struct ibv_counters no_counters;

static struct ibv_counters *counters_new(void)
{
	struct ibv_counters_init_attr attr = { .comp_mask = 0 };
	struct ibv_counters *made = ibv_create_counters(vt.ctx, &attr);

	no_counters.context = vt.ctx;
	return made ? made : &no_counters;
}

static int counters_create(uint64_t unused)
{
	struct ibv_counters *made = counters_new();

	return made == &no_counters ? probe_made(NULL) : ibv_destroy_counters(made);
}

static int counters_destroy(uint64_t unused)
{
	return ibv_destroy_counters(counters_new());
}

static int counters_attach(uint64_t what)
{
	struct ibv_counters *made = counters_new();
	struct ibv_counter_attach_attr attr = { .counter_desc =
							(enum ibv_counter_description)what };
	int rc = ibv_attach_counters_point_flow(made, &attr, NULL);

	ibv_destroy_counters(made);
	return rc;
}

static int counters_read(uint64_t flags)
{
	struct ibv_counters *made = counters_new();
	uint64_t values[2];
	int rc = ibv_read_counters(made, values, 2, (uint32_t)flags);

	ibv_destroy_counters(made);
	return rc;
}

/* clang-format off */
const struct probe probe_later[] = {
	PROBE(ibv_open_xrcd, xrcd_open),
	PROBE(IBV_XRCD_INIT_ATTR_FD, xrcd_open),
	PROBE(IBV_XRCD_INIT_ATTR_OFLAGS, xrcd_open),
	PROBE(ibv_close_xrcd, xrcd_close),
	PROBE(ibv_open_qp, qp_open),
	PROBE(IBV_QP_OPEN_ATTR_NUM, qp_open),
	PROBE(IBV_QP_OPEN_ATTR_XRCD, qp_open),
	PROBE(IBV_QP_OPEN_ATTR_CONTEXT, qp_open),
	PROBE(IBV_QP_OPEN_ATTR_TYPE, qp_open),

	PROBE_OF(ibv_create_wq, wq_create, 0),
	PROBE_OF(IBV_WQT_RQ, wq_create, 0),
	PROBE(IBV_WQ_INIT_ATTR_FLAGS, wq_create),
	PROBE_FLAG(IBV_WQ_FLAGS_CVLAN_STRIPPING, wq_create),
	PROBE_FLAG(IBV_WQ_FLAGS_SCATTER_FCS, wq_create),
	PROBE_FLAG(IBV_WQ_FLAGS_DELAY_DROP, wq_create),
	PROBE_FLAG(IBV_WQ_FLAGS_PCI_WRITE_END_PADDING, wq_create),
	PROBE(ibv_modify_wq, wq_modify),
	PROBE_FLAG(IBV_WQ_ATTR_STATE, wq_modify),
	PROBE_FLAG(IBV_WQ_ATTR_CURR_STATE, wq_modify),
	PROBE_FLAG(IBV_WQ_ATTR_FLAGS, wq_modify),
	PROBE_FLAG(IBV_WQS_RESET, wq_state),
	PROBE_FLAG(IBV_WQS_RDY, wq_state),
	PROBE_FLAG(IBV_WQS_ERR, wq_state),
	PROBE_FLAG(IBV_WQS_UNKNOWN, wq_state),
	PROBE_OF(ibv_destroy_wq, wq_create, 0),
	PROBE_OF(ibv_post_wq_recv, wq_create, 0),
	PROBE(ibv_create_rwq_ind_table, table_plain),
	PROBE(ibv_destroy_rwq_ind_table, table_plain),

	PROBE(ibv_create_flow, flow_plain),
	PROBE_FLAG(IBV_FLOW_ATTR_NORMAL, flow_type),
	PROBE_FLAG(IBV_FLOW_ATTR_ALL_DEFAULT, flow_type),
	PROBE_FLAG(IBV_FLOW_ATTR_MC_DEFAULT, flow_type),
	PROBE_FLAG(IBV_FLOW_ATTR_SNIFFER, flow_type),
	PROBE_FLAG(IBV_FLOW_ATTR_FLAGS_DONT_TRAP, flow_flag),
	PROBE_FLAG(IBV_FLOW_ATTR_FLAGS_EGRESS, flow_flag),
	PROBE_FLAG(IBV_FLOW_SPEC_ETH, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_IPV4, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_IPV6, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_IPV4_EXT, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_ESP, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_TCP, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_UDP, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_VXLAN_TUNNEL, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_GRE, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_MPLS, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_INNER, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_ACTION_TAG, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_ACTION_DROP, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_ACTION_HANDLE, flow_spec),
	PROBE_FLAG(IBV_FLOW_SPEC_ACTION_COUNT, flow_spec),
	PROBE(ibv_destroy_flow, flow_plain),
	PROBE(ibv_create_flow_action_esp, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_MASK_ESN, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_KEYMAT_AES_GCM, action_create),
	PROBE(IBV_FLOW_ACTION_IV_ALGO_SEQ, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_REPLAY_NONE, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_REPLAY_BMP, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_INLINE_CRYPTO, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_FULL_OFFLOAD, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_TUNNEL, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_TRANSPORT, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_DECRYPT, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_ENCRYPT, action_create),
	PROBE(IBV_FLOW_ACTION_ESP_FLAGS_ESN_NEW_WINDOW, action_create),
	PROBE(ibv_modify_flow_action_esp, action_modify),
	PROBE(ibv_destroy_flow_action, action_destroy),

	PROBE(ibv_create_counters, counters_create),
	PROBE(ibv_destroy_counters, counters_destroy),
	PROBE(ibv_attach_counters_point_flow, counters_attach),
	PROBE_FLAG(IBV_COUNTER_PACKETS, counters_attach),
	PROBE_FLAG(IBV_COUNTER_BYTES, counters_attach),
	PROBE(ibv_read_counters, counters_read),
	PROBE_FLAG(IBV_READ_COUNTERS_ATTR_PREFER_CACHED, counters_read),
	{ NULL },
};
