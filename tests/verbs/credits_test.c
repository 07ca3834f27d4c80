/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <unistd.h>

/*
 * End-to-end credits (IBA 9.7.7.2), of messages and, with PACKET_BASED_CREDIT_MODE of
 * mlx5dv_create_qp(3), of packets: what acknowledgements say of them in a capture, and what it lets
 * the sender do.
 */

enum {
	MTU = 1024,
	RNR_CLASS = 1,
	UNLIMITED = 31,
	FILE_HEADER_BYTES = 24,
	RECORD_HEADER_BYTES = 16,
	IPV4_UDP_BYTES = 28,
	BTH_BYTES = 12,
	OPCODE_ACK = 0x11,
	OPCODE_SEND_ONLY = 0x04,
	OPCODE_SENDS_END = 0x06,
};

static char path[] = "/tmp/verbatim-credits-XXXXXX";

/* --- the capture --- */

/* Of what goes by shared memory there is none. */
#define capture_test(f) vt_case(f, vt_setup, vt_teardown, vt_by_udp)

struct seen {
	uint64_t packets; /* SENDs */
	unsigned acks, rnr_naks;
	uint8_t last; /* the value in the last ACK */
};

static uint32_t qpn_of(const uint8_t *bth)
{
	return (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
}

/* What went to these two QPs by now. Both are here: each packet is seen leaving and coming. */
static struct seen look_once(const struct vt_pair *p)
{
	struct seen seen = { 0 };
	static uint8_t octets[4 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = read(fd, octets, sizeof(octets));
	uint32_t length;

	assert_true(bytes >= FILE_HEADER_BYTES && (size_t)bytes < sizeof(octets));
	close(fd);
	for (size_t at = FILE_HEADER_BYTES; at < (size_t)bytes; at += length) {
		const uint8_t *bth = octets + at + RECORD_HEADER_BYTES + IPV4_UDP_BYTES;

		memcpy(&length, octets + at + 8, sizeof(length));
		length += RECORD_HEADER_BYTES;
		if (bth[0] < OPCODE_SENDS_END && qpn_of(bth) == p->b.qp->qp_num)
			seen.packets++;
		if (bth[0] != OPCODE_ACK || qpn_of(bth) != p->a.qp->qp_num)
			continue;
		if (bth[BTH_BYTES] >> 5 == RNR_CLASS) {
			seen.rnr_naks++;
		} else {
			seen.acks++;
			seen.last = bth[BTH_BYTES] & 31;
		}
	}
	return seen;
}

/* The same when nothing is under way. */
static struct seen look(const struct vt_pair *p)
{
	uint64_t until_ms = vt_now_ms() + VT_WAIT_MS;
	struct seen seen = look_once(p);

	while ((seen.packets | seen.acks | seen.rnr_naks) & 1 && vt_now_ms() < until_ms)
		seen = look_once(p);
	assert_int_equal((seen.packets | seen.acks | seen.rnr_naks) & 1, 0);
	seen.packets /= 2;
	seen.acks /= 2;
	seen.rnr_naks /= 2;
	return seen;
}

/* --- the QPs --- */

static struct ibv_qp *try_flags(struct ibv_qp_init_attr *init, uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = init->send_cq,
					    .recv_cq = init->recv_cq,
					    .srq = init->srq,
					    .cap = init->cap,
					    .qp_type = init->qp_type,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = vt.pd };
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = flags,
	};

	return mlx5dv_create_qp(vt.ctx, &attr, &dv);
}

static struct ibv_qp *of_packets(struct ibv_qp_init_attr *init)
{
	return try_flags(init, MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE);
}

static void open_pair(struct vt_pair *p, bool packets, struct vt_options opt)
{
	opt.make_qp = packets ? of_packets : NULL;
	opt.mtu = IBV_MTU_1024;
	vt_pair_open(p, &opt);
}

static void send_bytes(struct vt_pair *p, uint64_t wr_id, uint32_t bytes)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, bytes);
	w.wr.wr_id = wr_id;
	vt_post(&p->a, &w);
}

/* --- what is told --- */

static uint8_t told_after_one(bool packets, unsigned recvs, uint32_t bytes, bool srq)
{
	struct seen seen;
	struct vt_pair p;

	open_pair(&p, packets, (struct vt_options){ .srq = srq });
	for (unsigned i = 0; i <= recvs; i++)
		assert_int_equal(vt_recv_at(&p.b, i, 0, bytes), 0);
	send_bytes(&p, 1, 8);
	vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
	seen = look(&p);
	assert_true(seen.acks > 0);
	vt_pair_close(&p);
	return seen.last;
}

/*
 * create_dv: "Set QP to work in end-to-end packet-based credit, instead of the default
 * message-based credits (IB spec. section 9.7.7.2)." The codes: 2 is two, 6 is eight, 10 is 32 (IBA
 * table 45).
 */
capture_test(acknowledgements_count_messages_or_packets)
{
	assert_int_equal(told_after_one(false, 2, 4 * MTU, false), 2);
	assert_int_equal(told_after_one(true, 2, 4 * MTU, false), 6);
	assert_int_equal(told_after_one(false, 8, 4 * MTU, false), 6);
	assert_int_equal(told_after_one(true, 8, 4 * MTU, false), 10);
	assert_int_equal(told_after_one(true, 2, MTU, false), 2);
	assert_int_equal(told_after_one(true, 0, MTU, false), 0);
}

