/* SPDX-License-Identifier: BSD-2-Clause */

/* Peers: how they end and are followed by others, who is looked at, and whose bell is rung. */
#include <unistd.h>

#include "pair_fixture.h"
#include "nic/way/way.h"
#include "wire/bytes.h"

static struct vb_peer *peer_of(struct side *s, const struct side *other)
{
	return vb_peer_find(s->nic, s->slot, other->slot);
}

/* Side 1 dies, and side 0 hears of it. */
static void death(void)
{
	struct vb_peer *peer = peer_of(&side[0], &side[1]);

	assert_non_null(peer);
	side_die(&side[1]);
	vb_peer_gone(peer);
}

/* --- the end of a peer --- */

RC_PAIR(what_was_outstanding_fails_at_once)
{
	for (unsigned i = 0; i < 3; i++)
		qp_recv(&side[1], b, 50 + i, 0, 100);
	for (unsigned i = 0; i < 3; i++)
		qp_recv(&side[0], a, 60 + i, 0, 100);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	vb_nic_lanes_scan(side[1].nic);
	/* It answered the first and sent something of its own, and died then. */
	assert_int_equal(qp_send(&side[1], b, 9, 100), 0);
	assert_int_equal(qp_send(&side[0], a, 2, 100), 0);
	assert_int_equal(qp_send(&side[0], a, 3, 100), 0);
	death();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 60, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 2, IBV_WC_RETRY_EXC_ERR);
	assert_wc(side[0].cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_wc(side[0].cq, 61, IBV_WC_WR_FLUSH_ERR);
	assert_wc(side[0].cq, 62, IBV_WC_WR_FLUSH_ERR);
	assert_no_wc(side[0].cq);
	assert_int_equal(vb_qp_state(a), IBV_QPS_ERR);
	/* And nothing more comes. */
	assert_int_equal(qp_send(&side[0], a, 4, 100), 0);
	assert_wc(side[0].cq, 4, IBV_WC_WR_FLUSH_ERR);
	fake_ns += 1000000000;
	vb_nic_turn(side[0].nic);
	vb_nic_lanes_scan(side[0].nic);
	assert_no_wc(side[0].cq);
	assert_int_equal(vb_nic_deadline_ns(side[0].nic), UINT64_MAX);
}

/* Nothing was outstanding: nothing fails, before something is posted. */
RC_PAIR(an_idle_connection_fails_when_it_is_used)
{
	qp_recv(&side[0], a, 60, 0, 100);
	death();
	assert_no_wc(side[0].cq);
	assert_int_equal(vb_qp_state(a), IBV_QPS_RTS);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_wc(side[0].cq, 60, IBV_WC_WR_FLUSH_ERR);
}

LANES(one_that_only_receives_is_left_alone)
{
	pair_create(IBV_QPT_RC);
	assert_int_equal(qp_step(a, IBV_QPS_INIT, 0), 0);
	assert_int_equal(qp_step(a, IBV_QPS_RTR, b->ibv.qp.qp_num), 0);
	qp_ready(b, a->ibv.qp.qp_num);
	qp_recv(&side[0], a, 60, 0, 100);
	assert_int_equal(qp_send(&side[1], b, 1, 100), 0);
	death();
	assert_wc(side[0].cq, 60, IBV_WC_SUCCESS);
	assert_no_wc(side[0].cq);
	assert_int_equal(vb_qp_state(a), IBV_QPS_RTR);
	pair_drop();
}

/* Being drained, it has begun nothing that could fail; what was queued does once it may go. */
RC_PAIR(a_drained_queue_fails_when_it_goes_on)
{
	assert_int_equal(qp_step(a, IBV_QPS_SQD, 0), 0);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	death();
	assert_no_wc(side[0].cq);
	assert_int_equal(vb_qp_state(a), IBV_QPS_SQD);
	assert_int_equal(qp_step(a, IBV_QPS_RTS, 0), 0);
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
}

UC_PAIR(what_is_unreliable_is_lost_without_a_word)
{
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	death();
	assert_int_equal(qp_send(&side[0], a, 2, 100000), 0);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(vb_qp_state(a), IBV_QPS_RTS);
}

