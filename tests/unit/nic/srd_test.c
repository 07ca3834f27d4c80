/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SRD through rings, which keep packets in order and lose none: what overtakes, does so because the
 * NIC wants it. sim_srd tests the rest, over a fabric that does not.
 */
#include "lanes_fixture.h"

#include "nic/core/ahn.h"
#include "nic/service/srd/srd_stream.h"

enum { MESSAGES = 256, PLACES = 300, SENDERS = 3 };

static struct {
	struct vb_qp *qp[SENDERS + 1]; /* the last receives */
	struct vb_cq *recv_cq;
	struct vb_ah *ah[SENDERS + 1];
} x;

static struct ibv_qp_attr attr_of(enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){ .qp_state = state, .port_num = 1, .qkey = QKEY, .sq_psn = 7 };
}

static int go(struct vb_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = attr_of(state);

	return vb_qp_modify(qp, &attr, IBV_QP_STATE | mask);
}

static void climb(struct vb_qp *qp)
{
	assert_int_equal(go(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
	assert_int_equal(go(qp, IBV_QPS_RTR, 0), 0);
	assert_int_equal(go(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN), 0);
}

static struct ibv_qp_init_attr_ex init_of(struct side *s, struct vb_cq *recv_cq)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = &s->cq->ibv.cq, .recv_cq = &recv_cq->ibv.cq,
		.cap = { .max_send_wr = MESSAGES, .max_recv_wr = PLACES, .max_send_sge = 2,
			 .max_recv_sge = 1, .max_inline_data = 32 },
		.qp_type = IBV_QPT_DRIVER, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = &s->pd->ibv,
	};
}

static int make(struct ibv_qp_init_attr_ex *init, struct vb_qp **qp)
{
	struct vb_dc_attr dc = { .srd = true };
	struct vb_qp_dv_attr dv = { .dc = &dc };

	return vb_qp_create_dv(init, &dv, qp);
}

static int begin_srd(void **state)
{
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };

	lanes_begin(state);
	for (unsigned i = 2; i <= SENDERS; i++)
		side_make((uint16_t)(SLOT_FIRST + i), 100 * (i + 1));
	memcpy(av.grh.dgid.raw, own_gid, VB_GID_BYTES);
	assert_int_equal(vb_cq_create(side[SENDERS].ctx, 4096, NULL, 0, NULL, &x.recv_cq), 0);
	for (unsigned i = 0; i <= SENDERS; i++) {
		struct ibv_qp_init_attr_ex init =
			init_of(&side[i], i == SENDERS ? x.recv_cq : side[i].cq);

		assert_int_equal(make(&init, &x.qp[i]), 0);
		climb(x.qp[i]);
		assert_int_equal(vb_ah_create(side[i].pd, &av, &x.ah[i]), 0);
	}
	/* All have ways to all. */
	for (unsigned i = 0; i < sides * sides; i++)
		if (i / sides != i % sides)
			assert_int_equal(lanes_reach(&side[i / sides], side[i / sides].slot,
						     side[i % sides].slot), 0);
	return 0;
}

static int end_srd(void **state)
{
	for (unsigned i = 0; i <= SENDERS; i++) {
		drop_qp(x.qp[i]);
		vb_ah_destroy(x.ah[i]);
	}
	drop_cq(x.recv_cq);
	return lanes_end(state);
}

#define SRD(name) TEST_BETWEEN(name, begin_srd, end_srd)

static struct vb_post to(struct vb_qp *qp, unsigned from, enum ibv_wr_opcode opcode, uint64_t wr_id,
			 struct ibv_sge *sge)
{
	return (struct vb_post){
		.wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = 1, .opcode = opcode,
			.send_flags = IBV_SEND_SIGNALED, .imm_data = (uint32_t)wr_id },
		.dc = { .ah = &x.ah[from]->ibv, .dctn = qp->ibv.qp.qp_num, .key = QKEY },
	};
}

/* Until nobody has anything to do, now or what was held back. */
static void run(void)
{
	for (unsigned n = 0; n < 3; n++) {
		settle();
		for (unsigned i = 0; i < sides; i++)
			vb_nic_turn(side[i].nic);
	}
	settle();
}

static void send_one(unsigned from, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&side[from], 0, 16);
	struct vb_post post = to(x.qp[SENDERS], from, IBV_WR_SEND_WITH_IMM, wr_id, &sge);

	assert_int_equal(vb_qp_post_batch(x.qp[from], &post, 1), 0);
}

static void receives(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		qp_recv(&side[SENDERS], x.qp[SENDERS], i, 64 * i, 64);
}

/* How many came before one that was posted earlier; each comes once. */
static unsigned overtook(unsigned count)
{
	bool came[MESSAGES] = { false };
	unsigned last = 0, early = 0;
	struct ibv_wc wc;

	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(vb_cq_poll(x.recv_cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, x.qp[SENDERS]->ibv.qp.qp_num);
		assert_true(wc.imm_data < MESSAGES && !came[wc.imm_data]);
		came[wc.imm_data] = true;
		early += wc.imm_data < last;
		last = wc.imm_data > last ? wc.imm_data : last;
	}
	assert_no_wc(x.recv_cq);
	return early;
}

