/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the application writes all the time, and unmaps: here it changes, or is gone, when
 * something has been made and is about to leave. What leaves is what was summed up all the same.
 */
#include "packets.h"

enum { MTU = 1024, FRAMES = 9, BYTES = FRAMES * MTU - 100 };

static struct {
	struct vb_mr *mr;
	uint8_t data[BYTES];
	unsigned right, wrong; /* frames that have left */
} ends;

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	unsigned right;

	for (unsigned i = 0; i < BYTES; i++)
		ends.data[i]++;
	assert_int_equal(burst->first_id, 0);
	right = burst_right(burst);
	ends.right += right;
	ends.wrong += burst->frames - right;
	return 0;
}

static int begin_memory(void **state)
{
	int rc = begin(state);

	memset(&ends, 0, sizeof(ends));
	fix.nic->host.wire.tx = host_tx;
	assert_int_equal(vb_mr_reg(fix.pd, ends.data, BYTES, (uintptr_t)ends.data,
				   IBV_ACCESS_REMOTE_READ, &ends.mr), 0);
	return rc;
}

static int end_memory(void **state)
{
	disconnect();
	assert_int_equal(vb_mr_dereg(ends.mr), 0);
	return end(state);
}

#define FRAMER_CERTAIN_TEST(name) TEST_BETWEEN(name, begin_memory, end_memory)

static void post(enum ibv_qp_type type)
{
	struct ibv_sge sge = { .addr = (uintptr_t)ends.data, .length = BYTES,
			       .lkey = ends.mr->ibv.lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	connect_as(type);
	assert_int_equal(vb_qp_post_send(fix.qp, &wr, &bad), 0);
}

static void assert_left(unsigned right, unsigned wrong)
{
	assert_int_equal(ends.right, right);
	assert_int_equal(ends.wrong, wrong);
	ends.right = ends.wrong = 0;
}

/* The window begins anew with one frame. */
static void send_again(void)
{
	fake_ns = vb_nic_deadline_ns(fix.nic);
	vb_nic_turn(fix.nic);
}

FRAMER_CERTAIN_TEST(what_is_sent_is_right)
{
	post(IBV_QPT_RC);
	assert_left(FRAMES, 0);
	send_again();
	assert_left(1, 0);
}

static void read_by_the_peer(uint32_t psn)
{
	struct vb_pkt pkt =
		packet_for(fix.qp, vb_op_find(VB_RC, VB_K_READ_REQ, VB_P_ONLY, 0), psn);
	struct vb_frame in;
	uint8_t frame[64];

	pkt.reth.va = (uintptr_t)ends.data;
	pkt.reth.rkey = ends.mr->ibv.rkey;
	pkt.reth.bytes = BYTES;
	in = packet_seal(frame, &pkt, NULL, 0, peer_gid, own_gid);
	vb_nic_rx(fix.nic, &in, 1);
}

FRAMER_CERTAIN_TEST(what_is_read_is_right)
{
	connect_as(IBV_QPT_RC);
	read_by_the_peer(0x100);
	assert_left(FRAMES, 0);
	/* Once more, and the next one. */
	read_by_the_peer(0x100);
	assert_left(FRAMES, 0);
	read_by_the_peer(0x100 + FRAMES);
	assert_left(FRAMES, 0);
}
