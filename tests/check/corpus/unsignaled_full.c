/* SPDX-License-Identifier: BSD-2-Clause */
/* Never asks for a completion: the send queue fills for ever. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS, .send_wr = 16};
	bool ok = argc > 1;

	pair_open(&p);
	for (unsigned i = 0; i < 16; i++)
		rdma_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, i, 0, 8, 0, /* FLAW: unsignaled-full */
			  ok && i == 15 ? IBV_SEND_SIGNALED : 0);
	if (ok)
		taken(p.a.cq);
	pair_close(&p);
	return argv == NULL;
}