/* Sends so many, one by one, and takes them in when all are posted. */
static unsigned overtaking(unsigned count)
{
	receives(count);
	/* The first one makes the rings. */
	send_one(0, 0);
	run();
	for (unsigned i = 1; i < count; i++)
		send_one(0, i);
	run();
	return overtook(count);
}

SRD(messages_overtake_each_other_on_purpose)
{
	assert_in_range(overtaking(MESSAGES), MESSAGES / 16, MESSAGES);
}

SRD(a_message_to_each_and_from_each)
{
	bool came[SENDERS] = { false };
	struct ibv_wc wc;

	receives(SENDERS);
	for (unsigned i = 0; i < SENDERS; i++)
		send_one(i, i);
	run();
	for (unsigned i = 0; i < SENDERS; i++) {
		assert_int_equal(vb_cq_poll(x.recv_cq, 1, &wc), 1);
		assert_false(came[wc.imm_data]);
		came[wc.imm_data] = true;
		assert_int_equal(wc.src_qp, x.qp[wc.imm_data]->ibv.qp.qp_num);
		assert_wc(side[i].cq, i, IBV_WC_SUCCESS);
	}
}

/* A completion names the sender's handle, once it has a number. */
SRD(the_sender_has_the_number_of_its_handle)
{
	uint8_t gid[VB_GID_BYTES];
	struct vb_cq_stamp stamp;
	struct vb_cqe cqe;
	uint16_t number;

	receives(2);
	send_one(0, 0);
	run();
	assert_true(vb_cq_take(x.recv_cq, &cqe, &stamp));
	assert_int_equal(cqe.wc.slid, VB_AHN_NONE);
	assert_true(vb_ahn_gid(side[SENDERS].nic, (uint16_t)cqe.ahn, gid));
	assert_memory_equal(gid, own_gid, VB_GID_BYTES);
	number = vb_ah_number(x.ah[SENDERS]);
	assert_int_equal(vb_ah_number(x.ah[SENDERS]), number);
	send_one(0, 1);
	run();
	assert_true(vb_cq_take(x.recv_cq, &cqe, &stamp));
	assert_int_equal(cqe.wc.slid, number);
	assert_false(vb_ahn_gid(side[SENDERS].nic, (uint16_t)(number + 1), gid));
	assert_false(vb_ahn_gid(side[SENDERS].nic, VB_AHN_NONE, gid));
}

SRD(read_and_write)
{
	struct side *s = &side[0], *other = &side[SENDERS];
	struct ibv_sge sge = sge_of(s, 0, 100000);
	struct vb_post post = to(x.qp[SENDERS], 0, IBV_WR_RDMA_WRITE, 1, &sge);

	for (unsigned i = 0; i < sge.length; i++)
		s->mem[i] = (uint8_t)(i * 7 + (i >> 8));
	post.wr.wr.rdma.remote_addr = (uintptr_t)other->mem;
	post.wr.wr.rdma.rkey = other->mr->ibv.rkey;
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), 0);
	run();
	assert_wc(s->cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(other->mem, s->mem, sge.length);
	memset(s->mem, 0, sge.length);
	post.wr.opcode = IBV_WR_RDMA_READ;
	post.wr.wr_id = 2;
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), 0);
	run();
	assert_wc(s->cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(other->mem, s->mem, sge.length);
	post.wr.wr.rdma.rkey ^= 1;
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), 0);
	run();
	assert_wc(s->cq, 2, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(vb_qp_state(x.qp[0]), IBV_QPS_RTS);
}

/* Whoever is not there says so, and others get theirs. */
SRD(nobody_is_there)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 16);
	struct vb_post post = to(x.qp[SENDERS], 0, IBV_WR_SEND, 1, &sge);

	receives(2);
	post.dc.key++;
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), 0);
	run();
	/* Once there is a way back, it is told. */
	fake_ns += 1000000000;
	run();
	assert_wc(side[0].cq, 1, IBV_WC_REM_INV_RD_REQ_ERR);
	post.dc = (struct vb_dc_address){ .ah = &x.ah[0]->ibv, .key = QKEY,
					  .dctn = x.qp[SENDERS]->ibv.qp.qp_num + 77 };
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), 0);
	run();
	assert_wc(side[0].cq, 1, IBV_WC_REM_INV_RD_REQ_ERR);
	send_one(0, 3);
	run();
	assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(go(x.qp[SENDERS], IBV_QPS_ERR, 0), 0);
	vb_cq_purge(x.recv_cq, x.qp[SENDERS]->ibv.qp.qp_num);
	/* A stream may know it: then the clock has it asked again. */
	send_one(0, 4);
	for (unsigned i = 0; i < 50; i++) {
		fake_ns += 10000000;
		run();
	}
	assert_wc(side[0].cq, 4, IBV_WC_REM_INV_RD_REQ_ERR);
}

