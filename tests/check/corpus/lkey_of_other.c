/* SPDX-License-Identifier: BSD-2-Clause */
/* The lkey of another region than that of the buffer. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;
	static char memory[64];
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	pair_open(&p);
	must(mr = ibv_reg_mr(p.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	sge = part(&p.a, 0, 64);
	sge.lkey = ok ? p.a.mr->lkey : mr->lkey;
	recv_post(&p.b, 1, 0, 64);
	none(ibv_post_send(p.a.qp, &wr, &bad)); /* FLAW: request-failed */
	taken(p.a.cq);
	if (ok)
		taken(p.b.cq);
	none(ibv_destroy_qp(p.a.qp));
	p.a.qp = NULL;
	none(ibv_dereg_mr(mr));
	pair_close(&p);
	return argv == NULL;
}
