/* SPDX-License-Identifier: BSD-2-Clause */
/* Destroys an address handle when its first message was sent, and sends another by it. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.type = IBV_QPT_UD};
	bool ok = argc > 1;
	struct ibv_ah *handle;

	pair_open(&p);
	handle = handle_make(&p);
	recv_post(&p.b, 1, 0, 1064);
	recv_post(&p.b, 2, 2048, 1064);
	datagram_post(&p.a, 3, 64, handle, p.b.qp->qp_num, 1);
	if (!ok)
		none(ibv_destroy_ah(handle));
	datagram_post(&p.a, 4, 64, handle, p.b.qp->qp_num, 1); /* FLAW: destroyed-object-used */
	for (unsigned i = 0; i < 1u + ok; i++) {
		taken(p.a.cq);
		taken(p.b.cq);
	}
	if (ok)
		none(ibv_destroy_ah(handle));
	pair_close(&p);
	return argv == NULL;
}
