/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"
#include "skip.h"

const uint8_t raw_mac[4][RAW_MAC] = {
	{ 0x02, 0x76, 0x62, 0, 0, 1 },
	{ 0x02, 0x76, 0x62, 0, 0, 2 },
	{ 0x02, 0x76, 0x62, 0, 0, 3 },
	{ 0x02, 0x76, 0x62, 0, 0, 4 },
};
const uint8_t raw_group[RAW_MAC] = { 0x01, 0x00, 0x5e, 0x4f, 0, 1 };
const uint8_t raw_broadcast[RAW_MAC] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

void raw_needed(void)
{
	if (vt_by_udp())
		SKIP("no Ethernet frames over UDP");
}

static struct ibv_context *context_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	assert_non_null(ctx);
	return ctx;
}

int raw_climb(struct ibv_qp *qp, enum ibv_qp_state state)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	int rc = 0;

	for (unsigned i = 0; i < 3 && way[i] <= state && rc == 0; i++) {
		struct ibv_qp_attr attr = { .qp_state = way[i], .port_num = 1 };

		rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | (i == 0 ? IBV_QP_PORT : 0));
	}
	return rc;
}

static struct ibv_qp *qp_make(struct raw_end *end, const struct raw_options *opt)
{
	uint32_t wr = opt->wr ? opt->wr : 64;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = wr,
			 .max_recv_wr = wr,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_data = 128 },
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = end->pd,
		.create_flags = opt->create_flags,
	};

	if (opt->tso_header) {
		init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
		init.max_tso_header = (uint16_t)opt->tso_header;
	}
	return ibv_create_qp_ex(end->ctx, &init);
}

void raw_open(struct raw_end *end, const struct raw_options *given)
{
	struct raw_options opt = given ? *given : (struct raw_options){ 0 };
	size_t bytes = (size_t)RAW_SLOTS * RAW_SLOT_BYTES;

	*end = (struct raw_end){ .ctx = opt.ctx, .own_ctx = !opt.ctx };
	if (!end->ctx)
		end->ctx = context_open();
	end->pd = vt_made(ibv_alloc_pd(end->ctx));
	if (opt.cq_attr) {
		end->cq_ex = vt_made(ibv_create_cq_ex(end->ctx, opt.cq_attr));
		end->cq = ibv_cq_ex_to_cq(end->cq_ex);
	} else {
		end->cq = ibv_create_cq(end->ctx, 2 * RAW_SLOTS, NULL, NULL, 0);
	}
	assert_non_null(end->cq);
	end->buf = aligned_alloc(4096, bytes);
	memset(end->buf, 0xee, bytes);
	end->mr = vt_made(ibv_reg_mr(end->pd, end->buf, bytes, IBV_ACCESS_LOCAL_WRITE));
	end->qp = vt_made(qp_make(end, &opt));
	if (!opt.state)
		opt.state = IBV_QPS_RTS;
	if (opt.state != IBV_QPS_UNKNOWN)
		assert_int_equal(raw_climb(end->qp, opt.state), 0);
}

void raw_close(struct raw_end *end)
{
	while (end->flows)
		assert_int_equal(ibv_destroy_flow(end->flow[--end->flows]), 0);
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	if (end->own_ctx)
		assert_int_equal(ibv_close_device(end->ctx), 0);
	free(end->buf);
}

void raw_listen(struct raw_end *end, const uint8_t mac[RAW_MAC])
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL,
			  .size = sizeof(rule),
			  .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};
	struct ibv_flow *flow;

	memcpy(rule.eth.val.dst_mac, mac, RAW_MAC);
	memset(rule.eth.mask.dst_mac, 0xff, RAW_MAC);
	flow = vt_made(ibv_create_flow(end->qp, &rule.attr));
	end->flow[end->flows++] = flow;
}

uint8_t *raw_frame(struct raw_end *end, unsigned slot, const uint8_t to[RAW_MAC],
		   const uint8_t from[RAW_MAC], uint32_t bytes, unsigned seed)
{
	uint8_t *frame = raw_at(end, slot);

	memcpy(frame, to, RAW_MAC);
	memcpy(frame + RAW_MAC, from, RAW_MAC);
	frame[12] = 0x88; /* a type for experiments */
	frame[13] = 0xb5;
	if (bytes > RAW_HEADER)
		vt_fill(frame + RAW_HEADER, bytes - RAW_HEADER, seed);
	return frame;
}

int raw_post(struct raw_end *end, unsigned slot, uint32_t bytes, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)raw_at(end, slot),
		.length = bytes,
		.lkey = end->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | flags,
	}, *bad = NULL;
	int rc = ibv_post_send(end->qp, &wr, &bad);

	assert_ptr_equal(bad, rc ? &wr : NULL);
	return rc;
}

void raw_send(struct raw_end *end, unsigned slot, uint32_t bytes)
{
	struct ibv_wc wc;

	assert_int_equal(raw_post(end, slot, bytes, 0), 0);
	wc = vt_expect(end->cq, slot, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
}

void raw_recv(struct raw_end *end, unsigned slot, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)raw_at(end, slot),
		.length = bytes,
		.lkey = end->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(end->qp, &wr, &bad), 0);
}

uint32_t raw_sum(const uint8_t *octets, uint32_t bytes)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < bytes; i++)
		total += i & 1 ? octets[i] : (uint32_t)octets[i] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return total;
}

void raw_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}
