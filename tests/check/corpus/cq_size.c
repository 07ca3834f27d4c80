/* SPDX-License-Identifier: BSD-2-Clause */
/* A CQ for no completion. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	device_open(&p);
	p.a.cq = ibv_create_cq(p.verbs, ok ? 1 : 0, NULL, NULL, 0); /* FLAW: call-refused */
	if (p.a.cq)
		none(ibv_destroy_cq(p.a.cq));
	none(ibv_dealloc_pd(p.pd));
	none(ibv_close_device(p.verbs));
	return argv == NULL;
}
