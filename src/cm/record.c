/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/record.h"

#include <string.h>

#include "cm/id.h"
#include "cm/known.h"
#include "wire/bytes.h"

_Static_assert(sizeof(struct vb_cm_record) == 96, "others have this layout, too");

enum { GUID_BYTES = 8, QPN_MASK = 0xffffff };

void vb_cm_record_clear(struct vb_cm_record *record)
{
	atomic_store_explicit(&record->state, VB_CM_STATE_IDLE, memory_order_release);
}

void vb_cm_record_write(struct vb_cm_record *record, const struct vb_cm_id *id)
{
	record->local_id = id->local.id;
	record->remote_id = id->remote.id;
	record->remote_qpn = id->remote.qpn;
	record->tid = id->tid.connect;
	record->peer_tid = id->tid.peer;
	record->guid = id->local.guid;
	record->service_id = id->listening.service_id;
	memcpy(record->src, id->path.src, sizeof(record->src));
	memcpy(record->dst, id->path.dst, sizeof(record->dst));
	record->flow_label = id->path.flow_label;
	record->ifindex = id->path.ifindex;
	record->tclass = id->path.tclass;
	record->hop_limit = id->path.hop_limit;
	record->local = id->path.local;
	atomic_store_explicit(&record->state, id->state, memory_order_release);
}

static void path_of(const struct vb_cm_record *record, struct vb_path *path)
{
	*path = (struct vb_path){
		.flow_label = record->flow_label,
		.ifindex = record->ifindex,
		.tclass = record->tclass,
		.hop_limit = record->hop_limit,
		.local = record->local == 1,
	};
	memcpy(path->src, record->src, sizeof(path->src));
	memcpy(path->dst, record->dst, sizeof(path->dst));
}

static void fill(struct vb_cm_msg *msg, const struct vb_cm_record *record, enum vb_cm_state state,
		 const struct vb_cm_farewell *farewell)
{
	switch (msg->attr) {
	case VB_CM_REJ:
		msg->transaction_id = record->tid;
		msg->rej.reason = farewell->reason;
		msg->rej.message_rejected = farewell->rejected;
		if (state == VB_CM_STATE_REQ_RCVD)
			msg->local_comm_id = 0;
		break;
	case VB_CM_DREQ:
		msg->transaction_id = ~record->tid;
		msg->dreq.remote_qpn = record->remote_qpn & QPN_MASK; /* it may say anything */
		break;
	case VB_CM_SIDR_REP:
		msg->transaction_id = record->tid;
		msg->local_comm_id = 0;
		msg->sidr_rep.service_id = record->service_id;
		msg->sidr_rep.status = VB_CM_SIDR_REJECTED;
		break;
	default: /* DREP */
		msg->transaction_id = record->peer_tid;
		break;
	}
}

bool vb_cm_record_close(const struct vb_cm_record *record, struct vb_path *path,
			uint8_t mad[VB_MAD_BYTES])
{
	uint32_t state = atomic_load_explicit(&record->state, memory_order_acquire);
	const struct vb_cm_farewell *farewell;
	struct vb_cm_msg msg;
	uint8_t guid[GUID_BYTES];

	if (state >= VB_CM_STATES)
		return false;
	farewell = vb_cm_rule_farewell(state);
	if (!farewell)
		return false;
	msg = (struct vb_cm_msg){
		.attr = farewell->attr,
		.local_comm_id = record->local_id,
		.remote_comm_id = record->remote_id,
	};
	fill(&msg, record, state, farewell);
	vb_be64_put(guid, record->guid);
	if (farewell->attr == VB_CM_REJ && farewell->reason == VB_CM_REJ_TIMEOUT) {
		msg.info = guid;
		msg.info_bytes = sizeof(guid);
	}
	path_of(record, path);
	vb_cm_emit(&msg, mad);
	vb_cm_mark(mad);
	return true;
}
