/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole way in: a NIC with QPs of every service, to which a stranger sends what he likes.
 *
 * An input is a list of steps, each of four octets and what they announce:
 *
 *   what    step_kind (three bits), and for frames what the harness mends (enum mend)
 *   which   QP, modulo their number; of a frame, one bit: it was sent to a group (NIC_RX_TO_GROUP)
 *   bytes   16 bits, little-endian: of the frame that follows; otherwise a parameter
 *
 * So that frames get deep, the harness can put right their ICRC, destination, PSN, key and
 * address; what it mends, the stranger could have guessed. Whatever comes: no crash, and no octet
 * changes but where a key or a posted buffer allows it.
 *
 * With NIC_RX_LANES (lane_rx_fuzz.c) the stranger is a peer, and sends through rings. A frame whose
 * ICRC is not mended is a head and a payload of any lengths then; one of a path MTU grows to the
 * MTU of rings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/psn.h"
#include "fuzz.h"
#include "idle_host.h"
#include "nic/control/nic.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/core/ah.h"
#include "nic/data/post.h"
#include "nic/data/qp_error.h"
#include "nic/mem/mem.h"
#include "nic/queue/cq.h"
#include "nic/control/srq.h"
#include "nic/service/tm/tm.h"
#include "nic/way/mcast.h"
#include "nic/way/peer.h"
#include "nic/way/receive.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#include "nic_rx_fuzz.h"

#ifndef NIC_RX_LANES
#define NIC_RX_LANES 0
#endif

enum {
	AREA_BYTES = NIC_RX_LANES ? 3 * VB_LANE_MTU_BYTES : 8192,
	FRAMES_MAX = 16, /* that arrive together */
	STEPS_MAX = 200,
	CQE_WANTED = 64,
	RECV_BYTES = NIC_RX_LANES ? 70000 : 3000,
	PATH_MTU = 512,
	PEER_QPN = 0x1234,
};

/* What lies where in memory; guards stand between. */
enum area { GUARD_0, OPEN, GUARD_1, READ_ONLY, GUARD_2, RECV, GUARD_3, LOCAL, GUARD_4, AREAS };

static uint8_t memory[AREAS * AREA_BYTES] __attribute__((aligned(4096)));

struct harness {
	struct vb_nic *nic;
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_srq *srq, *tagged;
	struct vb_mr *mr[AREAS];
	struct vb_ah *ah;
	struct vb_qp *qp[NIC_RX_QPS];
	uint64_t now_ns;
	struct vb_frame frame[FRAMES_MAX];
	unsigned frames;

	/* The peer, if we meet in rings: what it sends, and what it takes in. */
	struct vb_peer *peer;
	struct vb_ring_tx to_us[VB_RING_LANES];
	struct vb_ring_rx from_us[VB_RING_LANES];
	bool gone;
};

static const uint8_t own_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t peer_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
static const uint8_t group_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 239, 0, 0, 1 };

enum queue { OWN, SHARED, TAGGED };

static const struct {
	enum ibv_qp_type type;
	enum queue queue;
	enum ibv_qp_state state;
} plan[NIC_RX_QPS] = {
	{ IBV_QPT_RC, OWN, IBV_QPS_RTS }, { IBV_QPT_RC, SHARED, IBV_QPS_RTS },
	{ IBV_QPT_RC, OWN, IBV_QPS_RTR }, { IBV_QPT_UC, OWN, IBV_QPS_RTS },
	{ IBV_QPT_UD, OWN, IBV_QPS_RTS }, { IBV_QPT_UD, SHARED, IBV_QPS_RTS },
	{ IBV_QPT_RC, OWN, IBV_QPS_INIT }, [NIC_RX_TAGGED] = { IBV_QPT_RC, TAGGED, IBV_QPS_RTS },
};

static uint8_t *area(enum area which)
{
	return memory + which * AREA_BYTES;
}

/* --- the NIC's surroundings --- */

static uint64_t now_ns(void *arg)
{
	return ((struct harness *)arg)->now_ns;
}

/* What leaves must be well-formed too. */
static int tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	uint64_t bytes = 0;

	vb_check(burst->frames && burst->frames <= VB_LINK_BURST_FRAMES_MAX);
	vb_check(burst->iovcnt <= VB_LINK_BURST_IOV_MAX);
	for (uint32_t i = 0; i < burst->iovcnt; i++)
		bytes += burst->iov[i].iov_len;
	vb_check(bytes == (burst->frames - 1ull) * burst->frame_bytes + burst->last_bytes);
	vb_check(bytes <= VB_LINK_BURST_BYTES_MAX);
	return 0;
}