/* But a fault of one's own is one, whoever is there. */
UC_PAIR(one_s_own_faults_are_told_all_the_same)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 100);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	death();
	sge.length = (1u << 31) + 1;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	assert_wc(side[0].cq, 1, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(vb_qp_state(a), IBV_QPS_SQE);
	assert_int_equal(qp_step(a, IBV_QPS_RTS, 0), 0);
	sge.length = 100;
	sge.lkey ^= 0x100;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	assert_wc(side[0].cq, 1, IBV_WC_LOC_PROT_ERR);
}

RC_PAIR(who_waits_for_room_at_the_dead_is_let_go)
{
	struct vb_qp *c, *d;

	c = qp_make(&side[0], IBV_QPT_UC);
	d = qp_make(&side[1], IBV_QPT_UC);
	qp_connect(c, d);
	for (unsigned i = 0; i < VB_RING_SLOTS + 1; i++)
		assert_int_equal(qp_send(&side[0], a, i, 8), 0);
	for (unsigned i = 0; i < VB_RING_SLOTS + 1; i++)
		assert_int_equal(qp_send(&side[0], c, 1000 + i, 8), 0);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 2);
	for (unsigned i = 0; i < VB_RING_SLOTS; i++)
		assert_wc(side[0].cq, 1000 + i, IBV_WC_SUCCESS);
	death();
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	assert_wc(side[0].cq, 0, IBV_WC_RETRY_EXC_ERR);
	for (unsigned i = 1; i < VB_RING_SLOTS + 1; i++)
		assert_wc(side[0].cq, i, IBV_WC_WR_FLUSH_ERR);
	assert_wc(side[0].cq, 1000 + VB_RING_SLOTS, IBV_WC_SUCCESS);
	drop_qp(c);
	drop_qp(d);
}

/*
 * A process that says it is gone and goes on writing: a NAK that is stale, each time we look at
 * the clock for the one before.
 */
static void write_on(void)
{
	struct vb_ring_tx *tx = &peer_of(&side[1], &side[0])->lane[b->ibv.qp.qp_num %
								    VB_RING_LANES].tx;

	assert_non_null(vb_ring_reserve(tx, 16, 0));
	memset(tx->octets, 0, 16);
	tx->octets[0] = VB_OP_RC_ACK;
	vb_be16_put(tx->octets + 2, 0xffff);
	vb_be32_put(tx->octets + 4, a->ibv.qp.qp_num);
	tx->octets[12] = vb_aeth_nak(VB_NAK_PSN);
	vb_ring_publish(tx, 16, 0);
}

