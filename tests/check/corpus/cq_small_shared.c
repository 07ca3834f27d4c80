/* SPDX-License-Identifier: BSD-2-Clause */
/* One CQ for both ends, with room for the sends or for the receives, but not for both. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_init_attr attr;
	struct ibv_cq *cq;

	p.cqe = 1;
	device_open(&p);
	must(cq = ibv_create_cq(p.verbs, ok ? 32 : 8, NULL, NULL, 0)); /* FLAW: cq-too-small */
	attr = qp_attr(&p, cq);
	end_make(&p, &p.a, NULL, NULL);
	end_make(&p, &p.b, NULL, NULL);
	none(ibv_destroy_qp(p.a.qp));
	none(ibv_destroy_qp(p.b.qp));
	must(p.a.qp = ibv_create_qp(p.pd, &attr));
	must(p.b.qp = ibv_create_qp(p.pd, &attr));
	qp_init(p.a.qp);
	qp_init(p.b.qp);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	for (unsigned i = 0; i < 8; i++)
		recv_post(&p.b, i, i * 512, 512);
	/* It goes well as long as both are taken at once. */
	for (unsigned i = 0; i < 8; i++) {
		send_post(&p.a, i, 0, 8, IBV_SEND_SIGNALED);
		taken(cq);
		taken(cq);
	}
	none(ibv_destroy_qp(p.a.qp));
	none(ibv_destroy_qp(p.b.qp));
	p.a.qp = p.b.qp = NULL;
	none(ibv_destroy_cq(cq));
	pair_close(&p);
	return argv == NULL;
}
