/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/tape/taped.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/ops.h"
#include "abi/verbs/wr.h"
#include "run/progress.h"
#include "tape/calls.h"
#include "tape/lists.h"
#include "tape/tape.h"

/* What posts otherwise: it makes one call into the NIC. */
static struct ibv_context_ops usual;

static void put_object(const void *object)
{
	uint64_t at = (uintptr_t)object;

	vb_tape_put_value(at);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t place;
	int rc;

	if (vb_abi_is_gone(qp->context))
		return usual.post_send(qp, wr, bad);
	if (vb_tape_enter(VB_TAPE_QP_POST_SEND)) {
		put_object(qp);
		vb_tape_put_sends(wr);
	}
	rc = usual.post_send(qp, wr, bad);
	place = vb_tape_send_place(wr, rc != 0 ? *bad : NULL);
	vb_tape_leave(rc, NULL, &place, sizeof(place));
	return rc;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t place;
	int rc;

	if (vb_abi_is_gone(qp->context))
		return usual.post_recv(qp, wr, bad);
	if (vb_tape_enter(VB_TAPE_QP_POST_RECV)) {
		put_object(qp);
		vb_tape_put_recvs(wr);
	}
	rc = usual.post_recv(qp, wr, bad);
	place = vb_tape_recv_place(wr, rc != 0 ? *bad : NULL);
	vb_tape_leave(rc, NULL, &place, sizeof(place));
	return rc;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t place;
	int rc;

	if (vb_abi_is_gone(srq->context))
		return usual.post_srq_recv(srq, wr, bad);
	if (vb_tape_enter(VB_TAPE_SRQ_POST)) {
		put_object(srq);
		vb_tape_put_recvs(wr);
	}
	rc = usual.post_srq_recv(srq, wr, bad);
	place = vb_tape_recv_place(wr, rc != 0 ? *bad : NULL);
	vb_tape_leave(rc, NULL, &place, sizeof(place));
	return rc;
}

static int poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct vb_cq *cq = (struct vb_cq *)ibv;
	int got;

	if (vb_abi_is_gone(ibv->context))
		return -EIO;
	got = vb_taped_cq_poll(cq, num_entries, wc);
	if (got == 0) {
		vb_progress_poll(vb_device_of(ibv->context));
		got = vb_taped_cq_poll(cq, num_entries, wc);
	}
	vb_report_found();
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	if (vb_abi_is_gone(cq->context))
		return EIO;
	vb_taped_cq_arm_notify((struct vb_cq *)cq, solicited_only != 0);
	vb_progress_app_waits(vb_device_of(cq->context));
	return 0;
}

void vb_taped_ops_set(struct ibv_context_ops *ops)
{
	usual = *ops;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
}

int vb_taped_complete(struct ibv_qp_ex *qp, const struct vb_builder *b,
		      int (*complete)(struct ibv_qp_ex *qp))
{
	int rc;

	if (vb_abi_is_gone(qp->qp_base.context) || b->error || !b->count)
		return complete(qp);
	if (vb_tape_enter(VB_TAPE_QP_POST_BATCH)) {
		put_object(qp);
		vb_tape_put_posts(b->posts, b->count);
	}
	rc = complete(qp);
	vb_tape_leave(rc, NULL, NULL, 0);
	return rc;
}