RC_PAIR(one_who_writes_on_does_not_keep_us)
{
	write_on();
	fake_ns_hook = write_on;
	alarm(60);
	death();
	alarm(0);
	fake_ns_hook = NULL;
	assert_true(stat_of(&side[0], VB_STAT_RX_LANE_FRAMES) <= VB_RING_SLOTS + 64);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* --- those that come after --- */

static void assert_exchange(struct side *s, struct vb_qp *from, struct side *t, struct vb_qp *to)
{
	qp_recv(t, to, 71, 0, 1000);
	assert_int_equal(qp_send(s, from, 72, 1000), 0);
	settle();
	assert_wc(s->cq, 72, IBV_WC_SUCCESS);
	assert_wc(t->cq, 71, IBV_WC_SUCCESS);
	assert_no_wc(s->cq);
	assert_no_wc(t->cq);
}

LANES(the_slot_s_next_owner_is_another_peer)
{
	struct vb_peer *peer;
	struct side *heir;
	struct vb_qp *c, *d;

	pair_make(IBV_QPT_RC);
	peer = a->to.peer;
	death();
	assert_null(peer_of(&side[0], &side[1]));
	heir = side_make(side[1].slot, 5000);
	c = qp_make(&side[0], IBV_QPT_RC);
	d = qp_make(heir, IBV_QPT_RC);
	qp_connect(c, d);
	assert_non_null(c->to.peer);
	assert_ptr_not_equal(c->to.peer, peer);
	assert_exchange(&side[0], c, heir, d);
	/* The old one lives as long as QPs know it, and fails them. */
	assert_int_equal(side[0].releases, 0);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
	drop_qp(a);
	assert_int_equal(side[0].releases, 1);
	assert_exchange(&side[0], c, heir, d);
	drop_qp(c);
	drop_qp(d);
	drop_qp(b);
	assert_int_equal(side[0].releases, 1);
}

/* Its successor is there before we hear of its end. */
RC_PAIR(a_successor_may_come_before_the_news)
{
	struct vb_peer *peer;
	struct side *heir;
	struct vb_qp *c, *d;

	peer = a->to.peer;
	side_die(&side[1]);
	heir = side_make(side[1].slot, 5000);
	c = qp_make(&side[0], IBV_QPT_RC);
	d = qp_make(heir, IBV_QPT_RC);
	/* Our side first: it knows the slot's old owner only. */
	qp_connect(c, d);
	assert_non_null(c->to.peer);
	assert_ptr_not_equal(c->to.peer, peer);
	assert_exchange(&side[0], c, heir, d);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	assert_no_wc(side[0].cq);
	vb_peer_gone(peer);
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_ptr_equal(peer_of(&side[0], heir), c->to.peer);
	assert_exchange(&side[0], c, heir, d);
	drop_qp(c);
	drop_qp(d);
}

LANES(peer_objects_are_used_again)
{
	struct vb_peer *peer;

	for (unsigned i = 0; i < 5; i++) {
		struct side *heir = i ? side_make(SLOT_FIRST + 1, 1000 * i) : &side[1];

		a = qp_make(&side[0], IBV_QPT_RC);
		b = qp_make(heir, IBV_QPT_RC);
		qp_connect(a, b);
		assert_exchange(&side[0], a, heir, b);
		peer = a->to.peer;
		drop_qp(a);
		drop_qp(b);
		assert_int_equal(side[0].releases, i);
		side_die(heir);
		vb_peer_gone(peer);
		assert_int_equal(side[0].releases, i + 1);
		/* Nothing is to be held, and nothing to be ended twice. */
		assert_false(vb_peer_hold(peer));
		assert_int_equal(atomic_load(&peer->refs), 0);
		vb_peer_gone(peer);
		assert_int_equal(side[0].releases, i + 1);
	}
	assert_int_equal(atomic_load(&side[0].nic->peering.count), 1);
}

/* The process died between being found and being held: the QP goes by wire, and hears nothing. */
RC_PAIR(nobody_is_bound_to_the_dead)
{
	struct vb_peer *peer;

	peer = a->to.peer;
	assert_int_equal(qp_step(a, IBV_QPS_RESET, 0), 0);
	death();
	vb_qp_bind_locked(a, peer, b->ibv.qp.qp_num);
	assert_null(a->to.peer);
	/* Or it was another's by then. */
	side_make(SLOT_FIRST + 2, 300);
	drop_qp(b);
	b = qp_make(&side[2], IBV_QPT_RC);
	qp_connect(a, b);
	assert_ptr_equal(a->to.peer, peer);
	assert_int_equal(qp_step(a, IBV_QPS_RESET, 0), 0);
	vb_qp_bind_locked(a, peer, (SLOT_FIRST + 1) << VB_INDEX_BITS | 7);
	assert_null(a->to.peer);
	assert_int_equal(atomic_load(&peer->refs), 1);
}

/* A datagram that waited at the dead goes where the slot's next owner is. */
LANES(datagrams_do_not_wait_for_the_dead)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct side *heir;
	struct vb_qp *c;

	datagrams_make();
	wr.wr.ud.ah = &ah->ibv;
	wr.wr.ud.remote_qpn = b->ibv.qp.qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	for (unsigned i = 0; i < VB_RING_SLOTS + 3; i++)
		assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	assert_non_null(a->lane.waits);
	death();
	assert_null(a->lane.waits);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	assert_int_equal(side[0].releases, 1);
	/* Nobody could be reached, so they went by wire, like any to nobody. */
	assert_int_equal(side[0].sent, 3);
	fake_ns += 200000000;
	heir = side_make(side[1].slot, 5000);
	c = qp_make(heir, IBV_QPT_UD);
	qp_ready(c, 0);
	qp_recv(heir, c, 5, 0, 100);
	wr.wr.ud.remote_qpn = c->ibv.qp.qp_num;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(heir->cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(vb_ah_destroy(ah), 0);
	drop_qp(c);
	pair_drop();
}

LANES(there_is_no_peer_of_no_slot)
{
	assert_null(vb_peer_get(side[0].nic, SLOT_FIRST, 7));
	pair_make(IBV_QPT_RC);
	assert_null(vb_peer_get(side[0].nic, SLOT_FIRST + 5, 7));
	assert_null(vb_peer_get(side[0].nic, SLOT_FIRST, VB_SLOTS));
	assert_null(vb_peer_find(side[0].nic, SLOT_FIRST, 7));
	assert_non_null(vb_peer_get(side[0].nic, SLOT_FIRST, 7));
	assert_ptr_equal(vb_peer_get(side[0].nic, SLOT_FIRST, 7),
			 vb_peer_find(side[0].nic, SLOT_FIRST, 7));
	pair_drop();
}

/* --- who is looked at --- */

enum { OTHERS = VB_HOT_MAX + 4 };

static struct vb_qp *here[OTHERS], *there[OTHERS];

static void others_make(void)
{
	for (unsigned i = 0; i < OTHERS; i++) {
		struct side *s = side_make((uint16_t)(SLOT_FIRST + 2 + i), 100 + i);

		here[i] = qp_make(&side[0], IBV_QPT_RC);
		there[i] = qp_make(s, IBV_QPT_RC);
		qp_connect(here[i], there[i]);
	}
}

static void others_drop(void)
{
	for (unsigned i = 0; i < OTHERS; i++) {
		drop_qp(here[i]);
		drop_qp(there[i]);
	}
}

/* More rings in use than are looked at in every poll: all are heard, by polls alone. */
LANES(all_are_heard)
{
	others_make();
	for (unsigned round = 0; round < 10; round++) {
		unsigned got = 0;

		for (unsigned i = 0; i < OTHERS; i++) {
			qp_recv(&side[0], here[i], i, 0, 100);
			assert_int_equal(qp_send(&side[2 + i], there[i], i, 100), 0);
		}
		for (unsigned polls = 0; got < OTHERS; polls++) {
			assert_true(polls < 10000);
			got += vb_nic_lanes_poll(side[0].nic);
		}
		settle();
		for (unsigned i = 0; i < OTHERS; i++)
			assert_wc(side[2 + i].cq, i, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < OTHERS; i++) {
			struct ibv_wc wc;

			assert_int_equal(vb_cq_poll(side[0].cq, 1, &wc), 1);
		}
	}
	assert_int_equal(atomic_load(&side[0].nic->lanes.count), VB_HOT_MAX);
	others_drop();
}

/* One whose messages never end does not drown those of others. */
LANES(nobody_is_drowned_by_others_traffic)
{
	struct ibv_wc wc;
	unsigned polls;

	others_make();
	for (unsigned i = 0; i < VB_HOT_MAX; i++) {
		qp_recv(&side[0], here[0], 0, 0, 100);
		assert_int_equal(qp_send(&side[2], there[0], 0, 100), 0);
		settle();
		while (vb_cq_poll(side[0].cq, 1, &wc))
			;
	}
	qp_recv(&side[0], here[1], 7777, 0, 100);
	assert_int_equal(qp_send(&side[3], there[1], 1, 100), 0);
	for (polls = 0; polls < 100000; polls++) {
		bool found = false;

		qp_recv(&side[0], here[0], 0, 0, 100);
		assert_int_equal(qp_send(&side[2], there[0], 0, 100), 0);
		assert_true(vb_nic_lanes_poll(side[0].nic) > 0);
		vb_nic_lanes_scan(side[2].nic);
		while (vb_cq_poll(side[2].cq, 1, &wc))
			;
		while (vb_cq_poll(side[0].cq, 1, &wc))
			found |= wc.wr_id == 7777;
		if (found)
			break;
	}
	assert_true(polls < 10000);
	settle();
	others_drop();
}

/* --- bells --- */

UC_PAIR(a_sleeper_is_rung_for_once)
{
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 0);
	settle();
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(vb_nic_asleep(side[1].nic));
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
		vb_nic_lanes_scan(side[0].nic);
		assert_int_equal(side[1].bells, i);
		vb_nic_awake(side[1].nic);
		assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
		settle();
		assert_int_equal(side[1].bells, i);
	}
}

