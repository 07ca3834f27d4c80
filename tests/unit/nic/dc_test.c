/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of DC, packet by packet: what a target makes of the numbers of connections, of keys and of
 * too many initiators, and what an initiator sends and takes.
 */
#include "nic/data/acks.h"
#include "nic/service/dc/dc.h"
#include "packets.h"

enum { KEY = 0xabc, DCI = 0x123456, START = 0xfffffe, RECVS = VB_UNACKED_MAX + 2 };

static struct {
	struct vb_cq *cq;
	struct vb_srq *srq;
	struct vb_mr *mr;
	struct vb_ah *ah;
	struct vb_qp *target, *initiator;
	uint8_t buf[4096];
} x;

static int begin_dc(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };

	begin(state);
	memcpy(av.grh.dgid.raw, peer_gid, VB_GID_BYTES);
	x.cq = make_cq(64, NULL);
	assert_int_equal(vb_srq_create(fix.pd, &srq, &x.srq), 0);
	assert_int_equal(vb_mr_reg(fix.pd, x.buf, sizeof(x.buf), (uintptr_t)x.buf,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &x.mr), 0);
	assert_int_equal(vb_ah_create(fix.pd, &av, &x.ah), 0);
	x.target = dc_make_on(&fix, x.cq, x.srq, KEY, START);
	x.initiator = dc_make_on(&fix, x.cq, NULL, 0, START);
	for (unsigned i = 0; i < RECVS; i++) {
		struct ibv_sge sge = { (uintptr_t)x.buf + i * 400, 400, x.mr->ibv.lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		assert_int_equal(vb_srq_post(x.srq, &wr, &bad), 0);
	}
	return 0;
}

static int end_dc(void **state)
{
	drop_qp(x.target);
	drop_qp(x.initiator);
	drop_srq(x.srq);
	assert_int_equal(vb_mr_dereg(x.mr), 0);
	vb_ah_destroy(x.ah);
	drop_cq(x.cq);
	return end(state);
}

#define DC(name) TEST_BETWEEN(name, begin_dc, end_dc)

/* --- packets --- */

struct packet {
	uint8_t opcode;
	uint32_t psn, dci;
	uint64_t connection, key;
	uint8_t syndrome, mtu_code;
};

enum { OCTETS = 1200 };

static struct vb_frame frame_of(uint8_t octets[OCTETS], uint32_t dqpn, const struct packet *p)
{
	const struct vb_op_info *info = vb_op_info(p->opcode);
	uint32_t bytes = 0;
	struct vb_pkt pkt = {
		.opcode = p->opcode,
		.ackreq = true,
		.pkey = VB_PKEY_DEFAULT,
		.dqpn = dqpn,
		.psn = p->psn,
		.sqpn = p->dci,
		.dceth.mtu_code = p->mtu_code,
		.dceth.start_psn = START,
		.dceth.connection = p->connection,
		.dceth.key = p->key,
		.aeth.syndrome = p->syndrome,
	};

	if (info->payload)
		bytes = info->pos & VB_P_LAST ? 8 : 128u << p->mtu_code;
	return packet_seal(octets, &pkt, NULL, bytes, peer_gid, own_gid);
}

static void comes(uint32_t dqpn, const struct packet *p)
{
	uint8_t octets[OCTETS] = { 0 };
	struct vb_frame frame = frame_of(octets, dqpn, p);

	frames_come(&frame, 1);
}

static void request(uint8_t opcode, uint64_t connection, uint32_t psn)
{
	comes(x.target->ibv.qp.qp_num,
	      &(struct packet){ opcode, psn & 0xffffff, DCI, connection, KEY, 0, IBV_MTU_1024 });
}

static unsigned completions(void)
{
	struct ibv_wc wc[16];

	return (unsigned)vb_cq_poll(x.cq, 16, wc);
}

/* What was sent last was that answer, to this connection. */
static void expect_answer(unsigned sent, uint32_t psn, uint8_t syndrome, uint8_t mtu_code)
{
	struct vb_pkt pkt;

	assert_int_equal(fix.sent, sent);
	assert_non_null(vb_pkt_parse_head(&pkt, fix.last, 32));
	assert_int_equal(pkt.opcode, VB_OP_DC_ACK);
	assert_int_equal(pkt.dqpn, DCI);
	assert_int_equal(pkt.sqpn, x.target->ibv.qp.qp_num);
	assert_int_equal(pkt.psn, psn & 0xffffff);
	assert_int_equal(pkt.aeth.syndrome, syndrome);
	assert_int_equal(pkt.dceth.mtu_code, mtu_code);
}

