/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts the same buffer for all receives: a message overwrites the one before. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	for (unsigned i = 0; i < 4; i++)
		recv_post(&p.b, i, ok ? i * 1024 : 0, 1024); /* FLAW: buffer-overlap */
	for (unsigned i = 0; i < 4; i++)
		send_post(&p.a, i, 0, 64, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 4; i++) {
		taken(p.a.cq);
		taken(p.b.cq);
	}
	pair_close(&p);
	return argv == NULL;
}
