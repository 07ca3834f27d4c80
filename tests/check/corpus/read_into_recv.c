/* SPDX-License-Identifier: BSD-2-Clause */
/* READs into memory that is posted to receive. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;
	unsigned at;

	pair_open(&p);
	recv_post(&p.a, 1, 0, 1024);
	at = ok ? 4096 : 512;
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_READ, 2, at, 1024, 0, /* FLAW: buffer-overlap */
		  IBV_SEND_SIGNALED);
	taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
