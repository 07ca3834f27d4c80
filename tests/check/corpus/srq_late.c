/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives an SRQ one receive for two messages, and the other one when both were sent. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct pair p = {0};
	bool ok = argc > 1;

	device_open(&p);
	must(p.srq = ibv_create_srq(p.pd, &init));
	end_make(&p, &p.a, NULL, NULL);
	end_make(&p, &p.b, NULL, p.srq);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	none(ibv_post_srq_recv(p.srq, &wr, &bad));
	if (ok)
		none(ibv_post_srq_recv(p.srq, &wr, &bad));
	send_post(&p.a, 1, 0, 0, IBV_SEND_SIGNALED);
	send_post(&p.a, 2, 0, 0, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.b.cq);
	for (unsigned i = 0; !ok && i < 1000; i++)
		ibv_poll_cq(p.b.cq, 0, NULL);
	usleep(20000);
	if (!ok)
		none(ibv_post_srq_recv(p.srq, &wr, &bad)); /* FLAW: recv-late */
	taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
