/* SPDX-License-Identifier: BSD-2-Clause */

/* What QPs of one host exchange through rings, and who hears whom. */
#include "pair_fixture.h"
#include "nic/way/receive.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

static void fill(struct side *s, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->mem[i] = (uint8_t)(i * 7 + i / 251);
}

/* --- what goes through --- */

RC_PAIR(messages_of_all_lengths_come_whole)
{
	static const uint32_t lengths[] = { 0,	   1,	  2,	 43,	44,	45,    56,   57,
					    64,	   255,	  4096,	 32767, 32768,	32769, 65535,
					    65536, 65537, 98304, 98305, 300001, 500000 };

	fill(&side[0], MEM_BYTES / 2);
	for (unsigned i = 0; i < VB_ARRAY_LEN(lengths); i++) {
		uint32_t bytes = lengths[i];
		struct ibv_wc wc;

		memset(side[1].mem, 0xee, MEM_BYTES);
		qp_recv(&side[1], b, 100 + i, 64, bytes);
		assert_int_equal(qp_send(&side[0], a, i, bytes), 0);
		settle();
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
		assert_int_equal(vb_cq_poll(side[1].cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, bytes);
		assert_memory_equal(side[1].mem + 64, side[0].mem, bytes);
		assert_int_equal(side[1].mem[63], 0xee);
		assert_int_equal(side[1].mem[64 + bytes], 0xee);
	}
	assert_int_equal(side[0].sent + side[1].sent, 0);
}

RC_PAIR(one_sided_operations_reach_memory)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 200000);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t word = 40, found;

	fill(&side[0], 200000);
	wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem + 1000;
	wr.wr.rdma.rkey = side[1].mr->ibv.rkey;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem + 1000, side[0].mem, 200000);

	wr.opcode = IBV_WR_RDMA_READ;
	memset(side[0].mem, 0, 200000);
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_memory_equal(side[1].mem + 1000, side[0].mem, 200000);

	memcpy(side[1].mem, &word, 8);
	sge.length = 8;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)side[1].mem;
	wr.wr.atomic.rkey = side[1].mr->ibv.rkey;
	wr.wr.atomic.compare_add = 2;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	memcpy(&found, side[0].mem, 8);
	memcpy(&word, side[1].mem, 8);
	assert_int_equal(found, 40);
	assert_int_equal(word, 42);
}

LANES(a_nic_reaches_itself)
{
	a = qp_make(&side[0], IBV_QPT_RC);
	b = qp_make(&side[0], IBV_QPT_RC);
	qp_connect(a, b);
	fill(&side[0], 100000);
	qp_recv(&side[0], b, 1, 200000, 100000);
	assert_int_equal(qp_send(&side[0], a, 2, 100000), 0);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(side[0].mem + 200000, side[0].mem, 100000);
	assert_int_equal(side[0].sent, 0);
	pair_drop();
}

RC_PAIR(without_a_receive_the_sender_waits_and_tries_again)
{
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	settle();
	assert_no_wc(side[0].cq);
	assert_int_equal(stat_of(&side[0], VB_STAT_RNR_NAKS_SEEN), 1);
	qp_recv(&side[1], b, 2, 0, 100);
	settle();
	assert_no_wc(side[0].cq);
	/* IBA 9.7.5.2.8: it waits as long as the other side said. */
	fake_ns = vb_nic_deadline_ns(side[0].nic);
	assert_in_range(fake_ns, 600000, 700000);
	vb_nic_turn(side[0].nic);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
}

/* What a QP drops that is not ready comes again, at the cost of some milliseconds. */
LANES(a_peer_that_is_not_ready_yet_gets_it_later)
{
	pair_create(IBV_QPT_RC);
	qp_ready(a, b->ibv.qp.qp_num);
	assert_int_equal(qp_step(b, IBV_QPS_INIT, 0), 0);
	qp_recv(&side[1], b, 2, 0, 100);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	settle();
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_STATE), 1);
	assert_int_equal(qp_step(b, IBV_QPS_RTR, a->ibv.qp.qp_num), 0);
	settle();
	assert_no_wc(side[0].cq);
	for (unsigned i = 0; i < 3 && vb_nic_deadline_ns(side[0].nic) != UINT64_MAX; i++) {
		fake_ns = vb_nic_deadline_ns(side[0].nic);
		vb_nic_turn(side[0].nic);
		settle();
	}
	assert_in_range(fake_ns, 1000000, 100000000);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
	assert_no_wc(side[1].cq);
	pair_drop();
}

