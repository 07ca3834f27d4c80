/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"

#include <arpa/inet.h>

/*
 * RAW_PACKET queue pairs: what goes out by one comes in by another, whole, if a rule of that one
 * wants it. What rules can say is in other files; here they name a destination.
 */

enum { SENT = 0, GOT = 100 }; /* places in buffers */

/* Two ends; what is sent to raw_mac[1] comes to the second. */
struct two {
	struct raw_end a, b;
};

static void two_open(struct two *two, const struct raw_options *opt)
{
	raw_needed();
	raw_open(&two->a, NULL);
	raw_open(&two->b, opt);
	raw_listen(&two->b, raw_mac[1]);
}

static void two_close(struct two *two)
{
	raw_close(&two->b);
	raw_close(&two->a);
}

#define two_test(f, ...)                                                                          \
	vt_with(vt_test, f, struct two, two, two_open(&two, __VA_ARGS__), two_close(&two))

/* A frame that b gets as a has sent it. */
static void expect_frame(struct two *two, uint32_t bytes, unsigned seed)
{
	struct ibv_wc wc;

	raw_recv(&two->b, GOT, RAW_FRAME_MAX);
	raw_frame(&two->a, SENT, raw_mac[1], raw_mac[0], bytes, seed);
	raw_send(&two->a, SENT, bytes);
	wc = vt_expect(two->b.cq, GOT, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, bytes);
	assert_int_equal(wc.qp_num, two->b.qp->qp_num);
	assert_memory_equal(raw_at(&two->b, GOT), raw_at(&two->a, SENT), bytes);
	assert_int_equal(raw_at(&two->b, GOT)[bytes], 0xee);
	memset(raw_at(&two->b, GOT), 0xee, RAW_FRAME_MAX + 1);
}

/* create_ex: "QP Transport Service Type: IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET" */
two_test(frames_of_all_sizes_pass_whole, NULL)
{
	static const uint32_t sizes[] = { 14, 15, 44, 45, 60, 64, 65, 1514, 4096, 9000, 9018 };

	for (unsigned i = 0; i < VT_COUNT(sizes); i++)
		expect_frame(two, sizes[i], i);
}

