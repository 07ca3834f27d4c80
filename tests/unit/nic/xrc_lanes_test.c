/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC through rings: side 0 sends, to SRQs of sides 1 and 2, which share a domain; the fixture's
 * wire loses everything.
 */
#include "lanes_fixture.h"

#include <fcntl.h>

#include "nic/control/srq.h"
#include "nic/service/xrc/xrc.h"
#include "nic/service/xrc/xrc_rx.h"
#include "nic/way/way.h"

enum { PSN = 0x100, RECVS = 8, RECV_BYTES = 8192 };

static struct vb_xrc_store *store;
static struct {
	struct vb_xrcd *xrcd[2];
	struct vb_srq *srq[2];
	struct vb_qp *handle, *snd;
	struct vb_xrc_rcv *rcv;
} x;

static void recv_post(unsigned i, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&side[1 + i], (uint32_t)wr_id * RECV_BYTES, RECV_BYTES);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(vb_srq_post(x.srq[i], &wr, &bad), 0);
}

static void receiver_make(unsigned i)
{
	static const uint64_t file[2] = { 1, 2 };
	struct side *s = &side[1 + i];
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = RECVS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC, .pd = &s->pd->ibv, .cq = &s->cq->ibv.cq,
	};

	side_use_store(s);
	assert_int_equal(vb_xrcd_open(s->ctx, file, O_CREAT, &x.xrcd[i]), 0);
	srq.xrcd = &x.xrcd[i]->ibv;
	assert_int_equal(vb_srq_create_ex(s->ctx, &srq, &x.srq[i]), 0);
	for (uint64_t k = 0; k < RECVS; k++)
		recv_post(i, k);
}

static void climb(struct vb_qp *qp, uint32_t peer_qpn)
{
	struct ibv_qp_attr attr = qp_attr_to(own_gid, peer_qpn);

	attr.rq_psn = attr.sq_psn = PSN;
	attr.min_rnr_timer = attr.retry_cnt = 1;
	qp_climb(qp, attr, qp->ibv.qp.qp_type == IBV_QPT_XRC_RECV ? IBV_QPS_RTR : IBV_QPS_RTS);
}

/* Both receivers have a way back to the sender. */
static void ways_back(void)
{
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(lanes_reach(&side[i], side[i].slot, side[0].slot), 0);
}

static int begin_apart(void **state)
{
	struct ibv_qp_init_attr_ex rcv = { .qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	lanes_begin(state);
	side_make(SLOT_FIRST + 2, 300);
	store = store_begin();
	receiver_make(0);
	receiver_make(1);
	rcv.xrcd = &x.xrcd[0]->ibv;
	assert_int_equal(vb_xrc_qp_create(&rcv, &x.handle), 0);
	x.rcv = x.handle->special.xrc->rcv;
	x.snd = qp_make(&side[0], IBV_QPT_XRC_SEND);
	climb(x.handle, x.snd->ibv.qp.qp_num);
	climb(x.snd, x.handle->ibv.qp.qp_num);
	return 0;
}

static int begin_xrc(void **state)
{
	begin_apart(state);
	ways_back();
	return 0;
}

static int end_xrc(void **state)
{
	drop_qp(x.snd);
	drop_qp(x.handle);
	for (unsigned i = 0; i < 2; i++) {
		drop_srq(x.srq[i]);
		assert_int_equal(vb_xrcd_close(x.xrcd[i]), 0);
	}
	lanes_end(state);
	return 0;
}

#define XRC_LANES_TEST(name) TEST_BETWEEN(name, begin_apart, end_xrc)
#define XRC(name) TEST_BETWEEN(name, begin_xrc, end_xrc)

static void post(enum ibv_wr_opcode opcode, uint32_t srqn, uint64_t wr_id, uint32_t bytes,
		 const struct side *to, uint32_t at)
{
	struct ibv_sge sge = sge_of(&side[0], 0, bytes);
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.qp_type.xrc.remote_srqn = srqn;
	if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->mem + at;
		wr.wr.rdma.rkey = to->mr->ibv.rkey;
	}
	assert_int_equal(vb_qp_post_send(x.snd, &wr, &bad), 0);
}

static void send_to(unsigned i, uint64_t wr_id, uint32_t bytes)
{
	post(IBV_WR_SEND, x.srq[i]->ibv.handle, wr_id, bytes, NULL, 0);
}

static void fill(struct side *s, uint32_t at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->mem[at + i] = (uint8_t)(i * 7 + (i >> 8) + 1);
}

static void expect_no_wire(void)
{
	for (unsigned i = 0; i < sides; i++)
		assert_int_equal(side[i].sent, 0);
}

