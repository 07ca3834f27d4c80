/* SPDX-License-Identifier: BSD-2-Clause */
/* Deallocates the PD before the region that is in it. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	static char memory[64];

	device_open(&p);
	must(p.a.mr = ibv_reg_mr(p.pd, memory, sizeof(memory), 0));
	if (!ok && ibv_dealloc_pd(p.pd)) /* FLAW: call-refused */
		fputs("the PD stays\n", stderr);
	none(ibv_dereg_mr(p.a.mr));
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
