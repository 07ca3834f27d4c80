/* SPDX-License-Identifier: BSD-2-Clause */

/* A ring that is full: who waits for room, who is told of it, and who gets it first. */
#include "pair_fixture.h"

enum { QPS = 6, BIG = 32768, RING_FRAMES = VB_RING_DATA_BYTES / BIG };

static struct vb_qp *from[QPS], *to[QPS]; /* all in one lane */

/* QPs whose numbers pick the same lane. */
static struct vb_qp *make_in_lane(struct side *s, enum ibv_qp_type type)
{
	struct vb_qp *spare[VB_RING_LANES], *qp = NULL;
	unsigned n = 0;

	while (!qp) {
		assert_true(n < VB_RING_LANES);
		spare[n] = qp_make(s, type);
		if (spare[n]->ibv.qp.qp_num % VB_RING_LANES == 1)
			qp = spare[n];
		else
			n++;
	}
	while (n)
		drop_qp(spare[--n]);
	return qp;
}

static void pairs_make(enum ibv_qp_type type)
{
	for (unsigned i = 0; i < QPS; i++) {
		from[i] = make_in_lane(&side[0], type);
		to[i] = make_in_lane(&side[1], type);
		qp_connect(from[i], to[i]);
		for (unsigned k = 0; k < 64; k++)
			qp_recv(&side[1], to[i], 1000 * i + k, 0, BIG);
	}
}

static void pairs_drop(void)
{
	for (unsigned i = 0; i < QPS; i++) {
		if (from[i])
			drop_qp(from[i]);
		drop_qp(to[i]);
	}
}

static int rc_pairs_begin(void **state)
{
	lanes_begin(state);
	pairs_make(IBV_QPT_RC);
	return 0;
}

static int uc_pairs_begin(void **state)
{
	lanes_begin(state);
	pairs_make(IBV_QPT_UC);
	return 0;
}

static int pairs_end(void **state)
{
	pairs_drop();
	return lanes_end(state);
}

#define RC_PAIRS(name) TEST_BETWEEN(name, rc_pairs_begin, pairs_end)
#define UC_PAIRS(name) TEST_BETWEEN(name, uc_pairs_begin, pairs_end)

static struct vb_lane *lane(void)
{
	return from[0]->lane.tx;
}

/* Fill the ring with messages of the first QP; further ones wait. */
static void fill_ring(unsigned more)
{
	for (unsigned i = 0; i < RING_FRAMES + more; i++)
		assert_int_equal(qp_send(&side[0], from[0], i, BIG), 0);
}

static uint32_t waiters(void)
{
	return atomic_load(&lane()->waiters);
}

static unsigned completions(struct side *s)
{
	struct ibv_wc wc;
	unsigned n = 0;

	while (vb_cq_poll(s->cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		n++;
	}
	return n;
}

/* --- waiting --- */

RC_PAIRS(what_does_not_fit_waits_and_goes_on)
{
	fill_ring(10);
	assert_int_equal(waiters(), 1);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 1);
	/* Nothing to be gained before somebody reads. */
	vb_nic_lanes_scan(side[0].nic);
	assert_int_equal(waiters(), 1);
	settle();
	assert_int_equal(waiters(), 0);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	assert_int_equal(completions(&side[0]), RING_FRAMES + 10);
	assert_int_equal(completions(&side[1]), RING_FRAMES + 10);
}

/* Small frames run out of slots where large ones run out of data. */
UC_PAIRS(slots_run_out_too)
{
	for (unsigned i = 0; i < VB_RING_SLOTS + 20; i++)
		assert_int_equal(qp_send(&side[0], from[0], i, 8), 0);
	assert_int_equal(waiters(), 1);
	assert_int_equal(completions(&side[0]), VB_RING_SLOTS);
	settle();
	assert_int_equal(completions(&side[0]), 20);
}

