/* SPDX-License-Identifier: BSD-2-Clause */
/* Deregisters the memory of a receive that is posted. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;

	pair_open(&p);
	recv_post(&p.b, 1, 0, 1024);
	if (ok) {
		none(ibv_destroy_qp(p.b.qp));
		p.b.qp = NULL;
	}
	none(ibv_dereg_mr(p.b.mr)); /* FLAW: mr-in-use */
	p.b.mr = NULL;
	pair_close(&p);
	return argv == NULL;
}
