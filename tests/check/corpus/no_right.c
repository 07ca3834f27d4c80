/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITEs to a region that was registered for local use. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = argc > 1 ? ALL_RIGHTS : IBV_ACCESS_LOCAL_WRITE};
	bool ok = argc > 1;

	pair_open(&p);
	rdma_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, /* FLAW: request-failed */
		  IBV_SEND_SIGNALED);
	taken(p.a.cq);
	take_events(&p, ok);
	pair_close(&p);
	return argv == NULL;
}
