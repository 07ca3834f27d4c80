/* SPDX-License-Identifier: BSD-2-Clause */
/* Many connections share an SRQ of many receives, and a CQ that was made for one of them. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 64, .max_sge = 1}};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct ibv_qp_init_attr attr;
	struct ibv_srq *srq;
	struct ibv_qp *qp[4];
	struct ibv_cq *cq;

	device_open(&p);
	must(srq = ibv_create_srq(p.pd, &init));
	must(cq = ibv_create_cq(p.verbs, ok ? 64 : 16, NULL, NULL, 0)); /* FLAW: cq-too-small */
	attr = qp_attr(&p, cq);
	attr.srq = srq;
	for (unsigned i = 0; i < 4; i++)
		must(qp[i] = ibv_create_qp(p.pd, &attr));
	for (unsigned i = 0; i < 40; i++)
		none(ibv_post_srq_recv(srq, &wr, &bad));
	for (unsigned i = 0; i < 4; i++)
		none(ibv_destroy_qp(qp[i]));
	none(ibv_destroy_srq(srq));
	none(ibv_destroy_cq(cq));
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
