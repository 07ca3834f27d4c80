/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes an unsignaled WRITE for done when the next call returns. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;

	pair_open(&p);
	memset(p.a.memory, 1, 512);
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 512, 0, 0); /* FLAW: send-buffer-changed */
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 2, 1024, 8, 1024, IBV_SEND_SIGNALED);
	if (ok)
		taken(p.a.cq);
	memset(p.a.memory, 2, 512);
	if (!ok)
		taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
