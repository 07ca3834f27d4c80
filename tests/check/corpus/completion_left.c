/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys the QP without the completion of its last SEND. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024);
	send_post(&p.a, 2, 0, 64, IBV_SEND_SIGNALED); /* FLAW: completion-not-taken */
	taken(p.b.cq);
	if (ok)
		taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
