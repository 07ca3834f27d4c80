/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <poll.h>

/* Very many ids in one process. They bring QP numbers that nobody has: it is about ids. */

enum {
	PAIRS = 5000, /* of ids: server and client */
	UNDER_WAY = 500,
	SERVERS_QPN = 0x100000,
};

static struct {
	struct rdma_event_channel *at_server, *at_client;
	struct rdma_cm_id *listener, *client[PAIRS], *server[PAIRS];
	unsigned asked, up_at_client, up_at_server, over_at_client, over_at_server;
} all;

static unsigned number_of(const struct rdma_cm_event *event)
{
	unsigned number;

	assert_true(event->param.conn.private_data_len >= sizeof(number));
	memcpy(&number, event->param.conn.private_data, sizeof(number));
	assert_in_range(number, 0, PAIRS - 1);
	return number;
}

static struct rdma_conn_param param_of(const unsigned *number, uint32_t qpn)
{
	return (struct rdma_conn_param){
		.private_data = number, .private_data_len = sizeof(*number), .qp_num = qpn,
		.responder_resources = 1, .initiator_depth = 1,
	};
}

static void asked(const struct rdma_cm_event *event)
{
	unsigned number = number_of(event);
	struct rdma_conn_param param = param_of(&number, SERVERS_QPN + number);

	assert_null(all.server[number]);
	assert_int_equal(event->param.conn.qp_num, number + 1);
	all.server[number] = event->id;
	event->id->context = (void *)(uintptr_t)number;
	ct_works(rdma_accept(event->id, &param));
}

static void answered(const struct rdma_cm_event *event)
{
	unsigned number = number_of(event);

	/* It is connected with the one that it has asked for, and no other. */
	assert_ptr_equal(event->id, all.client[number]);
	assert_int_equal(event->param.conn.qp_num, SERVERS_QPN + number);
	ct_works(rdma_establish(event->id));
	all.up_at_client++;
}

static void on_event(const struct rdma_cm_event *event, bool is_server)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		asked(event);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		answered(event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		all.up_at_server += is_server;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (is_server)
			ct_works(rdma_disconnect(event->id));
		all.over_at_server += is_server;
		all.over_at_client += !is_server;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fail_msg("%s, status %d", rdma_event_str(event->event), event->status);
	}
}

/* Waits, and takes what has come. */
static void turn(void)
{
	struct pollfd fds[2] = {{.fd = all.at_server->fd, .events = POLLIN},
				{.fd = all.at_client->fd, .events = POLLIN}};

	assert_true(poll(fds, 2, CT_WAIT_MS) > 0);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *event;

		if (!fds[i].revents)
			continue;
		ct_works(rdma_get_cm_event(i ? all.at_client : all.at_server, &event));
		on_event(event, !i);
		ct_works(rdma_ack_cm_event(event));
	}
}

static void ten_thousand_ids_are_connected(void **state)
{
	uint16_t port;

	all.at_server = ct_channel();
	all.at_client = ct_channel();
	all.listener = ct_listener(all.at_server, RDMA_PS_TCP);
	port = ct_src_port(all.listener);
	for (unsigned i = 0; i < PAIRS; i++)
		all.client[i] = ct_client(all.at_client, RDMA_PS_TCP, port);
	while (all.up_at_server < PAIRS) {
		while (all.asked < PAIRS && all.asked < all.up_at_server + UNDER_WAY) {
			unsigned number = all.asked++;
			struct rdma_conn_param param = param_of(&number, number + 1);

			ct_works(rdma_connect(all.client[number], &param));
		}
		turn();
	}
	assert_int_equal(all.up_at_client, PAIRS);
	for (unsigned i = 0; i < PAIRS; i++)
		ct_works(rdma_disconnect(all.client[i]));
	while (all.over_at_server < PAIRS || all.over_at_client < PAIRS)
		turn();
	for (unsigned i = 0; i < PAIRS; i++) {
		ct_works(rdma_destroy_id(all.client[i]));
		ct_works(rdma_destroy_id(all.server[i]));
	}
	ct_works(rdma_destroy_id(all.listener));
	rdma_destroy_event_channel(all.at_server);
	rdma_destroy_event_channel(all.at_client);
}

int main(void)
{
	const struct CMUnitTest scale[] = {
		cmocka_unit_test(ten_thousand_ids_are_connected),
	};

	return ct_main(scale);
}
