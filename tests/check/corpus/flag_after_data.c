/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver that looks for a flag behind the data of a message in its buffer, not at the CQ: what
 * it takes for the flag may be of the message before. CHECKED WITH: --pages */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	const volatile char *seen;

	pair_open(&p);
	p.b.memory[4095] = 1;
	recv_post(&p.b, 1, 0, 4096);
	/* The flag of the message before is still there. */
	seen = p.b.memory + 4095;
	while (!ok && !*seen) /* FLAW: recv-buffer-touched */
		;
	p.a.memory[4095] = 1;
	send_post(&p.a, 2, 0, 4096, IBV_SEND_SIGNALED);
	taken(p.a.cq);
	taken(p.b.cq);
	while (ok && !*seen)
		;
	pair_close(&p);
	return argv == NULL;
}
