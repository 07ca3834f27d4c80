/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/mads.h"

#include <string.h>

#include "cm/known.h"
#include "cm/nobody.h"
#include "wire/cm_ip.h"
#include "wire/icrc.h"
#include "wire/mad_frame.h"

/* A message, as it came. */
struct letter {
	const struct vb_path *path;
	const uint8_t *frame;
	struct vb_cm_msg msg;
};

static bool is_request(const struct letter *letter)
{
	return letter->msg.attr == VB_CM_REQ || letter->msg.attr == VB_CM_SIDR_REQ;
}

static struct vb_mads_request *request_of(struct vb_mads *mads, const struct letter *letter)
{
	uint32_t hash = letter->msg.local_comm_id;

	for (unsigned i = 0; i < VB_GID_BYTES; i++)
		hash = hash * 31 + letter->path->src[i];
	return &mads->request[hash % VB_MADS_REQUESTS];
}

/* Whom that request was given to before; 0: nobody, as far as is known. */
static uint32_t slot_before(struct vb_mads *mads, const struct letter *letter)
{
	const struct vb_mads_request *request = request_of(mads, letter);

	if (request->comm_id != letter->msg.local_comm_id ||
	    request->transaction_id != letter->msg.transaction_id ||
	    memcmp(request->src, letter->path->src, VB_GID_BYTES))
		return 0;
	return request->slot;
}

static void remember(struct vb_mads *mads, const struct letter *letter, uint32_t slot)
{
	struct vb_mads_request *request = request_of(mads, letter);

	memcpy(request->src, letter->path->src, VB_GID_BYTES);
	request->comm_id = letter->msg.local_comm_id;
	request->transaction_id = letter->msg.transaction_id;
	request->slot = slot;
}

/* By the address that is asked for, which the IP header says if there is one. */
static uint32_t slot_listening(struct vb_mads *mads, const struct letter *letter,
			       uint64_t service_id)
{
	const struct vb_hub_bind *bind;
	enum vb_cm_port_space space;
	struct vb_cm_ip ip;

	if (!vb_cm_service_port_space(service_id, &space))
		return 0;
	memcpy(ip.dst, letter->path->dst, VB_GID_BYTES);
	vb_cm_ip_parse(&ip, letter->msg.private_data);
	bind = vb_ports_listener(mads->ports, space, vb_cm_service_port(service_id), ip.dst);
	return bind ? bind->slot : 0;
}

static uint32_t slot_asked(struct vb_mads *mads, const struct letter *letter, uint64_t service_id)
{
	uint32_t slot = slot_before(mads, letter);

	return slot ? slot : slot_listening(mads, letter, service_id);
}

static bool give(struct vb_mads *mads, const struct letter *letter, uint32_t slot)
{
	/* Asked again only because it has not been read yet. */
	if (slot && is_request(letter) && slot_before(mads, letter) == slot &&
	    mads->host.is_behind(mads->host.arg, slot))
		return true;
	if (!slot || !mads->host.give(mads->host.arg, slot, letter->path, letter->frame))
		return false;
	if (is_request(letter))
		remember(mads, letter, slot);
	return true;
}

/* Whoever is not meant changes nothing. */
static bool give_all(struct vb_mads *mads, const struct letter *letter)
{
	bool any = false;

	for (uint32_t slot = 1; slot < VB_HUB_SLOTS_MAX; slot++)
		any |= give(mads, letter, slot);
	return any;
}

static bool give_target(struct vb_mads *mads, const struct letter *letter, const uint8_t *mad)
{
	struct vb_cm_target target = vb_cm_nobody_target(mad);

	switch (target.whose) {
	case VB_CM_WHOSE_SLOT:
		return give(mads, letter, target.slot);
	case VB_CM_WHOSE_SERVICE:
		return give(mads, letter, slot_asked(mads, letter, target.service_id));
	case VB_CM_WHOSE_ALL:
		return give_all(mads, letter);
	case VB_CM_WHOSE_NOBODY:
		break;
	}
	return false;
}

/* For one who has died since he was asked, perhaps before he read it; Linux reads it for him. */
static void reject_for_dead(struct vb_cm_msg *said)
{
	if (said->attr == VB_CM_REJ)
		said->rej.reason = VB_CM_REJ_CONSUMER_DEFINED;
	else
		said->sidr_rep.status = VB_CM_SIDR_REJECTED;
}

static void answer(struct vb_mads *mads, const struct letter *letter, bool is_marked)
{
	uint8_t mad[VB_MAD_BYTES], frame[VB_MAD_FRAME_BYTES];
	struct vb_cm_msg said;
	struct vb_path back;

	if (vb_gid_is_group(letter->path->dst) ||
	    !vb_cm_nobody_answers(&said, &letter->msg, is_marked)) {
		mads->dropped++;
		return;
	}
	if (is_request(letter) && slot_before(mads, letter))
		reject_for_dead(&said);
	vb_cm_nobody_path_back(&back, letter->path);
	back.sport = VB_ROCE_PORT;
	vb_cm_emit(&said, mad);
	vb_cm_mark(mad);
	vb_mad_frame_emit(frame, &back, mad, 0);
	mads->host.send(mads->host.arg, &back, frame);
	mads->answered++;
}

bool vb_mads_take(struct vb_mads *mads, const struct vb_path *path, const uint8_t *frame,
		  uint32_t bytes)
{
	const uint8_t *mad = vb_mad_frame_parse(frame, bytes);
	struct letter letter = { .path = path, .frame = frame };

	if (!mad || !vb_cm_parse(&letter.msg, mad))
		return false;
	if (give_target(mads, &letter, mad))
		mads->given++;
	else if (is_request(&letter) && mads->host.is_heir(mads->host.arg))
		mads->dropped++;
	else
		answer(mads, &letter, vb_cm_is_marked(mad));
	return true;
}
