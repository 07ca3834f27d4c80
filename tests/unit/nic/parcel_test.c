/* SPDX-License-Identifier: BSD-2-Clause */

/* Small data beside completions: what is taken in hand, and what becomes of it in the CQ. */

#include "nic/way/send.h"
#include "nic_fixture.h"

enum { BYTES = 512, FAR = 256 };

static uint8_t mem[BYTES] __attribute__((aligned(64)));
static const uint8_t data[VB_PARCEL_BYTES_MAX] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static struct vb_mr *mr;
static struct vb_cq *cq;
static struct vb_qp *qp;

static void open_with(int cqe, uint32_t flags, bool always)
{
	const struct ibv_cq_init_attr_ex attr = { .cqe = (uint32_t)cqe,
						  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
						  .flags = flags };

	memset(mem, 0, sizeof(mem));
	assert_int_equal(vb_mr_reg(fix.pd, mem, BYTES, (uintptr_t)mem, IBV_ACCESS_LOCAL_WRITE,
				   &mr), 0);
	assert_int_equal(vb_cq_create_ex(fix.ctx, &attr, &cq), 0);
	qp = make_qp(IBV_QPT_RC, cq, NULL);
	assert_int_equal(vb_parcels_make(qp, always), 0);
}

static void close_all(void)
{
	drop_qp(qp);
	drop_cq(cq);
	if (mr)
		assert_int_equal(vb_mr_dereg(mr), 0);
	mr = NULL;
}

static struct ibv_sge sge_at(size_t at, uint32_t bytes)
{
	return (struct ibv_sge){ (uintptr_t)mem + at, bytes, mr->ibv.lkey };
}

/* A message of so many octets for memory at this place. */
static bool take(size_t at, uint32_t bytes)
{
	qp->resp.recv.sge_count = 1;
	qp->resp.recv.sge[0] = sge_at(at, 100);
	return vb_parcel_take_recv(qp, 0, data, bytes);
}

static void push_recv(uint64_t wr_id)
{
	const struct vb_cqe cqe = {
		.wc = { .wr_id = wr_id, .opcode = IBV_WC_RECV, .qp_num = qp->ibv.qp.qp_num },
		.user = &qp->user,
		.note = VB_CQE_PARCEL,
	};

	assert_true(vb_parcel_goes(qp));
	vb_cq_push(cq, &cqe);
}