static unsigned burst_frames_max(void *arg)
{
	return VB_LINK_BURST_FRAMES_MAX;
}

static int join(void *arg, const uint8_t gid[VB_GID_BYTES], uint32_t ifindex)
{
	return 0;
}

static void leave(void *arg, const uint8_t gid[VB_GID_BYTES])
{
}

static const struct vb_host_groups groups = { .join = join, .leave = leave };

static int lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = 5;
	*next_index = 77;
	return 0;
}

/* For each input; hardly touched, so that giving them back costs less than clearing them. */
static void *zeros(void **kept, size_t bytes)
{
	if (!*kept)
		*kept = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	vb_check(*kept != MAP_FAILED && madvise(*kept, bytes, MADV_DONTNEED) == 0);
	return *kept;
}

/* --- a peer --- */

/* Where it writes and where it reads; what lies in the data area means nothing. */
static struct vb_ring_area *area_make(void **kept)
{
	struct vb_ring_area *rings = *kept ? *kept : zeros(kept, sizeof(*rings));

	for (unsigned i = 0; i < VB_RING_LANES; i++)
		memset(&rings->lane[i], 0, offsetof(struct vb_ring_shared, data));
	return rings;
}

static int reach(void *arg, uint16_t own_slot, uint16_t slot)
{
	static void *kept_in, *kept_out, *kept_export;
	struct vb_ring_area *to_us = area_make(&kept_in), *from_us = area_make(&kept_out);
	struct harness *h = arg;

	if (h->gone)
		return ENOENT;
	if (!kept_export)
		zeros(&kept_export, sizeof(struct vb_export));
	h->peer = vb_peer_get(h->nic, own_slot, slot);
	vb_check(h->peer);
	for (unsigned i = 0; i < VB_RING_LANES; i++) {
		vb_ring_tx_init(&h->to_us[i], &to_us->lane[i]);
		vb_ring_rx_init(&h->from_us[i], &from_us->lane[i]);
	}
	vb_peer_rx_pause(h->peer);
	vb_peer_rx_set(h->peer, to_us, kept_export);
	vb_peer_rx_resume(h->peer);
	vb_peer_tx_set(h->peer, from_us, kept_export);
	return 0;
}

static const struct vb_host_peers peers = {
	.reach = reach, .await = idle_await, .bell = idle_peer, .release = idle_peer,
};

/* What leaves through rings must be well-formed too. */
static void peer_read(struct harness *h)
{
	struct vb_ring_frame frame;
	struct vb_pkt pkt;

	for (unsigned i = 0; h->peer && i < VB_RING_LANES; i++) {
		while (vb_ring_take(&h->from_us[i], &frame)) {
			vb_check(vb_pkt_parse_head(&pkt, frame.octets, frame.head_bytes));
			vb_check(frame.payload_bytes <= VB_LANE_MTU_BYTES);
			vb_ring_release(&h->from_us[i]);
		}
		vb_check(!vb_ring_rx_is_broken(&h->from_us[i]));
	}
}

/* Where the head ends, and how long the payload behind it shall be. */
static uint32_t split(const struct nic_rx_step *step, const uint8_t *data, uint32_t *payload)
{
	const struct vb_op_info *info = vb_op_info(data[0]);
	uint32_t head = step->bytes > 11 ? data[11] % (VB_RING_HEAD_BYTES_MAX + 1u) : 0;

	if ((step->what & MEND_ICRC) && info)
		head = info->header_bytes;
	head = head < step->bytes ? head : step->bytes;
	*payload = step->bytes - head;
	if (step->what & MEND_ICRC) {
		*payload -= *payload < VB_ICRC_BYTES ? *payload : VB_ICRC_BYTES;
		if (*payload == PATH_MTU)
			*payload = VB_LANE_MTU_BYTES;
	}
	return head;
}

