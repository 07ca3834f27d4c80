/* SPDX-License-Identifier: BSD-2-Clause */
/* Uses the rkey of a region that is no longer there. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;
	struct ibv_mr gone = {.rkey = 0x12345678};
	struct end end = {.mr = &gone}, *there;

	pair_open(&p);
	there = ok ? &p.b : &end;
	rdma_post(&p.a, there, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, /* FLAW: request-failed */
		  IBV_SEND_SIGNALED);
	taken(p.a.cq);
	take_events(&p, ok);
	pair_close(&p);
	return argv == NULL;
}
