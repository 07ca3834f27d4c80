/* SPDX-License-Identifier: BSD-2-Clause */
/* A GID index that the table does not have. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_attr attr;

	pair_make(&p);
	qp_connect(&p, p.b.qp, p.a.qp);
	attr = rtr_attr(&p, p.b.qp);
	attr.ah_attr.grh.sgid_index = ok ? p.gid_index : 77;
	if (ibv_modify_qp(p.a.qp, &attr, rtr_mask(p.a.qp))) /* FLAW: call-refused */
		fputs("the peer cannot be reached\n", stderr);
	pair_close(&p);
	return argv == NULL;
}
