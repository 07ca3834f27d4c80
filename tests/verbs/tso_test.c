/* SPDX-License-Identifier: BSD-2-Clause */
#include "raw.h"

/*
 * IBV_WR_TSO and ibv_wr_send_tso(): a header and a piece of a TCP stream leave as frames that are
 * each right by themselves, and complete once.
 */

enum {
	IP_AT = RAW_HEADER,
	TCP_AT = IP_AT + 20,
	HEADER = TCP_AT + 20,
	SEQ = 0x7fffff00,
	ID = 0xfffe,
	ACK = 0x10,
	PSH = 8,
	FIN = 1,
	DATA = 1000, /* the place in a's buffer where the stream is */
	WR = 512,
};

struct two {
	struct raw_end a, b;
	struct ibv_qp_ex *qpx;
	uint8_t header[HEADER];
};

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static struct ibv_qp_init_attr_ex qp_attr(struct raw_end *end, unsigned header, bool builds)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = 16,
			.max_send_sge = 4,
			.max_recv_wr = 1,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.pd = end->pd,
		.max_tso_header = (uint16_t)header,
	};

	if (builds) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
	}
	return attr;
}

/* Ethernet, IPv4 and TCP; lengths and checksums are left to the device. */
static void header_make(uint8_t *header)
{
	memset(header, 0, HEADER);
	memcpy(header, raw_mac[1], RAW_MAC);
	memcpy(header + RAW_MAC, raw_mac[0], RAW_MAC);
	raw_put16(header + 12, 0x0800);
	header[IP_AT] = 0x45;
	raw_put16(header + IP_AT + 4, ID);
	header[IP_AT + 8] = 64;
	header[IP_AT + 9] = 6;
	memcpy(header + IP_AT + 12, "\x0a\x01\x02\x03\x0a\x04\x05\x06", 8);
	raw_put16(header + TCP_AT, 5555);
	raw_put16(header + TCP_AT + 2, 80);
	raw_put16(header + TCP_AT + 4, SEQ >> 16);
	raw_put16(header + TCP_AT + 6, SEQ & 0xffff);
	header[TCP_AT + 12] = 0x50;
	header[TCP_AT + 13] = ACK | PSH | FIN;
	raw_put16(header + TCP_AT + 14, 1024);
}

static void two_open(struct two *two, unsigned header_max)
{
	struct raw_options opt = {.state = IBV_QPS_UNKNOWN}, many = {.wr = WR};
	struct ibv_qp_init_attr_ex attr;

	raw_needed();
	raw_open(&two->a, &opt);
	assert_int_equal(ibv_destroy_qp(two->a.qp), 0);
	attr = qp_attr(&two->a, header_max, true);
	two->a.qp = vt_made(ibv_create_qp_ex(two->a.ctx, &attr));
	two->qpx = ibv_qp_to_qp_ex(two->a.qp);
	assert_int_equal(raw_climb(two->a.qp, IBV_QPS_RTS), 0);
	raw_open(&two->b, &many);
	raw_listen(&two->b, raw_mac[1]);
	header_make(two->header);
}

static void two_close(struct two *two)
{
	raw_close(&two->b);
	raw_close(&two->a);
}

#define two_test(f, ...)                                                                          \
	vt_with(vt_test, f, struct two, two, two_open(&two, __VA_ARGS__), two_close(&two))

static struct ibv_sge data_sge(struct two *two, uint32_t offset, uint32_t bytes)
{
	return (struct ibv_sge){.addr = (uintptr_t)raw_at(&two->a, DATA) + offset,
				.length = bytes,
				.lkey = two->a.mr->lkey};
}

static struct ibv_send_wr tso_wr(struct two *two, struct ibv_sge *sge, int count, unsigned mss)
{
	struct ibv_send_wr wr = {.wr_id = 77,
				 .sg_list = sge,
				 .num_sge = count,
				 .opcode = IBV_WR_TSO,
				 .send_flags = IBV_SEND_SIGNALED};

	wr.tso.hdr = two->header;
	wr.tso.hdr_sz = HEADER;
	wr.tso.mss = (uint16_t)mss;
	return wr;
}

static int post(struct two *two, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc = ibv_post_send(two->a.qp, wr, &bad);

	assert_ptr_equal(bad, rc ? wr : NULL);
	return rc;
}

