/* SPDX-License-Identifier: BSD-2-Clause */
#include "../hub/hub_lib.h"
#include "hub/client_ports.h"
#include "group.h"
#include "wire/cm_ip.h"
#include "wire/mad_frame.h"

/* Ports and MADs between two clients of a real hub. */

enum { PORT_A = 7000, PORT_B = 7001 };

static const uint8_t gid[VB_GID_BYTES] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

static struct {
	unsigned count;
	struct vb_hub_mad mad;
} came;

static void on_mad(void *arg, const struct vb_hub_mad *mad)
{
	came.count++;
	came.mad = *mad;
}

struct party {
	struct vb_hub_client *client;
	struct vb_hub_slot slot;
};

static struct party party_open(void)
{
	struct party party = {.client = client_open()};

	vb_hub_client_on_mad(party.client, on_mad);
	party.slot = slot_lease(party.client);
	return party;
}

static void party_close(struct party *party)
{
	close(party->slot.fd);
	vb_hub_client_close(party->client);
}

static struct vb_hub_bind binding(const struct party *party, uint16_t port, uint32_t flags)
{
	struct vb_hub_bind bind = {.slot = party->slot.slot, .id = port, .space = VB_CM_PS_TCP,
				   .port = port, .flags = flags};

	memcpy(bind.gid, gid, sizeof(gid));
	return bind;
}

static void req_send(struct party *from, uint16_t port)
{
	struct vb_cm_msg msg = {.attr = VB_CM_REQ, .local_comm_id = from->slot.slot << 22 | 1};
	struct vb_hub_mad mad = {.slot = from->slot.slot, .sport = PORT};
	struct vb_path path = {.sport = PORT};
	uint8_t octets[VB_MAD_BYTES];

	msg.req.service_id = vb_cm_service_id(VB_CM_PS_TCP, port);
	vb_cm_emit(&msg, octets);
	memcpy(path.src, gid, sizeof(gid));
	memcpy(path.dst, gid, sizeof(gid));
	memcpy(mad.src, gid, sizeof(gid));
	memcpy(mad.dst, gid, sizeof(gid));
	vb_mad_frame_emit(mad.frame, &path, octets, 0);
	vb_hub_client_mad(from->client, &mad);
}

static void wait_for_mad(struct party *party, struct vb_cm_msg *msg)
{
	for (unsigned i = 0; i < 2000 && !came.count; i++)
		turn_for(party->client, 5);
	assert_int_equal(came.count, 1);
	assert_true(vb_cm_parse(msg, vb_mad_frame_parse(came.mad.frame, VB_HUB_MAD_BYTES)));
	came.count = 0;
}

HUB_TEST(a_port_is_one_process_s)
{
	struct vb_hub_bind a, b;
	struct party one, two;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, 0);
	b = binding(&two, PORT_A, 0);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	assert_int_equal(vb_hub_client_bind(two.client, &b), EADDRINUSE);
	vb_hub_client_unbind(one.client, &a);
	assert_int_equal(vb_hub_client_bind(two.client, &b), 0);
	a.port = 0;
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	assert_in_range(a.port, 32768, 60999);
	/* Nobody binds for another. */
	b.slot = one.slot.slot;
	assert_int_equal(vb_hub_client_bind(two.client, &b), EINVAL);
	party_close(&one);
	party_close(&two);
}

HUB_TEST(a_dead_process_frees_its_ports)
{
	struct party one, two;
	struct vb_hub_bind a, b;
	int rc = EADDRINUSE;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, VB_HUB_BIND_LISTENS);
	b = binding(&two, PORT_A, VB_HUB_BIND_LISTENS);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	party_close(&one);
	for (unsigned i = 0; i < 2000 && rc == EADDRINUSE; i++) {
		rc = vb_hub_client_bind(two.client, &b);
		turn_for(two.client, 5);
	}
	assert_int_equal(rc, 0);
	party_close(&two);
}

HUB_TEST(a_request_reaches_who_listens)
{
	struct party one, two;
	struct vb_hub_bind a;
	struct vb_cm_msg msg;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, VB_HUB_BIND_LISTENS);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	req_send(&two, PORT_A);
	wait_for_mad(&one, &msg);
	assert_int_equal(msg.attr, VB_CM_REQ);
	assert_int_equal(came.mad.slot, one.slot.slot);
	assert_memory_equal(came.mad.src, gid, sizeof(gid));
	/* The same request once more goes to the same process, whatever has become of the port. */
	vb_hub_client_unbind(one.client, &a);
	req_send(&two, PORT_A);
	wait_for_mad(&one, &msg);
	party_close(&one);
	party_close(&two);
}

/* More than there is room for under way to it. */
HUB_TEST(who_reads_late_gets_all_requests)
{
	enum { REQUESTS = 300 };
	struct party one, two;
	struct vb_hub_bind a;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, VB_HUB_BIND_LISTENS);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	for (unsigned i = 0; i < REQUESTS; i++) {
		req_send(&two, PORT_A);
		turn_for(two.client, 1);
	}
	for (unsigned i = 0; i < 4000 && came.count < REQUESTS; i++)
		turn_for(one.client, 5);
	assert_int_equal(came.count, REQUESTS);
	came.count = 0;
	party_close(&one);
	party_close(&two);
}

HUB_TEST(who_asks_for_nobody_is_rejected)
{
	struct party one;
	struct vb_cm_msg msg;

	one = party_open();
	req_send(&one, PORT_B);
	wait_for_mad(&one, &msg);
	assert_int_equal(msg.attr, VB_CM_REJ);
	assert_int_equal(msg.rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
	party_close(&one);
}

HUB_TEST(the_next_hub_knows_the_ports)
{
	struct vb_hub_bind a, b;
	struct party one, two;
	struct vb_cm_msg msg;
	pid_t old;

	one = party_open();
	two = party_open();
	for (uint16_t i = 0; i < 500; i++) {
		a = binding(&one, PORT_A + i, VB_HUB_BIND_LISTENS);
		assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	}
	old = hub_pid();
	kill(old, SIGKILL);
	for (unsigned i = 0; i < 2000 && (hub_pid() == old || !hub_pid()); i++) {
		turn_for(one.client, 2);
		turn_for(two.client, 2);
	}
	turn_for(one.client, 100);
	b = binding(&two, PORT_A + 499, 0);
	assert_int_equal(vb_hub_client_bind(two.client, &b), EADDRINUSE);
	req_send(&two, PORT_A + 250);
	wait_for_mad(&one, &msg);
	assert_int_equal(msg.attr, VB_CM_REQ);
	party_close(&one);
	party_close(&two);
}
