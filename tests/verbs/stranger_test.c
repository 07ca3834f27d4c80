/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include "forge.h"

/*
 * Packets from strangers. A forged packet that is right in everything is obeyed: RoCE has no other
 * secret than its numbers, and the test needs to know that its forgeries are good. Each that is
 * wrong in one thing has no effect: no octet written, no completion, no event, no QP in error.
 *
 * All of this is about the wire (main() asks for VERBATIM_LINK=udp): a QP whose peer it reaches
 * through shared memory obeys no datagram whatsoever, which the last test shows.
 */

enum {
	CANARY = 0xcc,
	GRANT_AT = 4096,
	GRANT = 4096,
	MARK_AT = GRANT_AT + GRANT - 1, /* the last octet granted: where a good forgery writes */
	START_PSN = 0xfffff0,		/* vt_attr() */
};

/* The forger throws at b, whose peer a is silent. */
struct scene {
	struct vt_pair p;
	struct ibv_mr *grant;
	struct sockaddr_in peer, other;
	int peer_fd, other_fd; /* a's address, and another one */
	uint32_t psn;	       /* that b expects */
	uint8_t mark;
};

static void scene_open(struct scene *s, enum ibv_qp_type type)
{
	struct vt_options opt = { .type = type };

	*s = (struct scene){ .psn = START_PSN };
	vt_pair_open(&s->p, &opt);
	memset(s->p.b.buf, CANARY, s->p.b.bytes);
	s->grant = vt_mr(vt.pd, s->p.b.buf + GRANT_AT, GRANT, VT_ALL_ACCESS);
	s->peer_fd = forge_socket(1, &s->peer);
	s->other_fd = forge_socket(2, &s->other);
	assert_true(s->peer_fd >= 0);
	assert_true(s->other_fd >= 0);
	vt_recv(&s->p.a, 71);
	assert_int_equal(vt_recv_at(&s->p.b, 72, 0, 1024), 0);
}

static void scene_close(struct scene *s)
{
	close(s->peer_fd);
	close(s->other_fd);
	assert_int_equal(ibv_dereg_mr(s->grant), 0);
	vt_pair_close(&s->p);
}

#define scene_test(f, ...)                                                                        \
	vt_with(vt_test, f, struct scene, s, scene_open(&s, __VA_ARGS__), scene_close(&s))
#define scenes_test(f, i, from, to, ...)                                                          \
	vt_with_each(vt_test, f, i, from, to, struct scene, s, scene_open(&s, __VA_ARGS__),       \
		     scene_close(&s))

static uint64_t mark_va(const struct scene *s)
{
	return (uintptr_t)s->p.b.buf + MARK_AT;
}

/* A WRITE of one octet to the mark, right but for the ICRC that is still to come. */
static void forge_write(struct scene *s, struct forged *f, uint8_t octet)
{
	bool uc = s->p.opt.type == IBV_QPT_UC;

	forge_bth(f, uc ? UC_WRITE_ONLY : RC_WRITE_ONLY, s->p.b.qp->qp_num, s->psn);
	f->octets[1] = 3 << 4; /* 3 octets of pad */
	forge_reth(f, mark_va(s), s->grant->rkey, 1);
	forge_fill(f, octet, 1);
	forge_fill(f, 0, 3);
}

static void throw(struct scene *s, struct forged *f)
{
	forge_seal(f, &s->peer);
	assert_true(forge_throw(s->peer_fd, f->octets, f->bytes));
}

/*
 * Everything thrown so far was looked at: a good forgery behind it arrives (one socket, one order),
 * and it is all that has changed.
 */
static void expect_no_effect_before_this(struct scene *s)
{
	volatile uint8_t *mark = s->p.b.buf + MARK_AT;
	uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;
	struct forged f;

	s->mark = s->mark == 1 ? 2 : 1;
	forge_write(s, &f, s->mark);
	throw(s, &f);
	while (*mark != s->mark && vt_now_ms() < end_ms)
		vt_sleep_ms(0);
	assert_int_equal(*mark, s->mark);
	s->psn = (s->psn + 1) & 0xffffff;
	assert_true(vt_is_octet(s->p.b.buf, MARK_AT, CANARY));
	assert_true(vt_is_octet(s->p.b.buf + MARK_AT + 1, s->p.b.bytes - MARK_AT - 1, CANARY));
}

