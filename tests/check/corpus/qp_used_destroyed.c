/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts to a QP that was destroyed. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp *qp;

	pair_open(&p);
	qp = p.a.qp;
	if (!ok) {
		none(ibv_destroy_qp(qp));
		p.a.qp = NULL;
	}
	sge = part(&p.a, 0, 8);
	if (ibv_post_recv(qp, &wr, &bad)) /* FLAW: destroyed-object-used */
		fputs("it is gone\n", stderr);
	pair_close(&p);
	return argv == NULL;
}