/* --- targets --- */

DC(half_a_handshake_is_enough)
{
	request(VB_OP_DC_CONNECT, 5, START);
	assert_int_equal(fix.sent, 0);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	expect_answer(1, START, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), IBV_MTU_1024);
	request(VB_OP_DC_SEND_ONLY, 5, START + 1);
	request(VB_OP_DC_SEND_ONLY, 5, START + 2);
	expect_answer(3, START + 2, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), IBV_MTU_1024);
	assert_int_equal(completions(), 3);
}

/* What the application knew of when something was sent. */
static unsigned known_at[RECVS];

static int tx_looks(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	known_at[fix.sent++] = completions();
	return 0;
}

/*
 * The application answers by another QP, and could be faster than an ACK that is still to be sent.
 * One ACK is for many messages, but not for so many that they would have to wait for long.
 */
DC(messages_complete_when_their_ack_has_left)
{
	static uint8_t octets[RECVS][OCTETS];
	struct packet p = { VB_OP_DC_SEND_ONLY, START, DCI, 5, KEY, 0, IBV_MTU_1024 };
	struct vb_frame frames[RECVS];

	fix.nic->host.wire.tx = tx_looks;
	request(VB_OP_DC_CONNECT, 5, START);
	for (unsigned i = 0; i < RECVS; i++) {
		frames[i] = frame_of(octets[i], x.target->ibv.qp.qp_num, &p);
		p.psn = (p.psn + 1) & 0xffffff;
	}
	frames_come(frames, RECVS);
	assert_int_equal(fix.sent, 2);
	assert_int_equal(known_at[0], 0);
	assert_int_equal(known_at[1], VB_UNACKED_MAX);
	assert_int_equal(completions(), RECVS - VB_UNACKED_MAX);
}

/* Whatever comes late or twice: it is known by the connection's number. */
DC(what_is_late_is_dropped)
{
	request(VB_OP_DC_CONNECT, 5, START);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	request(VB_OP_DC_CONNECT, 5, START);
	assert_int_equal(completions(), 1);
	request(VB_OP_DC_SEND_ONLY, 5, START); /* a duplicate: answered, not delivered */
	assert_int_equal(completions(), 0);
	expect_answer(2, START, vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED), IBV_MTU_1024);
	request(VB_OP_DC_DISCONNECT, 5, START + 1);
	request(VB_OP_DC_CONNECT, 5, START);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	request(VB_OP_DC_CONNECT, 6, START);
	request(VB_OP_DC_CONNECT, 4, START);
	request(VB_OP_DC_SEND_ONLY, 4, START);
	request(VB_OP_DC_DISCONNECT, 5, START);
	assert_int_equal(completions(), 0);
	assert_int_equal(fix.sent, 2);
	request(VB_OP_DC_SEND_ONLY, 6, START);
	assert_int_equal(completions(), 1);
}

/* But after a while it is no late packet: a host's clock was set back. */
DC(a_lower_number_is_good_after_a_while)
{
	request(VB_OP_DC_CONNECT, 5, START);
	request(VB_OP_DC_DISCONNECT, 5, START);
	fake_ns += VB_DC_LINGER_NS - 1;
	request(VB_OP_DC_CONNECT, 3, START);
	request(VB_OP_DC_SEND_ONLY, 3, START);
	assert_int_equal(completions(), 0);
	fake_ns++;
	request(VB_OP_DC_CONNECT, 3, START);
	request(VB_OP_DC_SEND_ONLY, 3, START);
	assert_int_equal(completions(), 1);
}

DC(a_connect_that_got_lost_is_asked_for)
{
	request(VB_OP_DC_SEND_ONLY, 5, START + 1);
	request(VB_OP_DC_DISCONNECT, 5, START);
	assert_int_equal(fix.sent, 0);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	expect_answer(1, START, vb_aeth_nak(VB_NAK_PSN), 0);
	request(VB_OP_DC_CONNECT, 5, START);
	request(VB_OP_DC_DISCONNECT, 7, START);
	request(VB_OP_DC_SEND_ONLY, 7, START);
	expect_answer(2, START, vb_aeth_nak(VB_NAK_PSN), 0);
	assert_int_equal(completions(), 0);
}

