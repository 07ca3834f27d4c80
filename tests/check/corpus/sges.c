/* SPDX-License-Identifier: BSD-2-Clause */
/* More SGEs than the QP was created for. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_sge sge[4];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = ok ? 2 : 4}, *bad;

	pair_open(&p);
	for (unsigned i = 0; i < 4; i++)
		sge[i] = part(&p.a, i * 8, 8);
	if (ibv_post_recv(p.a.qp, &wr, &bad)) /* FLAW: call-refused */
		fputs("the receive is not posted\n", stderr);
	pair_close(&p);
	return argv == NULL;
}
