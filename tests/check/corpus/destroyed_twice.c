/* SPDX-License-Identifier: BSD-2-Clause */
/* Deregisters a region twice. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	static char memory[64];

	device_open(&p);
	must(p.a.mr = ibv_reg_mr(p.pd, memory, sizeof(memory), 0));
	none(ibv_dereg_mr(p.a.mr));
	if (!ok && ibv_dereg_mr(p.a.mr)) /* FLAW: call-refused */
		fputs("it is gone\n", stderr);
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
