/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_WQ_FIXTURE_H
#define VB_TESTS_WQ_FIXTURE_H

/* Work queues of a NIC without surroundings, and frames for them. */

#include "eth/checksum.h"
#include "frames.h"
#include "nic/service/eth/raw.h"
#include "nic/service/eth/wq.h"
#include "nic_fixture.h"
#include "wire/bytes.h"

enum { WR_MAX = 8, BUFFER_BYTES = 256 };

static uint8_t buffers[WR_MAX][BUFFER_BYTES];

static inline struct vb_mr *make_mr(void)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(fix.pd, buffers, sizeof(buffers), (uintptr_t)buffers,
				   IBV_ACCESS_LOCAL_WRITE, &mr),
			 0);
	return mr;
}

static inline struct ibv_wq_init_attr wq_init(struct vb_cq *cq)
{
	return (struct ibv_wq_init_attr){.wq_type = IBV_WQT_RQ,
					 .max_wr = WR_MAX,
					 .max_sge = 2,
					 .pd = &fix.pd->ibv,
					 .cq = &cq->ibv.cq};
}

static inline struct vb_rwq *make_wq(struct vb_cq *cq, uint32_t flags)
{
	struct ibv_wq_init_attr attr = wq_init(cq);
	struct vb_rwq *wq;

	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = flags;
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), 0);
	return wq;
}

static inline void drop_wq(struct vb_rwq *wq)
{
	assert_int_equal(vb_rwq_destroy(wq), 0);
	vb_rwq_free(wq);
}

static inline int wq_state_set(struct vb_rwq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};

	return vb_rwq_modify(wq, &attr);
}

/* A request for the buffer of that number, which is its wr_id. */
static inline int post(struct vb_rwq *wq, const struct vb_mr *mr, uint32_t number, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buffers[number],
			      .length = bytes,
			      .lkey = mr->ibv.lkey};
	struct ibv_recv_wr wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
	int err = vb_rwq_post(wq, &wr, &bad);

	assert_ptr_equal(bad, err ? &wr : NULL);
	return err;
}

/* UDP over IPv4, with the checksums right. */
static inline void frame_make(struct frame *frame, uint32_t src, uint16_t sport)
{
	*frame = (struct frame){.bytes = 0};
	frame_eth(frame, frame_dst_mac, VB_ETHERTYPE_IPV4);
	frame_vlan(frame, VB_ETHERTYPE_VLAN, 0x2064);
	frame_ipv4(frame, VB_IPPROTO_UDP, 0);
	vb_be32_put(frame->octets + frame->bytes - 8, src);
	frame_udp(frame, 9);
	vb_be16_put(frame->octets + frame->bytes - 8, sport);
	frame_data(frame, 40);
	vb_be16_put(frame->octets + frame->bytes - 44, 48);
	frame_close(frame);
	vb_eth_tx_checksums(frame->octets, frame->bytes, false);
}

static inline void give(struct vb_rwq *wq, const struct frame *frame, uint32_t tag)
{
	struct vb_eth_frame parsed;

	assert_true(vb_eth_parse(&parsed, frame->octets, frame->bytes));
	vb_rwq_receive(wq, &parsed, tag, false);
}

static inline struct vb_cqe taken(struct vb_cq *cq, struct vb_rwq *wq, enum ibv_wc_status status)
{
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;

	assert_true(vb_cq_take(cq, &cqe, &stamp));
	assert_int_equal(cqe.wc.status, status);
	assert_int_equal(cqe.wc.qp_num, wq->ibv.wq_num);
	assert_int_equal(cqe.wc.opcode, IBV_WC_RECV);
	return cqe;
}

static inline void assert_empty(struct vb_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(cq, 1, &wc), 0);
}

static inline uint64_t dropped(enum vb_stat stat)
{
	return atomic_load(&vb_nic_stats(fix.nic)->count[stat]);
}

#endif
