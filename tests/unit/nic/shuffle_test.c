/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue/shuffle.h"

#include "nic_fixture.h"

static void no_time(void *arg, uint64_t ns)
{
}

static struct vb_host_order order = { .dawdle = no_time };

static void push_as(struct vb_cq *cq, uint64_t wr_id, uint32_t qpn, enum ibv_wc_opcode opcode)
{
	const struct vb_cqe cqe = { .wc = { .wr_id = wr_id, .qp_num = qpn, .opcode = opcode } };

	vb_cq_push(cq, &cqe);
}

/* Pushes `count` completions, wr_id counting up, shuffles, and has them as they come out. */
static void shuffled(uint64_t seed, const enum ibv_wc_opcode *opcodes, unsigned kinds,
		     unsigned qps, struct ibv_wc wc[16])
{
	struct vb_cq *cq = make_cq(16, NULL);

	order.seed = seed;
	fix.nic->host.order = &order;
	fix.nic->orders[VB_ORDER_OF_COMPLETIONS] = 0;
	for (unsigned i = 0; i < 16; i++)
		push_as(cq, i, i % qps, opcodes[i / 2 % kinds]);
	vb_cq_shuffle(cq);
	vb_cq_shuffle(cq);
	assert_int_equal(vb_cq_poll(cq, 16, wc), 16);
	fix.nic->host.order = NULL;
	drop_cq(cq);
}

static unsigned moved(const struct ibv_wc wc[16])
{
	unsigned moves = 0;

	for (unsigned i = 0; i < 16; i++)
		moves += wc[i].wr_id != i;
	return moves;
}

static bool is_recv(const struct ibv_wc *wc)
{
	return wc->opcode == IBV_WC_RECV || wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
}

/* IBA 11.4.2.1: completions of one work queue come in the order in which they were posted. */
NIC_TEST(each_queue_stays_in_order)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_SEND, IBV_WC_RECV, IBV_WC_RDMA_READ,
						      IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_DRIVER2 };
	unsigned moves = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		struct ibv_wc wc[16];

		shuffled(seed, opcodes, VB_ARRAY_LEN(opcodes), 3, wc);
		moves += moved(wc);
		for (unsigned i = 0; i < 16; i++) {
			for (unsigned k = 0; k < i; k++) {
				if (wc[k].qp_num == wc[i].qp_num &&
				    is_recv(&wc[k]) == is_recv(&wc[i]))
					assert_true(wc[k].wr_id < wc[i].wr_id);
			}
		}
	}
	assert_true(moves > 1000);
}

NIC_TEST(the_same_seed_gives_the_same_order)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_SEND };
	struct ibv_wc a[16], b[16];

	shuffled(9, opcodes, 1, 4, a);
	shuffled(9, opcodes, 1, 4, b);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(a[i].wr_id, b[i].wr_id);
}

NIC_TEST(a_single_queue_is_left_alone)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_SEND, IBV_WC_RDMA_WRITE };

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct ibv_wc wc[16];

		shuffled(seed, opcodes, 2, 1, wc);
		assert_int_equal(moved(wc), 0);
	}
}

/* What is flushed follows from an error, which may be the other queue's. */
NIC_TEST(a_flush_stays_behind_its_error)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct vb_cq *cq = make_cq(4, NULL);
		struct vb_cqe cqe = { .wc = { .wr_id = 1, .qp_num = 7, .opcode = IBV_WC_SEND,
					      .status = IBV_WC_REM_OP_ERR } };
		struct ibv_wc wc[3];

		order.seed = seed;
		fix.nic->host.order = &order;
		push_as(cq, 0, 8, IBV_WC_RECV);
		vb_cq_push(cq, &cqe);
		cqe.wc = (struct ibv_wc){ .wr_id = 2, .qp_num = 7, .opcode = IBV_WC_RECV,
					  .status = IBV_WC_WR_FLUSH_ERR };
		vb_cq_push(cq, &cqe);
		vb_cq_shuffle(cq);
		vb_cq_shuffle(cq);
		assert_int_equal(vb_cq_poll(cq, 3, wc), 3);
		fix.nic->host.order = NULL;
		for (unsigned i = 0, errors = 0; i < 3; i++) {
			errors += wc[i].wr_id == 1;
			assert_true(wc[i].wr_id != 2 || errors);
		}
		drop_cq(cq);
	}
}

/* Nothing passes what tag matching hands over. */
NIC_TEST(tags_stay_where_they_are)
{
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_TM_RECV, IBV_WC_TM_ADD };

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct ibv_wc wc[16];

		shuffled(seed, opcodes, 2, 4, wc);
		assert_int_equal(moved(wc), 0);
	}
}