/* Responses wait as well, and nothing is lost or sent twice. */
RC_PAIRS(answers_wait_for_room)
{
	struct ibv_sge sge = sge_of(&side[1], 0, MEM_BYTES);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	for (unsigned i = 0; i < MEM_BYTES; i++)
		side[0].mem[i] = (uint8_t)(i * 3 + i / 1000);
	wr.wr.rdma.remote_addr = (uintptr_t)side[0].mem;
	wr.wr.rdma.rkey = side[0].mr->ibv.rkey;
	fill_ring(0);
	/* Asked for by the other end of the second QP: there is no room for a single answer. */
	assert_int_equal(vb_qp_post_send(to[1], &wr, &bad), 0);
	vb_nic_lanes_scan(side[0].nic);
	assert_int_equal(waiters(), 1);
	settle();
	assert_int_equal(completions(&side[0]), RING_FRAMES);
	assert_memory_equal(side[1].mem, side[0].mem, MEM_BYTES);
	assert_int_equal(completions(&side[1]), RING_FRAMES + 1);
	assert_int_equal(stat_of(&side[0], VB_STAT_DUPLICATES), 0);
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_STALE), 0);
}

static void read_a_quarter(void)
{
	struct vb_peer *peer = vb_peer_find(side[1].nic, side[1].slot, side[0].slot);
	struct vb_ring_frame frame;

	for (unsigned k = 0; k < RING_FRAMES / 4; k++) {
		assert_true(vb_ring_take(&peer->lane[1].rx, &frame));
		vb_ring_release(&peer->lane[1].rx);
	}
}

/* Whatever becomes free goes to one who has waited for it, and to each of them once. */
UC_PAIRS(each_gets_its_turn)
{
	unsigned served[QPS] = { 0 };
	struct ibv_wc wc;

	fill_ring(0);
	/* Each wants as much as becomes free at a time. */
	for (unsigned i = 0; i < QPS; i++) {
		for (unsigned k = 0; k < RING_FRAMES / 4; k++)
			assert_int_equal(qp_send(&side[0], from[i], 100 * i + k, BIG), 0);
		assert_int_equal(waiters(), i + 1);
	}
	assert_int_equal(completions(&side[0]), RING_FRAMES);
	for (unsigned i = 0; i < QPS; i++) {
		read_a_quarter();
		vb_nic_lanes_scan(side[0].nic);
		assert_int_equal(waiters(), QPS - 1 - i);
		for (unsigned k = 0; k < RING_FRAMES / 4; k++) {
			assert_int_equal(vb_cq_poll(side[0].cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id % 100, k);
			served[wc.wr_id / 100]++;
		}
		assert_no_wc(side[0].cq);
	}
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(served[i], RING_FRAMES / 4);
	settle();
}

/* --- giving up one's place --- */

static void wait_all(void)
{
	fill_ring(1);
	for (unsigned i = 1; i < QPS; i++)
		assert_int_equal(qp_send(&side[0], from[i], 100 + i, BIG), 0);
	assert_int_equal(waiters(), QPS);
}

static void leave(unsigned i)
{
	uint32_t before = waiters();

	drop_qp(from[i]);
	from[i] = NULL;
	assert_int_equal(waiters(), before - 1);
}

static void the_rest_goes_on(unsigned left)
{
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), left);
	settle();
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	/* What was sent by those that are gone has come as well. */
	assert_int_equal(completions(&side[1]), RING_FRAMES + left);
}

static struct vb_lane *lane_of_any(void)
{
	return &vb_peer_find(side[0].nic, side[0].slot, side[1].slot)->lane[1];
}

UC_PAIRS(the_first_may_leave_the_queue)
{
	struct vb_lane *l;

	wait_all();
	l = lane_of_any();
	drop_qp(from[0]);
	from[0] = NULL;
	assert_int_equal(atomic_load(&l->waiters), QPS - 1);
	the_rest_goes_on(QPS - 1);
}

