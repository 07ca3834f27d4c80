/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any packets of DC to a target and to an initiator: steps of eight octets, of which most make a
 * packet that is nearly right, with numbers of connections and PSNs that are near each other. No
 * more may arrive than was received for, and nothing outside the region may change.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "idle_host.h"
#include "nic/control/nic.h"
#include "nic/control/qp.h"
#include "nic/control/qp_dv.h"
#include "nic/control/qp_modify.h"
#include "nic/core/ah.h"
#include "nic/data/post.h"
#include "nic/data/qp_error.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/control/srq.h"
#include "nic/service/dc/dc.h"
#include "nic/way/receive.h"
#include "wire/icrc.h"

enum { STEP_BYTES = 8, KEY = 5, RECVS = 8, PAYLOAD_MAX = 600, AREA = 8192, GUARD = 64 };

static const uint8_t own_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t peer_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

static struct {
	uint64_t now_ns;
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_srq *srq;
	struct vb_mr *mr;
	struct vb_ah *ah;
	struct vb_qp *target, *initiator;
	unsigned posted, received;
	uint8_t memory[GUARD + AREA + GUARD];
} h;

static uint64_t now_ns(void *arg)
{
	return h.now_ns;
}

static int tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < burst->iovcnt; i++)
		bytes += burst->iov[i].iov_len;
	vb_check(bytes == (burst->frames - 1ull) * burst->frame_bytes + burst->last_bytes);
	return 0;
}

static struct vb_qp *make(bool target)
{
	struct vb_dc_attr dc = { .target = target, .access_key = KEY, .streams = !target,
				 .streams_log = 2, .errored_log = 2 };
	struct vb_qp_dv_attr dv = { .dc = &dc };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = &h.cq->ibv.cq,
		.recv_cq = &h.cq->ibv.cq,
		.srq = target ? &h.srq->ibv : NULL,
		.cap = { .max_send_wr = target ? 0 : 8, .max_send_sge = target ? 0 : 1 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = &h.pd->ibv,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_512, .timeout = 14,
		.retry_cnt = 2, .rnr_retry = 2, .max_rd_atomic = 4, .qp_access_flags = 15,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	struct vb_qp *qp;

	memcpy(attr.ah_attr.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	vb_check(!vb_qp_create_dv(&init, &dv, &qp));
	vb_check(!vb_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						  (target ? IBV_QP_ACCESS_FLAGS : 0)));
	attr.qp_state = IBV_QPS_RTR;
	vb_check(!vb_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU |
						  (target ? IBV_QP_AV | IBV_QP_MIN_RNR_TIMER : 0)));
	attr.qp_state = IBV_QPS_RTS;
	if (!target)
		vb_check(!vb_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
							  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
							  IBV_QP_MAX_QP_RD_ATOMIC));
	return qp;
}

