/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks for a connection, and never takes the event that says that it was refused. */
#include "../corpus.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

static enum rdma_cm_event_type next(struct rdma_event_channel *channel)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	none(rdma_get_cm_event(channel, &event));
	type = event->event;
	none(rdma_ack_cm_event(event));
	return type;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct rdma_conn_param param = {.responder_resources = 1};
	struct rdma_event_channel *channel;
	struct ibv_qp_init_attr attr = {0};
	struct rdma_cm_id *id;
	struct pollfd ready;
	bool ok = argc > 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(channel = rdma_create_event_channel());
	none(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)); /* FLAW: cm-event-not-taken */
	none(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
	must(next(channel) == RDMA_CM_EVENT_ADDR_RESOLVED);
	none(rdma_resolve_route(id, 1000));
	must(next(channel) == RDMA_CM_EVENT_ROUTE_RESOLVED);
	must(attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0));
	attr.qp_type = IBV_QPT_RC;
	attr.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 1};
	none(rdma_create_qp(id, NULL, &attr));
	none(rdma_connect(id, &param));
	ready = (struct pollfd){.fd = channel->fd, .events = POLLIN};
	must(poll(&ready, 1, -1) == 1);
	if (ok)
		must(next(channel) == RDMA_CM_EVENT_REJECTED);
	rdma_destroy_qp(id);
	none(rdma_destroy_id(id));
	none(ibv_destroy_cq(attr.send_cq));
	rdma_destroy_event_channel(channel);
	return argv == NULL;
}