static void peer_send(struct harness *h, const struct nic_rx_step *step, const uint8_t *data)
{
	const struct vb_op_info *info = vb_op_info(data[0]);
	struct vb_ring_tx *tx = &h->to_us[step->which & 0x80 ? step->which >> 4 & 3 : 0];
	uint32_t payload, head = split(step, data, &payload), given = step->bytes - head, whole;
	uint8_t *to;

	whole = head;
	if (info && info->transport == VB_UD && head + VB_LANE_PATH_BYTES <= VB_RING_HEAD_BYTES_MAX)
		whole += VB_LANE_PATH_BYTES;
	to = vb_ring_reserve(tx, whole, payload);
	if (!to)
		return;
	memset(tx->octets, 0xfe, VB_RING_HEAD_BYTES_MAX);
	memcpy(tx->octets, data, head);
	memset(to, 0x77, payload);
	memcpy(to, data + head, given < payload ? given : payload);
	vb_ring_publish(tx, whole, payload);
}

/* A frame of lengths that no producer of ours would publish, or a tail that is none. */
static void peer_rave(struct harness *h, const struct nic_rx_step *step)
{
	const struct vb_ring_tx *tx = &h->to_us[step->which & 3];

	if (!h->peer)
		return;
	if (step->bytes & 1)
		atomic_store(&h->from_us[step->which & 3].shared->tail, step->bytes);
	else
		atomic_store(&tx->shared->slot[vb_ring_slot_index(tx->head)].mark,
			     (uint64_t)step->bytes << 48 | (tx->head + 1));
}

static void peer_die(struct harness *h)
{
	if (h->peer && !h->gone) {
		h->gone = true;
		vb_peer_gone(h->peer);
	}
}

static void nic_make(struct harness *h)
{
	static void *export;
	struct vb_nic_host host = idle_host(h);
	struct vb_gid_entry entry[2] = { { .ifindex = 1, .mtu_bytes = 1500 },
					 { .ifindex = 1, .mtu_bytes = 1500 } };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 32, .max_sge = 2 } };
	struct ibv_srq_init_attr_ex tagged = {
		.attr = srq.attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.tm_cap = { .max_num_tags = 8 },
	};
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };

	host.clock.now_ns = now_ns;
	host.wire.tx = tx;
	host.wire.burst_frames_max = burst_frames_max;
	host.wire.lease = lease;
	host.groups = &groups;
	host.peers = NIC_RX_LANES ? &peers : NULL;
	host.export_memory = zeros(&export, sizeof(struct vb_export));
	memcpy(entry[0].gid, own_gid, VB_GID_BYTES);
	memcpy(entry[1].gid, peer_gid, VB_GID_BYTES);
	memcpy(ah.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	vb_check(!vb_nic_create(&h->nic, &host, 1));
	/* A peer's address is an address of this host. */
	vb_nic_gids_set(h->nic, entry, NIC_RX_LANES ? 2 : 1);
	vb_check(!vb_ctx_create(h->nic, 0, &h->ctx) && !vb_pd_create(h->ctx, &h->pd));
	vb_check(!vb_cq_create(h->ctx, CQE_WANTED, NULL, 0, NULL, &h->cq));
	vb_check(!vb_srq_create(h->pd, &srq, &h->srq) && !vb_ah_create(h->pd, &ah, &h->ah));
	tagged.pd = &h->pd->ibv;
	tagged.cq = &h->cq->ibv.cq;
	vb_check(!vb_srq_create_ex(h->ctx, &tagged, &h->tagged));
}

static void memory_make(struct harness *h)
{
	static const unsigned access[AREAS] = {
		[OPEN] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		[READ_ONLY] = IBV_ACCESS_REMOTE_READ,
		[RECV] = IBV_ACCESS_LOCAL_WRITE,
		[LOCAL] = IBV_ACCESS_LOCAL_WRITE,
	};

	for (unsigned i = 0; i < AREAS; i++) {
		memset(area(i), (int)(0x5a + i), AREA_BYTES);
		if (access[i])
			vb_check(!vb_mr_reg(h->pd, area(i), AREA_BYTES, (uintptr_t)area(i),
					    access[i], &h->mr[i]));
	}
}

static struct vb_srq *queue_of(const struct harness *h, unsigned i)
{
	return plan[i].queue == TAGGED ? h->tagged : plan[i].queue == SHARED ? h->srq : NULL;
}

