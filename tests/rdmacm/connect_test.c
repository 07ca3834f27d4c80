/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/* Connections: asked for, accepted, rejected, parted. */

enum { ACK_TIMEOUT = 17, REJECTED_BY_USER = 28, NO_LISTENER = 8, SIDR_REJECTED = 2 };

static struct ibv_qp_attr attr_of(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ct_works(ibv_query_qp(id->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_QP_RD_ATOMIC |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
				      IBV_QP_DEST_QPN | IBV_QP_AV,
			      &init));
	return attr;
}

/* --- listening --- */

/* What came of a request to there: the event, acknowledged, and its status. */
static enum rdma_cm_event_type answer(const char *ip, uint16_t port, enum rdma_port_space ps,
				      int *status)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, ps);
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	ct_works(rdma_resolve_addr(id, NULL, ct_addr_of(ip, port), CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_works(rdma_connect(id, NULL));
	assert_true(ct_readable(channel->fd, CT_WAIT_MS));
	ct_works(rdma_get_cm_event(channel, &event));
	type = event->event;
	*status = event->status;
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	return type;
}

/* Asks there, which must come to the channel; is it for that listener? */
static bool reaches(struct rdma_event_channel *at_server, struct rdma_cm_id *listener,
		    const char *ip)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP), *server;
	struct rdma_cm_event *event;
	bool is_it;

	ct_works(rdma_resolve_addr(id, NULL, ct_addr_of(ip, ct_src_port(listener)),
				   CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_works(rdma_resolve_route(id, CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ct_works(rdma_connect(id, NULL));
	event = ct_event(at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	is_it = event->listen_id == listener;
	server = event->id;
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_destroy_id(server));
	assert_int_equal(ct_pass(channel, RDMA_CM_EVENT_REJECTED), REJECTED_BY_USER);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	return is_it;
}

/*
 * rdma_listen: "Initiates a listen for incoming connection requests or datagram service lookup."
 * rdma_listen: "The listen will be restricted to the locally bound source address."
 * rdma_listen: "If the rdma_cm_id is bound to a specific IP address, the listen will be restricted
 * to that address and the associated RDMA device."
 * rdma_listen: "Returns 0 on success, or -1 on error."
 */
static void who_listens_at_an_address_hears_no_other(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *listener = ct_id(channel, RDMA_PS_TCP);
	int status;

	ct_works(rdma_bind_addr(listener, ct_addr_of(CT_OTHER_IP, 0)));
	ct_works(rdma_listen(listener, 4));
	assert_true(reaches(channel, listener, CT_OTHER_IP));
	assert_int_equal(answer("127.0.0.1", ct_src_port(listener), RDMA_PS_TCP, &status),
			 RDMA_CM_EVENT_REJECTED);
	assert_int_equal(status, NO_LISTENER);
	ct_no_event(channel);
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_listen: "If the rdma_cm_id is bound to an RDMA port number only, the listen will occur
 * across all RDMA devices."
 */
static void who_listens_everywhere_hears_all(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *listener = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(listener, ct_addr_of("::", 0)));
	ct_works(rdma_listen(listener, 4));
	assert_true(reaches(channel, listener, CT_OTHER_IP));
	assert_true(reaches(channel, listener, "127.0.0.1"));
	assert_true(reaches(channel, listener, "::1"));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_listen: "Users must have bound the rdma_cm_id to a local address by calling rdma_bind_addr
 * before calling this routine."
 */
static void who_was_not_bound_gets_a_port(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *listener = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_listen(listener, 4));
	assert_int_not_equal(rdma_get_src_port(listener), 0);
	assert_true(reaches(channel, listener, "127.0.0.1"));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

/* rdma_listen: "If an error occurs, errno will be set to indicate the failure reason." */
static void who_connects_does_not_listen(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_TCP, 7471);
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP);

	ct_fails(rdma_listen(id, 4), EINVAL);
	ct_fails(rdma_listen(listener, 4), EINVAL);
	ct_works(rdma_destroy_id(id));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

/* rdma_listen: "backlog of incoming connection requests." */
static void who_finds_the_backlog_full_waits(void **state)
{
	struct rdma_event_channel *at_server = ct_channel(), *at_client = ct_channel();
	struct rdma_cm_id *listener = ct_id(at_server, RDMA_PS_TCP), *clients[2], *servers[2];
	struct rdma_cm_event *event;

	ct_works(rdma_bind_addr(listener, ct_addr(0)));
	ct_works(rdma_listen(listener, 1));
	for (int i = 0; i < 2; i++) {
		clients[i] = ct_client(at_client, RDMA_PS_TCP, ct_src_port(listener));
		ct_works(rdma_connect(clients[i], NULL));
		assert_true(ct_readable(at_server->fd, CT_WAIT_MS));
	}
	/* Neither is turned away. */
	ct_no_event(at_client);
	for (int i = 0; i < 2; i++) {
		event = ct_event(at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
		servers[i] = event->id;
		ct_works(rdma_ack_cm_event(event));
	}
	for (int i = 0; i < 2; i++) {
		ct_works(rdma_destroy_id(servers[i]));
		assert_int_equal(ct_pass(at_client, RDMA_CM_EVENT_REJECTED), REJECTED_BY_USER);
	}
	ct_works(rdma_destroy_id(clients[0]));
	ct_works(rdma_destroy_id(clients[1]));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(at_server);
	rdma_destroy_event_channel(at_client);
}

/* --- connecting and accepting --- */

/*
 * rdma_connect: "For an rdma_cm_id of type RDMA_PS_TCP, this call initiates a connection request to
 * a remote destination."
 * rdma_connect: "Returns 0 on success, or -1 on error."
 * rdma_accept: "Called from the listening side to accept a connection or datagram service lookup
 * request."
 * rdma_accept: "Returns 0 on success, or -1 on error."
 * rdma_accept: "Connection request events give the user a newly created rdma_cm_id, similar to a
 * new socket, but the rdma_cm_id is bound to a specific RDMA device."
 * rdma_accept: "Instead, after calling rdma_listen, the user waits for an
 * RDMA_CM_EVENT_CONNECT_REQUEST event to occur."
 * rdma_connect: "The following properties are used to configure the communication and specified by
 * the conn_param parameter when connecting or establishing datagram communication."
 * rdma_accept: "The following properties are used to configure the communication and specified by
 * the conn_param parameter when accepting a connection or datagram communication request."
 * rdma_cm: "Used to establish communication over RDMA transports."
 * rdma_cm: "The RDMA CM is a communication manager used to setup reliable, connected and
 * unreliable datagram data transfers."
 * rdma_cm: "create channel to receive events; allocate an rdma_cm_id, this is conceptually similar
 * to a socket; obtain a local RDMA device to reach the remote address; wait for
 * RDMA_CM_EVENT_ADDR_RESOLVED event; ack event; allocate a QP for the communication; determine the
 * route to the remote address; wait for RDMA_CM_EVENT_ROUTE_RESOLVED event; connect to the remote
 * server; wait for RDMA_CM_EVENT_ESTABLISHED event; Perform data transfers over connection; tear-
 * down connection; wait for RDMA_CM_EVENT_DISCONNECTED event; destroy the QP; release the
 * rdma_cm_id; release the event channel"
 * rdma_cm: "set the local port number to listen on; begin listening for connection requests; wait
 * for RDMA_CM_EVENT_CONNECT_REQUEST event with a new rdma_cm_id; allocate a QP for the
 * communication on the new rdma_cm_id; accept the connection request; release the connected
 * rdma_cm_id; release the listening rdma_cm_id"
 */
static void two_meet_and_talk(void **state)
{
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	assert_ptr_not_equal(pair.server, pair.listener);
	assert_ptr_equal(pair.server->context, pair.listener->context);
	assert_non_null(pair.server->verbs);
	assert_non_null(pair.server->pd);
	assert_int_equal(rdma_get_src_port(pair.server), rdma_get_src_port(pair.listener));
	assert_int_equal(rdma_get_dst_port(pair.server), rdma_get_src_port(pair.client));
	ct_pair_accept(&pair, NULL);
	assert_int_equal(ct_qp_state(pair.client), IBV_QPS_RTS);
	assert_int_equal(ct_qp_state(pair.server), IBV_QPS_RTS);
	assert_int_equal(attr_of(pair.client).dest_qp_num, pair.server->qp->qp_num);
	assert_int_equal(attr_of(pair.server).dest_qp_num, pair.client->qp->qp_num);
	ct_exchange(pair.client, pair.server);
	ct_exchange(pair.server, pair.client);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_connect: "Users must have resolved a route to the destination address by having called
 * rdma_resolve_route or rdma_create_ep before calling this routine."
 * rdma_connect: "If an error occurs, errno will be set to indicate the failure reason."
 */
static void without_a_route_nobody_is_asked(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_fails(rdma_connect(id, NULL), EINVAL);
	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	ct_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ct_fails(rdma_connect(id, NULL), EINVAL);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_accept: "rdma_accept is not called on a listening rdma_cm_id"
 * rdma_accept: "rdma_accept is called on the new rdma_cm_id."
 * rdma_accept: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_accept: "Unlike the socket accept routine"
 */
static void only_a_request_is_accepted_and_once(void **state)
{
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_fails(rdma_accept(pair.listener, NULL), EINVAL);
	ct_fails(rdma_accept(pair.client, NULL), EINVAL);
	ct_pair_accept(&pair, NULL);
	ct_fails(rdma_accept(pair.server, NULL), EINVAL);
	ct_fails(rdma_connect(pair.client, NULL), EINVAL);
	ct_exchange(pair.client, pair.server);
	ct_exchange(pair.server, pair.client);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_connect: "The maximum number of outstanding RDMA read and atomic operations that the local
 * side will accept from the remote side."
 * rdma_connect: "The maximum number of outstanding RDMA read and atomic operations that the local
 * side will have to the remote side."
 * rdma_connect: "The remote endpoint can adjust this value when accepting the connection."
 * rdma_connect: "This value is exchanged with the remote peer and is not used to configure the QP."
 * rdma_connect: "The maximum number of times that a data transfer operation should be retried on
 * the connection when an error occurs."
 * rdma_connect: "The maximum number of times that a send operation from the remote peer should be
 * retried on a connection after receiving a receiver not ready (RNR) error."
 * rdma_get_cm_event: "This field matches the initiator depth specified by the remote node when
 * calling rdma_connect and rdma_accept."
 * rdma_get_cm_event: "This field matches the responder resources specified by the remote node when
 * calling rdma_connect and rdma_accept."
 * rdma_get_cm_event: "Indicates if hardware level flow control is provided by the sender."
 * rdma_get_cm_event: "For RDMA_CM_EVENT_CONNECT_REQUEST events only, indicates the number of times
 * that the recipient should retry send operations."
 * rdma_get_cm_event: "The number of times that the recipient should retry receiver not ready (RNR)
 * NACK errors."
 * rdma_get_cm_event: "Indicates the remote QP number for the connection."
 * rdma_accept: "The maximum number of outstanding RDMA read and atomic operations that the local
 * side will accept from the remote side."
 * rdma_accept: "The maximum number of outstanding RDMA read and atomic operations that the local
 * side will have to the remote side."
 * rdma_accept: "This value is ignored."
 * rdma_accept: "This value is exchanged with the remote peer and is not used to configure the QP."
 * rdma_accept: "Applies only to RDMA_PS_TCP."
 * rdma_connect: "Applies only to RDMA_PS_TCP."
 * rdma_accept: "Specifies if hardware flow control is available."
 * rdma_connect: "Specifies if hardware flow control is available."
 * rdma_accept: "The maximum number of times that a send operation from the remote peer should be
 * retried on a connection after receiving a receiver not ready (RNR) error."
 * rdma_connect: "This setting controls the number of times to retry send, RDMA, and atomic
 * operations when timeouts occur."
 * rdma_get_cm_event: "The number of responder resources requested of the recipient."
 * rdma_get_cm_event: "The maximum number of outstanding RDMA read/atomic operations that the
 * recipient may have outstanding."
 * rdma_get_cm_event: "Event parameters related to connected QP services: RDMA_PS_TCP."
 * rdma_get_cm_event: "The connection related event data is valid for RDMA_CM_EVENT_CONNECT_REQUEST
 * and RDMA_CM_EVENT_ESTABLISHED events, unless stated otherwise."
 */
static void what_one_side_has_the_other_may_use(void **state)
{
	struct rdma_conn_param asks = { .responder_resources = 5, .initiator_depth = 3,
					.flow_control = 1, .retry_count = 6, .rnr_retry_count = 5 };
	struct rdma_conn_param says = { .responder_resources = 2, .initiator_depth = 4,
					.retry_count = 1, .rnr_retry_count = 3 };
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	struct ct_pair pair;

	event = ct_pair_ask(&pair, RDMA_PS_TCP, &asks);
	assert_int_equal(event->status, 0);
	assert_int_equal(event->param.conn.responder_resources, 3);
	assert_int_equal(event->param.conn.initiator_depth, 5);
	assert_int_equal(event->param.conn.flow_control, 1);
	assert_int_equal(event->param.conn.retry_count, 6);
	assert_int_equal(event->param.conn.rnr_retry_count, 5);
	assert_int_equal(event->param.conn.srq, 0);
	assert_int_equal(event->param.conn.qp_num, pair.client->qp->qp_num);
	ct_works(rdma_ack_cm_event(event));
	ct_qp(pair.server);
	ct_works(rdma_accept(pair.server, &says));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.conn.responder_resources, 4);
	assert_int_equal(event->param.conn.initiator_depth, 2);
	assert_int_equal(event->param.conn.flow_control, 0);
	assert_int_equal(event->param.conn.rnr_retry_count, 3);
	assert_int_equal(event->param.conn.qp_num, pair.server->qp->qp_num);
	ct_works(rdma_ack_cm_event(event));
	ct_pass(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
	attr = attr_of(pair.client);
	assert_int_equal(attr.max_rd_atomic, 2);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.rnr_retry, 3);
	attr = attr_of(pair.server);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.max_dest_rd_atomic, 2);
	assert_int_equal(attr.retry_cnt, 6);
	assert_int_equal(attr.rnr_retry, 5);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_accept: "If the conn_param parameter is NULL, the values reported in the connection request
 * event are used, adjusted down based on local hardware restrictions."
 * rdma_accept: "Users should use the rdma_conn_param values reported in the connection request
 * event to determine appropriate values for these fields when accepting."
 */
static void who_says_nothing_takes_what_is_asked(void **state)
{
	struct rdma_conn_param asks = { .responder_resources = 7, .initiator_depth = 1,
					.retry_count = 2, .rnr_retry_count = 1 };
	struct ibv_qp_attr attr;
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, &asks)));
	ct_pair_accept(&pair, NULL);
	attr = attr_of(pair.server);
	assert_int_equal(attr.max_rd_atomic, 7);
	assert_int_equal(attr.max_dest_rd_atomic, 1);
	assert_int_equal(attr.retry_cnt, 2);
	assert_int_equal(attr.rnr_retry, 1);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* Who asks without a word asks for all that the device has. */
static void without_parameters_it_is_as_much_as_there_is(void **state)
{
	struct ibv_device_attr device;
	struct rdma_cm_event *event;
	struct ct_pair pair;

	event = ct_pair_ask(&pair, RDMA_PS_TCP, NULL);
	ct_works(ibv_query_device(pair.client->verbs, &device));
	assert_int_equal(event->param.conn.responder_resources, device.max_qp_init_rd_atom);
	assert_int_equal(event->param.conn.initiator_depth, device.max_qp_rd_atom);
	assert_int_equal(event->param.conn.retry_count, 7);
	assert_int_equal(event->param.conn.rnr_retry_count, 7);
	ct_works(rdma_ack_cm_event(event));
	ct_pair_close(&pair);
}

/*
 * rdma_connect: "This value must be less than or equal to the local RDMA device attribute
 * max_qp_rd_atom"
 * rdma_connect: "This value must be less than or equal to the local RDMA device attribute
 * max_qp_init_rd_atom"
 * rdma_accept: "This value must be less than or equal to the local RDMA device attribute
 * max_qp_rd_atom"
 * rdma_accept: "This value must be less than or equal to the local RDMA device attribute
 * max_qp_init_rd_atom"
 */
static void more_than_the_device_has_is_refused(void **state)
{
	struct rdma_conn_param resources = { .responder_resources = 200 };
	struct rdma_conn_param depth = { .initiator_depth = 200 };
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_TCP, 7471);
	struct ct_pair pair;

	ct_fails(rdma_connect(id, &resources), EINVAL);
	ct_fails(rdma_connect(id, &depth), EINVAL);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_fails(rdma_accept(pair.server, &resources), EINVAL);
	ct_fails(rdma_accept(pair.server, &depth), EINVAL);
	ct_pair_accept(&pair, NULL);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_connect: "Retry count and RNR retry count values are 3-bit values."
 * rdma_connect: "The minimum RNR NAK timer value is set to 0, for a delay of 655 ms."
 * rdma_connect: "InfiniBand QPs are configured with minimum RNR NAK timer and local ACK timeout
 * values."
 * rdma_connect: "The local ACK timeout is calculated based on the packet lifetime and local HCA ACK
 * delay."
 * rdma_accept: "The RNR retry count is a 3-bit value."
 * rdma_accept: "The minimum RNR NAK timer value is set to 0, for a delay of 655 ms."
 * rdma_accept: "The local ACK timeout is calculated based on the packet lifetime and local HCA ACK
 * delay."
 * rdma_accept: "In addition to the connection properties defined above, InfiniBand QPs are
 * configured with minimum RNR NAK timer and local ACK timeout values."
 * rdma_connect: "In addition to the connection properties defined above"
 */
static void qps_have_the_timers_of_the_page(void **state)
{
	struct rdma_conn_param asks = { .retry_count = 200, .rnr_retry_count = 200 };
	struct ct_pair pair;
	struct rdma_cm_id *ends[2];

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, &asks)));
	ct_pair_accept(&pair, &asks);
	ends[0] = pair.client;
	ends[1] = pair.server;
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = attr_of(ends[i]);

		assert_int_equal(attr.retry_cnt, 7);
		assert_int_equal(attr.rnr_retry, 7);
		assert_int_equal(attr.min_rnr_timer, 0);
		assert_int_equal(attr.timeout, ACK_TIMEOUT);
	}
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_connect: "Specifies if the QP associated with the connection is using a shared receive
 * queue. This field is ignored by the library if a QP has been created on the rdma_cm_id."
 * rdma_connect: "Specifies the QP number associated with the connection. This field is ignored by
 * the library if a QP has been created on the rdma_cm_id."
 * rdma_get_cm_event: "Specifies if the sender is using a shared-receive queue."
 * rdma_accept: "Specifies if the QP associated with the connection is using a shared receive
 * queue. This field is ignored by the library if a QP has been created on the rdma_cm_id."
 * rdma_accept: "Specifies the QP number associated with the connection."
 */
static void what_the_qp_is_needs_not_be_said(void **state)
{
	struct rdma_conn_param asks = { .srq = 1, .qp_num = 0x123456 };
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct ct_pair pair;

	event = ct_pair_ask(&pair, RDMA_PS_TCP, &asks);
	assert_int_equal(event->param.conn.qp_num, pair.client->qp->qp_num);
	assert_int_equal(event->param.conn.srq, 0);
	ct_works(rdma_ack_cm_event(event));
	/* Without a QP it counts. */
	channel = ct_channel();
	id = ct_client(channel, RDMA_PS_TCP, ct_src_port(pair.listener));
	ct_works(rdma_connect(id, &asks));
	event = ct_event(pair.at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.conn.qp_num, 0x123456);
	assert_int_equal(event->param.conn.srq, 1);
	ct_works(rdma_destroy_id(id));
	id = event->id;
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	ct_pair_close(&pair);
}

/* --- rejecting --- */

/*
 * rdma_reject: "Called from the listening side to reject a connection or datagram service lookup
 * request."
 * rdma_reject: "After receiving a connection request event, a user may call rdma_reject to reject
 * the request."
 * rdma_reject: "If the underlying RDMA transport supports private data in the reject message, the
 * specified data will be passed to the remote side."
 * rdma_reject: "Optional private data to send with the reject message."
 * rdma_reject: "Returns 0 on success, or -1 on error."
 * rdma_get_cm_event: "Indicates that a connection request or response was rejected by the remote
 * end point."
 * rdma_get_cm_event: "Under InfiniBand, this is the reject reason carried in the IB CM REJ
 * message."
 * rdma_get_cm_event: "The event status field will contain the transport specific reject reason if
 * available."
 * rdma_get_cm_event: "Returns any asynchronous error information associated with an event."
 */
static void who_is_rejected_learns_why(void **state)
{
	struct rdma_cm_event *event;
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_works(rdma_reject(pair.server, "not today", 10));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, REJECTED_BY_USER);
	assert_string_equal((const char *)event->param.conn.private_data, "not today");
	ct_works(rdma_ack_cm_event(event));
	assert_int_equal(ct_qp_state(pair.client), IBV_QPS_ERR);
	ct_fails(rdma_accept(pair.server, NULL), EINVAL);
	ct_no_event(pair.at_server);
	ct_pair_close(&pair);
}

