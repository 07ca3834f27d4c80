/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/* Connections of ids without QPs: who has brought his own says so himself. */

/* Both without QPs of the ids' own; up to the answer, of which the client knows. */
static void bare_ask(struct ct_pair *pair)
{
	struct rdma_conn_param param = { .qp_num = 0x1000, .retry_count = 7 };
	struct rdma_cm_event *event;

	pair->at_server = ct_channel();
	pair->at_client = ct_channel();
	pair->listener = ct_listener(pair->at_server, RDMA_PS_TCP);
	pair->client = ct_client(pair->at_client, RDMA_PS_TCP, ct_src_port(pair->listener));
	ct_works(rdma_connect(pair->client, &param));
	event = ct_event(pair->at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair->server = event->id;
	ct_works(rdma_ack_cm_event(event));
	param.qp_num = 0x2000;
	ct_works(rdma_accept(pair->server, &param));
	event = ct_event(pair->at_client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(event->param.conn.qp_num, 0x2000);
	ct_works(rdma_ack_cm_event(event));
}

/*
 * rdma_get_cm_event: "It is only generated on rdma_cm_id's that do not have a QP associated with
 * them."
 * rdma_get_cm_event: "Generated on the active side to notify the user of a successful response to
 * a connection request."
 * rdma_cm: "The RDMA CM can control both the QP and communication management (connection setup /
 * teardown) portions of an RDMA API, or only the communication management piece."
 */
static void who_brings_a_qp_establishes_it_himself(void **state)
{
	struct ct_pair pair;

	bare_ask(&pair);
	ct_no_event(pair.at_server);
	ct_works(rdma_establish(pair.client));
	ct_pass(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
	ct_no_event(pair.at_client);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_notify: "Used to notify the librdmacm of asynchronous events that have occurred on a QP
 * associated with the rdma_cm_id."
 * rdma_notify: "This routine forces the connection into an established state in this case in order
 * to handle the rare situation where the connection never forms on its own."
 * rdma_notify: "Calling this routine ensures the delivery of the RDMA_CM_EVENT_ESTABLISHED event to
 * the application."
 * rdma_notify: "Events that should be reported to the CM are: IB_EVENT_COMM_EST."
 * rdma_notify: "Returns 0 on success, or -1 on error."
 * rdma_notify: "This routine is used to notify the librdmacm of communication events."
 */
static void what_was_received_establishes_it(void **state)
{
	struct ct_pair pair;

	bare_ask(&pair);
	ct_works(rdma_notify(pair.server, IBV_EVENT_COMM_EST));
	ct_pass(pair.at_server, RDMA_CM_EVENT_ESTABLISHED);
	ct_works(rdma_establish(pair.client));
	ct_no_event(pair.at_server);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

/*
 * rdma_notify: "If errno is set to EISCONN (transport endpoint is already connected), this
 * indicates that the the underlying communication manager established the connection before the
 * call to rdma_notify could be processed."
 * rdma_notify: "In this case, the error may safely be ignored."
 */
static void what_is_established_is_so_already(void **state)
{
	struct ct_pair pair;

	ct_pair_open(&pair);
	ct_fails(rdma_notify(pair.server, IBV_EVENT_COMM_EST), EISCONN);
	ct_fails(rdma_notify(pair.listener, IBV_EVENT_COMM_EST), EINVAL);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest bare[] = {
		cmocka_unit_test(who_brings_a_qp_establishes_it_himself),
		cmocka_unit_test(what_was_received_establishes_it),
		cmocka_unit_test(what_is_established_is_so_already),
	};

	return ct_main(bare);
}
