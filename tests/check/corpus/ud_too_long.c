/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a datagram that fits into the receive but for the 40 octets of the GRH. */
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
	recv_post(&c, 1, 0, ok ? 1064 : 1024);
	datagram_post(&p.a, 2, 1024, handle, c.qp->qp_num, 1);
	taken(p.a.cq);
	if (ok)
		recv_post(&c, 3, 2048, 1064);
	datagram_post(&p.a, 4, 64, handle, c.qp->qp_num, 1);
	taken(p.a.cq);
	for (unsigned i = 0; i < 1u + ok; i++)
		taken(p.b.cq);
	none(ibv_destroy_ah(handle));
	none(ibv_destroy_qp(c.qp));
	pair_close(&p);
	return argv == NULL;
}