/* What is mapped for an object's next owner is there before the place to begin at is set. */
RC_PAIR(nobody_looks_into_rings_while_they_change)
{
	struct vb_peer *peer;

	peer = vb_peer_find(side[1].nic, side[1].slot, side[0].slot);
	qp_recv(&side[1], b, 2, 0, 100);
	vb_peer_rx_pause(peer);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	assert_int_equal(vb_nic_lanes_poll(side[1].nic), 0);
	assert_int_equal(vb_nic_lanes_scan(side[1].nic), 0);
	assert_no_wc(side[1].cq);
	vb_peer_rx_resume(peer);
	assert_int_equal(vb_nic_lanes_scan(side[1].nic), 1);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
}

/* A peer that sleeps has not lost anything: its clock must not count against it. */
RC_PAIR(a_peer_that_does_not_read_is_waited_for)
{
	qp_recv(&side[1], b, 2, 0, 100);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(vb_nic_deadline_ns(side[0].nic) > fake_ns);
		fake_ns = vb_nic_deadline_ns(side[0].nic);
		assert_true(fake_ns != UINT64_MAX);
		vb_nic_turn(side[0].nic);
		vb_nic_lanes_scan(side[0].nic);
	}
	assert_no_wc(side[0].cq);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
}

/* It read and dropped what was sent first, and then stopped reading what is sent again. */
LANES(one_that_stops_reading_is_waited_for_too)
{
	pair_create(IBV_QPT_RC);
	qp_ready(a, b->ibv.qp.qp_num);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	settle();
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(vb_nic_deadline_ns(side[0].nic) > fake_ns);
		fake_ns = vb_nic_deadline_ns(side[0].nic);
		vb_nic_turn(side[0].nic);
		vb_nic_lanes_scan(side[0].nic);
	}
	assert_no_wc(side[0].cq);
	qp_ready(b, a->ibv.qp.qp_num);
	qp_recv(&side[1], b, 2, 0, 100);
	for (unsigned i = 0; i < 10; i++) {
		settle();
		fake_ns += 10000000;
		vb_nic_turn(side[0].nic);
	}
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
	pair_drop();
}

/* But a QP that nobody answers for fails, as on a wire. */
LANES(a_qp_that_is_none_ends_in_retries_exceeded)
{
	pair_create(IBV_QPT_RC);
	qp_ready(a, b->ibv.qp.qp_num);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	for (unsigned i = 0; vb_nic_deadline_ns(side[0].nic) != UINT64_MAX; i++) {
		assert_true(i < 1000);
		settle();
		fake_ns = vb_nic_deadline_ns(side[0].nic);
		vb_nic_turn(side[0].nic);
	}
	/* retry_cnt 7, timeout 14: eight times 67 ms. */
	assert_in_range(fake_ns, 8 * 67108864ull, 2000000000);
	assert_wc(side[0].cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vb_qp_state(a), IBV_QPS_ERR);
	pair_drop();
}

UC_PAIR(unreliable_connections_lose_what_nobody_takes)
{
	assert_int_equal(qp_send(&side[0], a, 1, 100000), 0);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	settle();
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_NO_RECV), 1);
	qp_recv(&side[1], b, 2, 0, 100000);
	assert_int_equal(qp_send(&side[0], a, 3, 100000), 0);
	settle();
	assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent, 0);
}

/* IBA 10.3.1.6: a local fault stops the send queue; what is posted behind it is not sent. */
UC_PAIR(a_bad_key_stops_an_unreliable_connection)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 100);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	qp_recv(&side[1], b, 9, 0, 100);
	sge.lkey ^= 0x100;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	assert_wc(side[0].cq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(vb_qp_state(a), IBV_QPS_SQE);
	assert_int_equal(qp_send(&side[0], a, 2, 100), 0);
	assert_wc(side[0].cq, 2, IBV_WC_WR_FLUSH_ERR);
	settle();
	assert_no_wc(side[1].cq);
	assert_int_equal(qp_step(a, IBV_QPS_RTS, 0), 0);
	assert_int_equal(qp_send(&side[0], a, 3, 100), 0);
	settle();
	assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 9, IBV_WC_SUCCESS);
}

