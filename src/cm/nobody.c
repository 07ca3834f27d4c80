/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/nobody.h"

#include <string.h>

#include "cm/known.h"

enum { SLOT_SHIFT = 22, HOP_LIMIT = 64 };

static void reject(struct vb_cm_msg *answer, enum vb_cm_rej_reason reason,
		   enum vb_cm_message rejected)
{
	answer->attr = VB_CM_REJ;
	answer->rej.reason = (uint16_t)reason;
	answer->rej.message_rejected = (uint8_t)rejected;
}

bool vb_cm_nobody_answers(struct vb_cm_msg *answer, const struct vb_cm_msg *msg, bool is_marked)
{
	*answer = (struct vb_cm_msg){
		.transaction_id = msg->transaction_id,
		.local_comm_id = msg->remote_comm_id,
		.remote_comm_id = msg->local_comm_id,
	};
	switch (msg->attr) {
	case VB_CM_REQ:
		answer->local_comm_id = 0;
		reject(answer, VB_CM_REJ_INVALID_SERVICE_ID, VB_CM_MESSAGE_REQ);
		return true;
	case VB_CM_REP:
		reject(answer, VB_CM_REJ_INVALID_COMM_ID, VB_CM_MESSAGE_REP);
		return true;
	case VB_CM_RTU: /* else the peer would think itself connected for ever */
		reject(answer, VB_CM_REJ_INVALID_COMM_ID, VB_CM_MESSAGE_OTHER);
		return true;
	case VB_CM_DREQ:
		answer->attr = VB_CM_DREP;
		return true;
	case VB_CM_SIDR_REQ:
		answer->attr = VB_CM_SIDR_REP;
		answer->local_comm_id = 0;
		answer->sidr_rep.service_id = msg->sidr_req.service_id;
		answer->sidr_rep.status = VB_CM_SIDR_UNSUPPORTED;
		return true;
	case VB_CM_MRA:
		if (!is_marked || !vb_cm_is_hello(msg) || msg->remote_comm_id)
			return false;
		vb_cm_hello_answer(answer, msg);
		return true;
	case VB_CM_REJ:
	case VB_CM_DREP:
	case VB_CM_SIDR_REP:
	case VB_CM_LAP:
	case VB_CM_APR:
		break;
	}
	return false;
}

bool vb_cm_nobody_answers_mad(uint8_t answer[VB_MAD_BYTES], const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_msg msg, said;

	if (!vb_cm_parse(&msg, mad) || !vb_cm_nobody_answers(&said, &msg, vb_cm_is_marked(mad)))
		return false;
	vb_cm_emit(&said, answer);
	vb_cm_mark(answer);
	return true;
}

void vb_cm_nobody_path_back(struct vb_path *back, const struct vb_path *path)
{
	*back = *path;
	memcpy(back->src, path->dst, sizeof(back->src));
	memcpy(back->dst, path->src, sizeof(back->dst));
	back->hop_limit = HOP_LIMIT;
	back->sport = 0;
}

struct vb_cm_target vb_cm_nobody_target(const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_target target = {.whose = VB_CM_WHOSE_NOBODY};
	struct vb_cm_msg msg;

	if (!vb_cm_parse(&msg, mad))
		return target;
	if (msg.attr == VB_CM_REQ || msg.attr == VB_CM_SIDR_REQ) {
		target.whose = VB_CM_WHOSE_SERVICE;
		target.service_id =
			msg.attr == VB_CM_REQ ? msg.req.service_id : msg.sidr_req.service_id;
	} else if (msg.remote_comm_id) {
		target.whose = VB_CM_WHOSE_SLOT;
		target.slot = (uint16_t)(msg.remote_comm_id >> SLOT_SHIFT);
	} else if (msg.attr == VB_CM_REJ && msg.rej.reason == VB_CM_REJ_TIMEOUT) {
		target.whose = VB_CM_WHOSE_ALL;
	}
	return target;
}
