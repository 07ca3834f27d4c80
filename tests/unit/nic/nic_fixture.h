/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_NIC_FIXTURE_H
#define VB_TESTS_NIC_FIXTURE_H

/* A NIC without surroundings: its frames vanish, its clock stands, its signals are counted. */

#include "fake_host.h"

static struct side fix;

static const uint8_t peer_gid[VB_GID_BYTES] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

static int begin(void **state)
{
	fix = (struct side){ .slot = 3, .next_index = 100, .frame_bytes = 1500 - 28,
			     .queue_wrs = 8 };
	fake_ns = 1;
	side_open(&fix, 42, 1500);
	return 0;
}

/* Of what connect_as() made. */
static inline void disconnect(void)
{
	if (fix.qp)
		drop_qp(fix.qp);
	if (fix.cq)
		drop_cq(fix.cq);
	fix.qp = NULL;
	fix.cq = NULL;
}

static int end(void **state)
{
	disconnect();
	side_close(&fix);
	return 0;
}

static inline struct vb_cq *make_cq(int cqe, struct vb_channel *channel)
{
	struct vb_cq *cq;

	assert_int_equal(vb_cq_create(fix.ctx, cqe, channel, 0, NULL, &cq), 0);
	return cq;
}

/* A completion. */
static inline void push(struct vb_cq *cq, uint64_t wr_id, uint32_t qpn, bool solicited)
{
	const struct vb_cqe cqe = { .wc = { .wr_id = wr_id, .qp_num = qpn },
				    .solicited = solicited };

	vb_cq_push(cq, &cqe);
}

static inline struct vb_qp *make_qp(enum ibv_qp_type type, struct vb_cq *cq, struct vb_srq *srq)
{
	return qp_make_on(&fix, type, cq, srq);
}

/* Towards a QP that nobody has. To INIT, RTR or RTS. */
static inline void bring(struct vb_qp *qp, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = qp_attr_to(peer_gid, 0x77);

	attr.sq_psn = 0x200;
	qp_climb(qp, attr, to);
}

/* The fixture's own QP and its CQ, until end(). */
static inline void connect_as(enum ibv_qp_type type)
{
	if (!fix.cq)
		fix.cq = make_cq(64, NULL);
	fix.qp = make_qp(type, fix.cq, NULL);
	bring(fix.qp, IBV_QPS_RTS);
}

static inline int set_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return vb_qp_modify(qp, &attr, IBV_QP_STATE);
}

/* The next asynchronous event must be this one. */
static inline void assert_event(enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_true(fix.signals[FD_ASYNC] > 0);
	fix.signals[FD_ASYNC]--;
	assert_true(vb_ctx_event_pop(fix.ctx, &event));
	assert_int_equal(event.event_type, type);
}

static inline void assert_no_event(void)
{
	struct ibv_async_event event;

	assert_int_equal(fix.signals[FD_ASYNC], 0);
	assert_false(vb_ctx_event_pop(fix.ctx, &event));
}

#define NIC_TEST(name) TEST_BETWEEN(name, begin, end)

#endif
