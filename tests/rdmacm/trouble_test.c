/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <unistd.h>

#include "netns.h"

/*
 * What goes wrong after a call has returned, and is told by an event. The last test lets the device
 * fail. All is with VERBATIM_CM_RNR_TIMER set.
 */

enum { REJECTED_BY_USER = 28, ECE_REJECTED = 35, SERVICE_REJECTED = 2, RNR_TIMER = 5 };

/*
 * rdma_get_cm_event: "Indicates that an error has occurred trying to establish or a connection. May
 * be generated on the active or passive side of a connection."
 * rdma_cm: "The operation could still complete in error; users should check the status of the
 * related event."
 * rdma_get_cm_event: "otherwise, the status value is non-zero and is either set to a negative
 * errno or a transport specific value."
 */
static void a_qp_that_cannot_be_connected_is_an_error(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_works(ibv_modify_qp(pair.client->qp, &attr, IBV_QP_STATE));
	ct_qp(pair.server);
	ct_works(rdma_accept(pair.server, NULL));
	assert_int_equal(ct_pass(pair.at_client, RDMA_CM_EVENT_CONNECT_ERROR), -EINVAL);
	/* The server hears that, too. */
	assert_int_equal(ct_pass(pair.at_server, RDMA_CM_EVENT_REJECTED), REJECTED_BY_USER);
	ct_no_event(pair.at_client);
	ct_pair_close(&pair);
}

/*
 * rdma_get_cm_event: "An error either occurred joining a multicast group, or, if the group had
 * already been joined, on an existing group. The specified multicast group is no longer accessible
 * and should be rejoined, if desired."
 */
static void a_group_too_many_is_an_error(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_UDP, 7471);
	struct ibv_device_attr device;
	struct sockaddr *group;
	char ip[32];

	ct_works(ibv_query_device(id->verbs, &device));
	ct_qp(id);
	for (int i = 0; i < device.max_mcast_grp; i++) {
		snprintf(ip, sizeof(ip), "239.1.%d.%d", i / 250, i % 250);
		ct_works(rdma_join_multicast(id, ct_addr_of(ip, 0), id));
		assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_MULTICAST_JOIN), 0);
	}
	group = ct_addr_of("239.2.0.1", 0);
	ct_works(rdma_join_multicast(id, group, id));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_MULTICAST_ERROR), -ENOMEM);
	/* It was joined by name, and is to be left. */
	ct_works(rdma_leave_multicast(id, group));
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* More than a device has; *last: one that it has not. Or none of them any more. */
static void addresses_set(bool there, char last[32])
{
	char label[16];

	for (int i = 0; i < 300; i++) {
		snprintf(label, sizeof(label), "lo:%hu", (unsigned short)(i + 2));
		/* Each in a network of its own, or the way begins at the first one of a network. */
		snprintf(last, 32, "198.%d.%d.1", 18 + i / 250, i % 250);
		assert_true(netns_address_add(label, there ? last : "0.0.0.0"));
	}
}

/*
 * rdma_get_cm_event: "Address resolution (rdma_resolve_addr) failed."
 *
 * The device has no more than 256 addresses: where the way to a place begins at another, as that to
 * the last of these does, it leads from no device.
 */
static void an_address_of_ours_that_the_device_has_not_is_an_error(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	char ip[32];

	addresses_set(true, ip);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr_of(ip, 7471), CT_RESOLVE_MS));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_ADDR_ERROR), -ENODEV);
	assert_null(id->verbs);
	ct_fails(rdma_resolve_route(id, CT_RESOLVE_MS), EINVAL);
	ct_works(rdma_destroy_id(id));
	addresses_set(false, ip);
	id = ct_id(channel, RDMA_PS_TCP);
	while (rdma_bind_addr(id, ct_addr(0)))
		assert_int_equal(errno, ENODEV);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* --- enhanced connection establishment --- */

/*
 * rdma_set_local_ece: "rdma_set_local_ece() set local ECE parameters."
 * rdma_set_local_ece: "The call needs to be performed before replying to the peer and needed to
 * configure RDMA_CM with desired ECE options."
 * rdma_set_local_ece: "rdma_set_local_ece() returns 0 on success, or -1 on error."
 * rdma_get_remote_ece: "rdma_get_remote_ece() get ECE parameters as were received from the
 * communication peer."
 * rdma_get_remote_ece: "The call needs to be performed before replying to the peer and needed to
 * allow for the passive side to know ECE options of other side."
 * rdma_get_remote_ece: "rdma_get_remote_ece() returns 0 on success, or -1 on error."
 * rdma_cm: "The RDMA CM gives an option to different libibverbs providers to advertise and use
 * various specific to that provider QP configuration options. This functionality is called ECE
 * (enhanced connection establishment)."
 * rdma_cm: "set desired ECE options"
 * rdma_cm: "get ECe options sent by the client"
 */
