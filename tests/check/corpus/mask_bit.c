/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves a QP to RTR without IBV_QP_DEST_QPN in the mask. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_attr attr;
	int mask;

	pair_make(&p);
	attr = rtr_attr(&p, p.b.qp);
	mask = rtr_mask(p.a.qp) & (ok ? -1 : ~IBV_QP_DEST_QPN);
	if (ibv_modify_qp(p.a.qp, &attr, mask)) /* FLAW: call-refused */
		fputs("the QP stays as it is\n", stderr);
	pair_close(&p);
	return argv == NULL;
}