/* IBA 9.7.7.2: whose requests are shared counts none. */
capture_test(a_shared_receive_queue_gives_no_credits)
{
	assert_int_equal(told_after_one(false, 2, 4 * MTU, true), UNLIMITED);
	assert_int_equal(told_after_one(true, 2, 4 * MTU, true), UNLIMITED);
}

/* --- what is obeyed --- */

enum { PATIENT_RNR = 31 }; /* 491 ms: seldom is anything asked twice in the course of a test */

/*
 * Two requests of four packets are left. Six messages of one packet: with credits of messages two
 * go and are taken. With those of packets there is credit for all, and what is too much is refused.
 */
capture_test(messages_are_held_back)
{
	for (int packets = 0; packets < 2; packets++) {
		struct seen before, after;
		struct vt_pair p;

		open_pair(&p, packets, (struct vt_options){ .rnr_timer = PATIENT_RNR });
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(vt_recv_at(&p.b, i, 0, 4 * MTU), 0);
		send_bytes(&p, 0, 8);
		vt_expect(p.a.cq, 0, IBV_WC_SUCCESS);
		before = look(&p);
		for (unsigned i = 1; i <= 6; i++)
			send_bytes(&p, i, 8);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		vt_expect(p.a.cq, 2, IBV_WC_SUCCESS);
		vt_expect_none(p.a.cq);
		after = look(&p);
		assert_true(after.rnr_naks > 0);
		/* Without credit one goes at a time, to find out, and that is all. */
		if (!packets)
			assert_int_equal(after.packets - before.packets, 2 + after.rnr_naks);
		else /* the first acknowledgement may leave four more, or all have gone before it */
			assert_true(after.packets - before.packets >= 5);
		vt_pair_close(&p);
	}
}

/* A message that there is no room for goes as far as there are credits, and then waits. */
capture_test(packets_are_held_back_within_a_message)
{
	for (int packets = 0; packets < 2; packets++) {
		struct seen before, after;
		struct vt_pair p;

		open_pair(&p, packets, (struct vt_options){ .rnr_timer = PATIENT_RNR });
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(vt_recv_at(&p.b, i, 0, 2 * MTU), 0);
		send_bytes(&p, 0, 8);
		vt_expect(p.a.cq, 0, IBV_WC_SUCCESS);
		before = look(&p);
		send_bytes(&p, 1, 2 * MTU);
		send_bytes(&p, 2, 8 * MTU);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		vt_expect_none(p.a.cq);
		after = look(&p);
		assert_true(after.rnr_naks > 0);
		/* All of the message that asks goes where messages count, one packet here. */
		assert_int_equal(after.packets - before.packets,
				 2 + after.rnr_naks * (packets ? 1 : 8));
		vt_pair_close(&p);
	}
}

/* However few credits there are, all that is sent comes, and in order. */
vt_test(with_few_credits_all_goes_through)
{
	struct vt_pair p;

	open_pair(&p, true, (struct vt_options){ .bytes = 1 << 20 });
	vt_fill(p.a.buf, p.a.bytes, 3);
	for (unsigned round = 0; round < 40; round++) {
		uint32_t bytes = 1 + round * 997 % (12 * MTU);

		memset(p.b.buf, 0, 12 * MTU);
		for (unsigned i = 0; i < 3; i++) /* of which none has room for much more */
			assert_int_equal(vt_recv_at(&p.b, i, i * 12 * MTU, 12 * MTU), 0);
		for (unsigned i = 0; i < 3; i++)
			send_bytes(&p, i, bytes);
		for (unsigned i = 0; i < 3; i++) {
			vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
			assert_int_equal(vt_expect(p.b.cq, i, IBV_WC_SUCCESS).byte_len, bytes);
			assert_true(vt_is_filled(p.b.buf + i * 12 * MTU, bytes, 3));
		}
	}
	/* And those that have to wait for requests, one packet at a time at first. */
	for (unsigned i = 0; i < 4; i++)
		send_bytes(&p, i, 12 * MTU);
	for (unsigned i = 0; i < 4; i++) {
		vt_sleep_ms(2);
		assert_int_equal(vt_recv_at(&p.b, i, 0, 12 * MTU), 0);
		vt_expect(p.b.cq, i, IBV_WC_SUCCESS);
		vt_expect(p.a.cq, i, IBV_WC_SUCCESS);
	}
	vt_pair_close(&p);
}

/* Only RC has acknowledgements of its own to put them into. */
vt_cq_test(other_types_have_no_credits, 4)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq };

	for (int i = 0; i < 2; i++) {
		init.qp_type = types[i];
		vt_refused(EINVAL, of_packets(&init));
	}
}

int main(void)
{
	int fd = mkostemp(path, O_CLOEXEC), rc;

	if (vt_by_udp())
		setenv("VERBATIM_PCAP", path, 1);
	rc = vt_main();
	unlink(path);
	close(fd);
	return rc;
}
