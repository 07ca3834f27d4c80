/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/shuffle.h"

#include "nic/core/order.h"

static struct vb_cqe *at(const struct vb_cq *cq, uint64_t place)
{
	return &cq->ring[place & cq->mask];
}

/* Tag matching counts what it hands over, in the order of the SRQ: nothing passes that. */
static bool is_bound(const struct vb_cqe *cqe)
{
	return cqe->note == VB_CQE_TM ||
	       (cqe->wc.opcode >= IBV_WC_TM_ADD && cqe->wc.opcode <= IBV_WC_TM_NO_TAG);
}

/* Drivers' own opcodes, of send queues, have the bit IBV_WC_RECV as well. */
static bool is_recv(const struct vb_cqe *cqe)
{
	return cqe->wc.opcode == IBV_WC_RECV || cqe->wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
}

/*
 * Those of a send queue, and of a receive queue, are in the order of posting. What is flushed (IBA
 * 10.3.1.7) is so because of an error that came before, and that may be in the other queue.
 */
static bool may_change_places(const struct vb_cqe *a, const struct vb_cqe *b)
{
	bool same_qp = a->wc.qp_num == b->wc.qp_num;
	bool bound = is_recv(a) == is_recv(b) || b->wc.status == IBV_WC_WR_FLUSH_ERR;

	return !(same_qp && bound) && !is_bound(a) && !is_bound(b);
}

/* Times stay where they are, since a clock goes forward. */
static void change_places(struct vb_cq *cq, uint64_t a, uint64_t b)
{
	struct vb_cqe cqe = *at(cq, a);

	*at(cq, a) = *at(cq, b);
	*at(cq, b) = cqe;
	if (cq->parcels) {
		struct vb_parcel parcel = cq->parcels[a & cq->mask];

		cq->parcels[a & cq->mask] = cq->parcels[b & cq->mask];
		cq->parcels[b & cq->mask] = parcel;
	}
}

void vb_cq_shuffle(struct vb_cq *cq)
{
	uint64_t draws, head, tail;

	if (vb_cq_is_empty(cq))
		return;
	vb_lock_take(&cq->poll_lock);
	/* Who adds one may be late with its event: the completions are here meanwhile. */
	if (!vb_lock_try(&cq->push_lock)) {
		vb_lock_drop(&cq->poll_lock);
		return;
	}
	head = atomic_load(&cq->head);
	tail = atomic_load(&cq->tail);
	draws = tail - head > 1 ? vb_order_begin(vb_nic_of(cq->ibv.cq.context),
							VB_ORDER_OF_COMPLETIONS)
				       : 0;
	/* An event was given for those before `told`: they stay before it. */
	for (uint64_t i = head + 1; i < tail; i++) {
		if (i != cq->told && may_change_places(at(cq, i - 1), at(cq, i)) &&
		    vb_order_below(&draws, 2))
			change_places(cq, i - 1, i);
	}
	vb_lock_drop(&cq->push_lock);
	vb_lock_drop(&cq->poll_lock);
}