XRC(all_of_it_goes_through_rings)
{
	struct side *to = &side[1];

	fill(&side[0], 0, 5000);
	send_to(0, 1, 5000);
	post(IBV_WR_RDMA_WRITE, x.srq[0]->ibv.handle, 2, 5000, to, 600000);
	settle();
	assert_wc(to->cq, 0, IBV_WC_SUCCESS);
	assert_memory_equal(to->mem, side[0].mem, 5000);
	assert_memory_equal(to->mem + 600000, side[0].mem, 5000);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
	memset(side[0].mem, 0, 5000);
	post(IBV_WR_RDMA_READ, x.srq[0]->ibv.handle, 3, 5000, to, 600000);
	settle();
	assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
	assert_memory_equal(to->mem + 600000, side[0].mem, 5000);
	expect_no_wire();
	assert_int_equal(vb_xrc_at(atomic_load(&x.rcv->word)).slot, to->slot);
	/* Each was one packet. */
	assert_int_equal(vb_xrc_at(atomic_load(&x.rcv->word)).epsn, PSN + 3);
	assert_true(x.snd->to.peer && x.snd->to.peer->slot == to->slot);
}

XRC(one_slot_after_the_other_is_aimed_at)
{
	for (uint64_t i = 0; i < 6; i++)
		send_to(i / 2 % 2, i, 100);
	assert_int_equal(x.snd->special.aimed_slot, side[1].slot);
	settle();
	for (uint64_t i = 0; i < 6; i++)
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 4; i++)
		assert_wc(side[1].cq, i, IBV_WC_SUCCESS);
	assert_wc(side[2].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[2].cq, 1, IBV_WC_SUCCESS);
	expect_no_wire();
}

/* More than rings hold, in messages of many packets: nothing is lost, and nothing comes twice. */
XRC(a_full_ring_makes_it_wait)
{
	uint32_t bytes = 200 * 1024;

	fill(&side[0], 0, bytes);
	for (uint64_t i = 0; i < 5; i++)
		post(IBV_WR_RDMA_WRITE, x.srq[0]->ibv.handle, i, bytes, &side[1],
		     (uint32_t)i * bytes);
	assert_non_null(x.snd->lane.waits);
	settle();
	for (uint64_t i = 0; i < 5; i++)
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 5; i++)
		assert_memory_equal(side[1].mem + i * bytes, side[0].mem, bytes);
	assert_int_equal(stat_of(&side[1], VB_STAT_DUPLICATES), 0);
	expect_no_wire();
}

/* What the application of side 1 knew of when the bell of side 0 was rung. */
static unsigned known_at_bell;

static void bell_looks(void *arg, struct vb_peer *peer)
{
	struct ibv_wc wc;

	known_at_bell += (unsigned)vb_cq_poll(side[1].cq, 1, &wc);
}

/*
 * The application answers by another QP, and could be faster than an ACK that is still to be sent.
 * In a ring the answer stays behind; so there is one for both.
 */
XRC(messages_complete_when_their_ack_has_left)
{
	struct vb_peer *peer;

	side[1].peers.bell = bell_looks;
	known_at_bell = 0;
	send_to(0, 1, 100);
	assert_true(vb_nic_asleep(side[0].nic));
	assert_int_equal(vb_nic_lanes_scan(side[1].nic), 1);
	peer = x.snd->to.peer;
	assert_true(vb_ring_ready(&peer->lane[0].rx));
	assert_int_equal(known_at_bell, 0);
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
	vb_nic_awake(side[0].nic);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 1; i < VB_RING_LANES; i++) {
		assert_ptr_equal(vb_lane_of(peer, VB_XRC, i), x.snd->lane.tx);
		assert_ptr_equal(vb_lane_of(peer, VB_DC, i), x.snd->lane.rx);
		assert_ptr_equal(vb_lane_of(peer, VB_RC, i), &peer->lane[i]);
	}
}

XRC(without_a_ring_it_goes_by_the_wire)
{
	side[2].refuses = EOPNOTSUPP;
	send_to(0, 1, 100);
	send_to(1, 2, 100);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent, 1);
	assert_null(x.snd->to.peer);
	assert_false(x.snd->req.reliable);
	assert_no_wc(side[0].cq);
}

/* A request was taken, and there is no ring to answer by. */
XRC_LANES_TEST(without_a_ring_back_the_wire_answers)
{
	send_to(0, 1, 100);
	settle();
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(side[1].sent, 1);
	assert_no_wc(side[0].cq);
}

