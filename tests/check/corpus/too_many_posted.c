/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts more receives than the queue has room for. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 0}, *bad;

	pair_open(&p);
	sge = part(&p.b, 0, 0);
	for (unsigned i = 0; i < (ok ? 32 : 40); i++) {
		wr.wr_id = i;
		if (ibv_post_recv(p.b.qp, &wr, &bad)) /* FLAW: call-refused */
			break;
	}
	pair_close(&p);
	return argv == NULL;
}
