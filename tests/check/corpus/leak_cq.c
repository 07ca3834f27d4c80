/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a CQ for each connection, and destroys the QP alone. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_init_attr attr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	device_open(&p);
	for (unsigned i = 0; i < 3; i++) {
		must(cq = ibv_create_cq(p.verbs, 16, NULL, NULL, 0)); /* FLAW: object-leaked */
		attr = qp_attr(&p, cq);
		must(qp = ibv_create_qp(p.pd, &attr));
		none(ibv_destroy_qp(qp));
		if (ok)
			none(ibv_destroy_cq(cq));
	}
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
