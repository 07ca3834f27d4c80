/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/inject.h"

#include "engine/rc_resp.h"
#include "nic/data/demux.h"
#include "nic/data/explain.h"

bool vb_inject_facts(struct vb_nic *nic, uint32_t qpn, struct vb_qp_facts *facts)
{
	struct vb_qp *qp = vb_nic_qp_find(nic, qpn);

	if (!qp)
		return false;
	vb_lock_take(&qp->lock);
	*facts = (struct vb_qp_facts){
		.dqpn = qp->to.dqpn,
		.state = (uint8_t)vb_qp_state(qp),
		.acks = vb_transport_acks(qp->req.transport),
		.path = qp->to.path,
	};
	vb_lock_drop(&qp->lock);
	return true;
}

uint32_t vb_inject_qpn_towards(struct vb_nic *nic, uint16_t slot, uint32_t dqpn)
{
	struct vb_slot *own = vb_nic_slot_find(nic, slot);
	uint32_t found = 0;

	for (unsigned i = 0; own && i < VB_INDICES && !found; i++) {
		struct vb_qp *qp = atomic_load_explicit(&own->qp[i], memory_order_acquire);

		if (!qp)
			continue;
		vb_lock_take(&qp->lock);
		if (qp->to.dqpn == dqpn && !vb_qp_is(qp, VB_DATAGRAMS))
			found = qp->ibv.qp.qp_num;
		vb_lock_drop(&qp->lock);
	}
	return found;
}

void vb_inject_blame(struct vb_nic *nic, uint32_t qpn, const char *rule)
{
	struct vb_qp *qp = vb_nic_qp_find(nic, qpn);

	if (!qp)
		return;
	vb_lock_take(&qp->lock);
	qp->rule = rule;
	vb_lock_drop(&qp->lock);
}

static struct vb_resp_result refuse(struct vb_qp *qp, const struct vb_pkt *pkt,
				    enum vb_refusal_kind why)
{
	static const enum vb_verdict verdicts[] = {
		[VB_REFUSE_RNR] = VB_NO_RECV,
		[VB_REFUSE_INVALID] = VB_BAD_OPCODE,
		[VB_REFUSE_ACCESS] = VB_BAD_ACCESS,
		[VB_REFUSE_OPERATION] = VB_BAD_MEMORY,
	};

	if (why != VB_REFUSE_SEQUENCE)
		return vb_rc_refuse(&qp->resp, pkt, vb_op_info(pkt->opcode), verdicts[why]);
	vb_rc_ask_again(&qp->resp);
	return (struct vb_resp_result){ VB_RESP_OWES, VB_BAD_SEQUENCE };
}

bool vb_inject_refuse(struct vb_nic *nic, const struct vb_pkt *pkt, enum vb_refusal_kind why,
		      const char *rule)
{
	struct vb_batch batch = {
		.nic = nic,
		.now_ns = vb_nic_now_ns(nic),
		.touched = VB_LATER_EMPTY,
	};
	const struct vb_op_info *info = vb_op_info(pkt->opcode);
	struct vb_qp *qp = vb_nic_qp_find(nic, pkt->dqpn);

	if (!qp || !info || info->transport != VB_RC || vb_kind_is_answer(info->kind))
		return false;
	vb_batch_hold(&batch, qp);
	if (vb_batch_admit(&batch, qp, pkt, info)) {
		vb_explain_by_rule(rule);
		vb_batch_heed(&batch, qp, refuse(qp, pkt, why));
		vb_explain_by_rule(NULL);
	}
	vb_batch_end(&batch);
	return true;
}

bool vb_inject_fail(struct vb_nic *nic, uint32_t qpn, bool with_event, const char *rule)
{
	struct vb_qp *qp = vb_nic_qp_find(nic, qpn);
	bool fails;

	if (!qp)
		return false;
	vb_lock_take(&qp->lock);
	fails = vb_qp_state(qp) != IBV_QPS_RESET && vb_qp_state(qp) != IBV_QPS_ERR;
	if (fails) {
		vb_explain_by_rule(rule);
		vb_qp_fail_locked(qp);
		vb_explain_by_rule(NULL);
		vb_qp_after_locked(qp, VB_REQ_NOTHING);
	}
	if (fails && with_event)
		vb_qp_event(qp, IBV_EVENT_QP_FATAL);
	vb_lock_drop(&qp->lock);
	return fails;
}
