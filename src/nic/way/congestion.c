/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/way/congestion.h"

#include "nic/data/demux.h"
#include "nic/data/pace.h"
#include "nic/way/send.h"
#include "wire/icrc.h"
#include "wire/packet.h"

/* BTH, 16 reserved octets, ICRC. */
enum { CNP_BYTES = VB_BTH_BYTES + 16 + VB_ICRC_BYTES };

static bool has_one_peer(const struct vb_qp *qp)
{
	enum ibv_qp_state state = vb_qp_state(qp);

	return (qp->resp.transport == VB_RC || qp->resp.transport == VB_UC) &&
	       state >= IBV_QPS_RTR && state != IBV_QPS_ERR;
}

static void cnp_send(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;
	uint8_t frame[VB_PKT_HEADER_BYTES_MAX + VB_ICRC_BYTES];
	struct iovec iov = { frame, CNP_BYTES };
	struct vb_burst burst = {
		.path = qp->to.path,
		.slot = (uint16_t)(qp->to.dqpn >> VB_INDEX_BITS),
		.frames = 1,
		.frame_bytes = CNP_BYTES,
		.last_bytes = CNP_BYTES,
		.iovcnt = 1,
		.iov = &iov,
	};
	struct vb_pkt pkt;
	size_t bytes;

	vb_qp_pkt_begin(qp, &pkt);
	pkt.opcode = VB_OP_CNP;
	pkt.becn = true;
	pkt.psn = 0;
	bytes = vb_pkt_emit(frame, &pkt);
	vb_icrc_put(frame + bytes,
		    vb_icrc_finish(vb_icrc_header(&burst.path, CNP_BYTES, 0, frame, bytes)));
	/* One that is lost is followed by the next one, while there is congestion. */
	nic->host.wire.tx(nic->host.arg, (uint16_t)(qp->ibv.qp.qp_num >> VB_INDEX_BITS), &burst);
	vb_stat_add(&nic->stats, VB_STAT_CNPS_SENT, 1);
}

void vb_congestion_tell(struct vb_nic *nic, const struct vb_frame *frame)
{
	uint64_t now_ns = vb_nic_now_ns(nic);
	struct vb_pkt pkt;
	struct vb_qp *qp;

	if (!nic->host.line_kbps ||
	    vb_pkt_parse(&pkt, frame->data, frame->bytes) != VB_PARSE_OK ||
	    vb_qpn_is_shared(pkt.dqpn))
		return;
	qp = vb_nic_qp_find(nic, pkt.dqpn);
	if (!qp)
		return;
	vb_lock_take(&qp->lock);
	if (has_one_peer(qp) && vb_qp_path_fits(qp, &frame->path) &&
	    now_ns >= qp->recv.marked_ns + vb_dcqcn_period_ns(nic->host.line_kbps)) {
		qp->recv.marked_ns = now_ns;
		cnp_send(qp);
	}
	vb_lock_drop(&qp->lock);
}

bool vb_congestion_heed(struct vb_qp *qp, const struct vb_path *came)
{
	if (!has_one_peer(qp) || !vb_qp_path_fits(qp, came))
		return false;
	if (qp->nic->host.line_kbps && !qp->nic->host.no_dcqcn)
		vb_pace_cut(qp);
	return true;
}