/* Pieces are those of the way that a message takes, and not of the one when it was posted. */
XRC(messages_are_cut_as_their_way_wants_it)
{
	const struct vb_req *req = &x.snd->req;

	side[2].refuses = EOPNOTSUPP;
	send_to(0, 1, 5000);
	send_to(1, 2, 5000);
	assert_int_equal(vb_sq_at(&req->sq, 1)->packets, 1);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_null(x.snd->to.peer);
	assert_int_equal(req->mtu, 1024);
	assert_int_equal(vb_sq_at(&req->sq, 1)->packets, 5);
	assert_int_equal(req->top_psn, PSN + 1 + 5);
}

/* By the wire nothing large can be answered: it is asked for in the path's pieces. */
XRC_LANES_TEST(without_a_ring_back_pieces_are_the_paths)
{
	send_to(0, 1, 5000);
	settle();
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
	assert_int_equal(x.snd->req.mtu, 1024);
	assert_int_equal(vb_xrc_at(atomic_load(&x.rcv->word)).epsn, PSN + 5);
}

/*
 * The way back comes a moment after the first message was posted, and those behind it are not cut
 * small for ever: nothing more is begun, and what waits is cut anew.
 */
XRC_LANES_TEST(pieces_grow_with_the_way_back)
{
	const struct vb_req *req = &x.snd->req;

	fill(&side[0], 0, 5000);
	send_to(0, 1, 5000);
	ways_back();
	for (uint64_t i = 2; i < 5; i++)
		send_to(0, i, 5000);
	assert_int_equal(req->top_psn, PSN + 5);
	/* What was begun is sent again as it was. */
	vb_lock_take(&x.snd->lock);
	vb_req_rewind(&x.snd->req);
	vb_qp_transmit_locked(x.snd);
	vb_lock_drop(&x.snd->lock);
	assert_int_equal(req->pos.next, 1);
	assert_int_equal(req->pos.next_psn, PSN + 5);
	settle();
	for (uint64_t i = 1; i < 5; i++) {
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_wc(side[1].cq, i - 1, IBV_WC_SUCCESS);
		assert_memory_equal(side[1].mem + (i - 1) * RECV_BYTES, side[0].mem, 5000);
	}
	assert_int_equal(vb_xrc_at(atomic_load(&x.rcv->word)).epsn, PSN + 5 + 3);
	expect_no_wire();
}

/* Whoever has been sent to before it opens a domain sees to the way back then. */
XRC(opening_a_domain_makes_the_ways_back)
{
	struct side *late = side_make(SLOT_FIRST + 3, 400);
	struct vb_qp *qp = qp_make(late, IBV_QPT_RC); /* so that it has a slot */
	struct vb_xrcd *xrcd;

	side_use_store(late);
	assert_false(vb_peers_back_wanted(late->nic));
	assert_int_equal(lanes_reach(&side[0], side[0].slot, late->slot), 0);
	assert_null(vb_peer_known(late->nic, (uint32_t)late->slot << VB_INDEX_BITS,
				  x.snd->ibv.qp.qp_num));
	assert_int_equal(vb_xrcd_open(late->ctx, NULL, O_CREAT, &xrcd), 0);
	assert_true(vb_peers_back_wanted(late->nic));
	assert_non_null(vb_peer_known(late->nic, (uint32_t)late->slot << VB_INDEX_BITS,
				      x.snd->ibv.qp.qp_num));
	assert_int_equal(vb_xrcd_close(xrcd), 0);
	drop_qp(qp);
}

XRC(who_sends_to_the_dead_learns_it_at_once)
{
	struct vb_peer *peer;

	send_to(0, 1, 100);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	peer = x.snd->to.peer;
	side_die(&side[1]);
	send_to(0, 2, 100);
	assert_no_wc(side[0].cq);
	vb_peer_gone(peer);
	assert_wc(side[0].cq, 2, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vb_qp_state(x.snd), IBV_QPS_ERR);
}

/* Nothing was outstanding: others are sent to, and who died there is none of their business. */
XRC(a_death_elsewhere_is_no_error)
{
	struct vb_peer *peer;

	send_to(0, 1, 100);
	settle();
	peer = x.snd->to.peer;
	side_die(&side[1]);
	vb_peer_gone(peer);
	send_to(1, 2, 100);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
}

/* Nobody answers a sender that has died, and nothing of it is kept. */
XRC(a_shadow_lets_go_of_a_dead_sender)
{
	struct vb_qp *shadow;

	send_to(0, 1, 100);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	shadow = vb_xrc_shadow(side[1].nic, x.handle->ibv.qp.qp_num);
	assert_non_null(shadow->to.peer);
	side_die(&side[0]);
	vb_peer_gone(shadow->to.peer);
	assert_null(shadow->to.peer);
	assert_int_equal(side[1].releases, 1);
}

