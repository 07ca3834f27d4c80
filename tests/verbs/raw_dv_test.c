/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"

#include <infiniband/mlx5dv.h>

/* What mlx5dv_create_qp(3) adds to RAW_PACKET QPs: their own frames, and the inside of tunnels. */

enum {
	SENT = 0,
	GOT = 100,
	UDP_AT = RAW_HEADER + 20,
	VXLAN_AT = UDP_AT + 8,
	IN_ETH_AT = VXLAN_AT + 8,
	IN_IP_AT = IN_ETH_AT + RAW_HEADER,
	IN_UDP_AT = IN_IP_AT + 20,
	BYTES = IN_UDP_AT + 8 + 30,
};

/* In place of the end's QP. */
static void remake(struct raw_end *end, uint32_t flags, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = end->pd,
		.create_flags = create_flags,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = flags,
	};

	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	end->qp = vt_made(mlx5dv_create_qp(end->ctx, &attr, &dv));
	assert_int_equal(raw_climb(end->qp, IBV_QPS_RTS), 0);
}

/* create_dv: "Allow receiving loopback unicast traffic." */
/* create_dv: "Allow receiving loopback multicast traffic." */
vt_test(its_own_frames_come_back_if_that_is_asked)
{
	static const struct {
		uint32_t flags, create_flags;
		bool unicast, groups;
	} rows[] = {
		{0, 0, false, false},
		{MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC, 0, true, false},
		{MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC, 0, false, true},
		{MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
			 MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
		 0, true, true},
		{MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
			 MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
		 IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, true, false},
	};

	raw_needed();
	for (unsigned i = 0; i < VT_COUNT(rows); i++) {
		struct raw_end end;

		raw_open(&end, NULL);
		remake(&end, rows[i].flags, rows[i].create_flags);
		raw_listen(&end, raw_mac[0]);
		raw_listen(&end, raw_group);
		for (unsigned group = 0; group < 2; group++) {
			bool comes = group ? rows[i].groups : rows[i].unicast;

			raw_recv(&end, GOT, RAW_SLOT_BYTES);
			raw_frame(&end, SENT, group ? raw_group : raw_mac[0], raw_mac[0], 100, i);
			assert_int_equal(raw_post(&end, SENT, 100, 0), 0);
			/* Both ways end in one CQ, in any order. */
			for (unsigned k = 0; k < 1u + comes; k++) {
				struct ibv_wc wc;

				assert_true(vt_poll_ms(end.cq, &wc, VT_WAIT_MS));
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
			}
			vt_expect_none(end.cq);
		}
		raw_close(&end);
	}
}

static void ip_make(uint8_t *ip, unsigned bytes)
{
	memset(ip, 0, 28);
	ip[0] = 0x45;
	raw_put16(ip + 2, bytes);
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, "\x0a\x01\x02\x03\x0a\x04\x05\x06", 8);
	raw_put16(ip + 20, 5555);
	raw_put16(ip + 24, bytes - 20);
}

/* VXLAN, with UDP inside; no checksums. */
static uint8_t *tunnel_make(struct raw_end *end)
{
	uint8_t *frame = raw_frame(end, SENT, raw_mac[1], raw_mac[0], BYTES, 9);

	raw_put16(frame + 12, 0x0800);
	ip_make(frame + RAW_HEADER, BYTES - RAW_HEADER);
	raw_put16(frame + UDP_AT + 2, 4789);
	memset(frame + VXLAN_AT, 0, 8);
	frame[VXLAN_AT] = 8;
	raw_put16(frame + IN_ETH_AT + 12, 0x0800);
	ip_make(frame + IN_IP_AT, BYTES - IN_IP_AT);
	raw_put16(frame + IN_UDP_AT + 2, 9);
	raw_put16(frame + IN_UDP_AT + 6, 0x1234); /* wrong */
	return frame;
}

/*
 * create_dv: "Enable offloading such as checksum and LRO for incoming tunneling traffic." Here the
 * checksum, and for what leaves as well; frames are never merged.
 */
vt_test(checksums_inside_of_tunnels_count_if_that_is_asked)
{
	struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS};

	raw_needed();
	assert_int_equal(mlx5dv_query_device(vt.ctx, &caps), 0);
	assert_int_equal(caps.comp_mask, MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS);
	assert_int_equal(caps.tunnel_offloads_caps,
			 MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_VXLAN |
				 MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GRE |
				 MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_CW_MPLS_OVER_GRE |
				 MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_CW_MPLS_OVER_UDP);
	for (unsigned i = 0; i < 4; i++) {
		bool sends = i & 1, receives = i & 2;
		const uint8_t *got;
		struct raw_end a, b;
		struct ibv_wc wc;
		uint8_t *frame;

		raw_open(&a, NULL);
		raw_open(&b, NULL);
		if (sends)
			remake(&a, MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, 0);
		if (receives)
			remake(&b, MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, 0);
		raw_listen(&b, raw_mac[1]);
		raw_recv(&b, GOT, RAW_SLOT_BYTES);
		frame = tunnel_make(&a);
		assert_int_equal(raw_post(&a, SENT, BYTES, IBV_SEND_IP_CSUM), 0);
		vt_expect(a.cq, SENT, IBV_WC_SUCCESS);
		wc = vt_expect(b.cq, GOT, IBV_WC_SUCCESS);
		got = raw_at(&b, GOT);
		/* Outside all is right in any case; inside, if the sender wrote it. */
		assert_int_equal(raw_sum(got + RAW_HEADER, 20), 0xffff);
		assert_int_equal(raw_sum(got + IN_IP_AT, 20) == 0xffff, sends);
		if (!sends)
			assert_memory_equal(got + VXLAN_AT, frame + VXLAN_AT, BYTES - VXLAN_AT);
		assert_int_equal(!!(wc.wc_flags & IBV_WC_IP_CSUM_OK), sends || !receives);
		raw_close(&b);
		raw_close(&a);
	}
}