DC(a_wrong_key_is_refused)
{
	struct packet p = { VB_OP_DC_CONNECT, START, DCI, 5, KEY + 1, 0, IBV_MTU_1024 };

	comes(x.target->ibv.qp.qp_num, &p);
	expect_answer(1, START, vb_aeth_nak(VB_NAK_ACCESS), 0);
	p.key = KEY;
	p.mtu_code = 0;
	comes(x.target->ibv.qp.qp_num, &p);
	p.mtu_code = 6;
	comes(x.target->ibv.qp.qp_num, &p);
	p.mtu_code = VB_DC_MTU_LARGE;
	comes(x.target->ibv.qp.qp_num, &p);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	assert_int_equal(completions(), 0);
}

static enum vb_whom asked_for;

static uint16_t host_sport(void *arg, uint16_t src_slot, const struct vb_path *path, uint16_t slot,
			   enum vb_whom whom)
{
	asked_for = whom;
	return VB_ROCE_PORT;
}

/* Who does not know the key gets an answer, and takes no place of anybody (udp_senders.h). */
DC(who_knows_the_key_is_a_guest)
{
	struct packet p = { VB_OP_DC_CONNECT, START, DCI, 5, KEY + 1, 0, IBV_MTU_1024 };

	fix.nic->host.wire.sport = host_sport;
	asked_for = VB_OURS;
	request(VB_OP_DC_SEND_ONLY, 5, START);
	assert_int_equal(asked_for, VB_STRANGER);
	asked_for = VB_OURS;
	comes(x.target->ibv.qp.qp_num, &p);
	assert_int_equal(asked_for, VB_STRANGER);
	request(VB_OP_DC_CONNECT, 5, START);
	assert_int_equal(asked_for, VB_GUEST);
}

/* The target stays; and the refusal is said as often as it is asked for. */
DC(what_is_wrong_ends_the_connection_alone)
{
	request(VB_OP_DC_CONNECT, 5, START);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	request(VB_OP_DC_WRITE_ONLY, 5, START + 1);
	expect_answer(2, START + 1, vb_aeth_nak(VB_NAK_INVALID_REQ), IBV_MTU_1024);
	request(VB_OP_DC_WRITE_ONLY, 5, START + 1);
	expect_answer(3, START + 1, vb_aeth_nak(VB_NAK_INVALID_REQ), IBV_MTU_1024);
	request(VB_OP_DC_CONNECT, 5, START);
	expect_answer(4, START + 1, vb_aeth_nak(VB_NAK_INVALID_REQ), IBV_MTU_1024);
	assert_int_equal(vb_qp_state(x.target), IBV_QPS_RTR);
	assert_int_equal(fix.signals[FD_ASYNC], 0);
	request(VB_OP_DC_CONNECT, 6, START);
	request(VB_OP_DC_SEND_ONLY, 6, START);
	assert_int_equal(completions(), 2);
}

DC(too_many_have_to_wait)
{
	struct packet p = { VB_OP_DC_CONNECT, START, 0, 5, KEY, 0, IBV_MTU_1024 };

	for (p.dci = 1; p.dci <= VB_DC_CONTEXTS_MAX; p.dci++)
		comes(x.target->ibv.qp.qp_num, &p);
	assert_int_equal(fix.sent, 0);
	request(VB_OP_DC_CONNECT, 5, START);
	expect_answer(1, START, vb_aeth_rnr(5), 0);
	/* One parts, and is forgotten when nothing of it can be under way any more. */
	p.opcode = VB_OP_DC_DISCONNECT;
	p.dci = 7;
	comes(x.target->ibv.qp.qp_num, &p);
	request(VB_OP_DC_CONNECT, 5, START);
	expect_answer(2, START, vb_aeth_rnr(5), 0);
	fake_ns += VB_DC_LINGER_NS;
	request(VB_OP_DC_CONNECT, 5, START);
	request(VB_OP_DC_SEND_ONLY, 5, START);
	assert_int_equal(completions(), 1);
	/* Those that say nothing, too. */
	fake_ns += VB_DC_FORGET_NS - VB_DC_LINGER_NS;
	p.opcode = VB_OP_DC_CONNECT;
	p.dci = 5000;
	comes(x.target->ibv.qp.qp_num, &p);
	p.opcode = VB_OP_DC_SEND_ONLY;
	comes(x.target->ibv.qp.qp_num, &p);
	assert_int_equal(completions(), 1);
}

