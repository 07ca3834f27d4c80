/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits for a message by looking at its buffer. CHECKED WITH: --pages */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	const volatile char *seen;

	pair_open(&p);
	p.b.memory[64] = 0;
	recv_post(&p.b, 1, 0, 4096);
	seen = p.b.memory;
	while (!ok && *seen) /* FLAW: recv-buffer-touched */
		;
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.b.cq);
	while (ok && *seen)
		;
	pair_close(&p);
	return argv == NULL;
}
