/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the buffer anew that ibv_wr_set_sge() named before its completion was taken. */
#include "../corpus.h"

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp_ex *ex;

	pair_make(&p);
	none(ibv_destroy_qp(p.a.qp));
	attr = (struct ibv_qp_init_attr_ex){
		.send_cq = p.a.cq, .recv_cq = p.a.cq, .qp_type = IBV_QPT_RC, .pd = p.pd,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	must(p.a.qp = ibv_create_qp_ex(p.verbs, &attr));
	must(ex = ibv_qp_to_qp_ex(p.a.qp));
	qp_init(p.a.qp);
	qp_connect(&p, p.b.qp, p.a.qp);
	qp_connect(&p, p.a.qp, p.b.qp);
	recv_post(&p.b, 1, 0, 64);
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, p.a.mr->lkey, (uintptr_t)p.a.memory, 64);
	none(ibv_wr_complete(ex)); /* FLAW: send-buffer-changed */
	if (ok)
		taken(p.a.cq);
	p.a.memory[0]++;
	if (!ok)
		taken(p.a.cq);
	taken(p.b.cq);
	pair_close(&p);
	return argv == NULL;
}
