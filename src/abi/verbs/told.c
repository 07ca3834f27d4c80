/* SPDX-License-Identifier: BSD-2-Clause */
/* See ops.h. */
#include "abi/verbs/ops.h"
#include "nic/data/explain.h"
#include "nic/data/post_why.h"
#include "run/process/callsite.h"
#include "run/process/report.h"

int vb_told_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int got = vb_abi_poll_cq(cq, num_entries, wc);

	/* The log has the explanation of a completion before the application has the completion. */
	vb_report_found();
	return got;
}

int vb_told_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	uint32_t count = 0;

	for (const struct ibv_send_wr *w = wr; w; w = w->next)
		count++;
	/* ibv_post_send() is inline: mostly, this is where the application calls it. */
	vb_explain_site((struct vb_qp *)qp, count, vb_caller_by(__builtin_return_address(0)));
	return vb_report_refused("ibv_post_send", vb_abi_post_send(qp, wr, bad_wr));
}

int vb_told_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return vb_report_refused("ibv_post_recv", vb_abi_post_recv(qp, wr, bad_wr));
}

int vb_told_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int rc = vb_abi_post_srq_recv(srq, wr, bad_wr);

	if (rc != 0)
		vb_srq_recv_refused((struct vb_srq *)srq, *bad_wr, rc);
	return vb_report_refused("ibv_post_srq_recv", rc);
}
