/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/* rdma_set_option(3). */

static struct rdma_event_channel *channel;

static int setup(void **state)
{
	channel = ct_channel();
	return 0;
}

static int teardown(void **state)
{
	ct_no_event(channel);
	rdma_destroy_event_channel(channel);
	return 0;
}

static int set(struct rdma_cm_id *id, int name, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int set_octet(struct rdma_cm_id *id, int name, uint8_t value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

/* A pair whose client has had one option set, before its address is resolved. */
static struct ibv_qp_attr client_attr(int name, uint8_t value, struct ibv_qp_attr *of_server)
{
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP);
	struct rdma_cm_id *client = ct_id(channel, RDMA_PS_TCP), *server;
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ct_works(set_octet(client, name, value));
	/* One that is refused leaves it as it was. */
	ct_fails(set_octet(client, RDMA_OPTION_ID_ACK_TIMEOUT, 32), EINVAL);
	ct_works(rdma_resolve_addr(client, NULL, ct_addr(ct_src_port(listener)), CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(rdma_resolve_route(client, CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_qp(client);
	ct_works(rdma_connect(client, NULL));
	event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	ct_works(rdma_ack_cm_event(event));
	ct_qp(server);
	ct_works(rdma_accept(server, NULL));
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	ct_works(ibv_query_qp(server->qp, of_server, IBV_QP_AV | IBV_QP_TIMEOUT, &init));
	ct_works(ibv_query_qp(client->qp, &attr, IBV_QP_AV | IBV_QP_TIMEOUT, &init));
	rdma_destroy_qp(client);
	rdma_destroy_qp(server);
	ct_works(rdma_destroy_id(client));
	ct_pass(channel, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_destroy_id(server));
	ct_works(rdma_destroy_id(listener));
	return attr;
}

/*
 * rdma_set_option: "Specify the quality of service provided by a connection. The expected optlen is
 * size of uint8_t."
 * rdma_set_option: "Sets communication options for an rdma_cm_id. This call is used to override the
 * default system settings."
 * rdma_set_option: "Returns 0 on success, or -1 on error."
 */
static void the_type_of_service_is_the_traffic_class(void **state)
{
	struct ibv_qp_attr server, client = client_attr(RDMA_OPTION_ID_TOS, 0x68, &server);

	assert_int_equal(client.ah_attr.grh.traffic_class, 0x68);
	assert_int_equal(server.ah_attr.grh.traffic_class, 0x68);
	/* Classes of an Ethernet's are for whoever has a VLAN, or queues of its own for each. */
	assert_int_equal(client.ah_attr.sl, 0);
}

/*
 * rdma_set_option: "Set QP ACK timeout. The value calculated according to the formula 4.096 *
 * 2^(ack_timeout) usec."
 */
static void the_ack_timeout_is_that_of_the_qp(void **state)
{
	struct ibv_qp_attr server, client = client_attr(RDMA_OPTION_ID_ACK_TIMEOUT, 20, &server);

	assert_int_equal(client.timeout, 20);
	assert_int_equal(server.timeout, 20);
}

/*
 * rdma_set_option: "Bound the rdma_cm_id to a reuseable address. This will allow other users to
 * bind to that same address. The expected optlen is size of int."
 */
static void reusable_addresses_are_used_again(void **state)
{
	struct rdma_cm_id *one = ct_id(channel, RDMA_PS_TCP), *other = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(one, ct_addr(7471)));
	ct_works(set(other, RDMA_OPTION_ID_REUSEADDR, 1));
	ct_fails(rdma_bind_addr(other, ct_addr(7471)), EADDRINUSE);
	/* Both have to be willing. */
	ct_works(rdma_destroy_id(one));
	one = ct_id(channel, RDMA_PS_TCP);
	ct_works(set(one, RDMA_OPTION_ID_REUSEADDR, 1));
	ct_works(rdma_bind_addr(one, ct_addr(7471)));
	ct_works(rdma_bind_addr(other, ct_addr(7471)));
	/* But who listens needs it alone. */
	ct_fails(rdma_listen(other, 1), EADDRINUSE);
	ct_works(rdma_destroy_id(one));
	ct_works(rdma_listen(other, 1));
	ct_works(rdma_destroy_id(other));
}

/* rdma_set_option: "Set IPV6_V6ONLY socket. The expected optlen is size of int." */
static void ipv6_only_leaves_ipv4_to_others(void **state)
{
	struct rdma_cm_id *ipv6 = ct_id(channel, RDMA_PS_TCP), *ipv4 = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(ipv6, ct_addr_of("::", 7471)));
	assert_int_equal(rdma_bind_addr(ipv4, ct_addr_of("0.0.0.0", 7471)), -1);
	ct_works(rdma_destroy_id(ipv6));
	ipv6 = ct_id(channel, RDMA_PS_TCP);
	ct_works(set(ipv6, RDMA_OPTION_ID_AFONLY, 1));
	ct_works(rdma_bind_addr(ipv6, ct_addr_of("::", 7471)));
	ct_works(rdma_bind_addr(ipv4, ct_addr_of("0.0.0.0", 7471)));
	ct_works(rdma_listen(ipv6, 1));
	ct_works(rdma_listen(ipv4, 1));
	ct_works(rdma_destroy_id(ipv6));
	ct_works(rdma_destroy_id(ipv4));
}

/*
 * rdma_set_option: "Set IB path record data. The expected optlen is size of struct
 * ibv_path_data[]."
 */
static void a_path_is_a_route(void **state)
{
	struct ibv_path_data paths[2] = {
		{ .flags = IBV_PATH_FLAG_ALTERNATE },
		{ .flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			   IBV_PATH_FLAG_BIDIRECTIONAL },
	};
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP);
	struct rdma_cm_id *client = ct_id(channel, RDMA_PS_TCP), *server;
	struct rdma_cm_event *event;

	ct_fails(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths,
				 sizeof(paths)), EINVAL);
	ct_works(rdma_resolve_addr(client, NULL, ct_addr(ct_src_port(listener)), CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_fails(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, 0), EINVAL);
	ct_fails(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, 3), EINVAL);
	ct_fails(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths,
				 sizeof(paths[0])), EINVAL);
	ct_works(rdma_set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths,
				 sizeof(paths)));
	ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(client->route.num_paths, 1);
	ct_qp(client);
	ct_works(rdma_connect(client, NULL));
	event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	ct_works(rdma_ack_cm_event(event));
	ct_qp(server);
	ct_works(rdma_accept(server, NULL));
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	ct_exchange(client, server);
	rdma_destroy_qp(client);
	rdma_destroy_qp(server);
	ct_works(rdma_destroy_id(client));
	ct_pass(channel, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_destroy_id(server));
	ct_works(rdma_destroy_id(listener));
}

