/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the log says of messages of UC and datagrams that are dropped, which their senders are not
 * told: one line that names both QPs and the reason, and a flood of them in few.
 */
#include "told.h"

/* a sends so much to b, which is dropped for this reason. */
static void dropped(struct vt_pair *p, struct vt_wr *w, const char *why, const char *look)
{
	vt_post(&p->a, w);
	vt_expect(p->a.cq, w->wr.wr_id, IBV_WC_SUCCESS);
	logged(text("QPN 0x%x dropped a ", p->b.qp->qp_num),
	       text(" of 64 octets from QPN 0x%x", p->a.qp->qp_num), why, look, NULL);
}

vt_pair_test(a_datagram_with_another_qkey, .type = IBV_QPT_UD)
{
	struct vt_wr w;

	vt_recv(&p->b, 1);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	w.wr.wr.ud.remote_qkey = 0x77;
	dropped(p, &w, ": its Q_Key 0x77 is not the QP's, 0x", "set wr.ud.remote_qkey");
}

vt_pair_test(datagrams_that_nobody_waits_for, .type = IBV_QPT_UD)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	dropped(p, &w, "no receive request is posted", "post more receives");
	/* A flood is told once more, and no more often. */
	for (int i = 0; i < 15; i++) {
		vt_post(&p->a, &w);
		vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_SUCCESS);
	}
	logged(text("QPN 0x%x dropped a datagram", p->b.qp->qp_num), "(10 times by now)", NULL);
}

vt_pair_test(a_datagram_that_the_receive_has_no_room_for, .type = IBV_QPT_UD)
{
	struct vt_wr w;

	assert_int_equal(vt_recv_at(&p->b, 9, 0, 64), 0);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	dropped(p, &w, "no room for 104 octets, 40 of which are the GRH's",
		"post receives as long");
}

vt_pair_test(a_datagram_to_a_qp_that_there_is_not, .type = IBV_QPT_UD)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	w.wr.wr.ud.remote_qpn ^= 0x40;
	vt_post(&p->a, &w);
	vt_expect(p->a.cq, w.wr.wr_id, IBV_WC_SUCCESS);
	logged(text("QPN 0x%x dropped a datagram of 64 octets from QPN 0x%x at ",
		    w.wr.wr.ud.remote_qpn, p->a.qp->qp_num),
	       "no QP has this number", NULL);
}

vt_pair_test(a_message_of_uc_that_nobody_waits_for, .type = IBV_QPT_UC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	dropped(p, &w, "no receive request is posted", "post more receives");
}

vt_pair_test(a_message_of_uc_that_is_too_long, .type = IBV_QPT_UC)
{
	struct vt_wr w;

	assert_int_equal(vt_recv_at(&p->b, 9, 0, 16), 0);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	dropped(p, &w, "longer than the receive request (wr_id 0x9), which has room for 16 octets",
		"post receives as long");
}

vt_pair_test(a_write_of_uc_by_a_wrong_rkey, .type = IBV_QPT_UC)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 64);
	w.wr.wr.rdma.rkey ^= 0x80000000;
	dropped(p, &w, text("no region has rkey 0x%x", w.wr.wr.rdma.rkey), "send the rkey anew");
}

vt_pair_test(a_message_of_uc_to_a_qp_in_error, .type = IBV_QPT_UC)
{
	struct vt_wr w;

	assert_int_equal(vt_modify(p->b.qp, IBV_QPS_ERR), 0);
	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 64);
	dropped(p, &w, "the QP is not in RTR", "move it to RTR");
}