static void expect_all_quiet(struct scene *s)
{
	assert_int_equal(vt_state(s->p.a.qp), IBV_QPS_RTS);
	assert_int_equal(vt_state(s->p.b.qp), IBV_QPS_RTS);
	vt_expect_none(s->p.a.cq);
	vt_expect_none(s->p.b.cq);
	vt_no_event();
}

scenes_test(a_perfect_forgery_is_obeyed, i, 0, 2, vt_types[i])
{
	for (int n = 0; n < 40; n++) /* beyond the wrap of the PSN */
		expect_no_effect_before_this(s);
	expect_all_quiet(s);
}

scenes_test(another_source_address_is_a_stranger, i, 0, 2, vt_types[i])
{
	struct forged f;

	forge_write(s, &f, 0x77);
	forge_seal(&f, &s->other);
	assert_true(forge_throw(s->other_fd, f.octets, f.bytes));
	expect_no_effect_before_this(s);
	expect_all_quiet(s);
}

/* Each bit of a packet, but those that an ICRC does not cover, and each of the ICRC's. */
scene_test(every_flipped_bit_is_noticed, IBV_QPT_RC)
{
	struct forged f, bad;

	for (size_t bit = 0; bit < 8 * (FORGE_BTH_BYTES + 16 + 4 + 4); bit++) {
		forge_write(s, &f, 0x77);
		forge_seal(&f, &s->peer);
		bad = f;
		bad.octets[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* Octet 4 of the BTH may change on the way; a flip in it leaves the packet good. */
		if (bit / 8 == 4)
			continue;
		assert_true(forge_throw(s->peer_fd, bad.octets, bad.bytes));
		if (bit % 16 == 0)
			expect_no_effect_before_this(s);
	}
	expect_no_effect_before_this(s);
	expect_all_quiet(s);
}

scene_test(truncated_at_each_length, IBV_QPT_RC)
{
	struct forged f;

	for (size_t bytes = 0; bytes < 36; bytes++) {
		forge_write(s, &f, 0x77);
		forge_seal(&f, &s->peer);
		assert_true(forge_throw(s->peer_fd, f.octets, bytes));
		expect_no_effect_before_this(s);
	}
	expect_all_quiet(s);
}

/*
 * Truncated or too long, and then sealed: what the specification calls an invalid request may end
 * the connection (IBA 9.9.3); it never writes.
 */
vt_test(a_good_icrc_over_a_wrong_length)
{
	for (size_t bytes = 0; bytes <= 48; bytes++) {
		struct forged f;
		struct scene s;

		scene_open(&s, IBV_QPT_RC);
		forge_write(&s, &f, 0x77);
		forge_fill(&f, 0x77, 64);
		f.bytes = bytes;
		if (bytes != 32) /* that is the right one */
			throw(&s, &f);
		vt_sleep_ms(2);
		assert_true(vt_is_octet(s.p.b.buf, s.p.b.bytes, CANARY));
		scene_close(&s);
	}
}

/* Longer than anything that goes through, and nothing at all. */
scene_test(giants_and_nothings, IBV_QPT_RC)
{
	static uint8_t giant[65507];
	struct forged f;

	forge_write(s, &f, 0x77);
	memset(giant, 0x77, sizeof(giant));
	memcpy(giant, f.octets, f.bytes);
	for (size_t bytes = sizeof(giant); bytes > 6007; bytes -= 6007)
		assert_true(forge_throw(s->peer_fd, giant, bytes));
	for (int i = 0; i < 10; i++)
		assert_true(forge_throw(s->peer_fd, giant, 0));
	expect_no_effect_before_this(s);
	expect_all_quiet(s);
}

static uint32_t random_step(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/*
 * Noise of every length, from both addresses. Half of it begins like a packet for b, but not from
 * b's peer: an ICRC that is random passes once in 2^16 times, for the identification of the IP
 * header, which it covers, is not to be seen.
 */
scene_test(noise_has_no_effect, IBV_QPT_RC)
{
	uint32_t seed = 4791;
	struct forged f;

	for (int i = 0; i < 8000; i++) {
		size_t bytes = random_step(&seed) % (i & 1 ? 64 : 4200), head = 0;

		if (i & 2) {
			forge_bth(&f, random_step(&seed) & 0xff, s->p.b.qp->qp_num, s->psn);
			head = FORGE_BTH_BYTES;
		}
		for (size_t n = head; n < bytes; n++)
			f.octets[n] = (uint8_t)random_step(&seed);
		assert_true(forge_throw(head ? s->other_fd : s->peer_fd, f.octets, bytes));
		if (i % 8 == 0)
			expect_no_effect_before_this(s);
	}
	expect_no_effect_before_this(s);
	expect_all_quiet(s);
}

/* --- sealed well, wrong in one field --- */

scene_test(other_qps_are_not_met, IBV_QPT_RC)
{
	uint32_t qpn;

	qpn = s->p.b.qp->qp_num;
	for (int i = 0; i < 27; i++) {
		static const uint32_t special[] = { 0, 1, 0xffffff };
		uint32_t other = i < 24 ? qpn ^ 1u << i : special[i - 24];
		struct forged f;

		if (other == s->p.a.qp->qp_num)
			continue; /* a would obey */
		forge_write(s, &f, 0x77);
		f.octets[5] = (uint8_t)(other >> 16);
		f.octets[6] = (uint8_t)(other >> 8);
		f.octets[7] = (uint8_t)other;
		throw(s, &f);
		expect_no_effect_before_this(s);
	}
	expect_all_quiet(s);
}

scene_test(other_psns_are_not_executed, IBV_QPT_RC)
{
	static const int32_t off[] = { -1, -2, -100, -0x7fffff, 1, 2, 100, 0x7ffffe };

	for (int n = 0; n < 200; n++) /* so that -100 was seen before */
		expect_no_effect_before_this(s);
	for (unsigned i = 0; i < VT_COUNT(off); i++) {
		struct forged f;

		s->psn = (s->psn + (uint32_t)off[i]) & 0xffffff;
		forge_write(s, &f, 0x77);
		s->psn = (s->psn - (uint32_t)off[i]) & 0xffffff;
		throw(s, &f);
		expect_no_effect_before_this(s);
	}
	expect_all_quiet(s);
}

scene_test(other_header_fields_are_not_accepted, IBV_QPT_RC)
{
	static const struct {
		uint8_t octet, value;
	} wrong[] = {
		{ 0, UC_WRITE_ONLY },	 /* another transport */
		{ 0, UD_SEND_ONLY },	 { 0, RESERVED_OPCODE }, { 0, NO_TRANSPORT },
		{ 1, 3 << 4 | 1 },	 /* another version of the transport header */
		{ 1, 3 << 4 | 15 },	 { 2, 0x12 }, /* another partition */
		{ 3, 0x34 },
	};

	for (unsigned i = 0; i < VT_COUNT(wrong); i++) {
		struct forged f;

		forge_write(s, &f, 0x77);
		f.octets[wrong[i].octet] = wrong[i].value;
		throw(s, &f);
		expect_no_effect_before_this(s);
	}
	expect_all_quiet(s);
}

/* Answers that nobody asked for, to a QP that waits for none and to one that does. */
static void forge_answer(struct forged *f, enum forge_opcode opcode, uint32_t qpn, uint32_t psn,
			 uint8_t syndrome)
{
	forge_bth(f, opcode, qpn, psn);
	if (opcode != RC_WRITE_MIDDLE)
		forge_be(f, (uint64_t)syndrome << 24, 4);
	if (opcode == RC_ATOMIC_ACK || opcode == RC_READ_RESPONSE_ONLY)
		forge_fill(f, 0x77, 8);
}

static const uint8_t syndromes[] = { 0x1f, 0x00, 0x20, 0x21, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7f };

scene_test(answers_to_nothing_are_ignored, IBV_QPT_RC)
{
	static const enum forge_opcode answers[] = { RC_ACK, RC_ATOMIC_ACK, RC_READ_RESPONSE_ONLY };

	for (unsigned i = 0; i < 3 * sizeof(syndromes); i++) {
		for (int off = -2; off <= 2; off++) {
			struct forged f;

			forge_answer(&f, answers[i % 3], s->p.b.qp->qp_num,
				     START_PSN + (uint32_t)off, syndromes[i / 3]);
			throw(s, &f);
		}
		expect_no_effect_before_this(s);
	}
	expect_all_quiet(s);
}

/* While a SEND waits for its receiver, a stranger's ACK or NAK must not end it. */
scene_test(answers_from_strangers_do_not_complete_anything, IBV_QPT_RC)
{
	struct vt_wr w;

	assert_int_equal(vt_modify(s->p.b.qp, IBV_QPS_RESET), 0); /* silent, but back soon */
	vt_wr(&w, IBV_WR_RDMA_WRITE, &s->p.a, &s->p.b, 8);
	w.wr.wr.rdma.remote_addr = (uintptr_t)s->p.b.buf + GRANT_AT;
	w.wr.wr.rdma.rkey = s->grant->rkey;
	vt_post(&s->p.a, &w);
	for (unsigned i = 0; i < sizeof(syndromes); i++) {
		struct forged f;

		forge_answer(&f, RC_ACK, s->p.a.qp->qp_num, START_PSN, syndromes[i]);
		forge_seal(&f, &s->other);
		assert_true(forge_throw(s->other_fd, f.octets, f.bytes));
		/* From the right address, with a broken ICRC. */
		forge_answer(&f, RC_ACK, s->p.a.qp->qp_num, START_PSN, syndromes[i]);
		forge_seal(&f, &s->peer);
		f.octets[f.bytes - 1] ^= 0x10;
		assert_true(forge_throw(s->peer_fd, f.octets, f.bytes));
	}
	vt_expect_none(s->p.a.cq);
	vt_climb(s->p.b.qp, &s->p.opt, IBV_QPS_RTS, s->p.a.qp->qp_num);
	vt_expect(s->p.a.cq, 1, IBV_WC_SUCCESS);
	vt_no_event();
}

/* Middles without a beginning, a beginning within a message: refused, and nothing is written. */
scenes_test(opcodes_out_of_sequence, i, 0, 3, IBV_QPT_RC)
{
	struct forged f;

	if (i) {
		/* One octet short of the MTU of 1024: not what a first packet is. */
		forge_bth(&f, i == 1 ? RC_SEND_FIRST : RC_WRITE_FIRST, s->p.b.qp->qp_num,
			  s->psn);
		if (i == 2)
			forge_reth(&f, (uintptr_t)s->p.b.buf + GRANT_AT, s->grant->rkey,
				   GRANT);
		forge_fill(&f, 0x77, 1020);
	} else {
		forge_bth(&f, RC_WRITE_MIDDLE, s->p.b.qp->qp_num, s->psn);
		forge_fill(&f, 0x77, 1024);
	}
	throw(s, &f);
	vt_event_acked(IBV_EVENT_QP_REQ_ERR);
	assert_true(vt_is_octet(s->p.b.buf + 1024, s->p.b.bytes - 1024, CANARY));
	assert_int_equal(vt_state(s->p.b.qp), IBV_QPS_ERR);
}

/* A WRITE that says one length and carries another. */
vt_test(lengths_that_lie)
{
	static const struct {
		uint32_t bytes;
		enum ibv_event_type event;
	} said[] = {
		{ 0, IBV_EVENT_QP_REQ_ERR },	 { 2, IBV_EVENT_QP_REQ_ERR },
		{ 3, IBV_EVENT_QP_REQ_ERR },	 { 5, IBV_EVENT_QP_REQ_ERR },
		{ GRANT, IBV_EVENT_QP_REQ_ERR }, { GRANT + 1, IBV_EVENT_QP_ACCESS_ERR },
		{ UINT32_MAX, IBV_EVENT_QP_REQ_ERR },
	};

	for (unsigned i = 0; i < VT_COUNT(said); i++) {
		struct forged f;
		struct scene s;

		scene_open(&s, IBV_QPT_RC);
		forge_bth(&f, RC_WRITE_ONLY, s.p.b.qp->qp_num, s.psn);
		forge_reth(&f, (uintptr_t)s.p.b.buf + GRANT_AT, s.grant->rkey,
			   said[i].bytes);
		forge_fill(&f, 0x77, 4);
		throw(&s, &f);
		vt_expect(s.p.b.cq, 72, IBV_WC_WR_FLUSH_ERR);
		assert_true(vt_is_octet(s.p.b.buf, s.p.b.bytes, CANARY));
		vt_event_acked(said[i].event);
		scene_close(&s);
	}
}

/* UD: whoever knows the Q_Key may send; who does not is not heard. */
vt_pair_test(datagrams_need_the_q_key, .type = IBV_QPT_UD)
{
	struct sockaddr_in other;
	struct ibv_wc wc;
	struct forged f;
	int fd;

	fd = forge_socket(3, &other);
	assert_true(fd >= 0);
	vt_recv(&p->b, 5);
	for (int i = 0; i < 33; i++) {
		forge_bth(&f, UD_SEND_ONLY, p->b.qp->qp_num, 77);
		forge_be(&f, i < 32 ? VT_QKEY ^ 1u << i : VT_QKEY, 4);
		forge_be(&f, 0x123456, 4);
		forge_fill(&f, (uint8_t)i, 16);
		forge_seal(&f, &other);
		assert_true(forge_throw(fd, f.octets, f.bytes));
	}
	wc = vt_expect(p->b.cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(wc.src_qp, 0x123456);
	assert_int_equal(wc.byte_len, 40 + 16);
	assert_true(vt_is_octet(p->b.buf + 40, 16, 32));
	vt_expect_none(p->b.cq);
	close(fd);
}

/* --- through shared memory --- */

static int setup_by_itself(void **state)
{
	setenv("VERBATIM_LINK", "", 1);
	return vt_setup(state);
}

static int teardown_by_itself(void **state)
{
	setenv("VERBATIM_LINK", "udp", 1);
	return vt_teardown(state);
}

/* Not even those that are right in everything: its peer speaks through the ring alone. */
vt_case(a_qp_of_shared_memory_does_not_hear_the_wire, setup_by_itself, teardown_by_itself, NULL)
{
	struct forged f;
	struct scene s;

	for (int i = 0; i < 2; i++) {
		scene_open(&s, vt_types[i]);
		for (int n = 0; n < 40; n++) {
			forge_write(&s, &f, 0x77);
			throw(&s, &f);
		}
		expect_all_quiet(&s);
		assert_true(vt_is_octet(s.p.b.buf, s.p.b.bytes, CANARY));
		vt_do(IBV_WR_RDMA_WRITE, &s.p.a, &s.p.b, 0, IBV_WC_SUCCESS);
		scene_close(&s);
	}
}

/* --- every drop is counted with its reason --- */

static char log_name[] = "/tmp/vb-stranger-XXXXXX";

/* VERBATIM_LOG tells the counters when the device is closed. */
vt_test(every_drop_is_counted_with_its_reason)
{
	struct forged f;
	struct scene s;

	scene_open(&s, IBV_QPT_RC);
	forge_write(&s, &f, 0x77);
	forge_seal(&f, &s.other);
	assert_true(forge_throw(s.peer_fd, f.octets, 20));
	assert_true(forge_throw(s.other_fd, f.octets, f.bytes));
	f.octets[f.bytes - 1] ^= 1;
	assert_true(forge_throw(s.other_fd, f.octets, f.bytes));
	forge_write(&s, &f, 0x77);
	f.octets[0] = UC_WRITE_ONLY;
	throw(&s, &f);
	forge_write(&s, &f, 0x77);
	f.octets[2] = 0x12;
	throw(&s, &f);
	expect_no_effect_before_this(&s);
	scene_close(&s);
	assert_int_equal(vt_teardown(state), 0);
	assert_int_equal(vt_setup(state), 0);
	assert_int_equal(vt_counted(log_name, "drop_malformed"), 1);
	assert_int_equal(vt_counted(log_name, "drop_icrc"), 1);
	assert_int_equal(vt_counted(log_name, "drop_wrong_peer"), 1);
	assert_int_equal(vt_counted(log_name, "drop_wrong_transport"), 1);
	assert_int_equal(vt_counted(log_name, "drop_pkey"), 1);
}

int main(void)
{
	int fd = mkstemp(log_name), status;

	if (fd >= 0)
		close(fd);
	setenv("VERBATIM_LOG", log_name, 1);
	setenv("VERBATIM_LINK", "udp", 1);
	status = vt_main();
	unlink(log_name);
	return status;
}
