/* SPDX-License-Identifier: BSD-2-Clause */
/* The right to remote WRITEs without that to local ones. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	static char memory[64];

	device_open(&p);
	p.a.mr = ibv_reg_mr(p.pd, memory, sizeof(memory), /* FLAW: call-refused */
			    IBV_ACCESS_REMOTE_WRITE | (ok ? IBV_ACCESS_LOCAL_WRITE : 0));
	if (p.a.mr)
		none(ibv_dereg_mr(p.a.mr));
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