/* What is said with a message comes with it: immediate data, and that it is solicited. */
LANES(what_is_said_with_a_message_comes_with_it)
{
	static const uint32_t lengths[] = { 0, 8, 100, 50000 };
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct vb_channel *channel;
	struct vb_cq *cq;
	struct ibv_wc wc;

	assert_int_equal(vb_channel_create(side[1].ctx, FD_CHANNEL, &channel), 0);
	assert_int_equal(vb_cq_create(side[1].ctx, 64, channel, 0, NULL, &cq), 0);
	a = qp_make(&side[0], IBV_QPT_RC);
	b = qp_make_on(&side[1], IBV_QPT_RC, cq, NULL);
	qp_connect(a, b);
	for (unsigned i = 0; i < 16; i++) {
		bool imm = i & 1, write = i & 2, solicited = i & 4;
		int events = side[1].signals[FD_CHANNEL];

		sge = sge_of(&side[0], 0, lengths[i / 4]);
		qp_recv(&side[1], b, i, 0, 60000);
		wr.opcode = write ? IBV_WR_RDMA_WRITE_WITH_IMM
			    : imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
		wr.send_flags = solicited ? IBV_SEND_SOLICITED : 0;
		wr.imm_data = 0x12345678 + i;
		wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem;
		wr.wr.rdma.rkey = side[1].mr->ibv.rkey;
		vb_cq_arm_notify(cq, true);
		assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
		settle();
		assert_int_equal(side[1].signals[FD_CHANNEL] - events, solicited);
		assert_int_equal(vb_cq_poll(cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, lengths[i / 4]);
		assert_int_equal(wc.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_int_equal(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm || write);
		if (imm || write)
			assert_int_equal(wc.imm_data, 0x12345678 + i);
		if (solicited)
			assert_ptr_equal(vb_channel_pop(channel), cq);
	}
	pair_drop();
	drop_cq(cq);
	assert_int_equal(vb_channel_destroy(channel), 0);
}

/* ibv_modify_qp(3): the event comes when what was begun is done, not some time later. */
RC_PAIR(a_queue_tells_when_it_has_drained)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;
	int events;

	qp_recv(&side[1], b, 2, 0, 100);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	events = side[0].signals[FD_ASYNC];
	assert_int_equal(vb_qp_modify(a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(qp_send(&side[0], a, 3, 100), 0);
	assert_int_equal(side[0].signals[FD_ASYNC], events);
	settle();
	assert_int_equal(side[0].signals[FD_ASYNC], events + 1);
	assert_true(vb_ctx_event_pop(side[0].ctx, &event));
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_no_wc(side[0].cq);
}

/* --- datagrams --- */

UD_PAIR(datagrams_come_with_their_addresses)
{
	struct ibv_wc wc;

	fill(&side[0], 1000);
	qp_recv(&side[1], b, 2, 0, 2000);
	assert_int_equal(datagram(1, 999, b->ibv.qp.qp_num), 0);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	settle();
	assert_int_equal(vb_cq_poll(side[1].cq, 1, &wc), 1);
	assert_int_equal(wc.byte_len, 40 + 999);
	assert_int_equal(wc.src_qp, a->ibv.qp.qp_num);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_memory_equal(side[1].mem + 40, side[0].mem, 999);
	/* The last 20 octets of a GRH's 40 are the IPv4 header: both addresses end it. */
	assert_memory_equal(side[1].mem + 32, own_gid + 12, 4);
	assert_memory_equal(side[1].mem + 36, own_gid + 12, 4);
	assert_int_equal(side[1].mem[21], 0xb4);
	assert_int_equal(side[0].sent, 0);
}

/* IBA 10.3.1.6: a local fault stops the send queue, and what waits behind it is flushed. */
UD_PAIR(a_datagram_with_a_bad_key_stops_the_queue)
{
	struct ibv_sge keyless = sge_of(&side[0], 0, 100);

	keyless.lkey ^= 0x100;
	assert_int_equal(datagram_of(keyless, 1, b->ibv.qp.qp_num), 0);
	assert_wc(side[0].cq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(vb_qp_state(a), IBV_QPS_SQE);
	assert_int_equal(datagram(2, 100, b->ibv.qp.qp_num), 0);
	assert_wc(side[0].cq, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_step(a, IBV_QPS_ERR, 0), 0);
	assert_int_equal(datagram(3, 100, b->ibv.qp.qp_num), 0);
	assert_wc(side[0].cq, 3, IBV_WC_WR_FLUSH_ERR);
}

UD_PAIR(a_drained_queue_holds_datagrams_back)
{
	qp_recv(&side[1], b, 9, 0, 2000);
	assert_int_equal(qp_step(a, IBV_QPS_SQD, 0), 0);
	assert_int_equal(datagram(1, 100, b->ibv.qp.qp_num), 0);
	settle();
	assert_no_wc(side[0].cq);
	assert_no_wc(side[1].cq);
	assert_int_equal(qp_step(a, IBV_QPS_RTS, 0), 0);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 9, IBV_WC_SUCCESS);
}

/* One after another, each by its own way: the order of completions is that of posting. */
UD_PAIR(datagrams_go_by_ring_and_wire_in_turns)
{
	uint32_t nobody = (uint32_t)99 << VB_INDEX_BITS | 5;

	for (unsigned i = 0; i < 10; i++)
		qp_recv(&side[1], b, 100 + i, 0, 2000);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(datagram(i, 100, i % 2 ? nobody : b->ibv.qp.qp_num), 0);
	settle();
	for (unsigned i = 0; i < 20; i++)
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 10; i++)
		assert_wc(side[1].cq, 100 + i, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent, 10);
}

UD_PAIR(one_that_cannot_be_reached_is_not_asked_each_time)
{
	side[1].refuses = EOPNOTSUPP;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(datagram(i, 100, b->ibv.qp.qp_num), 0);
	assert_int_equal(side[0].reaches, 1);
	assert_int_equal(side[0].sent, 5);
	fake_ns += 200000000;
	side[1].refuses = 0;
	assert_int_equal(datagram(5, 100, b->ibv.qp.qp_num), 0);
	assert_int_equal(side[0].reaches, 2);
	assert_int_equal(side[0].sent, 5);
	for (unsigned i = 0; i < 6; i++)
		assert_wc(side[0].cq, i, IBV_WC_SUCCESS);
	settle();
}

/* --- which way a connection goes --- */

/* Both ends must go the same way: what was so a moment ago does not count. */
LANES(connecting_asks_again)
{
	datagrams_make();
	side[1].refuses = ENOENT;
	assert_int_equal(datagram(1, 100, b->ibv.qp.qp_num), 0);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent, 1);
	side[1].refuses = 0;
	datagrams_drop();
	pair_make(IBV_QPT_RC);
	qp_recv(&side[1], b, 2, 0, 100);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(side[0].sent, 1);
	pair_drop();
}

LANES(who_cannot_be_reached_is_sent_to_by_wire)
{
	side[1].refuses = EOPNOTSUPP;
	pair_make(IBV_QPT_RC);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	assert_int_equal(side[0].sent, 1);
	pair_drop();
}

LANES(frames_of_another_peer_are_dropped)
{
	struct vb_qp *c;

	side_make(SLOT_FIRST + 2, 300);
	pair_make(IBV_QPT_RC);
	/* It says that it is connected to b, who is connected to a. */
	c = qp_make(&side[2], IBV_QPT_RC);
	qp_ready(c, b->ibv.qp.qp_num);
	qp_recv(&side[1], b, 2, 0, 100);
	assert_int_equal(qp_send(&side[2], c, 1, 100), 0);
	settle();
	assert_no_wc(side[1].cq);
	assert_true(stat_of(&side[1], VB_STAT_DROP_STRANGER) > 0);
	drop_qp(c);
	pair_drop();
}

/* A datagram's sender must be of the slot that the ring is of. */
UD_PAIR(datagrams_in_another_s_name_are_dropped)
{
	struct vb_ring_tx *tx;

	qp_recv(&side[1], b, 2, 0, 1000);
	assert_int_equal(datagram(1, 8, b->ibv.qp.qp_num), 0);
	settle();
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
	qp_recv(&side[1], b, 3, 0, 1000);
	tx = &vb_peer_find(side[0].nic, side[0].slot, side[1].slot)->lane[0].tx;
	for (unsigned i = 0; i < 2; i++) {
		assert_non_null(vb_ring_reserve(tx, 20 + VB_LANE_PATH_BYTES, 0));
		memset(tx->octets, 0, VB_RING_HEAD_BYTES_MAX);
		tx->octets[0] = VB_OP_UD_SEND_ONLY;
		vb_be16_put(tx->octets + 2, 0xffff);
		vb_be32_put(tx->octets + 4, b->ibv.qp.qp_num);
		vb_be32_put(tx->octets + 12, QKEY);
		vb_be32_put(tx->octets + 16, (side[0].slot + (i == 0)) << VB_INDEX_BITS | 77);
		memcpy(tx->octets + 20, own_gid, VB_GID_BYTES);
		memcpy(tx->octets + 20 + VB_GID_BYTES, own_gid, VB_GID_BYTES);
		vb_ring_publish(tx, 20 + VB_LANE_PATH_BYTES, 0);
		settle();
		assert_int_equal(stat_of(&side[1], VB_STAT_DROP_STRANGER), 1);
		if (i == 0)
			assert_no_wc(side[1].cq);
	}
	assert_wc(side[1].cq, 3, IBV_WC_SUCCESS);
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
}

/* Who is connected through a ring hears nothing from the wire, however well it fits. */
RC_PAIR(the_wire_is_not_listened_to)
{
	uint8_t frame[VB_BTH_BYTES + 8 + VB_ICRC_BYTES];
	struct vb_frame in = { .data = frame, .bytes = sizeof(frame) };
	struct vb_pkt pkt = { .opcode = VB_OP_RC_SEND_ONLY, .pkey = VB_PKEY_DEFAULT,
			      .ackreq = true, .psn = 0x100 };

	qp_recv(&side[1], b, 2, 0, 100);
	pkt.dqpn = b->ibv.qp.qp_num;
	in.path.sport = VB_ROCE_PORT;
	memcpy(in.path.src, own_gid, VB_GID_BYTES);
	memcpy(in.path.dst, own_gid, VB_GID_BYTES);
	memset(frame, 0, sizeof(frame));
	vb_pkt_emit(frame, &pkt);
	vb_icrc_put(frame + VB_BTH_BYTES + 8, vb_icrc_frame(&in.path, frame, sizeof(frame), 0));
	assert_true(vb_nic_rx_try(side[1].nic));
	vb_nic_rx(side[1].nic, &in, 1);
	vb_nic_rx_drop(side[1].nic);
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_STRANGER), 1);
	assert_no_wc(side[1].cq);
}