/* Who was rejected may ask again. */
static void the_rejected_may_ask_again(void **state)
{
	struct ct_pair pair;
	struct rdma_cm_event *event;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_works(rdma_reject(pair.server, NULL, 0));
	ct_pass(pair.at_client, RDMA_CM_EVENT_REJECTED);
	ct_works(rdma_destroy_id(pair.server));
	rdma_destroy_qp(pair.client);
	ct_qp(pair.client);
	ct_works(rdma_connect(pair.client, NULL));
	event = ct_event(pair.at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair.server = event->id;
	ct_works(rdma_ack_cm_event(event));
	ct_pair_accept(&pair, NULL);
	ct_exchange(pair.client, pair.server);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/* rdma_reject: "If an error occurs, errno will be set to indicate the failure reason." */
static void only_a_request_is_rejected(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP);

	ct_fails(rdma_reject(id, NULL, 0), EINVAL);
	ct_fails(rdma_reject(listener, NULL, 0), EINVAL);
	ct_works(rdma_destroy_id(id));
	ct_works(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
}

/* --- parting --- */

/*
 * rdma_disconnect: "Disconnects a connection and transitions any associated QP to the error state,
 * which will flush any posted work requests to the completion queue."
 * rdma_disconnect: "This routine should be called by both the client and server side of a
 * connection."
 * rdma_disconnect: "After successfully disconnecting, an RDMA_CM_EVENT_DISCONNECTED event will be
 * generated on both sides of the connection."
 * rdma_disconnect: "Returns 0 on success, or -1 on error."
 * rdma_get_cm_event: "The connection has been disconnected."
 * rdma_cm: "Although this example shows the client initiating the disconnect, either side of a
 * connection may initiate the disconnect."
 */
static void both_sides_hear_of_the_end(void **state)
{
	static uint8_t here[16];
	struct ct_pair pair;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	ct_pair_open(&pair);
	mr = rdma_reg_msgs(pair.client, here, sizeof(here));
	ct_works(rdma_post_recv(pair.client, NULL, here, sizeof(here), mr));
	ct_works(rdma_disconnect(pair.client));
	assert_int_equal(ct_qp_state(pair.client), IBV_QPS_ERR);
	assert_int_equal(rdma_get_recv_comp(pair.client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	ct_pass(pair.at_server, RDMA_CM_EVENT_DISCONNECTED);
	/* The library leaves the server's QP to the server. */
	assert_int_equal(ct_qp_state(pair.server), IBV_QPS_RTS);
	ct_works(rdma_disconnect(pair.server));
	assert_int_equal(ct_qp_state(pair.server), IBV_QPS_ERR);
	ct_pass(pair.at_client, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_dereg_mr(mr));
	ct_pair_close(&pair);
}

/* Both at once; and once more, which does nothing. */
static void both_may_part_at_once(void **state)
{
	struct ct_pair pair;

	ct_pair_open(&pair);
	ct_works(rdma_disconnect(pair.client));
	ct_works(rdma_disconnect(pair.server));
	ct_works(rdma_disconnect(pair.client));
	ct_pass(pair.at_server, RDMA_CM_EVENT_DISCONNECTED);
	ct_pass(pair.at_client, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_disconnect(pair.server));
	ct_pair_close(&pair);
}

/* rdma_disconnect: "If an error occurs, errno will be set to indicate the failure reason." */
static void what_is_not_connected_does_not_part(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_TCP, 7471);
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP);
	struct rdma_cm_id *datagrams = ct_client(channel, RDMA_PS_UDP, 7471);

	ct_fails(rdma_disconnect(id), EINVAL);
	ct_fails(rdma_disconnect(listener), EINVAL);
	ct_fails(rdma_disconnect(datagrams), EINVAL);
	ct_works(rdma_destroy_id(id));
	ct_works(rdma_destroy_id(listener));
	ct_works(rdma_destroy_id(datagrams));
	rdma_destroy_event_channel(channel);
}

/* Of datagrams its QP goes to the error state, and nobody hears of it; so Linux has it. */
static void datagrams_part_from_nobody(void **state)
{
	struct ct_pair pair;
	struct rdma_cm_event *request = ct_pair_ask(&pair, RDMA_PS_UDP, NULL);

	ct_works(rdma_ack_cm_event(request));
	ct_qp(pair.server);
	ct_works(rdma_accept(pair.server, &(struct rdma_conn_param){
		.qp_num = pair.server->qp->qp_num}));
	ct_pass(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	ct_works(rdma_disconnect(pair.client));
	assert_int_equal(ct_qp_state(pair.client), IBV_QPS_ERR);
	ct_works(rdma_disconnect(pair.client));
	ct_works(rdma_disconnect(pair.server));
	assert_int_equal(ct_qp_state(pair.server), IBV_QPS_ERR);
	ct_no_event(pair.at_server);
	ct_no_event(pair.at_client);
	ct_pair_close(&pair);
}

/*
 * rdma_get_cm_event: "The QP associated with a connection has exited its timewait state and is now
 * ready to be re-used. After a QP has been disconnected, it is maintained in a timewait state to
 * allow any in flight packets to exit the network. After the timewait state has completed, the
 * rdma_cm will report this event."
 */
static void after_a_while_it_is_over(void **state)
{
	struct ct_pair pair;

	ct_pair_open(&pair);
	ct_pair_part(&pair);
	ct_pass(pair.at_client, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	ct_pass(pair.at_server, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	ct_pair_close(&pair);
}

/* --- datagrams --- */

/*
 * rdma_connect: "For an rdma_cm_id of type RDMA_PS_UDP, it initiates a lookup of the remote QP
 * providing the datagram service."
 * rdma_get_cm_event: "QP number of the remote endpoint or multicast group."
 * rdma_get_cm_event: "QKey needed to send data to the remote endpoint(s)."
 * rdma_get_cm_event: "Address information needed to send data to the remote endpoint(s)."
 * rdma_get_cm_event: "Event parameters related to unreliable datagram (UD) services: RDMA_PS_UDP
 * and RDMA_PS_IPOIB."
 * rdma_get_cm_event: "The UD event data is valid for RDMA_CM_EVENT_ESTABLISHED and
 * RDMA_CM_EVENT_MULTICAST_JOIN events, unless stated otherwise."
 * rdma_get_cm_event: "Users should select the conn or ud subfields based on the rdma_port_space of
 * the rdma_cm_id associated with the event."
 */
static void a_datagram_service_is_looked_up(void **state)
{
	struct rdma_cm_event *event;
	struct ct_pair pair;
	struct ibv_ah *ah;
	static uint8_t here[64];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_UDP, NULL)));
	ct_qp(pair.server);
	assert_int_equal(ct_qp_state(pair.server), IBV_QPS_RTS);
	ct_works(rdma_accept(pair.server, NULL));
	event = ct_event(pair.at_client, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.ud.qp_num, pair.server->qp->qp_num);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	/* Only who asked hears. */
	ct_no_event(pair.at_server);
	ah = ibv_create_ah(pair.client->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	mr = rdma_reg_msgs(pair.server, here, sizeof(here));
	ct_works(rdma_post_recv(pair.server, NULL, here, sizeof(here), mr));
	ct_works(rdma_post_ud_send(pair.client, NULL, (void *)"hello", 6, NULL, IBV_SEND_INLINE,
				   ah, event->param.ud.qp_num));
	assert_int_equal(rdma_get_recv_comp(pair.server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal((char *)here + 40, "hello");
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_dereg_mr(mr));
	ct_works(ibv_destroy_ah(ah));
	ct_pair_close(&pair);
}

/*
 * rdma_get_cm_event: "Generated on the active side to notify the user that the remote server is not
 * reachable or unable to respond to a connection request."
 * rdma_get_cm_event: "If this event is generated in response to a UD QP resolution request over
 * InfiniBand, the event status field will contain an errno, if negative, or the status result
 * carried in the IB CM SIDR REP message."
 */
static void a_service_that_refuses_is_not_reached(void **state)
{
	struct ct_pair pair;
	int status;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_UDP, NULL)));
	ct_works(rdma_reject(pair.server, NULL, 0));
	assert_int_equal(ct_pass(pair.at_client, RDMA_CM_EVENT_UNREACHABLE), SIDR_REJECTED);
	ct_pair_close(&pair);
	assert_int_equal(answer(ct_ip(), 7471, RDMA_PS_UDP, &status), RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(status, 1);
}

int main(void)
{
	const struct CMUnitTest connect[] = {
		cmocka_unit_test(who_listens_at_an_address_hears_no_other),
		cmocka_unit_test(who_listens_everywhere_hears_all),
		cmocka_unit_test(who_was_not_bound_gets_a_port),
		cmocka_unit_test(who_connects_does_not_listen),
		cmocka_unit_test(who_finds_the_backlog_full_waits),
		cmocka_unit_test(two_meet_and_talk),
		cmocka_unit_test(without_a_route_nobody_is_asked),
		cmocka_unit_test(only_a_request_is_accepted_and_once),
		cmocka_unit_test(what_one_side_has_the_other_may_use),
		cmocka_unit_test(who_says_nothing_takes_what_is_asked),
		cmocka_unit_test(without_parameters_it_is_as_much_as_there_is),
		cmocka_unit_test(more_than_the_device_has_is_refused),
		cmocka_unit_test(qps_have_the_timers_of_the_page),
		cmocka_unit_test(what_the_qp_is_needs_not_be_said),
		cmocka_unit_test(who_is_rejected_learns_why),
		cmocka_unit_test(the_rejected_may_ask_again),
		cmocka_unit_test(only_a_request_is_rejected),
		cmocka_unit_test(both_sides_hear_of_the_end),
		cmocka_unit_test(both_may_part_at_once),
		cmocka_unit_test(what_is_not_connected_does_not_part),
		cmocka_unit_test(datagrams_part_from_nobody),
		cmocka_unit_test(after_a_while_it_is_over),
		cmocka_unit_test(a_datagram_service_is_looked_up),
		cmocka_unit_test(a_service_that_refuses_is_not_reached),
	};

	return ct_main(connect);
}
