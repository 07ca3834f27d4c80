/* SPDX-License-Identifier: BSD-2-Clause */
/* Clears a receive buffer after it was posted. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	memset(p.b.memory, 0xff, 4096);
	if (ok)
		memset(p.b.memory, 0, 4096);
	recv_post(&p.b, 1, 0, 4096); /* FLAW: recv-buffer-written */
	if (!ok)
		memset(p.b.memory, 0, 4096);
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