/* Put a SEND of that many octets into a ring, as whoever owns `from` may. */
static void forge(struct side *from, struct side *to, uint32_t srqn, uint8_t opcode,
		  uint32_t bytes)
{
	struct vb_peer *peer;
	struct vb_pkt pkt;

	assert_int_equal(lanes_reach(from, from->slot, to->slot), 0);
	peer = vb_peer_find(from->nic, from->slot, to->slot);
	memset(&pkt, 0, sizeof(pkt));
	vb_pkt_begin(&pkt, x.handle->ibv.qp.qp_num, VB_PKEY_DEFAULT);
	pkt.opcode = opcode;
	pkt.psn = PSN;
	pkt.srqn = srqn;
	assert_non_null(vb_ring_reserve(&peer->lane[0].tx, vb_op_info(opcode)->header_bytes,
					bytes));
	vb_pkt_emit(peer->lane[0].tx.octets, &pkt);
	vb_ring_publish(&peer->lane[0].tx, vb_op_info(opcode)->header_bytes, bytes);
	scan_all(to);
}

XRC(strangers_are_not_heard)
{
	uint64_t word = atomic_load(&x.rcv->word), before;

	before = stat_of(&side[1], VB_STAT_DROP_STRANGER);
	/* A process that is not the sender's. */
	forge(&side[2], &side[1], x.srq[0]->ibv.handle, VB_OP_XRC_SEND_ONLY, 10);
	/* The sender, to whom an SRQ of somebody else's is nothing for this process. */
	forge(&side[0], &side[1], x.srq[1]->ibv.handle, VB_OP_XRC_SEND_ONLY, 10);
	/* What names no SRQ. */
	forge(&side[0], &side[1], 0, VB_OP_XRC_ACK, 0);
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_STRANGER), before + 3);
	assert_true(atomic_load(&x.rcv->word) == word);
	assert_no_wc(side[1].cq);
	forge(&side[0], &side[1], x.srq[0]->ibv.handle, VB_OP_XRC_SEND_ONLY, 10);
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
}

/* In the midst of a message another NIC moves the word: what comes is not in its turn any more. */
XRC(a_word_that_moved_ends_the_short_way)
{
	struct vb_xrc_at at = { .epsn = PSN + 2, .msn = 1, .slot = side[2].slot };

	forge(&side[0], &side[1], x.srq[0]->ibv.handle, VB_OP_XRC_SEND_FIRST, 1024);
	assert_int_equal(vb_xrc_at(atomic_load(&x.rcv->word)).epsn, PSN + 1);
	atomic_store(&x.rcv->word, vb_xrc_word(at));
	forge(&side[0], &side[1], x.srq[0]->ibv.handle, VB_OP_XRC_SEND_MIDDLE, 1024);
	assert_true(atomic_load(&x.rcv->word) == vb_xrc_word(at));
	assert_no_wc(side[1].cq);
}

/* The answer has come to side 0: there is a ring to side 1. */
static void answered(void)
{
	side[1].refuses = 0;
	assert_int_equal(lanes_reach(&side[0], side[0].slot, side[1].slot), 0);
	vb_peer_answered(side[0].nic, side[0].slot, side[1].slot, 0);
}

/* Who is asked for a ring has not said anything yet: it stays in the queue, and nothing is lost. */
XRC(requests_wait_for_the_answer)
{
	side[1].refuses = EINPROGRESS;
	for (uint64_t i = 0; i < 3; i++)
		send_to(0, i, 5000);
	settle();
	expect_no_wire();
	assert_int_equal(x.snd->req.pos.next, 0);
	answered();
	settle();
	for (uint64_t i = 0; i < 3; i++) {
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_wc(side[1].cq, i, IBV_WC_SUCCESS);
	}
	expect_no_wire();
}

/* Not for long, where there is a wire; where there is none, for as long as it takes. */
XRC(requests_wait_as_long_as_there_is_no_other_way)
{
	side[1].refuses = EINPROGRESS;
	send_to(0, 1, 100);
	fake_ns += 50000000;
	vb_nic_turn(side[0].nic);
	settle();
	assert_true(side[0].sent > 0);
	assert_int_equal(qp_step(x.snd, IBV_QPS_RESET, 0), 0);
	climb(x.snd, x.handle->ibv.qp.qp_num);
	side[0].nic->host.no_wire = true;
	side[0].sent = 0;
	send_to(0, 1, 100);
	fake_ns += 5000000000;
	vb_nic_turn(side[0].nic);
	settle();
	expect_no_wire();
	answered();
	settle();
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
}
