/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes an address handle for each message, and destroys none. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.type = IBV_QPT_UD};
	bool ok = argc > 1;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	pair_open(&p);
	attr = rtr_attr(&p, p.b.qp).ah_attr;
	for (unsigned i = 0; i < 3; i++) {
		must(ah = ibv_create_ah(p.pd, &attr)); /* FLAW: object-leaked */
		if (ok)
			none(ibv_destroy_ah(ah));
	}
	end_close(&p.a);
	end_close(&p.b);
	/* The PD that they are of cannot be deallocated: it and the context are left as well. */
	if (ok)
		none(ibv_dealloc_pd(p.pd));
	if (ok)
		none(ibv_close_device(p.verbs));
	return argv == NULL;
}
