/* SPDX-License-Identifier: BSD-2-Clause */
/* Polls until the CQ is empty, asks for an event, and waits: what came in between is lost. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.with_channel = true};
	bool ok = argc > 1;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024);
	none(ibv_req_notify_cq(p.b.cq, 0));
	send_post(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	none(ibv_get_cq_event(p.channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	taken(p.b.cq);
	taken(p.a.cq);
	recv_post(&p.b, 2, 0, 1024);
	send_post(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	none(ibv_req_notify_cq(p.b.cq, 0)); /* FLAW: notify-race */
	if (!ok || !ibv_poll_cq(p.b.cq, 1, &wc)) {
		none(ibv_get_cq_event(p.channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		taken(p.b.cq);
	}
	pair_close(&p);
	return argv == NULL;
}