/* Datagrams, which are bound to nobody, ring as well. */
UD_PAIR(a_datagram_wakes_whom_it_is_for)
{
	assert_int_equal(datagram(1, 8, b->ibv.qp.qp_num), 0);
	settle();
	assert_true(vb_nic_asleep(side[1].nic));
	assert_int_equal(datagram(2, 8, b->ibv.qp.qp_num), 0);
	assert_int_equal(side[1].bells, 1);
	vb_nic_awake(side[1].nic);
	settle();
}

UC_PAIR(nobody_sleeps_over_frames)
{
	assert_true(vb_nic_asleep(side[1].nic));
	vb_nic_awake(side[1].nic);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_false(vb_nic_asleep(side[1].nic));
	vb_nic_awake(side[1].nic);
	settle();
	assert_true(vb_nic_asleep(side[1].nic));
	vb_nic_awake(side[1].nic);
	assert_int_equal(atomic_load(&side[1].nic->export->sleep_epoch) % 2, 0);
}

/* As if it had lain down while we published, and each had just missed the other. */
static void lie_down_unseen(struct side *s)
{
	assert_false(vb_nic_asleep(s->nic));
}

/* Of two sleepers in one process, one gets up: the other one's bell must be rung again. */
UC_PAIR(each_sleeper_is_rung_for)
{
	assert_true(vb_nic_asleep(side[1].nic));
	assert_true(vb_nic_asleep(side[1].nic));
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 1);
	vb_nic_awake(side[1].nic);
	vb_nic_lanes_scan(side[1].nic);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 2);
	vb_nic_awake(side[1].nic);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 2);
	settle();
}