static void qp_make(struct harness *h, unsigned i)
{
	struct vb_srq *srq = queue_of(h, i);
	struct ibv_qp_init_attr init = {
		.send_cq = &h->cq->ibv.cq, .recv_cq = &h->cq->ibv.cq,
		.srq = srq ? &srq->ibv : NULL, .qp_type = plan[i].type,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};
	struct ibv_qp_attr attr = {
		.port_num = 1, .qkey = NIC_RX_QKEY, .path_mtu = IBV_MTU_512,
		.dest_qp_num = PEER_QPN,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.rq_psn = 0xfffff0, .sq_psn = 0xfffff8, .max_dest_rd_atomic = 3,
		.max_rd_atomic = 3, .min_rnr_timer = 1, .timeout = 8, .retry_cnt = 2,
		.rnr_retry = 2, .ah_attr = { .is_global = 1, .port_num = 1 },
	};
	bool ud = plan[i].type == IBV_QPT_UD, rc = plan[i].type == IBV_QPT_RC;
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
		   (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	memcpy(attr.ah_attr.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	vb_check(!vb_qp_create(h->pd, &init, &h->qp[i]));
	attr.qp_state = IBV_QPS_INIT;
	vb_check(!vb_qp_modify(h->qp[i], &attr, mask));
	if (plan[i].state == IBV_QPS_INIT)
		return;
	attr.qp_state = IBV_QPS_RTR;
	mask = IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						IBV_QP_RQ_PSN);
	mask |= rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
	vb_check(!vb_qp_modify(h->qp[i], &attr, mask));
	if (plan[i].state == IBV_QPS_RTR)
		return;
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	mask |= rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_MAX_QP_RD_ATOMIC : 0;
	vb_check(!vb_qp_modify(h->qp[i], &attr, mask));
}

static void unmake(struct harness *h)
{
	for (unsigned i = 0; i < NIC_RX_QPS; i++) {
		vb_group_detach(h->qp[i], group_gid);
		vb_check(!vb_qp_destroy(h->qp[i]));
		vb_qp_free(h->qp[i]);
	}
	vb_check(!vb_ah_destroy(h->ah) && !vb_srq_destroy(h->srq));
	vb_check(!vb_srq_destroy(h->tagged) && !vb_cq_destroy(h->cq));
	vb_srq_free(h->srq);
	vb_srq_free(h->tagged);
	vb_cq_free(h->cq);
	for (unsigned i = 0; i < AREAS; i++)
		if (h->mr[i])
			vb_check(!vb_mr_dereg(h->mr[i]));
	vb_check(!vb_pd_destroy(h->pd));
	vb_ctx_destroy(h->ctx);
	vb_nic_destroy(h->nic);
}

/* --- steps --- */

static void put_psn(uint8_t *at, uint32_t psn)
{
	at[0] = (uint8_t)(psn >> 16);
	at[1] = (uint8_t)(psn >> 8);
	at[2] = (uint8_t)psn;
}

/* The stranger may know where our memory is, and which key opens it. */
static void mend_address(const struct harness *h, uint8_t *data, const struct vb_op_info *info)
{
	uint8_t *eth = data + VB_BTH_BYTES;
	enum area which;
	uint64_t va;

	if (!(info->headers & (VB_H_RETH | VB_H_ATOMIC)) || (info->headers & VB_H_DETH))
		return;
	va = vb_be64_get(eth) % AREA_BYTES;
	which = vb_be32_get(eth + 8) % 4 == 1 ? READ_ONLY : OPEN;
	vb_be64_put(eth, (uintptr_t)area(which) + va);
	vb_be32_put(eth + 8, h->mr[which]->ibv.rkey);
	if (info->headers & VB_H_RETH)
		vb_be32_put(eth + 12, vb_be32_get(eth + 12) % (2 * AREA_BYTES));
	/* What was meant to be more than a path MTU is to be more than one here. */
	if (NIC_RX_LANES && (info->headers & VB_H_RETH) && vb_be32_get(eth + 12) >= PATH_MTU)
		vb_be32_put(eth + 12, vb_be32_get(eth + 12) * (VB_LANE_MTU_BYTES / PATH_MTU));
}

static void mend(const struct harness *h, uint8_t *data, uint32_t bytes, unsigned what,
		 const struct vb_qp *qp)
{
	const struct vb_op_info *info = vb_op_info(data[0]);
	bool answer = info && (info->kind == VB_K_ACK || info->kind == VB_K_READ_RESP ||
			       info->kind == VB_K_ATOMIC_ACK);
	uint32_t base = answer ? qp->req.una_psn : qp->resp.epsn;

	if (what & MEND_HEADER) {
		data[1] &= 0xf0; /* transport version */
		vb_be16_put(data + 2, VB_PKEY_DEFAULT);
		put_psn(data + 5, qp->ibv.qp.qp_num);
	}
	if (what & MEND_PSN) /* the last octet says how far it is off */
		put_psn(data + 9, vb_psn_add(base, (uint32_t)(int8_t)data[11] / 4));
	if ((what & MEND_ADDRESS) && info && bytes >= info->header_bytes + 4u) {
		mend_address(h, data, info);
		if (info->headers & VB_H_DETH) {
			vb_be32_put(data + VB_BTH_BYTES, NIC_RX_QKEY);
			vb_be32_put(data + VB_BTH_BYTES + 4, PEER_QPN);
		}
	}
}

static void arrive(struct harness *h)
{
	if (NIC_RX_LANES)
		vb_nic_lanes_scan(h->nic);
	if (!h->frames)
		return;
	vb_check(vb_nic_rx_try(h->nic));
	vb_nic_rx(h->nic, h->frame, h->frames);
	vb_nic_rx_drop(h->nic);
	while (h->frames)
		free((void *)h->frame[--h->frames].data);
}

static void step_frame(struct harness *h, const struct nic_rx_step *step, const uint8_t *data)
{
	uint8_t *copy = malloc(step->bytes ? step->bytes : 1);
	struct vb_frame *frame = &h->frame[h->frames++];
	unsigned which = step->which & ~(unsigned)NIC_RX_TO_GROUP;

	vb_check(copy);
	memcpy(copy, data, step->bytes);
	*frame = (struct vb_frame){ .data = copy, .bytes = step->bytes };
	memcpy(frame->path.src, peer_gid, VB_GID_BYTES);
	memcpy(frame->path.dst, step->which & NIC_RX_TO_GROUP ? group_gid : own_gid, VB_GID_BYTES);
	frame->path.sport = 4791;
	if (step->bytes >= VB_FRAME_BYTES_MIN && step->bytes % 4 == 0) {
		mend(h, copy, step->bytes, step->what, h->qp[which % NIC_RX_QPS]);
		if ((step->what & MEND_HEADER) && (step->which & NIC_RX_TO_GROUP))
			put_psn(copy + 5, VB_QPN_GROUP);
		if (step->what & MEND_ICRC)
			vb_icrc_put(copy + step->bytes - 4,
				    vb_icrc_frame(&frame->path, copy, step->bytes, 0));
	}
	if (NIC_RX_LANES && h->peer && step->bytes) {
		peer_send(h, step, copy);
		free(copy);
		h->frames--;
	}
	if (h->frames == FRAMES_MAX)
		arrive(h);
}

static void step_send(struct harness *h, const struct nic_rx_step *step)
{
	struct vb_qp *qp = h->qp[step->which % NIC_RX_QPS];
	struct ibv_sge sge = { (uintptr_t)area(LOCAL), step->bytes % (AREA_BYTES / 2),
			       h->mr[LOCAL]->ibv.lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = step->bytes >> 13,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		sge.length = 8;
	if (qp->ibv.qp.qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = &h->ah->ibv;
		wr.wr.ud.remote_qpn = PEER_QPN;
	}
	vb_qp_post_send(qp, &wr, &bad);
}

/* Handles are easily guessed here: a place, and the first number or two. */
static void step_tag(struct harness *h, const struct nic_rx_step *step, struct ibv_sge *sge)
{
	struct ibv_ops_wr wr = {
		.opcode = (step->bytes >> 13 & 3) % 3,
		.flags = step->bytes >> 11 & 3,
		.tm = { .unexpected_cnt = step->bytes & 7,
			.handle = (step->bytes & 7) + VB_TM_TAGS_MAX * (1 + (step->bytes >> 4 & 1)),
			.add = { .sg_list = sge, .num_sge = 1 + step->bytes % 2,
				 .tag = step->which >> 6,
				 .mask = step->which & 0x20 ? step->which >> 6 : UINT64_MAX } },
	}, *bad;

	vb_tm_post(h->tagged, &wr, &bad);
}

static void step_recv(struct harness *h, const struct nic_rx_step *step)
{
	unsigned which = step->which % NIC_RX_QPS;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)area(RECV), step->bytes % RECV_BYTES, h->mr[RECV]->ibv.lkey },
		{ (uintptr_t)area(RECV) + RECV_BYTES, 40, h->mr[RECV]->ibv.lkey },
	};
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 + step->bytes % 2 }, *bad;

	if (step->bytes == 0xffff)
		sge[0].lkey ^= 1;
	if (which == NIC_RX_TAGGED && (step->bytes & 0x8000))
		step_tag(h, step, sge);
	else if (plan[which].queue != OWN)
		vb_srq_post(queue_of(h, which), &wr, &bad);
	else
		vb_qp_post_recv(h->qp[which], &wr, &bad);
}

