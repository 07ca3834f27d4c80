/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets, behind one for the number of descriptors, as a message between hub and client. */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "hub/proto.h"

static void check_slot(uint32_t slot, uint32_t next_index)
{
	vb_check(slot >= 1 && slot < VB_HUB_SLOTS_MAX && next_index < VB_HUB_INDICES);
}

static void check_program(const struct vb_hub_program *program)
{
	vb_check(strnlen(program->comm, VB_HUB_COMM_BYTES) < VB_HUB_COMM_BYTES);
	vb_check(strnlen(program->host, VB_HUB_HOST_BYTES) < VB_HUB_HOST_BYTES);
}

static void check_rows(const struct vb_hub_rows *rows)
{
	vb_check(rows->count >= 1 && rows->count <= VB_HUB_ROWS_MAX);
	for (unsigned i = 0; i < rows->count; i++) {
		check_slot(rows->row[i].slot, rows->row[i].next_index);
		check_program(&rows->row[i].program);
		vb_check(rows->row[i].shm <= 1);
	}
}

static void check_answer(uint32_t error, unsigned fds, unsigned wanted)
{
	vb_check(fds == (error ? 0 : wanted));
}

/* What is relied on of rdma_cm's messages; the rest have no values. */
static void check_cm_accepted(const struct vb_hub_msg *msg, unsigned fds)
{
	switch (msg->type) {
	case VB_HUB_BIND:
		check_slot(msg->cm.bind.slot, 0);
		vb_check(fds == 0 || fds == VB_HUB_BIND_FDS);
		vb_check(msg->cm.bind.port <= UINT16_MAX && msg->cm.bind.space <= UINT16_MAX);
		vb_check(msg->cm.bind.flags <= VB_HUB_BIND_FLAGS);
		break;
	case VB_HUB_BOUND:
		vb_check(fds == 0 && msg->cm.bound.port <= UINT16_MAX);
		vb_check(!msg->cm.bound.error == !!msg->cm.bound.port);
		break;
	case VB_HUB_UNBIND:
		check_slot(msg->cm.unbind.slot, 0);
		vb_check(fds == 0);
		break;
	case VB_HUB_MAD:
		check_slot(msg->cm.mad.slot, 0);
		vb_check(fds == 0);
		break;
	case VB_HUB_RECORDS:
		vb_check(fds == VB_HUB_RECORDS_FDS);
		break;
	case VB_HUB_CAPTURE:
		vb_check(fds == VB_HUB_CAPTURE_FDS);
		break;
	case VB_HUB_SAMPLE:
	case VB_HUB_SAMPLED:
		vb_check(fds == VB_HUB_SAMPLE_FDS);
		break;
	case VB_HUB_CM_ROWS:
		vb_check(fds == 0 && msg->cm.rows.count <= VB_HUB_CM_ROWS_MAX);
		for (unsigned i = 0; i < msg->cm.rows.count; i++)
			check_slot(msg->cm.rows.row[i].slot, 0);
		break;
	default:
		vb_check(msg->type >= 1 && msg->type < VB_HUB_TYPES && fds == 0);
	}
}

/* What hub and client rely on without looking again. */
static void check_accepted(const struct vb_hub_msg *msg, unsigned fds)
{
	switch (msg->type) {
	case VB_HUB_HELLO:
	case VB_HUB_LEASE:
		check_program(&msg->hello.program);
		vb_check(fds == 0 || (msg->type == VB_HUB_HELLO && fds == VB_HUB_KEEPER_FDS));
		break;
	case VB_HUB_MARK:
		check_slot(msg->mark.slot, msg->mark.next_index);
		vb_check(fds == 0 || fds == VB_HUB_MARK_FDS);
		break;
	case VB_HUB_WELCOME:
		check_answer(msg->welcome.error, fds, VB_HUB_KEEPER_FDS);
		break;
	case VB_HUB_SUMMARY:
		check_program(&msg->summary.program);
		vb_check(fds == 0);
		break;
	case VB_HUB_GRANT:
		check_answer(msg->grant.error, fds, VB_HUB_GRANT_FDS);
		if (!msg->grant.error)
			check_slot(msg->grant.slot, msg->grant.next_index);
		break;
	case VB_HUB_ROWS:
		check_rows(&msg->rows);
		break;
	case VB_HUB_OFFER:
		vb_check(fds == VB_HUB_OFFER_FDS && msg->offer.shm <= 1);
		break;
	case VB_HUB_REACH:
		vb_check(fds == VB_HUB_REACH_FDS);
		check_slot(msg->reach.from, 0);
		check_slot(msg->reach.to, 0);
		break;
	case VB_HUB_REACHED:
		check_answer(msg->reached.error, fds, VB_HUB_OFFER_FDS);
		vb_check(msg->reached.proven <= 1);
		break;
	case VB_HUB_RING:
		vb_check(fds == VB_HUB_RING_FDS && msg->ring.proven <= 1);
		check_slot(msg->ring.from, 0);
		check_slot(msg->ring.to, 0);
		break;
	case VB_HUB_LINK:
		check_slot(msg->link.from, 0);
		vb_check(fds == 0 && msg->link.why < VB_HUB_LINK_WHYS);
		break;
	case VB_HUB_LINKS:
		vb_check(fds == 0 && msg->links.count >= 1 && msg->links.count <= VB_HUB_LINKS_MAX);
		break;
	case VB_HUB_WHO:
		check_slot(msg->who.slot, 0);
		vb_check(fds == 0);
		break;
	case VB_HUB_WHOSE:
		check_answer(msg->whose.error, fds, 1);
		break;
	case VB_HUB_MEMORY:
		check_answer(msg->memory.error, fds, 1);
		break;
	case VB_HUB_FAIL:
		vb_check(fds == 0 && msg->fail.pid >= 1 && msg->fail.pid <= INT32_MAX);
		break;
	default:
		check_cm_accepted(msg, fds);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct vb_hub_msg msg, before;
	unsigned fds;

	if (!bytes)
		return 0;
	fds = data[0] % (VB_HUB_FDS_MAX + 2);
	memset(&msg, 0xee, sizeof(msg));
	before = msg;
	if (vb_hub_msg_parse(&msg, data + 1, bytes - 1, fds)) {
		vb_check(memcmp(&msg, &before, sizeof(msg)) == 0);
		return 0;
	}
	vb_check(vb_hub_msg_bytes(msg.type) == bytes - 1);
	vb_check(memcmp(&msg, data + 1, bytes - 1) == 0);
	check_accepted(&msg, fds);
	return 0;
}
