/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends without a message that came. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024); /* FLAW: completion-not-taken */
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	if (ok)
		taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
