/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves a region while a receive uses it. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024);
	send_post(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	if (ok)
		taken(p.b.cq);
	none(ibv_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, /* FLAW: mr-in-use */
			  ALL_RIGHTS));
	if (!ok)
		taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
