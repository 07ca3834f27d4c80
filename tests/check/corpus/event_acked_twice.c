/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledges the events of a CQ in a batch, and one of them at once as well. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.with_channel = true};
	bool ok = argc > 1;
	struct ibv_cq *cq;
	void *context;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024);
	none(ibv_req_notify_cq(p.b.cq, 0));
	send_post(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	none(ibv_get_cq_event(p.channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	taken(p.b.cq);
	taken(p.a.cq);
	if (!ok)
		ibv_ack_cq_events(cq, 1); /* FLAW: event-acked-twice */
	/* To destroy it would wait for ever: it is put right. */
	cq->comp_events_completed = 1;
	pair_close(&p);
	return argv == NULL;
}