static void step_state(struct harness *h, const struct nic_rx_step *step)
{
	struct ibv_qp_attr attr = { .qp_state = step->bytes % 7 };

	if (NIC_RX_LANES && step->bytes % 16 == 15) {
		peer_die(h);
		return;
	}
	if (step->bytes % 16 == 14 && vb_group_detach(h->qp[step->which % NIC_RX_QPS], group_gid))
		vb_group_attach(h->qp[step->which % NIC_RX_QPS], group_gid);
	vb_qp_modify(h->qp[step->which % NIC_RX_QPS], &attr, IBV_QP_STATE);
}

static void do_step(struct harness *h, const struct nic_rx_step *step, const uint8_t *data)
{
	struct ibv_wc wc[16];

	if (step->what % STEP_KINDS != STEP_FRAME)
		arrive(h);
	switch ((enum nic_rx_step_kind)(step->what % STEP_KINDS)) {
	case STEP_FRAME:
		step_frame(h, step, data);
		break;
	case STEP_TIME:
		h->now_ns += step->bytes * 1000ull;
		vb_nic_turn(h->nic);
		break;
	case STEP_SEND:
		step_send(h, step);
		break;
	case STEP_RECV:
		step_recv(h, step);
		break;
	case STEP_POLL:
		vb_cq_poll(h->cq, 16, wc);
		break;
	case STEP_STATE:
		step_state(h, step);
		break;
	case STEP_ARRIVE:
		peer_read(h);
		break;
	case STEP_NOTHING:
		if (NIC_RX_LANES)
			peer_rave(h, step);
		break;
	case STEP_KINDS:
		break;
	}
}

