/* SPDX-License-Identifier: BSD-2-Clause */
/* A CQ for one completion, and four receives. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_init_attr attr;
	struct ibv_cq *cq;

	pair_make(&p);
	none(ibv_destroy_qp(p.b.qp));
	must(cq = ibv_create_cq(p.verbs, ok ? 64 : 1, NULL, NULL, 0)); /* FLAW: cq-too-small */
	attr = qp_attr(&p, cq);
	must(p.b.qp = ibv_create_qp(p.pd, &attr));
	qp_init(p.b.qp);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	for (unsigned i = 0; i < 4; i++)
		recv_post(&p.b, i, i * 1024, 1024);
	none(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	none(ibv_destroy_cq(cq));
	pair_close(&p);
	return argv == NULL;
}
