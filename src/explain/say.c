/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/say.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "wire/mad.h"

const char *vb_say_transport(const struct vb_half *half)
{
	static const char *const names[VB_TRANSPORTS] = {
		[VB_RC] = "RC",	  [VB_UC] = "UC",   [VB_RD] = "RD", [VB_UD] = "UD",
		[VB_CNP] = "CNP", [VB_XRC] = "XRC", [VB_DC] = "DC",
	};

	if (half->dqpn == VB_MAD_QPN && half->transport == VB_UD)
		return "rdma_cm";
	return names[half->transport] ? names[half->transport] : "?";
}

static const char *end_say(char text[VB_SAY_BYTES], const struct vb_story *story, uint32_t qpn,
			   bool known, const uint8_t gid[VB_GID_BYTES], uint32_t program)
{
	char address[VB_ADDRESS_BYTES], number[24] = "a QP", who[64] = "";

	if (known)
		snprintf(number, sizeof(number), "QPN 0x%x", qpn);
	if (program != VB_NONE)
		snprintf(who, sizeof(who), " (%s, pid %u)", story->program[program].name,
			 story->program[program].pid);
	snprintf(text, VB_SAY_BYTES, "%s at %s%s", number, vb_gid_text(address, gid), who);
	return text;
}

static uint32_t either(uint32_t a, uint32_t b)
{
	return a != VB_NONE ? a : b;
}

const char *vb_say_sender(char text[VB_SAY_BYTES], const struct vb_story *story, uint32_t half)
{
	const struct vb_half *h = &story->half[half];
	uint32_t from_peer = h->peer == VB_NONE ? VB_NONE : story->half[h->peer].receiver;

	return end_say(text, story, h->sqpn, h->sqpn || h->has_sqpn, h->path.src,
		       either(h->sender, from_peer));
}

const char *vb_say_receiver(char text[VB_SAY_BYTES], const struct vb_story *story, uint32_t half)
{
	const struct vb_half *h = &story->half[half];
	uint32_t from_peer = h->peer == VB_NONE ? VB_NONE : story->half[h->peer].sender;

	return end_say(text, story, h->dqpn, true, h->path.dst, either(h->receiver, from_peer));
}

const char *vb_say_time(char text[32], uint64_t ns)
{
	if (ns < 1000000)
		snprintf(text, 32, "%.3g us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, 32, "%.4g ms", (double)ns / 1e6);
	else
		snprintf(text, 32, "%.4g s", (double)ns / 1e9);
	return text;
}

void vb_say_request(struct vb_trouble *trouble, const struct vb_story *story, uint32_t event)
{
	const struct vb_event *e = &story->event[event];
	const struct vb_op_info *info = vb_event_op(e);
	const char *words = vb_kind_words(info->kind);
	struct vb_pkt pkt;

	vb_event_parse(e, &pkt);
	vb_trouble_say(trouble, "%s", words ? words : info->name);
	if (e->head_bytes < info->header_bytes)
		vb_trouble_say(trouble, ", whose headers the capture has cut");
	else if (info->headers & VB_H_RETH)
		vb_trouble_say(trouble, " of %u octets at 0x%" PRIx64 " by rkey 0x%x",
			       pkt.reth.bytes, pkt.reth.va, pkt.reth.rkey);
	else if (info->headers & VB_H_ATOMIC)
		vb_trouble_say(trouble, " at 0x%" PRIx64 " by rkey 0x%x", pkt.reth.va,
			       pkt.reth.rkey);
	else
		vb_trouble_say(trouble, "%s of %u octets",
			       info->pos == VB_P_ONLY ? "" : ", a packet", e->payload_bytes);
	if (info->headers & VB_H_IMM)
		vb_trouble_say(trouble, " with immediate data");
	if (info->headers & VB_H_IETH)
		vb_trouble_say(trouble, " that invalidates rkey 0x%x", pkt.inv_rkey);
	vb_trouble_say(trouble, " (PSN 0x%x", e->psn);
	if (e->flags & VB_EVENT_HAS_WR && e->direction == VB_DIRECTION_OUT)
		vb_trouble_say(trouble, ", wr_id 0x%" PRIx64, e->wr_id);
	vb_trouble_say(trouble, ")");
}
