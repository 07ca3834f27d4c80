/* SPDX-License-Identifier: BSD-2-Clause */
/* Two READs at a time into the same memory. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;
	unsigned at;

	pair_open(&p);
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_READ, 1, 0, 4096, 0, IBV_SEND_SIGNALED);
	at = ok ? 4096 : 4000;
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_READ, 2, at, 4096, 4096, /* FLAW: buffer-overlap */
		  IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
