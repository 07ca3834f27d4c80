/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_REQ_FIXTURE_H
#define VB_TESTS_REQ_FIXTURE_H

/* A requester with a queue, and short words for what happens to it. */

#include "base/check.h"
#include "base/psn.h"
#include "engine/rc_answer.h"
#include "fake_host.h"

enum { QUEUE = 64, STRIDE = 256, SENT_MAX = 4096, MTU = 1024, START_PSN = 0x100 };

static struct vb_req req;
static uint8_t ring[QUEUE * STRIDE] __attribute__((aligned(64)));
static struct vb_segment sent[SENT_MAX];
static bool asked[SENT_MAX]; /* for an acknowledgement */
static unsigned sent_count;
static uint64_t now_ns;

/* Everything afresh; the test may change what modify_qp sets before it calls start(). */
static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(ring, 0, sizeof(ring));
	req = (struct vb_req){ .sq = { .ring = ring, .stride = STRIDE, .mask = QUEUE - 1 } };
	vb_req_reset(&req);
	req.transport = VB_RC;
	req.mtu = MTU;
	req.flight.max = 512;
	req.max_fetches = 4;
	req.retry.timeout = 14; /* 67 ms */
	req.retry.count = 7;
	req.retry.rnr_count = 7;
	sent_count = 0;
	now_ns = 1000;
	vb_req_start(&req, START_PSN);
	return 0;
}

#define REQ_TEST(name) TEST_AFTER(name, begin)

static inline struct vb_wqe *post_flags(unsigned kind, uint32_t bytes, uint8_t flags)
{
	struct vb_wqe *wqe = vb_sq_at(&req.sq, req.tail);

	assert_true(req.tail - req.head < QUEUE);
	*wqe = (struct vb_wqe){
		.wr_id = req.tail, .kind = (uint8_t)kind, .bytes = bytes, .flags = flags,
	};
	vb_req_commit(&req, wqe);
	return wqe;
}

static inline struct vb_wqe *post(unsigned kind, uint32_t bytes)
{
	return post_flags(kind, bytes, 0);
}

/* Send what may be sent: the number of packets. They are in sent[], from 0 on. */
static inline unsigned send_all(void)
{
	struct vb_req_pos before = req.pos;

	for (sent_count = 0; vb_req_next(&req, &sent[sent_count], &asked[sent_count]);)
		assert_true(++sent_count < SENT_MAX);
	vb_req_sent(&req, &before, now_ns);
	return sent_count;
}

static inline enum vb_req_outcome answer(uint8_t opcode, uint32_t psn, uint8_t syndrome,
					 uint32_t msn, uint32_t bytes)
{
	static const uint8_t data[4096] = { 0xda, 0x7a };
	const struct vb_pkt pkt = {
		.opcode = opcode,
		.psn = psn,
		.aeth.syndrome = syndrome,
		.aeth.msn = msn,
		.atomic.orig = 0x0123456789abcdef,
		.payload = data,
		.payload_bytes = bytes,
	};

	return vb_rc_answer(&req, &pkt, vb_op_info(opcode), now_ns);
}

static inline enum vb_req_outcome ack(uint32_t psn)
{
	return answer(VB_OP_RC_ACK, psn, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0, 0);
}

static inline enum vb_req_outcome nak(uint32_t psn, unsigned code)
{
	return answer(VB_OP_RC_ACK, psn, (uint8_t)(0x60 | code), 0, 0);
}

static inline enum vb_req_outcome rnr(uint32_t psn, unsigned timer)
{
	return answer(VB_OP_RC_ACK, psn, vb_aeth_rnr(timer), 0, 0);
}

static inline enum vb_req_outcome atomic_ack(uint32_t psn)
{
	return answer(VB_OP_RC_ATOMIC_ACK, psn, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0, 0);
}

static inline enum vb_req_outcome read_resp(uint32_t psn, uint32_t bytes)
{
	return answer(VB_OP_RC_READ_RESP_ONLY, psn, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), 0,
		      bytes);
}

static inline void assert_done(unsigned count)
{
	assert_int_equal(fake.done_count, count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(fake.done[i].wr_id, i);
		assert_int_equal(fake.done[i].status, IBV_WC_SUCCESS);
	}
}

/* The first `good` are done, then one failed like this; nothing else. */
static inline void assert_failed(unsigned good, enum ibv_wc_status status)
{
	assert_int_equal(fake.done_count, good + 1);
	for (unsigned i = 0; i < good; i++)
		assert_int_equal(fake.done[i].status, IBV_WC_SUCCESS);
	assert_int_equal(fake.done[good].wr_id, good);
	assert_int_equal(fake.done[good].status, status);
}

#endif