/* Taken for a message whose sender is gone, a receive request serves another. */
DC(a_receive_request_is_not_lost)
{
	struct packet p = { VB_OP_DC_CONNECT, START, 0x42, 5, KEY, 0, IBV_MTU_256 };

	request(VB_OP_DC_CONNECT, 1, START);
	for (unsigned i = 0; i < RECVS - 1; i++) {
		request(VB_OP_DC_SEND_ONLY, 1, START + i);
		assert_int_equal(completions(), 1);
	}
	/* The last one goes to a message that does not end. */
	comes(x.target->ibv.qp.qp_num, &p);
	p.opcode = VB_OP_DC_SEND_FIRST;
	comes(x.target->ibv.qp.qp_num, &p);
	request(VB_OP_DC_SEND_ONLY, 1, START + RECVS - 1);
	expect_answer(RECVS + 1, START + RECVS - 1, vb_aeth_rnr(5), IBV_MTU_1024);
	p.opcode = VB_OP_DC_DISCONNECT;
	comes(x.target->ibv.qp.qp_num, &p);
	request(VB_OP_DC_SEND_ONLY, 1, START + RECVS - 1);
	assert_int_equal(completions(), 1);
}

/* --- initiators --- */

static void post_send(uint32_t dctn)
{
	struct ibv_sge sge = { (uintptr_t)x.buf, 8, x.mr->ibv.lkey };
	const struct vb_post post = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
		.dc = { .ah = &x.ah->ibv, .dctn = dctn, .key = KEY },
	};

	assert_int_equal(vb_qp_post_batch(x.initiator, &post, 1), 0);
}

static void answer(uint64_t connection, uint32_t psn, uint8_t syndrome, uint8_t mtu_code)
{
	comes(x.initiator->ibv.qp.qp_num,
	      &(struct packet){ VB_OP_DC_ACK, psn & 0xffffff, 0x777, connection, 0, syndrome,
				mtu_code });
}

static uint64_t connection_sent(uint32_t dctn)
{
	struct vb_pkt pkt;

	assert_non_null(vb_pkt_parse_head(&pkt, fix.last, 36));
	assert_int_equal(pkt.dqpn, dctn);
	assert_int_equal(pkt.sqpn, x.initiator->ibv.qp.qp_num);
	return pkt.dceth.connection;
}

DC(it_goes_to_one_after_the_other)
{
	const uint8_t ack = vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED);
	uint64_t first, second;

	fix.wall_ns = 1000;
	post_send(0x10);
	assert_int_equal(fix.sent, 2); /* CONNECT, SEND */
	first = connection_sent(0x10);
	assert_int_equal(first, 1000);
	post_send(0x20);
	assert_int_equal(fix.sent, 2);
	answer(first + 1, START, ack, IBV_MTU_1024); /* to another */
	assert_int_equal(completions(), 0);
	answer(first, START, ack, IBV_MTU_1024);
	assert_int_equal(completions(), 1);
	assert_int_equal(fix.sent, 5); /* DISCONNECT, CONNECT, SEND */
	second = connection_sent(0x20);
	assert_true(second > first);
	answer(first, START + 1, ack, IBV_MTU_1024);
	assert_int_equal(completions(), 0);
	answer(second, START + 1, ack, IBV_MTU_1024);
	assert_int_equal(completions(), 1);
	/* The same once more: it is connected. Then, idle for long, anew. */
	post_send(0x20);
	assert_int_equal(fix.sent, 6);
	answer(second, START + 2, ack, IBV_MTU_1024);
	fake_ns += VB_DC_FORGET_NS / 2;
	post_send(0x20);
	assert_int_equal(fix.sent, 9);
	assert_true(connection_sent(0x20) > second);
}

DC(a_lost_connect_is_sent_again_once_for_asking)
{
	uint64_t number;

	post_send(0x10);
	number = connection_sent(0x10);
	answer(number, START, vb_aeth_nak(VB_NAK_PSN), 0);
	assert_int_equal(fix.sent, 4);
	for (unsigned i = 0; i < 20; i++)
		answer(number, START, vb_aeth_nak(VB_NAK_PSN), 0);
	assert_int_equal(fix.sent, 4);
	assert_int_equal(vb_qp_state(x.initiator), IBV_QPS_RTS);
	answer(number, START, vb_aeth_nak(VB_NAK_ACCESS), 0);
	assert_int_equal(vb_qp_state(x.initiator), IBV_QPS_ERR);
}

/* The path MTU is the QP's, but where it goes each work request says. */
static uint32_t narrow_way(void *arg, const struct vb_path *path)
{
	return 1024 + 51;
}

DC(a_way_that_is_too_narrow_is_found_out)
{
	struct ibv_wc wc;

	fix.nic->host.wire.frame_bytes_max = narrow_way;
	post_send(0x10);
	assert_int_equal(fix.sent, 0);
	assert_int_equal(vb_cq_poll(x.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(vb_qp_state(x.initiator), IBV_QPS_ERR);
}