static void polled(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static bool is_zero(size_t at, size_t bytes)
{
	static const uint8_t zeros[BYTES];

	return memcmp(mem + at, zeros, bytes) == 0;
}

/* --- who has them --- */

NIC_TEST(only_some_types_have_them)
{
	static const struct {
		enum ibv_qp_type type;
		bool always;
		uint32_t recv, fetch;
	} rows[] = {
		{ IBV_QPT_RC, false, 32, 0 }, { IBV_QPT_RC, true, 32, 32 },
		{ IBV_QPT_UC, true, 32, 0 },  { IBV_QPT_UD, true, 0, 0 },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct vb_cq *own = make_cq(4, NULL);
		struct vb_qp *one = make_qp(rows[i].type, own, NULL);
		bool any = rows[i].recv || rows[i].fetch;

		assert_false(one->user.has_parcels);
		assert_null(own->parcels);
		assert_int_equal(vb_parcels_make(one, rows[i].always), 0);
		assert_int_equal(one->user.has_parcels, any);
		assert_int_equal(own->parcels != NULL, any);
		if (any) {
			assert_int_equal(one->user.parcels->recv_bytes, rows[i].recv);
			assert_int_equal(one->user.parcels->fetch_bytes, rows[i].fetch);
		}
		drop_qp(one);
		drop_cq(own);
	}
}

/* --- what is taken in hand --- */

NIC_TEST(what_is_no_parcel_goes_the_ordinary_way)
{
	struct vb_recv *recv;

	open_with(4, 0, false);
	recv = &qp->resp.recv;
	assert_true(take(0, 32));
	vb_parcel_drop(qp);
	assert_false(take(0, 33));
	assert_false(vb_parcel_take_recv(qp, 1, data, 8)); /* a message's rest */
	recv->sge[0].lkey ^= 0x100;
	assert_false(vb_parcel_take_recv(qp, 0, data, 8));
	recv->sge[0] = sge_at(BYTES - 4, 8);
	assert_false(vb_parcel_take_recv(qp, 0, data, 8));
	assert_true(vb_parcel_take_recv(qp, 0, data, 4)); /* what is not touched is not judged */
	vb_parcel_drop(qp);
	/* Empty pieces are none; more than four others are too many. */
	recv->sge_count = 6;
	for (unsigned i = 0; i < 6; i++)
		recv->sge[i] = sge_at(8 * i, i == 1 ? 0 : 2);
	assert_true(vb_parcel_take_recv(qp, 0, data, 8));
	vb_parcel_drop(qp);
	assert_false(vb_parcel_take_recv(qp, 0, data, 9));
	/* What matched a tag is the business of tags. */
	qp->resp.mark = 1;
	assert_false(take(0, 8));
	qp->resp.mark = 0;
	assert_false(vb_parcel_goes(qp));
	assert_true(is_zero(0, BYTES));
	close_all();
}

NIC_TEST(answers_are_taken_if_they_complete)
{
	struct vb_payload to;
	struct vb_wqe wqe = { .kind = VB_K_READ_REQ, .bytes = 8, .sge_count = 1,
			      .flags = IBV_SEND_SIGNALED };

	open_with(4, 0, true);
	wqe.sge[0] = sge_at(0, 8);
	assert_true(vb_parcel_take_fetch(qp, &wqe, 0, data, 8));
	assert_true(vb_parcel_goes(qp));
	assert_true(vb_parcel_aim_fetch(qp, &wqe, &to));
	assert_int_equal(to.count, 1);
	assert_int_equal(to.iov[0].iov_len, 8);
	assert_ptr_equal(to.iov[0].iov_base, qp->user.parcels->in_hand.data);
	vb_parcel_drop(qp);
	wqe.flags = 0;
	assert_false(vb_parcel_take_fetch(qp, &wqe, 0, data, 8));
	assert_false(vb_parcel_aim_fetch(qp, &wqe, &to));
	wqe.flags = IBV_SEND_SIGNALED;
	wqe.kind = VB_K_WRITE; /* which brings nothing back */
	assert_false(vb_parcel_aim_fetch(qp, &wqe, &to));
	wqe.kind = VB_K_READ_REQ;
	wqe.bytes = 33;
	wqe.sge[0] = sge_at(0, 33);
	assert_false(vb_parcel_take_fetch(qp, &wqe, 0, data, 33));
	assert_false(vb_parcel_goes(qp));
	close_all();
}

/* --- in the CQ --- */

NIC_TEST(a_completion_that_is_overwritten_takes_it_along)
{
	open_with(4, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, false);
	for (uint64_t i = 0; i < 6; i++) {
		assert_true(take(40 * i, 8));
		push_recv(i);
	}
	for (uint64_t i = 2; i < 6; i++)
		polled(i, IBV_WC_SUCCESS);
	assert_true(is_zero(0, 80));
	for (unsigned i = 2; i < 6; i++)
		assert_memory_equal(mem + 40 * i, data, 8);
	close_all();
}

NIC_TEST(the_places_of_a_send_queue_come_back_as_ever)
{
	struct vb_wqe wqe = { .kind = VB_K_READ_REQ, .bytes = 8, .sge_count = 1,
			      .flags = IBV_SEND_SIGNALED };
	struct vb_cqe cqe = { .wc = { .wr_id = 1, .opcode = IBV_WC_RDMA_READ },
			      .note = VB_CQE_PARCEL,
			      .sq_released = 5 };

	open_with(4, 0, true);
	wqe.sge[0] = sge_at(0, 8);
	assert_true(vb_parcel_take_fetch(qp, &wqe, 0, data, 8));
	assert_true(vb_parcel_goes(qp));
	cqe.user = &qp->user;
	vb_cq_push(cq, &cqe);
	assert_int_equal(atomic_load(&qp->user.sq_released), 0);
	polled(1, IBV_WC_SUCCESS);
	assert_int_equal(atomic_load(&qp->user.sq_released), 5);
	assert_memory_equal(mem, data, 8);
	/* A receive says nothing about the send queue. */
	assert_true(take(FAR, 8));
	push_recv(2);
	polled(2, IBV_WC_SUCCESS);
	assert_int_equal(atomic_load(&qp->user.sq_released), 5);
	assert_memory_equal(mem + FAR, data, 8);
	close_all();
}

NIC_TEST(the_qp_fails_when_the_nic_is_turned)
{
	open_with(4, 0, false);
	bring(qp, IBV_QPS_RTS);
	assert_true(take(0, 8));
	push_recv(1);
	assert_int_equal(vb_mr_dereg(mr), 0);
	mr = NULL;
	assert_false(vb_parcels_failed(qp));
	polled(1, IBV_WC_LOC_PROT_ERR);
	assert_true(vb_parcels_failed(qp));
	assert_int_equal(vb_qp_state(qp), IBV_QPS_RTS);
	assert_true(vb_nic_deadline_ns(fix.nic) <= fake_ns);
	vb_nic_turn(fix.nic);
	assert_int_equal(vb_qp_state(qp), IBV_QPS_ERR);
	assert_false(vb_parcels_failed(qp));
	assert_no_event(); /* the completion has told of it */
	assert_true(is_zero(0, BYTES));
	close_all();
}
