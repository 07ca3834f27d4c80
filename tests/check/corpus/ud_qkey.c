/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a datagram with a Q_Key that is not the receiver's. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {.type = IBV_QPT_UD};
	bool ok = argc > 1;
	struct ibv_qp_init_attr attr;
	struct ibv_ah *handle;
	struct end c;

	pair_open(&p);
	handle = handle_make(&p);
	c = p.b;
	attr = qp_attr(&p, c.cq);
	must(c.qp = ibv_create_qp(p.pd, &attr)); /* FLAW: datagram-dropped */
	qp_init(c.qp);
	qp_connect(&p, c.qp, p.a.qp);
	recv_post(&c, 1, 0, 1064);
	datagram_post(&p.a, 2, 64, handle, c.qp->qp_num, ok ? 1 : 2);
	taken(p.a.cq);
	if (ok)
		taken(p.b.cq);
	recv_post(&c, 3, 2048, 1064);
	datagram_post(&p.a, 4, 64, handle, c.qp->qp_num, 1);
	taken(p.a.cq);
	taken(p.b.cq);
	none(ibv_destroy_ah(handle));
	none(ibv_destroy_qp(c.qp));
	pair_close(&p);
	return argv == NULL;
}
