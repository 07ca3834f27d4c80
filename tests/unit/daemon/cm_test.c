/* SPDX-License-Identifier: BSD-2-Clause */
#include "../hub/hub_lib.h"
#include "hub/channel.h"
#include "cm/records.h"
#include "hub/client_ports.h"
#include "group.h"
#include "link/robust.h"
#include "wire/cm_ip.h"
#include "wire/mad_frame.h"

#include <poll.h>

/* Ports and MADs between two clients of a real hub. */

enum { PORT_A = 7000, PORT_B = 7001 };

static const uint8_t gid[VB_GID_BYTES] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

static struct {
	unsigned count, overtaken;
	struct vb_hub_mad mad;
} came;

static void on_mad(void *arg, const struct vb_hub_mad *mad)
{
	came.overtaken += came.count && mad->flow_label < came.mad.flow_label;
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

	vb_hub_client_receivers(party.client, &(struct vb_hub_receivers){.mad = on_mad});
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

/* number: a flow label, which IPv4 has not, and by which it is known again. */
static void req_send_numbered(struct party *from, uint16_t port, uint32_t number)
{
	struct vb_cm_msg msg = {.attr = VB_CM_REQ,
				.local_comm_id = from->slot.slot << 22 | (number + 1)};
	struct vb_hub_mad mad = {.slot = from->slot.slot, .sport = PORT, .flow_label = number};
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

static void req_send(struct party *from, uint16_t port)
{
	req_send_numbered(from, port, 0);
}

static void wait_for_mads(struct party *from, struct party *to, unsigned count)
{
	for (unsigned i = 0; i < 4000 && came.count < count; i++) {
		turn_for(from->client, 1);
		turn_for(to->client, 5);
	}
	assert_int_equal(came.count, count);
	assert_int_equal(came.overtaken, 0);
	came.count = 0;
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

/* More at once than there is room for under way to a hub that does not read. */
HUB_TEST(what_is_given_up_is_free_in_the_end)
{
	enum { PORTS = 2000 };
	struct party one, two;
	struct vb_hub_bind a, b;
	pid_t hub;

	one = party_open();
	two = party_open();
	for (uint16_t i = 0; i < PORTS; i++) {
		a = binding(&one, PORT_A + i, 0);
		assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	}
	hub = hub_pid();
	kill(hub, SIGSTOP);
	for (uint16_t i = 0; i < PORTS; i++) {
		a = binding(&one, PORT_A + i, 0);
		vb_hub_client_unbind(one.client, &a);
	}
	kill(hub, SIGCONT);
	/* Who has given one up may have it again at once. */
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	vb_hub_client_unbind(one.client, &a);
	for (uint16_t i = 0; i < PORTS; i++) {
		int rc = EADDRINUSE;

		b = binding(&two, PORT_A + i, 0);
		for (unsigned k = 0; k < 2000 && rc == EADDRINUSE; k++) {
			rc = vb_hub_client_bind(two.client, &b);
			if (rc)
				turn_for(one.client, 5);
		}
		assert_int_equal(rc, 0);
	}
	party_close(&one);
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
		req_send_numbered(&two, PORT_A, i);
		turn_for(two.client, 1);
	}
	for (unsigned i = 0; i < 4000 && came.count < REQUESTS; i++)
		turn_for(one.client, 5);
	assert_int_equal(came.count, REQUESTS);
	came.count = 0;
	party_close(&one);
	party_close(&two);
}

/* More than there is room for under way to the hub, and in it to one who does not read. */
HUB_TEST(what_has_to_wait_is_not_lost)
{
	enum { REQUESTS = 6000 };
	struct party one, two;
	struct vb_hub_bind a;
	pid_t hub;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, VB_HUB_BIND_LISTENS);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	hub = hub_pid();
	kill(hub, SIGSTOP);
	for (uint32_t i = 0; i < REQUESTS; i++)
		req_send_numbered(&two, PORT_A, i);
	kill(hub, SIGCONT);
	turn_for(two.client, 500);
	wait_for_mads(&two, &one, REQUESTS);
	party_close(&one);
	party_close(&two);
}

/* Of one that dies with many connections each peer hears, though nobody would ask again. */
HUB_TEST(all_farewells_arrive)
{
	enum { IDS = 3000 };
	struct vb_cm_records *records;
	struct party one, two;
	struct vb_cm_msg msg;
	int fd;

	one = party_open();
	two = party_open();
	assert_int_equal(vb_robust_memory_make("records", sizeof(*records), &fd), 0);
	records = vb_robust_memory_map(fd, sizeof(*records));
	assert_non_null(records);
	atomic_store(&records->top, IDS);
	for (uint32_t i = 0; i < IDS; i++) {
		struct vb_cm_record *record = &records->record[i];

		record->remote_id = two.slot.slot << 22 | i;
		record->hop_limit = 64;
		record->local = 1;
		memcpy(record->src, gid, sizeof(gid));
		memcpy(record->dst, gid, sizeof(gid));
		atomic_store(&record->state, VB_CM_STATE_ESTABLISHED);
	}
	vb_hub_client_records(one.client, fd);
	turn_for(one.client, 50);
	party_close(&one);
	wait_for_mads(&two, &two, IDS);
	assert_true(vb_cm_parse(&msg, vb_mad_frame_parse(came.mad.frame, VB_HUB_MAD_BYTES)));
	assert_int_equal(msg.attr, VB_CM_DREQ);
	party_close(&two);
	vb_robust_memory_unmap(records, sizeof(*records));
	close(fd);
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

/* Until all have told what they had, nobody is told that something is free. */
HUB_TEST(the_next_hub_waits_for_who_has_not_told_yet)
{
	struct vb_hub_bind a, b;
	struct party one, two;
	struct vb_cm_msg msg;
	pid_t old;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, VB_HUB_BIND_LISTENS);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	old = hub_pid();
	kill(old, SIGKILL);
	for (unsigned i = 0; i < 2000 && (hub_pid() == old || !hub_pid()); i++)
		turn_for(two.client, 2);
	for (unsigned i = 0; i < 10; i++) {
		req_send(&two, PORT_A);
		turn_for(two.client, 2);
	}
	assert_int_equal(came.count, 0);
	turn_for(one.client, 100);
	b = binding(&two, PORT_A, 0);
	assert_int_equal(vb_hub_client_bind(two.client, &b), EADDRINUSE);
	assert_int_equal(came.count, 0);
	req_send(&two, PORT_A);
	wait_for_mad(&one, &msg);
	assert_int_equal(msg.attr, VB_CM_REQ);
	req_send(&one, PORT_B);
	wait_for_mad(&one, &msg);
	assert_int_equal(msg.attr, VB_CM_REJ);
	party_close(&one);
	party_close(&two);
}

/* --- who speaks for another --- */

/* The next that the hub says; false: it has closed the connection. */
static bool answer(int fd, struct vb_hub_msg *msg)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int fds[VB_HUB_FDS_MAX];
	unsigned n;
	int rc;

	assert_true(poll(&poll_fd, 1, 20000) == 1);
	rc = vb_hub_recv(fd, msg, fds, &n);
	while (!rc && n)
		close(fds[--n]);
	return !rc;
}

