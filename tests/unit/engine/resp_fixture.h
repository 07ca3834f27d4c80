/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_RESP_FIXTURE_H
#define VB_TESTS_RESP_FIXTURE_H

/* A responder, and short words for what comes to it. */

#include "base/check.h"
#include "base/psn.h"
#include "engine/rc_resp.h"
#include "engine/uc_ud.h"
#include "fake_host.h"

enum { MTU = 1024, EPSN = 0x100, RESOURCES = 4 };

static struct vb_resp resp;
static struct vb_resource resources[RESOURCES];

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(resources, 0, sizeof(resources));
	resp.ring = resources;
	vb_resp_reset(&resp);
	resp.transport = VB_RC;
	resp.mtu = MTU;
	resp.resources_max = RESOURCES;
	resp.min_rnr_timer = 9;
	resp.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	resp.epsn = EPSN;
	fake.recv_posted = 100;
	fake.word = 1000;
	return 0;
}

#define RESP_TEST(name) TEST_AFTER(name, begin)

static inline struct vb_pkt packet(uint8_t opcode, uint32_t psn, uint32_t payload, uint32_t dma)
{
	static const uint8_t data[8192];

	return (struct vb_pkt){
		.opcode = opcode,
		.psn = psn,
		.payload = data,
		.payload_bytes = payload,
		.reth.bytes = dma,
		.reth.va = 0x10000,
		.reth.rkey = 0x77,
		.atomic.swap_add = 1,
	};
}

static inline struct vb_resp_result give(const struct vb_pkt *pkt)
{
	const struct vb_op_info *info = vb_op_info(pkt->opcode);
	static const uint8_t grh[40];

	switch (resp.transport) {
	case VB_RC:
	case VB_XRC:
	case VB_DC:
		return vb_rc_request(&resp, pkt, info);
	case VB_UC:
		return vb_uc_request(&resp, pkt, info);
	case VB_RD:
	case VB_UD:
	case VB_CNP:
		break;
	}
	return vb_ud_request(&resp, pkt, info, grh);
}

static inline struct vb_resp_result request(uint8_t opcode, uint32_t psn, uint32_t payload,
					    uint32_t dma)
{
	const struct vb_pkt pkt = packet(opcode, psn, payload, dma);

	return give(&pkt);
}

static inline void assert_result(struct vb_resp_result result, enum vb_resp_outcome outcome,
				 enum vb_verdict verdict)
{
	assert_int_equal(result.outcome, outcome);
	assert_int_equal(result.verdict, verdict);
}

/* The next answer, which must be there. */
static inline struct vb_pkt response(void)
{
	struct vb_pkt pkt = { .opcode = 0xff };
	bool data;

	assert_true(vb_rc_response(&resp, &pkt, &data));
	return pkt;
}

static inline void assert_silent(void)
{
	struct vb_pkt pkt;
	bool data;

	assert_false(vb_rc_response(&resp, &pkt, &data));
}

static inline void assert_answer(uint8_t opcode, uint32_t psn)
{
	struct vb_pkt pkt = response();

	assert_int_equal(pkt.opcode, opcode);
	assert_int_equal(pkt.psn, psn);
}

static inline void assert_ack(uint32_t psn, unsigned class, unsigned value)
{
	struct vb_pkt pkt = response();

	assert_int_equal(pkt.opcode, VB_OP_RC_ACK);
	assert_int_equal(pkt.psn, psn);
	assert_int_equal(vb_aeth_class(pkt.aeth.syndrome), class);
	if (class != VB_AETH_ACK)
		assert_int_equal(vb_aeth_value(pkt.aeth.syndrome), value);
}

static inline void assert_refused(struct vb_resp_result result, enum vb_verdict verdict,
			   enum vb_nak code)
{
	assert_result(result, VB_RESP_FAILED, verdict);
	assert_ack(0x100, VB_AETH_NAK, code);
	assert_true(resp.broken);
	assert_int_equal(resp.epsn, 0x100);
	/* Nothing is taken any more. */
	assert_int_equal(request(VB_OP_RC_SEND_ONLY, 0x100, 1, 0).outcome, VB_RESP_DROPPED);
}

#endif