static void begin(struct vb_ctx **ctx)
{
	struct vb_nic_host host = idle_host(NULL);
	struct vb_gid_entry entry = { .ifindex = 1, .mtu_bytes = 5000 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };

	host.clock.now_ns = now_ns;
	host.wire.tx = tx;
	memset(&h, 0, sizeof(h));
	h.now_ns = 1000;
	memcpy(entry.gid, own_gid, VB_GID_BYTES);
	memcpy(av.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	vb_check(!vb_nic_create(&h.nic, &host, 1));
	vb_nic_gids_set(h.nic, &entry, 1);
	vb_check(!vb_ctx_create(h.nic, 0, ctx) && !vb_pd_create(*ctx, &h.pd) &&
		 !vb_cq_create(*ctx, 256, NULL, 0, NULL, &h.cq) &&
		 !vb_srq_create(h.pd, &srq, &h.srq) && !vb_ah_create(h.pd, &av, &h.ah) &&
		 !vb_mr_reg(h.pd, h.memory + GUARD, AREA, 0, 15, &h.mr));
	h.target = make(true);
	h.initiator = make(false);
}

static void finish(struct vb_ctx *ctx)
{
	vb_check(!vb_qp_destroy(h.target) && !vb_qp_destroy(h.initiator));
	vb_qp_free(h.target);
	vb_qp_free(h.initiator);
	vb_check(!vb_srq_destroy(h.srq) && !vb_cq_destroy(h.cq) && !vb_mr_dereg(h.mr));
	vb_srq_free(h.srq);
	vb_cq_free(h.cq);
	vb_ah_destroy(h.ah);
	vb_check(!vb_pd_destroy(h.pd));
	vb_ctx_destroy(ctx);
	vb_nic_destroy(h.nic);
	for (unsigned i = 0; i < GUARD; i++)
		vb_check(!h.memory[i] && !h.memory[GUARD + AREA + i]);
}

/* step: 0 what, 1 opcode, 2 connection, 3 PSN, 4 who, 5 payload, 6 address, 7 syndrome, key */
static void packet(const uint8_t *step)
{
	uint8_t octets[VB_PKT_HEADER_BYTES_MAX + PAYLOAD_MAX + 8] = { 0 };
	const struct vb_dc *dc = h.initiator->special.dc;
	struct vb_frame frame = { .data = octets };
	bool to_target = step[0] & 4;
	struct vb_pkt pkt = {
		.opcode = (uint8_t)(0xe0 | step[1]),
		.ackreq = step[0] & 8,
		.pkey = VB_PKEY_DEFAULT,
		.dqpn = (to_target ? h.target : h.initiator)->ibv.qp.qp_num,
		.psn = (to_target ? step[3] / 16 : h.initiator->req.una_psn + step[3] / 32) &
		       0xffffff,
		.sqpn = 0x700u + (step[4] & 3),
		.dceth.mtu_code = (uint8_t)(to_target ? step[4] >> 2 & 7 : step[4] & 3),
		.dceth.start_psn = step[0] & 16 ? 0 : step[3] & 3,
		.dceth.connection = to_target ? step[2] & 7 : dc->connection + (step[2] == 0),
		.dceth.key = KEY + (step[7] == 0),
		.reth.va = step[6] * 32ull,
		.reth.rkey = h.mr->ibv.rkey + (step[6] == 7),
		.reth.bytes = step[5] * 8u,
		.aeth.syndrome = step[7],
	};
	const struct vb_op_info *info = vb_op_info(pkt.opcode);
	uint32_t head, payload;

	if (!info)
		return;
	if (to_target && !(step[4] & 0x60))
		pkt.dceth.mtu_code = IBV_MTU_512;
	payload = !info->payload ? 0 : info->pos & VB_P_LAST ? step[5] : 512u;
	if (info->headers & VB_H_RETH && info->pos == VB_P_ONLY && info->payload)
		pkt.reth.bytes = payload;
	pkt.pad = vb_pkt_pad(payload);
	head = (uint32_t)vb_pkt_emit(octets, &pkt);
	frame.bytes = head + payload + pkt.pad + VB_ICRC_BYTES;
	memcpy(frame.path.src, step[0] & 32 && step[4] > 250 ? own_gid : peer_gid, VB_GID_BYTES);
	memcpy(frame.path.dst, own_gid, VB_GID_BYTES);
	frame.path.sport = 4791;
	vb_icrc_put(octets + frame.bytes - 4, vb_icrc_frame(&frame.path, octets, frame.bytes, 0));
	vb_check(vb_nic_rx_try(h.nic));
	vb_nic_rx(h.nic, &frame, 1);
	vb_nic_rx_drop(h.nic);
}

static void post_recv(const uint8_t *step)
{
	struct ibv_sge sge = { step[6] * 8ull, step[5] * 8u, h.mr->ibv.lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	h.posted += vb_srq_post(h.srq, &wr, &bad) == 0;
}

static void post_send(const uint8_t *step)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						      IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = { step[6] * 8ull, step[1] & 1 ? 8 : step[5] * 8u,
			       h.mr->ibv.lkey + (step[7] == 1) };
	const struct vb_post post = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcodes[step[1] % 4],
			.send_flags = IBV_SEND_SIGNALED },
		.dc = { &h.ah->ibv, step[4] & 1u, KEY, step[4] >> 6 },
	};

	vb_qp_post_batch(h.initiator, &post, 1);
}

static void other(const uint8_t *step)
{
	struct ibv_qp_attr attr = { .qp_state = step[2] & 1 ? IBV_QPS_RESET : IBV_QPS_ERR };
	struct ibv_wc wc[8];

	switch (step[1] % 6) {
	case 0:
		h.now_ns += step[2] * 1000ull << (step[3] % 24);
		vb_nic_turn(h.nic);
		break;
	case 1:
		for (int i = 0, n = vb_cq_poll(h.cq, 8, wc); i < n; i++)
			h.received += wc[i].qp_num == h.target->ibv.qp.qp_num;
		vb_check(h.received <= h.posted);
		break;
	case 2:
		vb_dc_stream_reset(h.initiator, step[2] & 3);
		break;
	case 3:
		if (step[3] < 8)
			vb_qp_modify(h.initiator, &attr, IBV_QP_STATE);
		break;
	default:
		post_recv(step);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct vb_ctx *ctx;

	begin(&ctx);
	for (; bytes >= STEP_BYTES; data += STEP_BYTES, bytes -= STEP_BYTES) {
		if ((data[0] & 3) == 0)
			other(data);
		else if ((data[0] & 3) == 1)
			post_send(data);
		else
			packet(data);
	}
	finish(ctx);
	return 0;
}