UC_PAIRS(the_last_may_leave_the_queue)
{
	wait_all();
	leave(QPS - 1);
	/* Whoever comes now stands behind the last but one. */
	assert_int_equal(qp_send(&side[0], from[1], 7, BIG), 0);
	from[QPS - 1] = make_in_lane(&side[0], IBV_QPT_UC);
	qp_ready(from[QPS - 1], to[QPS - 1]->ibv.qp.qp_num);
	assert_int_equal(qp_send(&side[0], from[QPS - 1], 8, BIG), 0);
	assert_int_equal(waiters(), QPS);
	leave(QPS - 1);
	settle();
	assert_int_equal(waiters(), 0);
	assert_int_equal(completions(&side[1]), RING_FRAMES + QPS);
}

UC_PAIRS(those_in_between_may_leave_the_queue)
{
	wait_all();
	leave(2);
	leave(3);
	the_rest_goes_on(QPS - 2);
}

UC_PAIRS(all_may_leave_the_queue)
{
	struct vb_lane *l;

	wait_all();
	l = lane_of_any();
	for (unsigned i = 0; i < QPS; i++) {
		drop_qp(from[i]);
		from[i] = NULL;
	}
	assert_int_equal(atomic_load(&l->waiters), 0);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	settle();
	/* And others may come. */
	from[0] = make_in_lane(&side[0], IBV_QPT_UC);
	qp_ready(from[0], to[0]->ibv.qp.qp_num);
	fill_ring(3);
	assert_int_equal(waiters(), 1);
	settle();
	assert_int_equal(completions(&side[0]), RING_FRAMES + 3);
}

UC_PAIRS(reset_and_error_leave_the_queue)
{
	wait_all();
	assert_int_equal(qp_step(from[1], IBV_QPS_RESET, 0), 0);
	assert_int_equal(waiters(), QPS - 1);
	assert_int_equal(qp_step(from[2], IBV_QPS_ERR, 0), 0);
	completions(&side[1]);
	settle();
	assert_int_equal(waiters(), 0);
	/* What was flushed is not sent. */
	assert_int_equal(completions(&side[1]), RING_FRAMES + QPS - 2);
}

/* --- who is told --- */

UC_PAIRS(who_waits_for_room_is_rung_for)
{
	fill_ring(1);
	assert_true(vb_nic_asleep(side[0].nic));
	assert_int_equal(side[0].bells, 0);
	vb_nic_lanes_scan(side[1].nic);
	assert_int_equal(side[0].bells, 1);
	vb_nic_awake(side[0].nic);
	settle();
}

/* Not once only: each time there is none again. */
UC_PAIRS(who_waits_again_sleeps_again)
{
	fill_ring(4 * RING_FRAMES);
	for (unsigned i = 1; i <= 4; i++) {
		assert_true(vb_nic_asleep(side[0].nic));
		assert_int_equal(side[0].bells, i - 1);
		vb_nic_lanes_scan(side[1].nic);
		assert_int_equal(side[0].bells, i);
		vb_nic_awake(side[0].nic);
		/* One look suffices for what was waited for. */
		vb_nic_lanes_poll(side[0].nic);
	}
	settle();
}

/* One who only sends has rings one way: it is rung for all the same. */
UD_PAIR(one_who_never_receives_is_rung_for_too)
{
	for (unsigned i = 0; i < VB_RING_SLOTS + 1; i++)
		assert_int_equal(datagram(i, 8, b->ibv.qp.qp_num), 0);
	assert_int_equal(side[1].reaches, 0);
	assert_true(vb_nic_asleep(side[0].nic));
	scan_all(&side[1]);
	assert_int_equal(side[0].bells, 1);
	vb_nic_awake(side[0].nic);
	settle();
	assert_int_equal(stat_of(&side[0], VB_STAT_TX_LOST), 0);
}

