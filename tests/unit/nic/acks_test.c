/* SPDX-License-Identifier: BSD-2-Clause */
/* ACKs that wait for the application's answer: when, how long, and that none is forgotten. */
#include "nic/data/acks.h"

#include <limits.h>

#include "packets.h"

/* So many quick answers in a row, and they are waited for. */
enum { QUICK = 4, FRAMES_MAX = 4, STEP_NS = 1000 };

static struct {
	struct ibv_mr mr;
	uint32_t psn;		     /* of the peer's next message */
	uint32_t acked;		     /* our next message, to be acknowledged by the peer */
	unsigned bursts, frames;     /* sent, all told */
	unsigned full;		     /* so many bursts the link has no room for */
	uint8_t opcode[FRAMES_MAX];  /* of the last burst */
} ends;

/* Pieces may end anywhere, so all are put together first. */
static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	uint8_t octets[1024];
	size_t bytes = 0;

	if (ends.full) {
		ends.full--;
		return EAGAIN;
	}
	for (uint32_t i = 0; i < burst->iovcnt; i++) {
		assert_true(bytes + burst->iov[i].iov_len <= sizeof(octets));
		memcpy(octets + bytes, burst->iov[i].iov_base, burst->iov[i].iov_len);
		bytes += burst->iov[i].iov_len;
	}
	assert_true(burst->frames <= FRAMES_MAX);
	assert_int_equal(bytes, (burst->frames - 1u) * burst->frame_bytes + burst->last_bytes);
	for (uint32_t i = 0; i < burst->frames; i++) {
		const uint8_t *frame = octets + (size_t)i * burst->frame_bytes;
		uint16_t id;

		assert_true(vb_icrc_check(&burst->path, frame,
					  i + 1u < burst->frames ? burst->frame_bytes
								 : burst->last_bytes,
					  (uint16_t)i, &id));
		assert_int_equal(id, i);
		ends.opcode[i] = frame[0];
	}
	ends.bursts++;
	ends.frames += burst->frames;
	return 0;
}

static void post_recv(void)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

	assert_int_equal(vb_qp_post_recv(fix.qp, &wr, &bad), 0);
}

static int begin_connected(void **state)
{
	int rc = begin(state);

	memset(&ends, 0, sizeof(ends));
	fix.nic->host.wire.tx = host_tx;
	connect_as(IBV_QPT_RC);
	ends.psn = 0x100;
	ends.acked = 0x200;
	for (unsigned i = 0; i < 4; i++)
		post_recv();
	return rc;
}

#define CONNECTED(name) TEST_BETWEEN(name, begin_connected, end)

static void frame_make(uint8_t *octets, struct vb_frame *out, enum vb_kind kind, uint32_t psn)
{
	struct vb_pkt pkt = packet_for(fix.qp, vb_op_find(VB_RC, kind, VB_P_ONLY, 0), psn);

	pkt.ackreq = kind == VB_K_SEND;
	pkt.aeth.syndrome = vb_aeth_ack(VB_CREDIT_CODE_UNLIMITED);
	*out = packet_seal(octets, &pkt, NULL, 0, peer_gid, own_gid);
}

/* The peer's next message comes, after what acknowledges all of ours. */
static void message_comes(bool polled)
{
	uint8_t octets[2][64];
	struct vb_frame frame[2];
	unsigned n = 0;

	if (ends.acked != fix.qp->req.pos.next_psn) {
		ends.acked = fix.qp->req.pos.next_psn;
		frame_make(octets[n], &frame[n], VB_K_ACK, ends.acked - 1);
		n++;
	}
	frame_make(octets[n], &frame[n], VB_K_SEND, ends.psn++);
	n++;
	fake_ns += STEP_NS;
	if (polled)
		vb_nic_rx_polled(fix.nic, frame, n);
	else
		vb_nic_rx(fix.nic, frame, n);
	post_recv();
}