/*
 * rdma_set_option: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_set_option: "Protocol level of the option to set."
 * rdma_set_option: "Name of the option, relative to the level, to set."
 * rdma_set_option: "The size of the %optval buffer."
 * rdma_set_option: "The data is dependent on the level and optname."
 */
static void options_that_there_are_not_are_refused(void **state)
{
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	uint8_t octets[8] = { 1 };

	ct_fails(rdma_set_option(id, 17, 0, octets, 1), ENOSYS);
	ct_fails(rdma_set_option(id, RDMA_OPTION_ID, 17, octets, 1), ENOSYS);
	ct_fails(rdma_set_option(id, RDMA_OPTION_IB, 17, octets, 1), ENOSYS);
	ct_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
	ct_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, octets, 4), EINVAL);
	ct_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, octets, 1), EINVAL);
	ct_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, octets, 8), EINVAL);
	ct_fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, octets, 4),
		 EINVAL);
	ct_fails(set_octet(id, RDMA_OPTION_ID_ACK_TIMEOUT, 32), EINVAL);
	ct_works(rdma_destroy_id(id));
	/* Where it is known already, nothing of the address is set any more. */
	id = ct_listener(channel, RDMA_PS_TCP);
	ct_fails(set(id, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
	ct_works(rdma_destroy_id(id));
}

#define options_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest options[] = {
		options_test(the_type_of_service_is_the_traffic_class),
		options_test(the_ack_timeout_is_that_of_the_qp),
		options_test(reusable_addresses_are_used_again),
		options_test(ipv6_only_leaves_ipv4_to_others),
		options_test(a_path_is_a_route),
		options_test(options_that_there_are_not_are_refused),
	};

	return ct_main(options);
}
