/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys a CQ without acknowledging its event, and so waits for ever. */
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
	if (ok)
		ibv_ack_cq_events(cq, 1);
	taken(p.b.cq);
	taken(p.a.cq);
	none(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	/* This one ends by a signal where the real ones hang. */
	alarm(ok ? 0 : 1);
	none(ibv_destroy_cq(cq)); /* FLAW: event-not-acked */
	p.b.cq = NULL;
	pair_close(&p);
	return argv == NULL;
}