static void each_side_learns_what_the_other_offers(void **state)
{
	struct ibv_ece of_client = { .vendor_id = 0x2c9, .options = 0x12345678 };
	struct ibv_ece of_server = { .vendor_id = 0xffffff, .options = 0x9abcdef0 }, heard;
	struct ct_pair pair;

	pair.at_server = ct_channel();
	pair.at_client = ct_channel();
	pair.listener = ct_listener(pair.at_server, RDMA_PS_TCP);
	pair.client = ct_client(pair.at_client, RDMA_PS_TCP, ct_src_port(pair.listener));
	ct_qp(pair.client);
	ct_works(rdma_set_local_ece(pair.client, &of_client));
	ct_works(rdma_connect(pair.client, NULL));
	pair.server = NULL;
	{
		struct rdma_cm_event *event = ct_event(pair.at_server,
						       RDMA_CM_EVENT_CONNECT_REQUEST);

		pair.server = event->id;
		ct_works(rdma_ack_cm_event(event));
	}
	ct_works(rdma_get_remote_ece(pair.server, &heard));
	assert_int_equal(heard.vendor_id, of_client.vendor_id);
	assert_int_equal(heard.options, of_client.options);
	ct_works(rdma_set_local_ece(pair.server, &of_server));
	ct_pair_accept(&pair, NULL);
	ct_works(rdma_get_remote_ece(pair.client, &heard));
	assert_int_equal(heard.vendor_id, of_server.vendor_id);
	assert_int_equal(heard.options, of_server.options);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* "rdma_accept()/rdma_establish()/rdma_reject_ece()": and who offers nothing has offered zeros. */
static void an_offer_may_be_rejected(void **state)
{
	struct ibv_ece heard = { .vendor_id = 1, .options = 1 };
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_works(rdma_get_remote_ece(pair.server, &heard));
	assert_int_equal(heard.vendor_id, 0);
	assert_int_equal(heard.options, 0);
	ct_works(rdma_reject_ece(pair.server, "no", 3));
	assert_int_equal(ct_pass(pair.at_client, RDMA_CM_EVENT_REJECTED), ECE_REJECTED);
	ct_pair_close(&pair);
}

/* --- a setting --- */

static void the_rnr_timer_is_that_of_the_setting(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct ct_pair pair;
	int mask;

	ct_pair_open(&pair);
	ct_works(ibv_query_qp(pair.client->qp, &attr, IBV_QP_MIN_RNR_TIMER, &init));
	assert_int_equal(attr.min_rnr_timer, RNR_TIMER);
	ct_works(ibv_query_qp(pair.server->qp, &attr, IBV_QP_MIN_RNR_TIMER, &init));
	assert_int_equal(attr.min_rnr_timer, RNR_TIMER);
	/* So is it for who brings a QP. */
	attr.qp_state = IBV_QPS_RTR;
	ct_works(rdma_init_qp_attr(pair.server, &attr, &mask));
	assert_true(mask & IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(attr.min_rnr_timer, RNR_TIMER);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* --- the device fails --- */

/*
 * rdma_get_cm_event: "The local RDMA device associated with the rdma_cm_id has been removed. Upon
 * receiving this event, the user must destroy the related rdma_cm_id."
 */
static void all_at_a_device_hear_that_it_fails(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *nowhere = ct_id(channel, RDMA_PS_TCP);
	struct ct_pair pair;
	char fail[32];

	ct_pair_open(&pair);
	snprintf(fail, sizeof(fail), "fail %d", (int)getpid());
	ct_verbatim(fail, NULL, 0);
	ct_pass(pair.at_client, RDMA_CM_EVENT_DEVICE_REMOVAL);
	ct_pass(pair.at_server, RDMA_CM_EVENT_DEVICE_REMOVAL);
	/* Who is at no device, as who listens at a loopback address, does not. */
	ct_no_event(channel);
	ct_no_event(pair.at_server);
	ct_works(rdma_destroy_id(nowhere));
	rdma_destroy_event_channel(channel);
	ct_pair_close(&pair);
}

/* Where no room is left, a datagram service refuses at once; so Linux has it. */
static void a_service_without_room_refuses(void **state)
{
	struct rdma_event_channel *at_server = ct_channel(), *at_client = ct_channel();
	struct rdma_cm_id *listener = ct_id(at_server, RDMA_PS_UDP), *clients[2];

	ct_works(rdma_bind_addr(listener, ct_addr(0)));
	ct_works(rdma_listen(listener, 1));
	for (int i = 0; i < 2; i++) {
		clients[i] = ct_client(at_client, RDMA_PS_UDP, ct_src_port(listener));
		ct_works(rdma_connect(clients[i], NULL));
		assert_true(ct_readable(at_server->fd, CT_WAIT_MS));
	}
	assert_int_equal(ct_pass(at_client, RDMA_CM_EVENT_UNREACHABLE), SERVICE_REJECTED);
	ct_no_event(at_client);
	ct_works(rdma_destroy_id(listener));
	assert_int_equal(ct_pass(at_client, RDMA_CM_EVENT_UNREACHABLE), SERVICE_REJECTED);
	ct_works(rdma_destroy_id(clients[0]));
	ct_works(rdma_destroy_id(clients[1]));
	rdma_destroy_event_channel(at_server);
	rdma_destroy_event_channel(at_client);
}

int main(void)
{
	const struct CMUnitTest trouble[] = {
		cmocka_unit_test(a_service_without_room_refuses),
		cmocka_unit_test(a_qp_that_cannot_be_connected_is_an_error),
		cmocka_unit_test(a_group_too_many_is_an_error),
		cmocka_unit_test(an_address_of_ours_that_the_device_has_not_is_an_error),
		cmocka_unit_test(each_side_learns_what_the_other_offers),
		cmocka_unit_test(an_offer_may_be_rejected),
		cmocka_unit_test(the_rnr_timer_is_that_of_the_setting),
		cmocka_unit_test(all_at_a_device_hear_that_it_fails),
	};
	char timer[4];

	snprintf(timer, sizeof(timer), "%d", RNR_TIMER);
	setenv("VERBATIM_CM_RNR_TIMER", timer, 1);
	return ct_main(trouble);
}