/* Says it on a connection of its own, as a client. */
static bool is_thrown_out_for(struct vb_hub_msg *msg)
{
	struct vb_hub_msg hello = vb_hub_msg_make(VB_HUB_HELLO);
	bool open;
	int fd;

	assert_int_equal(vb_hub_connect(&fd), 0);
	assert_int_equal(vb_hub_send(fd, &hello, NULL, 0), 0);
	assert_true(answer(fd, &hello));
	assert_int_equal(hello.type, VB_HUB_WELCOME);
	assert_int_equal(vb_hub_send(fd, msg, NULL, 0), 0);
	open = answer(fd, msg);
	close(fd);
	return !open || (msg->type == VB_HUB_BOUND && msg->cm.bound.error == EPERM);
}

HUB_TEST(nobody_speaks_for_another)
{
	struct vb_hub_msg msg = vb_hub_msg_make(VB_HUB_UNBIND);
	struct party one, two;
	struct vb_hub_bind a;

	one = party_open();
	two = party_open();
	a = binding(&one, PORT_A, VB_HUB_BIND_LISTENS);
	assert_int_equal(vb_hub_client_bind(one.client, &a), 0);
	msg.cm.unbind = (struct vb_hub_unbind){a.slot, a.id, a.space, a.port};
	assert_true(is_thrown_out_for(&msg));
	msg = vb_hub_msg_make(VB_HUB_BIND);
	msg.cm.bind = binding(&one, PORT_B, VB_HUB_BIND_LISTENS);
	assert_true(is_thrown_out_for(&msg));
	msg = vb_hub_msg_make(VB_HUB_MAD);
	msg.cm.mad.slot = one.slot.slot;
	assert_true(is_thrown_out_for(&msg));
	/* The port is still the first one's, and the other is nobody's. */
	a = binding(&two, PORT_A, 0);
	assert_int_equal(vb_hub_client_bind(two.client, &a), EADDRINUSE);
	a = binding(&two, PORT_B, 0);
	assert_int_equal(vb_hub_client_bind(two.client, &a), 0);
	party_close(&one);
	party_close(&two);
}