two_test(a_frame_may_lie_in_pieces, NULL)
{
	struct ibv_send_wr wr = { .wr_id = 5, .num_sge = 4, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr recv = { .wr_id = 6, .num_sge = 3 }, *bad_recv;
	static const uint32_t out[] = { 3, 11, 0, 86 }, in[] = { 13, 1, 500 };
	struct ibv_sge sge[4], recv_sge[3];
	struct ibv_send_wr *bad;
	uint32_t at = 0;

	raw_frame(&two->a, SENT, raw_mac[1], raw_mac[0], 100, 1);
	for (unsigned i = 0; i < 4; i++, at += out[i - 1])
		sge[i] = (struct ibv_sge){ (uintptr_t)raw_at(&two->a, SENT) + at, out[i],
					   two->a.mr->lkey };
	for (unsigned i = 0; i < 3; i++)
		recv_sge[i] = (struct ibv_sge){ (uintptr_t)raw_at(&two->b, GOT + i), in[i],
						two->b.mr->lkey };
	wr.sg_list = sge;
	recv.sg_list = recv_sge;
	assert_int_equal(ibv_post_recv(two->b.qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(two->a.qp, &wr, &bad), 0);
	vt_expect(two->a.cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(vt_expect(two->b.cq, 6, IBV_WC_SUCCESS).byte_len, 100);
	assert_memory_equal(raw_at(&two->b, GOT), raw_at(&two->a, SENT), 13);
	assert_memory_equal(raw_at(&two->b, GOT + 1), raw_at(&two->a, SENT) + 13, 1);
	assert_memory_equal(raw_at(&two->b, GOT + 2), raw_at(&two->a, SENT) + 14, 86);
}

/* ibv_post_send(3), IBV_SEND_INLINE: the buffer is free as soon as the call returns. */
two_test(a_frame_may_be_inline, NULL)
{
	uint8_t copy[128];

	raw_recv(&two->b, GOT, RAW_FRAME_MAX);
	raw_frame(&two->a, SENT, raw_mac[1], raw_mac[0], 128, 1);
	memcpy(copy, raw_at(&two->a, SENT), 128);
	assert_int_equal(raw_post(&two->a, SENT, 129, IBV_SEND_INLINE), EINVAL);
	assert_int_equal(raw_post(&two->a, SENT, 128, IBV_SEND_INLINE), 0);
	memset(raw_at(&two->a, SENT), 0, 128);
	vt_expect(two->b.cq, GOT, IBV_WC_SUCCESS);
	assert_memory_equal(raw_at(&two->b, GOT), copy, 128);
}

/* IBA 11.6.2, Local Length Error; 10.3.1.6: what does not acknowledge only stops sending. */
two_test(what_is_no_frame_is_not_sent, NULL)
{
	static const uint32_t sizes[] = { 0, 1, 13, 9019, 20000 };

	raw_recv(&two->b, GOT, RAW_FRAME_MAX);
	raw_frame(&two->a, SENT, raw_mac[1], raw_mac[0], 20000, 1);
	for (unsigned i = 0; i < VT_COUNT(sizes); i++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

		assert_int_equal(raw_post(&two->a, SENT, sizes[i], 0), 0);
		vt_expect(two->a.cq, SENT, IBV_WC_LOC_LEN_ERR);
		assert_int_equal(vt_state(two->a.qp), IBV_QPS_SQE);
		assert_int_equal(ibv_modify_qp(two->a.qp, &attr, IBV_QP_STATE), 0);
	}
	vt_expect_none(two->b.cq);
	raw_send(&two->a, SENT, 60);
	vt_expect(two->b.cq, GOT, IBV_WC_SUCCESS);
}

two_test(memory_that_a_key_does_not_cover_is_not_sent, NULL)
{
	two->a.mr->lkey ^= 0x100;
	assert_int_equal(raw_post(&two->a, SENT, 60, 0), 0);
	vt_expect(two->a.cq, SENT, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(vt_state(two->a.qp), IBV_QPS_SQE);
	two->a.mr->lkey ^= 0x100;
}

/* A switch of one's own: by address, to a group's members, to all. */
vt_test(it_goes_to_whom_it_is_for)
{
	struct raw_end a, b, c;
	struct ibv_wc wc;

	raw_needed();
	raw_open(&a, NULL);
	raw_open(&b, NULL);
	raw_open(&c, NULL);
	raw_listen(&b, raw_mac[1]);
	raw_listen(&b, raw_group);
	raw_listen(&b, raw_broadcast);
	raw_listen(&c, raw_mac[2]);
	raw_listen(&c, raw_broadcast);
	for (unsigned i = 0; i < 4; i++) {
		raw_recv(&b, GOT + i, 100);
		raw_recv(&c, GOT + i, 100);
	}
	raw_frame(&a, 0, raw_mac[1], raw_mac[0], 60, 0);
	raw_frame(&a, 1, raw_mac[2], raw_mac[0], 61, 1);
	raw_frame(&a, 2, raw_group, raw_mac[0], 62, 2);
	raw_frame(&a, 3, raw_broadcast, raw_mac[0], 63, 3);
	raw_frame(&a, 4, raw_mac[3], raw_mac[0], 64, 4);
	for (unsigned i = 0; i < 5; i++)
		raw_send(&a, i, 60 + i);
	assert_int_equal(vt_expect(b.cq, GOT, IBV_WC_SUCCESS).byte_len, 60);
	assert_int_equal(vt_expect(b.cq, GOT + 1, IBV_WC_SUCCESS).byte_len, 62);
	assert_int_equal(vt_expect(b.cq, GOT + 2, IBV_WC_SUCCESS).byte_len, 63);
	assert_int_equal(vt_expect(c.cq, GOT, IBV_WC_SUCCESS).byte_len, 61);
	assert_int_equal(vt_expect(c.cq, GOT + 1, IBV_WC_SUCCESS).byte_len, 63);
	assert_false(vt_poll_ms(b.cq, &wc, VT_QUIET_MS));
	assert_false(vt_poll_ms(c.cq, &wc, VT_QUIET_MS));
	raw_close(&c);
	raw_close(&b);
	raw_close(&a);
}

/* No rule, no frame. */
vt_test(without_a_rule_nothing_comes)
{
	struct raw_end a, b;

	raw_needed();
	raw_open(&a, NULL);
	raw_open(&b, NULL);
	raw_recv(&b, GOT, 100);
	raw_frame(&a, SENT, raw_mac[1], raw_mac[0], 60, 0);
	raw_send(&a, SENT, 60);
	vt_expect_none(b.cq);
	raw_listen(&b, raw_mac[1]);
	raw_send(&a, SENT, 60);
	vt_expect(b.cq, GOT, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_flow(b.flow[--b.flows]), 0);
	raw_recv(&b, GOT, 100);
	raw_send(&a, SENT, 60);
	vt_expect_none(b.cq);
	raw_close(&b);
	raw_close(&a);
}

/* As on hardware: there is nobody who could be told to wait. */
two_test(without_a_receive_request_it_is_lost, NULL)
{
	raw_frame(&two->a, SENT, raw_mac[1], raw_mac[0], 60, 0);
	raw_send(&two->a, SENT, 60);
	vt_expect_none(two->b.cq);
	raw_recv(&two->b, GOT, 100);
	vt_expect_none(two->b.cq);
	expect_frame(two, 70, 1);
}

two_test(a_buffer_too_small_ends_the_queue, NULL)
{
	raw_recv(&two->b, GOT, 60);
	raw_recv(&two->b, GOT + 1, 60);
	raw_recv(&two->b, GOT + 2, 60);
	raw_frame(&two->a, SENT, raw_mac[1], raw_mac[0], 61, 0);
	raw_send(&two->a, SENT, 60);
	raw_send(&two->a, SENT, 61);
	vt_expect(two->b.cq, GOT, IBV_WC_SUCCESS);
	vt_expect(two->b.cq, GOT + 1, IBV_WC_LOC_LEN_ERR);
	vt_expect(two->b.cq, GOT + 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(vt_state(two->b.qp), IBV_QPS_ERR);
	assert_true(vt_is_octet(raw_at(&two->b, GOT + 1), RAW_SLOT_BYTES, 0xee));
}

/* Between QPs of one context nothing passes: that is what mlx5dv_create_qp(3) has flags for. */
vt_test(what_a_context_sends_does_not_come_back)
{
	struct raw_options same = { 0 };
	struct raw_end a, b;

	raw_needed();
	raw_open(&a, NULL);
	same.ctx = a.ctx;
	raw_open(&b, &same);
	raw_listen(&b, raw_mac[1]);
	raw_listen(&b, raw_broadcast);
	raw_recv(&b, GOT, 100);
	raw_frame(&a, 0, raw_mac[1], raw_mac[0], 60, 0);
	raw_frame(&a, 1, raw_broadcast, raw_mac[0], 60, 0);
	raw_send(&a, 0, 60);
	raw_send(&a, 1, 60);
	vt_expect_none(b.cq);
	raw_close(&b);
	raw_close(&a);
}

/* A ring is full long before a send queue is: the sender waits, and nothing is lost. */
vt_test(a_full_ring_holds_the_sender_back)
{
	struct raw_options opt = { .wr = 2000 };
	struct raw_end a, b;
	unsigned sent = 0, got = 0;

	raw_needed();
	raw_open(&a, &opt);
	raw_open(&b, &opt);
	raw_listen(&b, raw_mac[1]);
	for (unsigned i = 0; i < 2000; i++) {
		raw_recv(&b, i, RAW_SLOT_BYTES);
		raw_frame(&a, i, raw_mac[1], raw_mac[0], 1514, i);
	}
	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(raw_post(&a, i, 1514, 0), 0);
	while (sent < 2000 || got < 2000) {
		struct ibv_wc wc;

		if (ibv_poll_cq(a.cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, sent++);
		}
		if (ibv_poll_cq(b.cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, got);
			assert_true(vt_is_filled(raw_at(&b, got) + RAW_HEADER, 1500, got));
			got++;
		}
	}
	raw_close(&b);
	raw_close(&a);
}

/* What it takes from state to state: the port, and nothing else. */
vt_test(its_states_want_a_port_and_nothing_else)
{
	struct raw_options opt = { .state = IBV_QPS_UNKNOWN };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad;
	struct raw_end end;

	raw_needed();
	raw_open(&end, &opt);
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_modify_qp(end.qp, &attr,
				       IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX), EINVAL);
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY),
			 EINVAL);
	assert_int_equal(ibv_post_recv(end.qp, &recv, &bad), EINVAL);
	assert_int_equal(raw_post(&end, SENT, 60, 0), EINVAL);
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	raw_recv(&end, GOT, 100);
	assert_int_equal(raw_post(&end, SENT, 60, 0), EINVAL);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_AV), EINVAL);
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.rate_limit = 1000000;
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(end.qp, &attr, IBV_QP_STATE), 0);
	vt_expect(end.cq, GOT, IBV_WC_WR_FLUSH_ERR);
	raw_close(&end);
}

