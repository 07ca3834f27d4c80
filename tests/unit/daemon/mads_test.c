/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/known.h"
#include "daemon/mads.h"
#include "group.h"
#include "wire/cm_ip.h"
#include "wire/icrc.h"
#include "wire/mad_frame.h"

enum { SLOT = 5, OTHER = 6, PEER_ID = 0x77, SHIFT = 22 };

static const uint8_t gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const uint8_t peer[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

static struct vb_ports ports;
static struct vb_mads mads;
static uint32_t given[8], givens; /* slots */
static uint32_t behind;		  /* a slot whose process does not read */
static bool heir;		  /* not all is known yet */
static uint64_t there;		  /* slots that somebody holds, a bit each */
static struct {
	unsigned count;
	struct vb_path path;
	struct vb_cm_msg msg;
	uint8_t frame[VB_MAD_FRAME_BYTES];
} sent;

static bool give(void *arg, uint32_t slot, const struct vb_path *path, const uint8_t *frame)
{
	if (slot >= 64 || !(there >> slot & 1))
		return false;
	assert_memory_equal(path->src, peer, VB_GID_BYTES);
	assert_true(givens < 8);
	given[givens++] = slot;
	return true;
}

static bool is_behind(void *arg, uint32_t slot)
{
	return behind == slot;
}

static bool is_heir(void *arg)
{
	return heir;
}

static void send(void *arg, const struct vb_path *path, const uint8_t *frame)
{
	const uint8_t *mad = vb_mad_frame_parse(memcpy(sent.frame, frame, sizeof(sent.frame)),
						sizeof(sent.frame));

	assert_non_null(mad);
	assert_true(vb_icrc_check(path, frame, VB_MAD_FRAME_BYTES, 0, NULL));
	assert_true(vb_cm_parse(&sent.msg, mad));
	sent.path = *path;
	sent.count++;
}

static int begin(void **state)
{
	memset(&mads, 0, sizeof(mads));
	mads.host = (struct vb_mads_host){ .give = give, .is_behind = is_behind,
					   .is_heir = is_heir, .send = send };
	mads.ports = &ports;
	memset(&sent, 0, sizeof(sent));
	givens = 0;
	behind = 0;
	heir = false;
	there = 1 << SLOT | 1 << OTHER;
	return 0;
}

static int end(void **state)
{
	vb_ports_free(&ports);
	return 0;
}

#define MADS_TEST(name) TEST_BETWEEN(name, begin, end)

static void listens(uint32_t slot, uint16_t port, const uint8_t *at)
{
	struct vb_hub_bind bind = { .slot = slot, .id = port, .space = VB_CM_PS_TCP, .port = port,
				    .flags = VB_HUB_BIND_LISTENS };
	uint16_t got;

	memcpy(bind.gid, at, VB_GID_BYTES);
	assert_int_equal(vb_ports_bind(&ports, &bind, false, &got), 0);
}

static void comes(const struct vb_cm_msg *msg, bool marked)
{
	struct vb_path path = { .sport = 0xc000, .hop_limit = 7 };
	uint8_t mad[VB_MAD_BYTES], frame[VB_MAD_FRAME_BYTES];

	memcpy(path.src, peer, VB_GID_BYTES);
	memcpy(path.dst, gid, VB_GID_BYTES);
	vb_cm_emit(msg, mad);
	if (marked)
		vb_cm_mark(mad);
	vb_mad_frame_emit(frame, &path, mad, 0);
	assert_true(vb_mads_take(&mads, &path, frame, sizeof(frame)));
}

static void req_comes(uint32_t comm_id, uint16_t port, const uint8_t *to)
{
	struct vb_cm_msg msg = { .attr = VB_CM_REQ, .local_comm_id = comm_id };
	uint8_t header[VB_CM_IP_BYTES];
	struct vb_cm_ip ip = { .ipv4 = true, .sport = 9 };

	memcpy(ip.src, peer, VB_GID_BYTES);
	memcpy(ip.dst, to, VB_GID_BYTES);
	vb_cm_ip_emit(&ip, header);
	msg.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, port);
	msg.private_data = header;
	msg.private_bytes = sizeof(header);
	comes(&msg, false);
}

static void id_comes(enum vb_cm_attr attr, uint32_t slot)
{
	struct vb_cm_msg msg = { .attr = attr, .transaction_id = 0x1234,
				 .local_comm_id = PEER_ID, .remote_comm_id = slot << SHIFT | 3 };

	comes(&msg, false);
}

MADS_TEST(a_request_goes_to_who_listens)
{
	listens(SLOT, 7, gid);
	listens(OTHER, 8, gid);
	req_comes(1, 7, gid);
	req_comes(2, 8, gid);
	assert_int_equal(givens, 2);
	assert_int_equal(given[0], SLOT);
	assert_int_equal(given[1], OTHER);
	assert_int_equal(sent.count, 0);
}

/* Else what is repeated would fill what there is room for. */
MADS_TEST(who_has_not_read_it_is_not_asked_again)
{
	struct vb_cm_msg sidr = { .attr = VB_CM_SIDR_REQ, .local_comm_id = 3 };

	sidr.sidr_req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 7);
	listens(SLOT, 7, gid);
	behind = SLOT;
	req_comes(1, 7, gid);
	req_comes(1, 7, gid);
	req_comes(2, 7, gid);
	assert_int_equal(givens, 2);
	/* The same id in another transaction is another request. */
	sidr.transaction_id = 1;
	comes(&sidr, false);
	sidr.transaction_id = 2;
	comes(&sidr, false);
	comes(&sidr, false);
	assert_int_equal(givens, 4);
	behind = 0;
	req_comes(1, 7, gid);
	assert_int_equal(givens, 5);
	assert_int_equal(sent.count, 0);
}

