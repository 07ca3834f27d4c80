/* SPDX-License-Identifier: BSD-2-Clause */
/* A message that is longer than the receive. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, ok ? 128 : 64); /* FLAW: request-failed */
	send_post(&p.a, 2, 0, 128, IBV_SEND_SIGNALED); /* FLAW: request-failed */
	taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