/* The application takes what has completed, and answers. The message has an octet: 20 on wire. */
static void answer(uint64_t after_ns)
{
	uint8_t octet = 1;
	struct ibv_sge sge = { .addr = (uintptr_t)&octet, .length = 1 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc[4];

	vb_cq_poll(fix.cq, 4, wc);
	fake_ns += after_ns;
	assert_int_equal(vb_qp_post_send(fix.qp, &wr, &bad), 0);
}

static void assert_sent(unsigned bursts, unsigned frames)
{
	assert_int_equal(ends.bursts, bursts);
	assert_int_equal(ends.frames, frames);
	ends.bursts = ends.frames = 0;
}

/* Messages, each answered at once, until ACKs wait. */
static void get_quick(void)
{
	for (unsigned i = 0; i < QUICK; i++) {
		message_comes(true);
		assert_sent(1, 1);
		assert_int_equal(ends.opcode[0], vb_op_find(VB_RC, VB_K_ACK, VB_P_ONLY, 0));
		answer(STEP_NS);
		assert_sent(1, 1);
	}
	message_comes(true);
	assert_sent(0, 0);
}

/* --- tests --- */

CONNECTED(it_travels_with_the_answer)
{
	get_quick();
	for (unsigned i = 0; i < 10; i++) {
		answer(STEP_NS);
		assert_sent(1, 2);
		assert_int_equal(ends.opcode[0], vb_op_find(VB_RC, VB_K_SEND, VB_P_ONLY, 0));
		assert_int_equal(ends.opcode[1], vb_op_find(VB_RC, VB_K_ACK, VB_P_ONLY, 0));
		message_comes(true);
		assert_sent(0, 0);
	}
}

CONNECTED(without_an_answer_it_leaves_when_its_time_has_come)
{
	get_quick();
	assert_int_equal(vb_nic_deadline_ns(fix.nic), fake_ns + VB_ACK_WAIT_NS);
	vb_nic_turn(fix.nic);
	assert_sent(0, 0);
	fake_ns += VB_ACK_WAIT_NS;
	vb_nic_turn(fix.nic);
	assert_sent(1, 1);
	assert_true(vb_nic_deadline_ns(fix.nic) > fake_ns + VB_ACK_WAIT_NS);
	/* The next ones are not waited with. */
	message_comes(true);
	assert_sent(1, 1);
}

CONNECTED(who_sleeps_is_told_once)
{
	unsigned kicks;

	get_quick();
	kicks = fix.kicks;
	assert_true(kicks > 0);
	for (unsigned i = 0; i < 3; i++) {
		answer(STEP_NS);
		message_comes(true);
	}
	assert_int_equal(fix.kicks, kicks);
}

CONNECTED(an_old_deadline_does_no_harm)
{
	get_quick();
	answer(STEP_NS);
	assert_sent(1, 2);
	fake_ns += VB_ACK_WAIT_NS - STEP_NS;
	message_comes(true);
	vb_nic_turn(fix.nic);
	assert_sent(0, 0);
	assert_true(vb_nic_deadline_ns(fix.nic) > fake_ns);
	fake_ns += VB_ACK_WAIT_NS;
	vb_nic_turn(fix.nic);
	assert_sent(1, 1);
}

CONNECTED(a_second_message_is_acknowledged_at_once)
{
	get_quick();
	message_comes(true);
	assert_sent(1, 1);
}

CONNECTED(slow_answers_are_not_waited_for)
{
	for (unsigned i = 0; i < 2 * QUICK; i++) {
		message_comes(true);
		assert_sent(1, 1);
		answer(VB_ACK_WAIT_NS);
		assert_sent(1, 1);
	}
}

CONNECTED(who_does_not_poll_is_not_waited_for)
{
	for (unsigned i = 0; i < 2 * QUICK; i++) {
		message_comes(false);
		assert_sent(1, 1);
		answer(STEP_NS);
		assert_sent(1, 1);
	}
}

CONNECTED(it_waits_no_longer_than_its_qp_lives)
{
	get_quick();
	drop_qp(fix.qp);
	/* The peer must not take our leaving for a loss. */
	assert_sent(1, 1);
	assert_int_equal(ends.opcode[0], vb_op_find(VB_RC, VB_K_ACK, VB_P_ONLY, 0));
	assert_int_equal(vb_nic_deadline_ns(fix.nic) > fake_ns + VB_ACK_WAIT_NS, true);
	fake_ns += VB_ACK_WAIT_NS;
	vb_nic_turn(fix.nic);
	assert_sent(0, 0);
	fix.qp = make_qp(IBV_QPT_RC, fix.cq, NULL);
}

/* A burst that the link refuses must not be the last that the peer was to hear of us. */
CONNECTED(a_full_link_is_waited_for)
{
	get_quick();
	ends.full = 20;
	drop_qp(fix.qp);
	assert_sent(1, 1);
	assert_int_equal(ends.opcode[0], vb_op_find(VB_RC, VB_K_ACK, VB_P_ONLY, 0));
	fix.qp = make_qp(IBV_QPT_RC, fix.cq, NULL);
}

CONNECTED(a_link_that_stays_full_is_not)
{
	get_quick();
	ends.full = UINT_MAX;
	drop_qp(fix.qp);
	assert_sent(0, 0);
	ends.full = 0;
	fix.qp = make_qp(IBV_QPT_RC, fix.cq, NULL);
}

CONNECTED(it_leaves_before_the_qp_is_in_error)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	get_quick();
	assert_int_equal(vb_qp_modify(fix.qp, &attr, IBV_QP_STATE), 0);
	assert_sent(1, 1);
	assert_int_equal(ends.opcode[0], vb_op_find(VB_RC, VB_K_ACK, VB_P_ONLY, 0));
}

CONNECTED(it_leaves_when_the_process_ends)
{
	get_quick();
	vb_nic_farewell(fix.nic);
	assert_sent(1, 1);
	vb_nic_farewell(fix.nic);
	assert_sent(0, 0);
}
