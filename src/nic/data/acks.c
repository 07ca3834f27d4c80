/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/acks.h"

#include "base/check.h"
#include "nic/way/peer.h"

/* ACKs are delayed once the application has answered at once this often in a row. */
#define QUICK_MIN 4

/*
 * How long a QP being destroyed waits for room for what it owes. Rounds bound it if time stands
 * still.
 */
#define ROOM_NS 10000000u
#define ROOM_ROUNDS_MAX 2000u

void vb_ack_posted(struct vb_qp *qp, uint64_t now_ns)
{
	struct vb_ack *ack = &qp->ack;

	if (!ack->came_ns)
		return;
	if (now_ns - ack->came_ns >= VB_ACK_WAIT_NS)
		ack->quick = 0;
	else if (ack->quick < QUICK_MIN)
		ack->quick++;
	ack->came_ns = 0;
}

void vb_ack_hold(struct vb_qp *qp, uint64_t now_ns)
{
	struct vb_ack *ack = &qp->ack;

	if (!qp->resp.ack_owed || ack->came_ns != now_ns)
		return;
	/* A second message before the first was answered: this is a stream. */
	if (ack->due_ns || ack->quick < QUICK_MIN || vb_qp_state(qp) != IBV_QPS_RTS)
		ack->due_ns = 0;
	else
		ack->due_ns = now_ns + VB_ACK_WAIT_NS;
}

void vb_ack_keep(struct vb_qp *qp)
{
	struct vb_nic *nic = qp->nic;
	bool first = vb_later_is_empty(&nic->later.acks);

	if (!vb_ack_waits(qp) || vb_later_is_in(&qp->later.ack))
		return;
	vb_later_put(&nic->later.acks, &qp->later.ack);
	/* Those in the list are due earlier. */
	if (first) {
		atomic_store(&nic->later.acks_due_ns, qp->ack.due_ns);
		nic->host.clock.kick(nic->host.arg);
	}
}

static struct vb_qp *take(struct vb_later_queue *acks)
{
	if (vb_later_is_empty(acks))
		return NULL;
	return vb_container_of(vb_later_take(acks), struct vb_qp, later.ack);
}

void vb_acks_turn(struct vb_nic *nic, uint64_t now_ns)
{
	struct vb_later_queue kept = VB_LATER_EMPTY;
	uint64_t first_ns = UINT64_MAX;
	struct vb_qp *qp;

	if (atomic_load_explicit(&nic->later.acks_due_ns, memory_order_relaxed) > now_ns)
		return;
	while ((qp = take(&nic->later.acks))) {
		vb_lock_take(&qp->lock);
		qp->now_ns = now_ns;
		if (qp->resp.ack_owed && qp->ack.due_ns && qp->ack.due_ns <= now_ns) {
			qp->ack.quick = 0;
			vb_qp_transmit_locked(qp);
		}
		if (vb_ack_waits(qp)) {
			first_ns = qp->ack.due_ns < first_ns ? qp->ack.due_ns : first_ns;
			vb_later_put(&kept, &qp->later.ack);
		}
		vb_lock_drop(&qp->lock);
	}
	nic->later.acks = kept;
	atomic_store(&nic->later.acks_due_ns, first_ns);
}

void vb_ack_flush(struct vb_qp *qp)
{
	if (!vb_resp_owes(&qp->resp))
		return;
	qp->ack.due_ns = 0;
	qp->now_ns = vb_nic_now_ns(qp->nic);
	vb_qp_transmit_locked(qp);
}

/* Does something owed only wait for room, with a peer alive that makes room? */
static bool waits_for_room(const struct vb_qp *qp)
{
	if (!vb_resp_owes(&qp->resp))
		return false;
	return qp->to.peer ? qp->lane.waits && !vb_peer_is_lost(qp->to.peer) : qp->send.link_full;
}

void vb_ack_settle(struct vb_qp *qp)
{
	const struct vb_nic_host *host = &qp->nic->host;
	uint64_t begin_ns = vb_nic_now_ns(qp->nic), waited_ns = 0;
	bool waits;

	for (unsigned i = 0; i < ROOM_ROUNDS_MAX && waited_ns < ROOM_NS; i++) {
		vb_lock_take(&qp->lock);
		vb_ack_flush(qp);
		waits = waits_for_room(qp);
		vb_lock_drop(&qp->lock);
		if (!waits)
			break;
		waited_ns = vb_nic_now_ns(qp->nic) - begin_ns;
		host->clock.pause(host->arg, waited_ns);
	}
}

void vb_acks_flush(struct vb_nic *nic)
{
	struct vb_later_queue kept = VB_LATER_EMPTY;
	struct vb_qp *qp;

	if (!vb_lock_try(&nic->rx))
		return;
	while ((qp = take(&nic->later.acks))) {
		if (vb_lock_try(&qp->lock)) {
			vb_ack_flush(qp);
			vb_lock_drop(&qp->lock);
		} else {
			vb_later_put(&kept, &qp->later.ack);
		}
	}
	nic->later.acks = kept;
	vb_lock_drop(&nic->rx);
}

void vb_unacked_add(struct vb_qp *qp, struct vb_cq *cq, const struct vb_cqe *cqe)
{
	struct vb_unacked *unacked = qp->recv.unacked;

	vb_check(!vb_unacked_is_full(qp));
	unacked->of[unacked->count].cq = cq;
	unacked->of[unacked->count++].cqe = *cqe;
}

void vb_unacked_give(struct vb_qp *qp)
{
	struct vb_unacked *unacked = qp->recv.unacked;
	unsigned count = unacked ? unacked->count : 0;

	for (unsigned i = 0; i < count; i++)
		vb_cq_push(unacked->of[i].cq, &unacked->of[i].cqe);
	if (count)
		unacked->count = 0;
}

void vb_ack_forget(struct vb_qp *qp)
{
	struct vb_nic_later *later = &qp->nic->later;

	if (vb_later_drop(&later->acks, &qp->later.ack) && vb_later_is_empty(&later->acks))
		atomic_store(&later->acks_due_ns, UINT64_MAX);
}
