/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets another path_mtu at one end than at the other. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_attr attr;

	pair_make(&p);
	attr = rtr_attr(&p, p.b.qp);
	attr.path_mtu = ok ? IBV_MTU_1024 : IBV_MTU_4096;
	qp_connect(&p, p.b.qp, p.a.qp);
	none(ibv_modify_qp(p.a.qp, &attr, rtr_mask(p.a.qp))); /* FLAW: mtu-mismatch */
	qp_rts(&p, p.a.qp);
	pair_close(&p);
	return argv == NULL;
}