/* Somebody who was awake took the bell's octets and the frames: the sleeper slept through it. */
UC_PAIR(a_bell_that_another_heard_is_rung_again)
{
	assert_true(vb_nic_asleep(side[1].nic));
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 1);
	vb_nic_heard(side[1].nic);
	vb_nic_lanes_scan(side[1].nic);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 2);
	vb_nic_awake(side[1].nic);
	/* With nobody asleep, nobody is to be rung for. */
	vb_nic_heard(side[1].nic);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(side[1].bells, 2);
	settle();
}

UC_PAIR(a_missed_sleeper_is_rung_for_later)
{
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	lie_down_unseen(&side[1]);
	assert_int_equal(side[1].bells, 0);
	/* Before it sleeps itself ... */
	assert_true(vb_nic_asleep(side[0].nic));
	assert_int_equal(side[1].bells, 1);
	vb_nic_awake(side[0].nic);
	vb_nic_awake(side[1].nic);
	settle();
	/* ... or when it polls. */
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	lie_down_unseen(&side[1]);
	for (unsigned i = 0; i < 200; i++)
		vb_nic_lanes_poll(side[0].nic);
	assert_int_equal(side[1].bells, 2);
	vb_nic_awake(side[1].nic);
	settle();
}

/* One who sends and never looks at anything again: a clock does it for him. */
LANES(a_missed_sleeper_is_rung_for_by_the_clock)
{
	pair_make(IBV_QPT_UC);
	assert_int_equal(vb_nic_deadline_ns(side[0].nic), UINT64_MAX);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	lie_down_unseen(&side[1]);
	assert_true(vb_nic_deadline_ns(side[0].nic) <= fake_ns + 10000000);
	fake_ns = vb_nic_deadline_ns(side[0].nic);
	vb_nic_turn(side[0].nic);
	assert_true(vb_nic_asleep(side[0].nic));
	assert_int_equal(side[1].bells, 1);
	vb_nic_awake(side[0].nic);
	/* Once is enough. */
	assert_int_equal(vb_nic_deadline_ns(side[0].nic), UINT64_MAX);
	vb_nic_awake(side[1].nic);
	settle();
	/* And a QP that goes does it in place of its clock. */
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	lie_down_unseen(&side[1]);
	assert_int_equal(side[1].bells, 1);
	drop_qp(a);
	assert_int_equal(side[1].bells, 2);
	vb_nic_awake(side[1].nic);
	drop_qp(b);
}

/* Where traffic goes both ways, the very next poll sees it. */
RC_PAIR(the_next_poll_rings_for_a_friend)
{
	assert_exchange(&side[0], a, &side[1], b);
	assert_exchange(&side[1], b, &side[0], a);
	qp_recv(&side[1], b, 1, 0, 8);
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	lie_down_unseen(&side[1]);
	vb_nic_lanes_poll(side[0].nic);
	assert_int_equal(side[1].bells, 1);
	vb_nic_awake(side[1].nic);
	settle();
}

/* --- peers out of their mind --- */

static void assert_peer_is_given_up(void)
{
	/* By the clock, at the latest. */
	for (unsigned i = 0; i < 2; i++) {
		fake_ns += 20000000;
		vb_nic_turn(side[0].nic);
		vb_nic_lanes_scan(side[0].nic);
	}
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vb_qp_state(a), IBV_QPS_ERR);
	/* It keeps nobody awake. */
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
	assert_true(vb_nic_asleep(side[0].nic));
	vb_nic_awake(side[0].nic);
	assert_int_equal(vb_nic_deadline_ns(side[0].nic), UINT64_MAX);
}