/* Everything but OPEN, the buffers that were posted, and what was fetched into LOCAL. */
static void check_memory(void)
{
	static const struct {
		enum area which;
		uint32_t from;
	} closed[] = { { GUARD_0, 0 }, { GUARD_1, 0 }, { READ_ONLY, 0 }, { GUARD_2, 0 },
		       { RECV, RECV_BYTES + 40 }, { GUARD_3, 0 }, { LOCAL, AREA_BYTES / 2 },
		       { GUARD_4, 0 } };

	/* All octets are equal if each equals the next. */
	for (unsigned i = 0; i < VB_ARRAY_LEN(closed); i++) {
		const uint8_t *at = area(closed[i].which) + closed[i].from;

		vb_check(*at == 0x5a + closed[i].which);
		vb_check(!memcmp(at, at + 1, AREA_BYTES - closed[i].from - 1));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct harness h = { .now_ns = 1 };
	size_t at = 0;

	nic_make(&h);
	memory_make(&h);
	for (unsigned i = 0; i < NIC_RX_QPS; i++)
		qp_make(&h, i);
	for (unsigned i = 0; i < NIC_RX_QPS; i++)
		vb_check(!vb_group_attach(h.qp[i], group_gid) == (plan[i].type == IBV_QPT_UD));
	for (unsigned steps = 0; steps < STEPS_MAX && at + 4 <= bytes; steps++) {
		struct nic_rx_step step = { data[at], data[at + 1],
					    (uint16_t)(data[at + 2] | data[at + 3] << 8) };

		at += 4;
		if (step.what % STEP_KINDS == STEP_FRAME && step.bytes > bytes - at)
			step.bytes = (uint16_t)(bytes - at);
		do_step(&h, &step, data + at);
		if (step.what % STEP_KINDS == STEP_FRAME)
			at += step.bytes;
	}
	arrive(&h);
	peer_read(&h);
	unmake(&h);
	check_memory();
	return 0;
}
