/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys an id without acknowledging its event, and so waits for ever. */
#include "../corpus.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	bool ok = argc > 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(channel = rdma_create_event_channel());
	none(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	none(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
	none(rdma_get_cm_event(channel, &event));
	if (ok)
		none(rdma_ack_cm_event(event));
	/* This one ends by a signal where the real ones hang. */
	alarm(ok ? 0 : 1);
	none(rdma_destroy_id(id)); /* FLAW: cm-event-not-acked */
	rdma_destroy_event_channel(channel);
	return argv == NULL;
}