/* The frame at that place is the part of the stream from offset on, and right. */
static void check_frame(struct two *two, unsigned slot, uint32_t offset, uint32_t bytes, bool last)
{
	const uint8_t *frame = raw_at(&two->b, slot), *ip = frame + IP_AT, *tcp = frame + TCP_AT;
	uint8_t pseudo[12];

	assert_memory_equal(frame, two->header, IP_AT + 2);
	assert_int_equal(get16(ip + 2), 40 + bytes);
	assert_int_equal(get16(ip + 4), (ID + slot) & 0xffff);
	assert_memory_equal(ip + 6, two->header + IP_AT + 6, 4);
	assert_int_equal(raw_sum(ip, 20), 0xffff);
	assert_memory_equal(tcp, two->header + TCP_AT, 4);
	assert_int_equal(get32(tcp + 4), SEQ + offset);
	assert_memory_equal(tcp + 8, two->header + TCP_AT + 8, 5);
	assert_int_equal(tcp[13], last ? ACK | PSH | FIN : ACK);
	memcpy(pseudo, ip + 12, 8);
	raw_put16(pseudo + 8, 6);
	raw_put16(pseudo + 10, 20 + bytes);
	assert_int_equal((raw_sum(pseudo, 12) + raw_sum(tcp, 20 + bytes)) % 0xffff, 0);
	assert_memory_equal(frame + HEADER, raw_at(&two->a, DATA) + offset, bytes);
}

/* All frames of so much data come, each as it must be. */
static void expect_stream(struct two *two, uint32_t bytes, uint32_t mss)
{
	uint32_t count = bytes ? (bytes + mss - 1) / mss : 1;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = bytes - i * mss < mss ? bytes - i * mss : mss;
		struct ibv_wc wc = vt_expect(two->b.cq, i, IBV_WC_SUCCESS);

		assert_int_equal(wc.byte_len, HEADER + part);
		assert_true(wc.wc_flags & IBV_WC_IP_CSUM_OK);
		check_frame(two, i, i * mss, part, i + 1 == count);
	}
	vt_expect_none(two->b.cq);
}

static void make_ready(struct two *two, uint32_t bytes, uint32_t mss)
{
	vt_fill(raw_at(&two->a, DATA), bytes, mss);
	for (uint32_t i = 0; i < (bytes ? (bytes + mss - 1) / mss : 1); i++)
		raw_recv(&two->b, i, RAW_SLOT_BYTES);
}

static void reset_receiver(struct two *two)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(ibv_modify_qp(two->b.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(raw_climb(two->b.qp, IBV_QPS_RTS), 0);
}

static const struct {
	uint32_t bytes, mss;
} sizes[] = {{0, 100},	    {1, 1460},	  {1460, 1460},	 {1461, 1460},
	     {10000, 1000}, {50000, 536}, {262144, 1460}};

/* ibv_post_send(3), IBV_WR_TSO */
two_test(a_stream_is_cut_into_frames, HEADER)
{
	for (unsigned i = 0; i < VT_COUNT(sizes); i++) {
		struct ibv_sge sge = data_sge(two, 0, sizes[i].bytes);
		struct ibv_send_wr wr = tso_wr(two, &sge, 1, sizes[i].mss);

		make_ready(two, sizes[i].bytes, sizes[i].mss);
		assert_int_equal(post(two, &wr), 0);
		assert_int_equal(vt_expect(two->a.cq, 77, IBV_WC_SUCCESS).opcode, IBV_WC_TSO);
		expect_stream(two, sizes[i].bytes, sizes[i].mss);
		reset_receiver(two);
	}
}

/* ibv_wr_post(3): "Produce multiple SEND messages using TCP Segmentation Offload." */
two_test(a_builder_makes_the_same, HEADER)
{
	for (unsigned i = 0; i < VT_COUNT(sizes); i++) {
		uint8_t header[HEADER];

		make_ready(two, sizes[i].bytes, sizes[i].mss);
		memcpy(header, two->header, HEADER);
		ibv_wr_start(two->qpx);
		two->qpx->wr_id = 78;
		two->qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
		ibv_wr_send_tso(two->qpx, header, HEADER, (uint16_t)sizes[i].mss);
		memset(header, 0xff, HEADER); /* the caller's again */
		ibv_wr_set_sge(two->qpx, two->a.mr->lkey, (uintptr_t)raw_at(&two->a, DATA),
			       sizes[i].bytes);
		assert_int_equal(ibv_wr_complete(two->qpx), 0);
		assert_int_equal(vt_expect(two->a.cq, 78, IBV_WC_SUCCESS).opcode, IBV_WC_TSO);
		expect_stream(two, sizes[i].bytes, sizes[i].mss);
		reset_receiver(two);
	}
}

two_test(data_may_lie_in_pieces, HEADER)
{
	struct ibv_sge sge[4];
	struct ibv_send_wr wr;

	make_ready(two, 3333, 300);
	sge[0] = data_sge(two, 0, 1);
	sge[1] = data_sge(two, 1, 299);
	sge[2] = data_sge(two, 300, 0);
	sge[3] = data_sge(two, 300, 3033);
	wr = tso_wr(two, sge, 4, 300);
	assert_int_equal(post(two, &wr), 0);
	vt_expect(two->a.cq, 77, IBV_WC_SUCCESS);
	expect_stream(two, 3333, 300);
}

/* create_ex: "Maximum TSO header size" */
vt_test(headers_are_as_long_as_was_asked)
{
	struct ibv_device_attr_ex device;
	struct ibv_qp_init_attr_ex attr;
	struct ibv_send_wr wr;
	struct two two;

	two_open(&two, HEADER - 1);
	assert_int_equal(ibv_query_device_ex(two.a.ctx, NULL, &device), 0);
	assert_int_equal(device.tso_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	assert_int_equal(device.tso_caps.max_tso, 262144);
	wr = tso_wr(&two, NULL, 0, 100);
	assert_int_equal(post(&two, &wr), EINVAL);
	ibv_wr_start(two.qpx);
	ibv_wr_send_tso(two.qpx, two.header, HEADER, 100);
	assert_int_equal(ibv_wr_complete(two.qpx), EINVAL);
	two_close(&two);
	/* Of a QP that asked for none. */
	two_open(&two, 0);
	assert_int_equal(post(&two, &wr), EINVAL);
	wr.tso.hdr_sz = 0;
	assert_int_equal(post(&two, &wr), EINVAL);
	/* There is a longest. */
	attr = qp_attr(&two.a, 513, false);
	vt_refused(EINVAL, ibv_create_qp_ex(two.a.ctx, &attr));
	two_close(&two);
	two_open(&two, 512);
	two_close(&two);
}

two_test(what_is_wrong_is_refused, HEADER)
{
	struct ibv_sge sge[5];
	struct ibv_send_wr wr;

	for (unsigned i = 0; i < 5; i++)
		sge[i] = data_sge(two, 0, 10);
	wr = tso_wr(two, sge, 1, 0);
	assert_int_equal(post(two, &wr), EINVAL); /* no mss */
	wr = tso_wr(two, sge, 5, 100);
	assert_int_equal(post(two, &wr), EINVAL); /* too many SGEs */
	wr = tso_wr(two, sge, 1, 100);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(two, &wr), EINVAL);
	wr = tso_wr(two, sge, 1, 100);
	wr.tso.hdr_sz = RAW_HEADER - 1;
	assert_int_equal(post(two, &wr), EINVAL); /* not even Ethernet's */
	ibv_wr_start(two->qpx);
	ibv_wr_send_tso(two->qpx, two->header, HEADER, 100);
	ibv_wr_set_inline_data(two->qpx, two->header, 10);
	assert_int_equal(ibv_wr_complete(two->qpx), EINVAL);
	vt_expect_none(two->a.cq);
}

vt_test(a_header_from_nowhere_is_refused)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct two two;

	vt_faults_to_library();
	two_open(&two, HEADER);
	sge = data_sge(&two, 0, 10);
	wr = tso_wr(&two, &sge, 1, 100);
	wr.tso.hdr = NULL;
	assert_int_equal(post(&two, &wr), EFAULT);
	ibv_wr_start(two.qpx);
	ibv_wr_send_tso(two.qpx, NULL, HEADER, 100);
	ibv_wr_set_sge(two.qpx, sge.lkey, sge.addr, sge.length);
	assert_int_equal(ibv_wr_complete(two.qpx), EFAULT);
	vt_expect_none(two.a.cq);
	two_close(&two);
}

