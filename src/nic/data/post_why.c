/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/post_why.h"

#include <errno.h>
#include <inttypes.h>

#include "base/refusal.h"
#include "nic/core/names.h"

static void say_about(const struct vb_qp *qp, uint64_t wr_id)
{
	vb_refusal_about("QPN 0x%x, wr_id 0x%" PRIx64, qp->ibv.qp.qp_num, wr_id);
}

/* Of a request whose opcode is all right. */
static int why_malformed(const struct vb_qp *qp, const struct ibv_send_wr *wr, int error)
{
	uint64_t bytes = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->made.cap.max_send_sge)
		return vb_refuse(error, "num_sge is %d; the QP was made for max_send_sge %u",
				 wr->num_sge, qp->made.cap.max_send_sge);
	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	if ((wr->send_flags & IBV_SEND_INLINE) && bytes > qp->made.cap.max_inline_data)
		return vb_refuse(error, "IBV_SEND_INLINE with %" PRIu64 " octets; the QP was made "
					"for max_inline_data %u",
				 bytes, qp->made.cap.max_inline_data);
	if (wr->send_flags & IBV_SEND_INLINE)
		return vb_refuse(error, "%s cannot be inline", vb_opcode_name(wr->opcode));
	if (wr->send_flags & ~VB_SEND_FLAGS_KNOWN & ~qp->service->post.flags)
		return vb_refuse(error,
				 "send_flags 0x%x has bits that a QP of type %s does not know",
				 wr->send_flags, qp->service->name);
	if (vb_qp_is(qp, VB_DATAGRAMS) && !wr->wr.ud.ah)
		return vb_refuse(error, "wr.ud.ah is NULL: each SEND of a UD QP needs an address "
					"handle (ibv_create_ah)");
	if (wr->opcode == IBV_WR_BIND_MW)
		return vb_refuse(error, "bind_mw.mw is NULL or no window of type 2, or its access "
					"flags or region cannot be bound so");
	return vb_refuse(error, "%s does not fit this QP type, or its destination does not",
			 vb_opcode_name(wr->opcode));
}

static int why_not_sent(const struct vb_qp *qp, const struct ibv_send_wr *wr, int error)
{
	if (error == ENOMEM)
		return vb_refuse(error, "the send queue is full: %u work requests (max_send_wr) "
					"whose completions were not polled; unsignaled ones are "
					"released by the next signaled one",
				 qp->made.cap.max_send_wr);
	if (error == EFAULT)
		return vb_refuse(error, "the inline data is not mapped");
	if (vb_qp_state(qp) < IBV_QPS_RTS)
		return vb_refuse(error, "the QP is in %s; sends may be posted from RTS on",
				 vb_state_name(vb_qp_state(qp)));
	if (!(qp->service->post.opcodes & 1u << (wr->opcode & 31)) || wr->opcode > 31)
		return vb_refuse(error, "a QP of type %s does not do %s (%d)",
				 qp->service->name, vb_opcode_name(wr->opcode),
				 (int)wr->opcode);
	return why_malformed(qp, wr, error);
}

int vb_send_refused(struct vb_qp *qp, const struct ibv_send_wr *wr, int error)
{
	if (!vb_refusals_are_wanted())
		return error;
	why_not_sent(qp, wr, error);
	say_about(qp, wr->wr_id);
	return error;
}

static int why_not_received(const struct vb_qp *qp, const struct ibv_recv_wr *wr, int error)
{
	if (qp->ibv.qp.srq)
		return vb_refuse(error, "the QP receives from its SRQ: use ibv_post_srq_recv");
	if (!vb_qp_is(qp, VB_RECEIVES))
		return vb_refuse(error, "a QP of type %s has no receive queue",
				 qp->service->name);
	if (vb_qp_state(qp) == IBV_QPS_RESET)
		return vb_refuse(error, "the QP is in RESET; receives may be posted from INIT on");
	if (error == ENOMEM)
		return vb_refuse(error, "the receive queue is full: max_recv_wr is %u",
				 qp->made.cap.max_recv_wr);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->made.cap.max_recv_sge)
		return vb_refuse(error, "num_sge is %d; the QP was made for max_recv_sge %u",
				 wr->num_sge, qp->made.cap.max_recv_sge);
	return vb_refuse(error, "the SGEs are longer than a message may be (2 GiB)");
}

int vb_recv_refused(struct vb_qp *qp, const struct ibv_recv_wr *wr, int error)
{
	if (!wr || !vb_refusals_are_wanted())
		return error;
	why_not_received(qp, wr, error);
	say_about(qp, wr->wr_id);
	return error;
}

static int why_not_received_by_srq(const struct vb_srq *srq, const struct ibv_recv_wr *wr,
				   int error)
{
	if (error == ENOMEM)
		return vb_refuse(error, "the SRQ is full: max_wr is %u", srq->rq.wr_max);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->rq.sge_max)
		return vb_refuse(error, "num_sge is %d; the SRQ was made for max_sge %u",
				 wr->num_sge, srq->rq.sge_max);
	return vb_refuse(error, "the SGEs are longer than a message may be (2 GiB)");
}

int vb_srq_recv_refused(const struct vb_srq *srq, const struct ibv_recv_wr *wr, int error)
{
	if (!wr || !vb_refusals_are_wanted())
		return error;
	why_not_received_by_srq(srq, wr, error);
	vb_refusal_about("SRQ %u, wr_id 0x%" PRIx64, srq->ibv.handle, wr->wr_id);
	return error;
}
