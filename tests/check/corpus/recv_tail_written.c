/* SPDX-License-Identifier: BSD-2-Clause */
/* Uses the end of a receive buffer for notes of its own. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 4096); /* FLAW: recv-buffer-written */
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	strcpy(p.b.memory + (ok ? 5000 : 4000), "my notes");
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
