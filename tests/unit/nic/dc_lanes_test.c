/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC through rings: an initiator of side 0 sends to targets of sides 1 and 2; the fixture's wire
 * loses everything.
 */
#include "lanes_fixture.h"

#include "nic/control/srq.h"
#include "nic/service/dc/dc.h"
#include "nic/way/way.h"

enum { KEY = 0xabc, PSN = 0xfffff0, BYTES = 200 * 1024, PIECES = 7 };

static struct {
	struct vb_srq *srq[2];
	struct vb_qp *target[2], *initiator;
	struct vb_ah *ah;
} x;

static int begin_dc(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };

	lanes_begin(state);
	side_make(SLOT_FIRST + 2, 300);
	memcpy(av.grh.dgid.raw, own_gid, VB_GID_BYTES);
	assert_int_equal(vb_ah_create(side[0].pd, &av, &x.ah), 0);
	x.initiator = dc_make_on(&side[0], side[0].cq, NULL, 0, PSN);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vb_srq_create(side[1 + i].pd, &srq, &x.srq[i]), 0);
		x.target[i] = dc_make_on(&side[1 + i], side[1 + i].cq, x.srq[i], KEY, PSN);
	}
	/* Of two ways back there is one. */
	assert_int_equal(lanes_reach(&side[1], side[1].slot, side[0].slot), 0);
	return 0;
}

static int end_dc(void **state)
{
	drop_qp(x.initiator);
	for (unsigned i = 0; i < 2; i++) {
		drop_qp(x.target[i]);
		drop_srq(x.srq[i]);
	}
	vb_ah_destroy(x.ah);
	return lanes_end(state);
}

#define DC(name) TEST_BETWEEN(name, begin_dc, end_dc)

static void post_bytes(enum ibv_wr_opcode opcode, unsigned i, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = sge_of(&side[0], 0, bytes);
	const struct vb_post post = {
		.wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
			.wr.rdma = { .remote_addr = (uintptr_t)side[1 + i].mem,
				     .rkey = side[1 + i].mr->ibv.rkey } },
		.dc = { .ah = &x.ah->ibv, .dctn = x.target[i]->ibv.qp.qp_num, .key = KEY },
	};

	assert_int_equal(vb_qp_post_batch(x.initiator, &post, 1), 0);
}

static void post(enum ibv_wr_opcode opcode, unsigned i, uint64_t wr_id)
{
	post_bytes(opcode, i, wr_id, BYTES);
}

static void fill(uint8_t *at)
{
	for (uint32_t i = 0; i < BYTES; i++)
		at[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
}

/* A piece is what a ring takes well, whatever the path MTU is: to be told by the PSNs. */
DC(messages_are_cut_into_pieces_of_a_ring)
{
	fill(side[0].mem);
	post(IBV_WR_RDMA_WRITE, 0, 1);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem, side[0].mem, BYTES);
	assert_int_equal(x.initiator->req.una_psn, (PSN + PIECES) & 0xffffff);
	memset(side[0].mem, 0, BYTES);
	post(IBV_WR_RDMA_READ, 0, 2);
	settle();
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem, side[0].mem, BYTES);
	assert_int_equal(x.initiator->req.una_psn, (PSN + 2 * PIECES) & 0xffffff);
	assert_int_equal(side[0].sent + side[1].sent, 0);
}

/* Pieces are those of the way that a message takes, and not of the one when it was posted. */
DC(messages_are_cut_as_their_way_wants_it)
{
	const struct vb_req *req = &x.initiator->req;

	post(IBV_WR_RDMA_WRITE, 0, 1);
	post(IBV_WR_RDMA_WRITE, 1, 2);
	assert_int_equal(vb_sq_at(&req->sq, 1)->packets, PIECES);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_null(x.initiator->to.peer);
	assert_int_equal(req->mtu, 1024);
	assert_int_equal(req->una_psn, (PSN + PIECES) & 0xffffff);
	assert_int_equal(vb_sq_at(&req->sq, 1)->packets, BYTES / 1024);
	assert_int_equal(req->post_psn, (PSN + PIECES + BYTES / 1024) & 0xffffff);
	assert_no_wc(side[0].cq);
}

static void transmit(void)
{
	vb_lock_take(&x.initiator->lock);
	vb_qp_transmit_locked(x.initiator);
	vb_lock_drop(&x.initiator->lock);
}

/*
 * The way back comes a moment after the first message was posted. One who keeps the send queue full
 * is not held to the wire for that: what was sent is waited for, and nothing more is begun.
 */
DC(no_more_is_begun_by_the_wire_when_there_is_a_ring)
{
	const struct vb_req *req = &x.initiator->req;

	post_bytes(IBV_WR_RDMA_WRITE, 1, 1, 100);
	post_bytes(IBV_WR_RDMA_WRITE, 1, 2, 100);
	transmit();
	assert_null(x.initiator->to.peer);
	assert_int_equal(req->pos.next, 2);
	assert_int_equal(lanes_reach(&side[2], side[2].slot, side[0].slot), 0);
	post_bytes(IBV_WR_RDMA_WRITE, 1, 3, 100);
	transmit();
	assert_int_equal(req->pos.next, 2);
	assert_int_equal(req->top_psn, (PSN + 2) & 0xffffff);
	/* But what was is sent again. */
	vb_req_rewind(&x.initiator->req);
	assert_int_equal(req->pos.next, 0);
	transmit();
	assert_int_equal(req->pos.next, 2);
}

/* It is not known yet whether there is a ring: what was posted stays in the queue. */
DC(requests_wait_for_the_answer)
{
	side[1].refuses = EINPROGRESS;
	post(IBV_WR_RDMA_WRITE, 0, 1);
	settle();
	assert_int_equal(side[0].sent, 0);
	assert_int_equal(x.initiator->req.pos.next, 0);
	side[1].refuses = 0;
	assert_int_equal(lanes_reach(&side[0], side[0].slot, side[1].slot), 0);
	vb_peer_answered(side[0].nic, side[0].slot, side[1].slot, 0);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent + side[1].sent, 0);
}

DC(requests_do_not_wait_for_long)
{
	side[1].refuses = EINPROGRESS;
	post_bytes(IBV_WR_RDMA_WRITE, 0, 1, 100);
	assert_int_equal(side[0].sent, 0);
	fake_ns += 50000000;
	vb_nic_turn(side[0].nic);
	assert_true(side[0].sent > 0);
}
