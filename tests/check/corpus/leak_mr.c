/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends without deregistering a region. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	static char memory[64];
	struct ibv_mr *mr;

	pair_open(&p);
	must(mr = ibv_reg_mr(p.pd, memory, sizeof(memory), 0)); /* FLAW: object-leaked */
	/* Its PD and its context cannot go before it: they are left as well. */
	end_close(&p.a);
	end_close(&p.b);
	if (ok)
		none(ibv_dereg_mr(mr));
	if (ok)
		none(ibv_dealloc_pd(p.pd));
	if (ok)
		none(ibv_close_device(p.verbs));
	return argv == NULL;
}
