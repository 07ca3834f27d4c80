/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the wr_id of a request in flight to another, in a queue that tells them apart by it. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	for (unsigned i = 0; i < 6; i++)
		recv_post(&p.b, i, i * 1024, 1024);
	recv_post(&p.b, ok ? 6 : 2, 6 * 1024, 1024); /* FLAW: wr-id-reused */
	pair_close(&p);
	return argv == NULL;
}