/* ibv_create_qp(3): an SRQ is for RC and UD. Nor are there other operations than to send. */
vt_test(what_does_not_go_with_frames_is_refused)
{
	static const enum ibv_wr_opcode others[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						     IBV_WR_LOCAL_INV, IBV_WR_TSO };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET };
	struct raw_end end;
	struct ibv_srq *srq;

	raw_needed();
	raw_open(&end, NULL);
	srq = ibv_create_srq(end.pd, &srq_init);
	init.send_cq = init.recv_cq = end.cq;
	init.srq = srq;
	vt_refused(EINVAL, ibv_create_qp(end.pd, &init));
	ibv_destroy_srq(srq);
	for (unsigned i = 0; i < VT_COUNT(others); i++) {
		struct ibv_send_wr wr = { .opcode = others[i] }, *bad;

		assert_int_equal(ibv_post_send(end.qp, &wr, &bad), EINVAL);
	}
	raw_close(&end);
}

/* --- offloads --- */

static uint16_t checksum(const uint8_t *octets, uint32_t bytes, uint32_t sum)
{
	for (uint32_t i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t)octets[i] << 8 | octets[i + 1];
	if (bytes & 1)
		sum += (uint32_t)octets[bytes - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

enum { IP_AT = RAW_HEADER, UDP_AT = IP_AT + 20, UDP_FRAME = UDP_AT + 8 + 57 };

/* UDP in IPv4, without checksums. */
static void udp_frame(struct raw_end *end, unsigned slot)
{
	static const uint8_t headers[] = {
		0x08, 0x00, /* IPv4 */
		0x45, 0, 0, UDP_FRAME - IP_AT, 0, 1, 0, 0, 64, 17, 0, 0,
		10, 79, 0, 1, 10, 79, 0, 2,
		0x12, 0x34, 0x56, 0x78, 0, UDP_FRAME - UDP_AT, 0, 0,
	};

	raw_frame(end, slot, raw_mac[1], raw_mac[0], UDP_FRAME, 3);
	memcpy(raw_at(end, slot) + 12, headers, sizeof(headers));
}

static bool checksums_are_right(const uint8_t *frame)
{
	uint32_t pseudo = 17 + UDP_FRAME - UDP_AT;

	for (unsigned i = 0; i < 8; i += 2)
		pseudo += (uint32_t)frame[IP_AT + 12 + i] << 8 | frame[IP_AT + 13 + i];
	return checksum(frame + IP_AT, 20, 0) == 0 &&
	       checksum(frame + UDP_AT, UDP_FRAME - UDP_AT, pseudo) == 0;
}

/* ibv_post_send(3): IBV_SEND_IP_CSUM. ibv_poll_cq(3): IBV_WC_IP_CSUM_OK. */
two_test(checksums_are_written_and_checked, NULL)
{
	struct ibv_wc wc;

	raw_recv(&two->b, GOT, 1000);
	raw_recv(&two->b, GOT + 1, 1000);
	udp_frame(&two->a, SENT);
	assert_int_equal(raw_post(&two->a, SENT, UDP_FRAME, 0), 0);
	wc = vt_expect(two->b.cq, GOT, IBV_WC_SUCCESS);
	assert_false(wc.wc_flags & IBV_WC_IP_CSUM_OK);
	assert_memory_equal(raw_at(&two->b, GOT), raw_at(&two->a, SENT), UDP_FRAME);
	assert_int_equal(raw_post(&two->a, SENT, UDP_FRAME, IBV_SEND_IP_CSUM), 0);
	wc = vt_expect(two->b.cq, GOT + 1, IBV_WC_SUCCESS);
	assert_true(wc.wc_flags & IBV_WC_IP_CSUM_OK);
	assert_true(checksums_are_right(raw_at(&two->b, GOT + 1)));
	/* The application's own octets stay what they are. */
	assert_int_equal(raw_at(&two->a, SENT)[IP_AT + 10], 0);
}

/* IEEE 802.3 3.2.9 */
static uint32_t fcs(const uint8_t *octets, uint32_t bytes)
{
	uint32_t crc = ~0u;

	for (uint32_t i = 0; i < bytes; i++) {
		crc ^= octets[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* create_ex: "FCS field will be scattered to host memory" */
vt_test(the_frame_check_sequence_is_scattered)
{
	struct raw_options opt = { .create_flags = IBV_QP_CREATE_SCATTER_FCS };
	uint32_t expected, got;
	struct two two;

	two_open(&two, &opt);
	raw_recv(&two.b, GOT, 75);
	raw_frame(&two.a, SENT, raw_mac[1], raw_mac[0], 71, 9);
	raw_send(&two.a, SENT, 71);
	assert_int_equal(vt_expect(two.b.cq, GOT, IBV_WC_SUCCESS).byte_len, 75);
	expected = fcs(raw_at(&two.a, SENT), 71);
	memcpy(&got, raw_at(&two.b, GOT) + 71, sizeof(got));
	assert_int_equal(le32toh(got), expected);
	two_close(&two);
}

/* create_ex: "CVLAN field will be stripped from incoming packets" */
vt_test(the_vlan_tag_is_stripped_and_told)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_BYTE_LEN,
	};
	struct raw_options opt = { .create_flags = IBV_QP_CREATE_CVLAN_STRIPPING,
				   .cq_attr = &cq_attr };
	static const uint8_t tag[] = { 0x81, 0x00, 0x6a, 0xbc };
	struct ibv_poll_cq_attr poll_attr = { 0 };
	uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;
	struct two two;
	uint8_t *frame;

	two_open(&two, &opt);
	raw_recv(&two.b, GOT, 1000);
	frame = raw_frame(&two.a, SENT, raw_mac[1], raw_mac[0], 104, 5);
	memcpy(frame + 12, tag, 4);
	raw_send(&two.a, SENT, 104);
	while (ibv_start_poll(two.b.cq_ex, &poll_attr) == ENOENT)
		assert_true(vt_now_ms() < end_ms);
	assert_int_equal(two.b.cq_ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_byte_len(two.b.cq_ex), 100);
	assert_int_equal(ibv_wc_read_cvlan(two.b.cq_ex), 0x6abc);
	ibv_end_poll(two.b.cq_ex);
	assert_memory_equal(raw_at(&two.b, GOT), frame, 12);
	assert_memory_equal(raw_at(&two.b, GOT) + 12, frame + 16, 88);
	two_close(&two);
}

/* create_ex: "Incoming packets will be padded to cacheline size": there is no bus to pad on. */
vt_test(padding_changes_nothing_that_can_be_seen)
{
	struct raw_options opt = { .create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING };
	struct two two;

	two_open(&two, &opt);
	expect_frame(&two, 61, 2);
	two_close(&two);
}

/* ibv_modify_qp(3), rate_limit: a tenth of a second's worth takes no less. */
vt_test(a_rate_limit_holds_for_frames)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .rate_limit = 8000 /* kbit/s */ };
	struct raw_options opt = { .wr = 256 };
	uint64_t from_ms;
	struct raw_end a, b;

	raw_needed();
	raw_open(&a, &opt);
	raw_open(&b, &opt);
	raw_listen(&b, raw_mac[1]);
	assert_int_equal(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
	from_ms = vt_now_ms();
	for (unsigned i = 0; i < 100; i++) {
		raw_recv(&b, i, RAW_SLOT_BYTES);
		raw_frame(&a, i, raw_mac[1], raw_mac[0], 1000, i);
		assert_int_equal(raw_post(&a, i, 1000, 0), 0);
	}
	for (unsigned i = 0; i < 100; i++)
		vt_expect(b.cq, i, IBV_WC_SUCCESS);
	assert_true(vt_now_ms() - from_ms >= 90);
	raw_close(&b);
	raw_close(&a);
}
