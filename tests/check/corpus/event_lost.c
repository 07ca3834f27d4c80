/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks to be told when its SRQ runs low, and never looks whether it was told. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_async_event event;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	must(argv);
	device_open(&p);
	must(p.srq = ibv_create_srq(p.pd, &init));
	p.rights = ALL_RIGHTS;
	end_make(&p, &p.a, NULL, NULL);
	end_make(&p, &p.b, NULL, p.srq);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	sge = part(&p.b, 0, 64);
	none(ibv_post_srq_recv(p.srq, &wr, &bad));
	none(ibv_modify_srq(p.srq, &limit, IBV_SRQ_LIMIT));
	send_post(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.b.cq);
	if (ok) {
		none(ibv_get_async_event(p.verbs, &event));
		ibv_ack_async_event(&event);
	}
	end_close(&p.a);
	end_close(&p.b);
	none(ibv_destroy_srq(p.srq)); /* FLAW: event-not-taken */
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
