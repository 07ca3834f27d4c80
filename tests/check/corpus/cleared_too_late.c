/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives a buffer back (here: posts it), and clears it after that for the next message: a message
 * that comes at once is wiped out. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 0, 0, 4096);
	for (unsigned i = 0; i < 3; i++) {
		memset(p.a.memory, (int)i + 1, 64);
		send_post(&p.a, i, 0, 64, IBV_SEND_SIGNALED);
		taken(p.b.cq);
		taken(p.a.cq);
		if (ok)
			memset(p.b.memory, 0, 4096);
		recv_post(&p.b, i + 1, 0, 4096); /* FLAW: recv-buffer-written */
		if (!ok)
			memset(p.b.memory, 0, 4096);
	}
	pair_close(&p);
	return argv == NULL;
}