/* By the hub, as by Linux: who was asked has died, and may not have read it. */
MADS_TEST(a_request_to_the_dead_is_rejected_for_them)
{
	struct vb_cm_msg sidr = { .attr = VB_CM_SIDR_REQ, .local_comm_id = 2 };

	listens(SLOT, 7, gid);
	req_comes(1, 7, gid);
	sidr.sidr_req.service_id = vb_cm_service_id(VB_CM_PS_TCP, 7);
	comes(&sidr, false);
	assert_int_equal(givens, 2);
	there = 1 << OTHER;
	vb_ports_forget(&ports, SLOT);
	req_comes(1, 7, gid);
	assert_int_equal(sent.count, 1);
	assert_int_equal(sent.msg.attr, VB_CM_REJ);
	assert_int_equal(sent.msg.rej.reason, VB_CM_REJ_CONSUMER_DEFINED);
	comes(&sidr, false);
	assert_int_equal(sent.count, 2);
	assert_int_equal(sent.msg.attr, VB_CM_SIDR_REP);
	assert_int_equal(sent.msg.sidr_rep.status, VB_CM_SIDR_REJECTED);
	/* Who asks only now finds nobody. */
	req_comes(3, 7, gid);
	assert_int_equal(sent.msg.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
}

MADS_TEST(a_request_that_nobody_hears_is_rejected)
{
	listens(SLOT, 7, peer);
	req_comes(PEER_ID, 7, gid);
	assert_int_equal(givens, 0);
	assert_int_equal(sent.count, 1);
	assert_int_equal(sent.msg.attr, VB_CM_REJ);
	assert_int_equal(sent.msg.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(sent.msg.remote_comm_id, PEER_ID);
	assert_memory_equal(sent.path.dst, peer, VB_GID_BYTES);
	assert_memory_equal(sent.path.src, gid, VB_GID_BYTES);
}

/* It may be heard by somebody yet. What is for an id is not: its slot is known. */
MADS_TEST(a_new_hub_does_not_reject_what_it_may_not_know)
{
	heir = true;
	req_comes(PEER_ID, 7, gid);
	assert_int_equal(givens, 0);
	assert_int_equal(sent.count, 0);
	assert_int_equal(mads.dropped, 1);
	id_comes(VB_CM_DREQ, 9);
	assert_int_equal(sent.count, 1);
	listens(SLOT, 7, gid);
	req_comes(PEER_ID, 7, gid);
	assert_int_equal(givens, 1);
}

/* Whoever accepted may have stopped listening, and its answer may have got lost. */
MADS_TEST(a_repeated_request_goes_where_the_first_went)
{
	listens(SLOT, 7, gid);
	req_comes(1, 7, gid);
	vb_ports_forget(&ports, SLOT);
	req_comes(1, 7, gid);
	assert_int_equal(givens, 2);
	assert_int_equal(given[1], SLOT);
	/* Another one is new. */
	req_comes(2, 7, gid);
	assert_int_equal(givens, 2);
	assert_int_equal(sent.count, 1);
	assert_int_equal(sent.msg.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
}

MADS_TEST(what_names_an_id_goes_to_its_slot)
{
	static const enum vb_cm_attr attrs[] = { VB_CM_REP, VB_CM_RTU, VB_CM_DREQ, VB_CM_DREP,
						 VB_CM_MRA, VB_CM_LAP, VB_CM_APR };

	for (unsigned i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		givens = 0;
		id_comes(attrs[i], SLOT);
		assert_int_equal(givens, 1);
		assert_int_equal(given[0], SLOT);
	}
	assert_int_equal(sent.count, 0);
}

MADS_TEST(who_disconnects_from_nobody_is_disconnected)
{
	id_comes(VB_CM_DREQ, 9);
	assert_int_equal(sent.count, 1);
	assert_int_equal(sent.msg.attr, VB_CM_DREP);
	assert_int_equal(sent.msg.transaction_id, 0x1234);
	assert_int_equal(sent.msg.remote_comm_id, PEER_ID);
	assert_int_equal(sent.msg.local_comm_id, 9u << SHIFT | 3);
	/* No answer to an answer. */
	id_comes(VB_CM_DREP, 9);
	id_comes(VB_CM_APR, 9);
	assert_int_equal(sent.count, 1);
	assert_int_equal(mads.dropped, 2);
}

MADS_TEST(who_gives_up_a_request_tells_all)
{
	struct vb_cm_msg msg = { .attr = VB_CM_REJ, .local_comm_id = PEER_ID };

	msg.rej.reason = VB_CM_REJ_TIMEOUT;
	comes(&msg, false);
	assert_int_equal(givens, 2);
}

MADS_TEST(what_is_no_mad_is_none)
{
	struct vb_path path = { .sport = 1 };
	uint8_t mad[VB_MAD_BYTES] = { 0 }, frame[VB_MAD_FRAME_BYTES];

	vb_mad_frame_emit(frame, &path, mad, 0);
	assert_false(vb_mads_take(&mads, &path, frame, sizeof(frame)));
	assert_false(vb_mads_take(&mads, &path, frame, 20));
}
