/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts a SEND to a QP in INIT. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	pair_make(&p);
	if (ok) {
		qp_connect(&p, p.b.qp, p.a.qp);
		qp_connect(&p, p.a.qp, p.b.qp);
		recv_post(&p.b, 1, 0, 64);
	}
	sge = part(&p.a, 0, 8);
	if (!ibv_post_send(p.a.qp, &wr, &bad)) /* FLAW: call-refused */
		taken(p.a.cq);
	if (ok)
		taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
