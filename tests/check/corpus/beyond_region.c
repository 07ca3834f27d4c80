/* SPDX-License-Identifier: BSD-2-Clause */
/* READs behind the end of the peer's region. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;

	pair_open(&p);
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_READ, 1, 0, 64, /* FLAW: request-failed */
		  ok ? BYTES - 64 : BYTES - 32, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	take_events(&p, ok);
	pair_close(&p);
	return argv == NULL;
}
