/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder of XRC: one of RC that answers in XRC's opcodes, and refuses what its host does. */
#include "resp_fixture.h"

static int begin_xrc(void **state)
{
	begin(state);
	resp.transport = VB_XRC;
	return 0;
}

#define XRC_RESP_TEST(name) TEST_AFTER(name, begin_xrc)

static struct vb_resp_result refuse(uint32_t psn, enum vb_verdict verdict)
{
	const struct vb_pkt pkt = packet(VB_OP_XRC_SEND_ONLY, psn, 10, 0);

	return vb_rc_refuse(&resp, &pkt, vb_op_info(pkt.opcode), verdict);
}

XRC_RESP_TEST(it_answers_in_its_own_opcodes)
{
	static const struct {
		uint8_t request, response;
		uint32_t payload, dma;
	} rows[] = {
		{ VB_OP_XRC_SEND_ONLY, VB_OP_XRC_ACK, 10, 0 },
		{ VB_OP_XRC_WRITE_ONLY, VB_OP_XRC_ACK, 10, 10 },
		{ VB_OP_XRC_READ_REQ, VB_OP_XRC_READ_RESP_ONLY, 0, 10 },
		{ VB_OP_XRC_FETCH_ADD, VB_OP_XRC_ATOMIC_ACK, 0, 0 },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		struct vb_pkt pkt = packet(rows[i].request, EPSN, rows[i].payload, rows[i].dma);

		begin_xrc(state);
		pkt.ackreq = true;
		assert_result(give(&pkt), VB_RESP_OWES, VB_OK);
		assert_int_equal(response().opcode, rows[i].response);
		assert_int_equal(resp.epsn, EPSN + 1);
	}
}

/* A14: an SRQ that there is not, or not for this QP, is an invalid request. */
XRC_RESP_TEST(what_the_host_refuses_is_refused_in_its_turn)
{
	struct vb_pkt nak;

	assert_result(refuse(EPSN, VB_BAD_OPCODE), VB_RESP_FAILED, VB_BAD_OPCODE);
	nak = response();
	assert_int_equal(nak.opcode, VB_OP_XRC_ACK);
	assert_int_equal(nak.aeth.syndrome, vb_aeth_nak(VB_NAK_INVALID_REQ));
	assert_int_equal(nak.psn, EPSN);
	assert_true(resp.broken);
}

XRC_RESP_TEST(out_of_its_turn_nothing_is_refused)
{
	assert_result(refuse(EPSN - 1, VB_BAD_OPCODE), VB_RESP_DUPLICATE, VB_OK);
	assert_int_equal(response().psn, EPSN - 1);
	assert_result(refuse(EPSN + 1, VB_BAD_OPCODE), VB_RESP_OWES, VB_BAD_SEQUENCE);
	assert_int_equal(response().aeth.syndrome, vb_aeth_nak(VB_NAK_PSN));
	assert_false(resp.broken);
}

/* Where another has moved on what it expects, it goes on from there. */
XRC_RESP_TEST(it_goes_on_where_it_is_set)
{
	request(VB_OP_XRC_SEND_ONLY, EPSN, 10, 0);
	resp.epsn = EPSN + 9;
	resp.msn = 7;
	assert_result(request(VB_OP_XRC_SEND_ONLY, EPSN + 1, 10, 0), VB_RESP_DUPLICATE, VB_OK);
	assert_int_equal(response().psn, EPSN + 8);
	request(VB_OP_XRC_SEND_ONLY, EPSN + 9, 10, 0);
	assert_int_equal(resp.epsn, EPSN + 10);
	assert_int_equal(resp.msn, 8);
}
