/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads into a buffer and sends that on, without waiting for the READ. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;

	pair_open(&p);
	memset(p.b.memory, 1, 4096);
	recv_post(&p.b, 1, 8192, 4096);
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_READ, 2, 0, 4096, 0, 0);
	send_post(&p.a, 3, 0, 4096, /* FLAW: buffer-overlap */
		  IBV_SEND_SIGNALED | (ok ? IBV_SEND_FENCE : 0));
	taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
