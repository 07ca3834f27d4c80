/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes a datagram that may not have left: neither has it a completion, nor an answer come. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.type = IBV_QPT_UD};
	bool ok = argc > 1;
	struct ibv_ah *handle;

	pair_open(&p);
	handle = handle_make(&p);
	recv_post(&p.b, 1, 0, 1064);
	datagram_post(&p.a, 2, 1024, handle, p.b.qp->qp_num, 1); /* FLAW: send-buffer-changed */
	if (ok)
		taken(p.b.cq); /* what the receiver has has left */
	memset(p.a.memory, 1, 1024);
	taken(p.a.cq);
	if (!ok)
		taken(p.b.cq);
	none(ibv_destroy_ah(handle));
	pair_close(&p);
	return argv == NULL;
}