/* The room came just before we lay down: then there is something to do. */
UC_PAIRS(nobody_sleeps_over_room)
{
	fill_ring(1);
	vb_nic_lanes_scan(side[1].nic);
	assert_false(vb_nic_asleep(side[0].nic));
	vb_nic_awake(side[0].nic);
	vb_nic_lanes_scan(side[0].nic);
	assert_int_equal(waiters(), 0);
	assert_true(vb_nic_asleep(side[0].nic));
	vb_nic_awake(side[0].nic);
	settle();
}

/* --- datagrams --- */

/* A reader that is stopped costs datagrams, but not for ever, and not those for others. */
UD_PAIR(datagrams_for_one_who_does_not_read_are_lost)
{
	struct side *third = side_make(SLOT_FIRST + 2, 300);
	struct vb_qp *c = qp_make(third, IBV_QPT_UD);

	qp_ready(c, 0);
	qp_recv(third, c, 77, 0, 1000);
	for (unsigned i = 0; i < VB_RING_SLOTS + 5; i++)
		assert_int_equal(datagram(i, 8, b->ibv.qp.qp_num), 0);
	assert_int_equal(datagram(999, 8, c->ibv.qp.qp_num), 0);
	assert_int_equal(completions(&side[0]), VB_RING_SLOTS);
	assert_true(vb_nic_deadline_ns(side[0].nic) <= fake_ns + 20000000);
	fake_ns += 19999999;
	vb_nic_turn(side[0].nic);
	assert_int_equal(stat_of(&side[0], VB_STAT_TX_LOST), 0);
	assert_int_equal(vb_nic_deadline_ns(side[0].nic), fake_ns + 1);
	vb_nic_lanes_scan(third->nic);
	assert_no_wc(third->cq);
	fake_ns++;
	vb_nic_turn(side[0].nic);
	assert_int_equal(stat_of(&side[0], VB_STAT_TX_LOST), 5);
	assert_int_equal(completions(&side[0]), 6);
	vb_nic_lanes_scan(third->nic);
	assert_wc(third->cq, 77, IBV_WC_SUCCESS);
	/* It waits in no queue any more. */
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	/* Once the reader is back, all is well. */
	settle();
	qp_recv(&side[1], b, 88, 0, 1000);
	assert_int_equal(datagram(1, 8, b->ibv.qp.qp_num), 0);
	settle();
	assert_wc(side[1].cq, 88, IBV_WC_SUCCESS);
	assert_int_equal(stat_of(&side[0], VB_STAT_TX_LOST), 5);
	drop_qp(c);
}

/* It waits where the datagram goes that is next, not where one went that has left since. */
UD_PAIR(a_datagram_waits_at_its_own_lane)
{
	struct side *third = side_make(SLOT_FIRST + 2, 300);
	struct vb_qp *c = qp_make(third, IBV_QPT_UD);
	struct vb_lane *first, *second;

	qp_ready(c, 0);
	for (unsigned i = 0; i < VB_RING_SLOTS; i++)
		assert_int_equal(datagram(i, 8, c->ibv.qp.qp_num), 0);
	assert_int_equal(completions(&side[0]), VB_RING_SLOTS);
	for (unsigned i = 0; i < VB_RING_SLOTS + 1; i++)
		assert_int_equal(datagram(i, 8, b->ibv.qp.qp_num), 0);
	first = a->lane.waits;
	assert_non_null(first);
	assert_int_equal(first->peer->slot, side[1].slot);
	scan_all(&side[1]);
	/* There is room at the first, which it takes by posting; and none at the second. */
	assert_int_equal(datagram(0, 8, c->ibv.qp.qp_num), 0);
	second = a->lane.waits;
	assert_non_null(second);
	assert_int_equal(second->peer->slot, third->slot);
	assert_int_equal(atomic_load(&first->waiters), 0);
	assert_int_equal(atomic_load(&second->waiters), 1);
	settle();
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	assert_int_equal(completions(&side[0]), VB_RING_SLOTS + 2);
	drop_qp(c);
}
