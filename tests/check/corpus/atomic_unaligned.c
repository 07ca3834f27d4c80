/* SPDX-License-Identifier: BSD-2-Clause */
/* An atomic at an address that is no multiple of 8. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.rights = ALL_RIGHTS};
	bool ok = argc > 1;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1,
				 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .send_flags = IBV_SEND_SIGNALED, .wr.atomic.compare_add = 1}, *bad;

	pair_open(&p);
	sge = part(&p.a, 0, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)p.b.memory + (ok ? 8 : 4);
	wr.wr.atomic.rkey = p.b.mr->rkey;
	none(ibv_post_send(p.a.qp, &wr, &bad)); /* FLAW: request-failed */
	taken(p.a.cq);
	take_events(&p, ok);
	pair_close(&p);
	return argv == NULL;
}
