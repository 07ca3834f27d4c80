/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers a peer that is reached by a loopback address from another one: the first of the table. */
#include "../corpus.h"

/* The index of a GID that is an IPv4 address, but not the loopback's. */
static int other_index(struct pair *p)
{
	union ibv_gid gid;

	for (int i = 0;; i++) {
		none(ibv_query_gid(p->verbs, 1, i, &gid));
		if (!memcmp(gid.raw, p->gid.raw, 12) && gid.raw[12] != 127)
			return i;
	}
}

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_attr attr;

	pair_make(&p);
	attr = rtr_attr(&p, p.b.qp);
	attr.ah_attr.grh.sgid_index = (uint8_t)(ok ? p.gid_index : other_index(&p));
	none(ibv_modify_qp(p.a.qp, &attr, rtr_mask(p.a.qp))); /* FLAW: gid-wrong */
	pair_close(&p);
	return argv == NULL;
}