/* No frame is longer than there are where there is no more data than that. */
two_test(the_last_frame_may_be_shorter_than_any_mss, HEADER)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	make_ready(two, 100, 65535);
	sge = data_sge(two, 0, 100);
	wr = tso_wr(two, &sge, 1, 65535);
	assert_int_equal(post(two, &wr), 0);
	vt_expect(two->a.cq, 77, IBV_WC_SUCCESS);
	expect_stream(two, 100, 65535);
}

/* What the device finds wrong: the completion tells it, and nothing was sent. */
vt_test(what_cannot_be_cut_completes_with_an_error)
{
	static const enum ibv_wc_status expected[] = {
		IBV_WC_LOC_QP_OP_ERR, /* it is not TCP */
		IBV_WC_LOC_QP_OP_ERR, /* the header ends in the midst of TCP's */
		IBV_WC_LOC_LEN_ERR,   /* more than max_tso */
		IBV_WC_LOC_LEN_ERR,   /* frames longer than there are */
		IBV_WC_LOC_PROT_ERR,  /* memory that the key does not cover */
	};
	struct two two;

	for (unsigned i = 0; i < VT_COUNT(expected); i++) {
		struct ibv_send_wr wr;
		struct ibv_sge sge;

		two_open(&two, HEADER);
		raw_recv(&two.b, 0, RAW_SLOT_BYTES);
		sge = data_sge(&two, 0, i == 2 ? 262145 : i == 3 ? 9000 : 500);
		wr = tso_wr(&two, &sge, 1, i == 3 ? 9000 : 100);
		if (i == 0)
			two.header[IP_AT + 9] = 17;
		if (i == 1)
			wr.tso.hdr_sz = HEADER - 1;
		if (i == 4)
			sge.lkey ^= 1;
		assert_int_equal(post(&two, &wr), 0);
		vt_expect(two.a.cq, 77, expected[i]);
		vt_expect_none(two.b.cq);
		two_close(&two);
	}
}
