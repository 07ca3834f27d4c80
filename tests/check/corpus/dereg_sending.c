/* SPDX-License-Identifier: BSD-2-Clause */
/* Deregisters the memory of a WRITE before its completion was taken. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;

	pair_open(&p);
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, IBV_SEND_SIGNALED);
	if (ok)
		taken(p.a.cq);
	none(ibv_dereg_mr(p.a.mr)); /* FLAW: mr-in-use */
	p.a.mr = NULL;
	if (!ok)
		taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