RC_PAIR(a_producer_of_nonsense_is_as_good_as_dead)
{
	struct vb_ring_tx *tx;

	tx = &peer_of(&side[1], &side[0])->lane[b->ibv.qp.qp_num % VB_RING_LANES].tx;
	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	atomic_store(&tx->shared->slot[0].mark, 0xffull << 56 | 1);
	assert_int_equal(vb_nic_lanes_scan(side[0].nic), 0);
	assert_int_equal(stat_of(&side[0], VB_STAT_DROP_MALFORMED), 1);
	assert_peer_is_given_up();
	assert_int_equal(stat_of(&side[0], VB_STAT_DROP_MALFORMED), 1);
}

RC_PAIR(a_consumer_of_nonsense_is_as_good_as_dead)
{
	struct vb_ring_shared *shared;

	shared = a->lane.tx->tx.shared;
	for (unsigned i = 0; i < VB_RING_SLOTS + 3; i++)
		assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 1);
	atomic_store(&shared->tail, 0x1000);
	assert_peer_is_given_up();
}

UD_PAIR(datagrams_to_one_out_of_its_mind_are_lost)
{
	struct vb_ring_shared *shared;

	for (unsigned i = 0; i < VB_RING_SLOTS; i++)
		assert_int_equal(datagram(i, 8, b->ibv.qp.qp_num), 0);
	shared = peer_of(&side[0], &side[1])->lane[a->ibv.qp.qp_num % VB_RING_LANES].tx.shared;
	atomic_store(&shared->tail, 0x1000);
	assert_int_equal(datagram(VB_RING_SLOTS, 8, b->ibv.qp.qp_num), 0);
	for (unsigned i = 0; i < VB_RING_SLOTS + 1; i++)
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	assert_int_equal(stat_of(&side[0], VB_STAT_TX_LOST), 1);
	assert_int_equal(atomic_load(&side[0].nic->lanes.waiters), 0);
}

/* Its own QPs may be as foul as they like: frames for others' QPs are dropped and counted. */
RC_PAIR(frames_that_are_none_are_counted)
{
	struct vb_ring_tx *tx;
	uint8_t *to;

	tx = &peer_of(&side[1], &side[0])->lane[0].tx;
	for (unsigned head = 0; head <= VB_RING_HEAD_BYTES_MAX; head++) {
		to = vb_ring_reserve(tx, head, 100);
		assert_non_null(to);
		memset(tx->octets, 0xc3, head);
		vb_ring_publish(tx, head, 100);
	}
	/* Right in all but its version; for no QP; and an ACK with a payload. */
	for (unsigned i = 0; i < 3; i++) {
		to = vb_ring_reserve(tx, 16, 8);
		memset(tx->octets, 0, 16);
		tx->octets[0] = i == 2 ? VB_OP_RC_ACK : VB_OP_RC_SEND_ONLY;
		tx->octets[1] = i == 0 ? 1 : 0;
		vb_be16_put(tx->octets + 2, 0xffff);
		vb_be32_put(tx->octets + 4, i == 1 ? 77 : a->ibv.qp.qp_num);
		vb_ring_publish(tx, 16, 8);
	}
	/* Datagrams with no path behind their headers, and with more than that. */
	for (unsigned i = 0; i < 3; i++) {
		uint32_t head = 20 + (i == 0 ? 0 : i == 1 ? VB_LANE_PATH_BYTES - 1 : 36);

		assert_non_null(vb_ring_reserve(tx, head, 0));
		memset(tx->octets, 0, head);
		tx->octets[0] = VB_OP_UD_SEND_ONLY;
		vb_be16_put(tx->octets + 2, 0xffff);
		vb_ring_publish(tx, head, 0);
	}
	scan_all(&side[0]);
	assert_int_equal(stat_of(&side[0], VB_STAT_DROP_MALFORMED),
			 VB_RING_HEAD_BYTES_MAX + 1 + 2 + 3);
	assert_int_equal(stat_of(&side[0], VB_STAT_DROP_NO_QP), 1);
	assert_false(atomic_load(&peer_of(&side[0], &side[1])->marks) & VB_PEER_BROKEN);
	assert_exchange(&side[0], a, &side[1], b);
}