/* After RESET a QP belongs to nobody, and may go another way the next time. */
LANES(a_qp_that_is_reset_lets_go_of_its_peer)
{
	struct vb_peer *peer;

	pair_make(IBV_QPT_RC);
	peer = a->to.peer;
	assert_non_null(peer);
	assert_int_equal(atomic_load(&peer->refs), 2);
	assert_int_equal(qp_step(a, IBV_QPS_RESET, 0), 0);
	assert_null(a->to.peer);
	assert_int_equal(atomic_load(&peer->refs), 1);
	assert_int_equal(qp_step(b, IBV_QPS_RESET, 0), 0);
	qp_connect(a, b);
	assert_ptr_equal(a->to.peer, peer);
	qp_recv(&side[1], b, 2, 0, 100);
	assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
	settle();
	assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
	pair_drop();
	assert_int_equal(atomic_load(&peer->refs), 1);
	assert_int_equal(side[0].releases, 0);
}

/*
 * The peer's application had the message, and told ours by another way that it is done: an adapter
 * has the ACK by then.
 */
LANES(what_was_acknowledged_before_is_not_flushed)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

	for (unsigned i = 0; i < VB_ARRAY_LEN(types); i++) {
		pair_make(types[i]);
		qp_recv(&side[0], a, 3, 0, 100);
		qp_recv(&side[1], b, 2, 0, 100);
		assert_int_equal(qp_send(&side[0], a, 1, 100), 0);
		scan_all(&side[1]);
		assert_wc(side[1].cq, 2, IBV_WC_SUCCESS);
		assert_int_equal(qp_send(&side[1], b, 4, 100), 0);

		assert_int_equal(qp_step(a, IBV_QPS_ERR, 0), 0);
		assert_wc(side[0].cq, 1, IBV_WC_SUCCESS);
		assert_wc(side[0].cq, 3, IBV_WC_SUCCESS);
		settle();
		assert_wc(side[1].cq, 4, IBV_WC_SUCCESS);
		pair_drop();
	}
}
