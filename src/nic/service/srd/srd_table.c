/* SPDX-License-Identifier: BSD-2-Clause */

/* The service tables of SRD: QPs, their streams, and contexts (nic/data/service.h). */

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/refusal.h"
#include "engine/rc_resp.h"
#include "nic/data/acks.h"
#include "nic/data/transition.h"
#include "nic/service/srd/srd_stream.h"

/* As EFA's kernel driver has them, without the states that need order. */
static const struct vb_transition transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, T_PKEY | T_PORT | T_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, T_PKEY | T_PORT | T_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, T_PKEY | T_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, T_SPSN, T_CUR | T_QKEY | T_RNR_RETRY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, T_CUR | T_QKEY },
};

static int check(const struct ibv_qp_init_attr_ex *asked, const struct vb_dc_attr *dc,
		 struct ibv_qp_init_attr *plain)
{
	const uint32_t ops = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	(void)dc;
	if ((asked->comp_mask & ~ops) != IBV_QP_INIT_ATTR_PD)
		return vb_refuse(EINVAL, "comp_mask 0x%x: a QP of SRD has IBV_QP_INIT_ATTR_PD, and "
					 "may have SEND_OPS_FLAGS",
				 asked->comp_mask);
	if (asked->srq)
		return vb_refuse(EINVAL, "a QP of SRD takes no SRQ");
	if (asked->cap.max_send_wr > VB_SRD_SEND_WR_MAX ||
	    asked->cap.max_inline_data > VB_SRD_INLINE_BYTES_MAX)
		return vb_refuse(EINVAL, "max_send_wr is %u and max_inline_data %u; they may be at "
					 "most %u and %u",
				 asked->cap.max_send_wr, asked->cap.max_inline_data,
				 (unsigned)VB_SRD_SEND_WR_MAX, (unsigned)VB_SRD_INLINE_BYTES_MAX);
	memcpy(plain, asked, sizeof(*plain));
	return 0;
}

/* Its streams send requests, its contexts answers. */
static void transmit(struct vb_qp *qp, enum ibv_qp_state state)
{
	(void)qp;
	(void)state;
}

/* The application has no handle, and gets no events. */
static void event(struct vb_qp *qp, enum ibv_event_type type)
{
	(void)qp;
	(void)type;
}

#define OPCODES                                                                                   \
	(VB_POSTS(IBV_WR_SEND) | VB_POSTS(IBV_WR_SEND_WITH_IMM) | VB_POSTS(IBV_WR_RDMA_READ) |    \
	 VB_POSTS(IBV_WR_RDMA_WRITE) | VB_POSTS(IBV_WR_RDMA_WRITE_WITH_IMM))

const struct vb_service vb_service_srd = {
	.name = "SRD",
	.transport = VB_DC,
	.traits = VB_AIMS | VB_CHOOSES_PEER | VB_HEARS_ANYBODY | VB_RECEIVES | VB_RETURNS |
		  VB_UD_ADDRESS,
	.create = {
		.check = check,
		.make = vb_srd_make,
		.leave = vb_srd_leave,
		.unmake = vb_srd_unmake,
	},
	.modify = {
		.transitions = transitions,
		.rows = VB_ARRAY_LEN(transitions),
		.preset = {
			.rnr_retry = 7,
			.min_rnr_timer = 12, /* 0.64 ms */
			.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		},
		.reset = vb_srd_reset,
	},
	.post = {
		.opcodes = OPCODES,
		.check = vb_srd_post_check,
		.list = vb_srd_post_list,
		.batch = vb_srd_post_batch,
	},
	.send = { .transmit = transmit },
	.receive = { .transport = VB_DC, .take = vb_srd_take },
	.fail = { .fail = vb_srd_fail, .peer_gone = vb_dct_peer_gone },
};

const struct vb_service vb_service_srd_stream = {
	.name = "SRD/tx",
	.transport = VB_DC,
	.traits = VB_AIMS | VB_CHOOSES_PEER | VB_IS_ANSWERED,
	.post = {
		.opcodes = OPCODES,
		.check = vb_srd_post_check,
		.address = vb_srd_stream_address,
	},
	.send = {
		.transmit = vb_dc_initiator_transmit,
		.header_fill = vb_dc_pkt_fill,
		.could_do_better = vb_dc_could_do_better,
	},
	.receive = { .transport = VB_DC, .take = vb_srd_stream_take },
	.fail = {
		.translate = vb_srd_stream_translate,
		.isolate = vb_srd_stream_isolate,
		.fail = vb_dc_part,
		.event = event,
	},
};

/* Who sent it: the QP that the stream belongs to, and the number of its address. */
static void sign(struct vb_dcx *x, struct vb_cqe *cqe)
{
	struct vb_nic *nic = x->qp.nic;
	struct vb_ahn_sender sender;

	if (!x->src_ahn)
		x->src_ahn = vb_ahn_enter(nic, x->src_gid);
	sender = vb_ahn_sender(nic, x->src_ahn);
	cqe->ahn = sender.ahn;
	cqe->wc.src_qp = x->src_qpn;
	if (cqe->wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && x->qp.resp.unsolicited) {
		cqe->note = VB_CQE_UNSOLICITED;
		cqe->wc.wr_id = 0;
	}
	cqe->wc.slid = sender.slid;
}

static void context_request(struct vb_batch *batch, struct vb_qp *context,
			    const struct vb_frame *frame, const struct vb_pkt *pkt,
			    const struct vb_op_info *info)
{
	unsigned before = context->recv.unacked->count;
	struct vb_resp_result result = vb_rc_request(&context->resp, pkt, info);

	(void)frame;
	for (unsigned i = before; i < context->recv.unacked->count; i++)
		sign((struct vb_dcx *)context->special.dc, &context->recv.unacked->of[i].cqe);
	vb_batch_acknowledge(batch, context);
	vb_batch_heed(batch, context, result);
}

const struct vb_service vb_service_srd_context = {
	.name = "SRD",
	.transport = VB_DC,
	.traits = VB_AIMS | VB_CHOOSES_PEER | VB_RECEIVES | VB_TAKES_SRQ,
	.send = { .header_fill = vb_dc_pkt_fill },
	.receive = {
		.transport = VB_DC,
		.request = context_request,
		.recv_take = vb_dc_context_recv_take,
	},
	.fail = { .event = event },
};