SRD(what_cannot_be_posted_is_refused)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 16);
	struct vb_post post = to(x.qp[SENDERS], 0, IBV_WR_SEND, 1, &sge), pair[2];
	struct ibv_send_wr wr = post.wr, *bad;

	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(vb_qp_post_send(x.qp[0], &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = post.dc.ah;
	wr.send_flags = 0;
	assert_int_equal(vb_qp_post_send(x.qp[0], &wr, &bad), EINVAL);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = NULL;
	assert_int_equal(vb_qp_post_send(x.qp[0], &wr, &bad), EINVAL);
	post.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), EINVAL);
	post.wr.opcode = IBV_WR_RDMA_WRITE;
	post.wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), EINVAL);
	/* All of a batch, or none. */
	pair[0] = pair[1] = to(x.qp[SENDERS], 0, IBV_WR_SEND, 1, &sge);
	pair[1].dc.ah = NULL;
	assert_int_equal(vb_qp_post_batch(x.qp[0], pair, 2), EINVAL);
	run();
	assert_no_wc(side[0].cq);
	assert_int_equal(vb_srd_of(x.qp[0])->posted, 0);
}

SRD(a_full_queue_takes_more_when_it_was_polled)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 16);
	struct vb_post post = to(x.qp[SENDERS], 0, IBV_WR_SEND_WITH_IMM, 1, &sge);

	receives(PLACES);
	for (unsigned i = 0; i < MESSAGES; i++)
		send_one(0, i);
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), ENOMEM);
	run();
	assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), ENOMEM);
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct ibv_wc wc;

		assert_int_equal(vb_cq_poll(side[0].cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (i < 8)
			send_one(0, 0);
	}
}

/* ERR flushes both queues, with the number of the QP; RESET forgets them. */
SRD(an_end_flushes_and_a_reset_forgets)
{
	struct ibv_wc wc;

	/* Nobody has posted a receive: these wait. */
	for (unsigned i = 0; i < 20; i++)
		send_one(0, i);
	run();
	assert_no_wc(side[0].cq);
	qp_recv(&side[0], x.qp[0], 77, 0, 64);
	assert_int_equal(go(x.qp[0], IBV_QPS_ERR, 0), 0);
	for (unsigned i = 0; i < 21; i++) {
		assert_int_equal(vb_cq_poll(side[0].cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.qp_num, x.qp[0]->ibv.qp.qp_num);
	}
	assert_no_wc(side[0].cq);
	assert_int_equal(go(x.qp[0], IBV_QPS_RESET, 0), 0);
	climb(x.qp[0]);
	receives(4);
	send_one(0, 5);
	run();
	fake_ns += 1000000000;
	run();
	assert_wc(side[0].cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(vb_cq_poll(x.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.imm_data, 5);
	assert_no_wc(x.recv_cq);
}

SRD(what_it_cannot_have_is_refused)
{
	struct ibv_qp_init_attr_ex init = init_of(&side[0], side[0].cq);
	struct vb_qp *qp;

	init.cap.max_send_wr = VB_SRD_SEND_WR_MAX + 1;
	assert_int_equal(make(&init, &qp), EINVAL);
	init = init_of(&side[0], side[0].cq);
	init.cap.max_inline_data = VB_SRD_INLINE_BYTES_MAX + 1;
	assert_int_equal(make(&init, &qp), EINVAL);
	init = init_of(&side[0], side[0].cq);
	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	assert_int_equal(make(&init, &qp), EINVAL);
	init = init_of(&side[0], side[0].cq);
	assert_int_equal(make(&init, &qp), 0);
	assert_int_equal(go(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT), EINVAL);
	drop_qp(qp);
}

/* Each waits for a receive; every destination has a stream of its own while there are some. */
SRD(who_waits_holds_up_no_other)
{
	struct vb_qp *waiting[40];
	struct ibv_wc wc;

	for (unsigned i = 0; i < VB_ARRAY_LEN(waiting); i++) {
		struct ibv_qp_init_attr_ex init = init_of(&side[1], side[1].cq);
		struct ibv_sge sge = sge_of(&side[0], 0, 16);
		struct vb_post post;

		assert_int_equal(make(&init, &waiting[i]), 0);
		climb(waiting[i]);
		post = to(waiting[i], 0, IBV_WR_SEND, 1000 + i, &sge);
		assert_int_equal(vb_qp_post_batch(x.qp[0], &post, 1), 0);
		run();
	}
	receives(1);
	send_one(0, 9);
	run();
	assert_wc(side[0].cq, 9, IBV_WC_SUCCESS);
	assert_int_equal(vb_cq_poll(x.recv_cq, 1, &wc), 1);
	for (unsigned i = 0; i < VB_ARRAY_LEN(waiting); i++)
		drop_qp(waiting[i]);
}
