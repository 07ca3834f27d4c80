/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"
#include "skip.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/*
 * What a healthy connection does: every operation, on every service, in many sizes and pieces, with
 * each octet checked, and the octets around.
 */

enum { EDGE = 64, CANARY = 0xcc };

/* Which services an operation is on, and what its completions are called. */
static const struct {
	enum ibv_wr_opcode op;
	int types; /* how many of vt_types[] */
	enum ibv_wc_opcode send, recv;
	bool takes_recv, imm;
} ops[] = {
	{ IBV_WR_SEND, 3, IBV_WC_SEND, IBV_WC_RECV, true, false },
	{ IBV_WR_SEND_WITH_IMM, 3, IBV_WC_SEND, IBV_WC_RECV, true, true },
	{ IBV_WR_RDMA_WRITE, 2, IBV_WC_RDMA_WRITE, 0, false, false },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, 2, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true, true },
	{ IBV_WR_RDMA_READ, 1, IBV_WC_RDMA_READ, 0, false, false },
};
enum { OPS = 5 };

/*
 * Around the ends of packets, of messages that are copied, of what fits a slot of a ring with its
 * headers, and of messages of several pieces.
 */
static const uint32_t sizes[] = {
	0,     1,     2,     3,	    4,	   5,	  23,	 24,	25,    27,    28,    29,    39,
	40,    41,    43,    44,    45,	   55,	  56,	 57,	63,    64,    65,    255,   256,
	257,   1023,  1024,  1025,  4095,  4096,  4097,	 8192,	32767, 32768, 32769, 65535, 65536,
	65537, 98303, 98304, 98305, 200000,
	(1 << 20) - 1,	(1 << 20) + 1,	3 * 1024 * 1024 + 7,
};
enum { SIZES = VT_COUNT(sizes), BYTES = 4 << 20 };

/* One message of `bytes` from a's buffer to b's (READ: from b's to a's), EDGE octets into it. */
static void one_message(struct vt_pair *p, int op, uint32_t bytes)
{
	bool read = ops[op].op == IBV_WR_RDMA_READ;
	uint32_t grh = p->opt.type == IBV_QPT_UD ? 40 : 0;
	struct vt_end *from = read ? &p->b : &p->a, *to = read ? &p->a : &p->b;
	struct ibv_wc wc;
	struct vt_wr w;

	vt_fill(from->buf + EDGE, bytes, bytes);
	memset(to->buf, CANARY, bytes + grh + 2 * EDGE);
	if (ops[op].takes_recv)
		assert_int_equal(vt_recv_at(&p->b, 7, EDGE, bytes + grh), 0);
	vt_wr(&w, ops[op].op, &p->a, &p->b, bytes);
	w.sge.addr += EDGE;
	w.wr.imm_data = htobe32(bytes);
	if (p->opt.type != IBV_QPT_UD)
		w.wr.wr.rdma.remote_addr += EDGE;
	vt_post(&p->a, &w);
	if (ops[op].takes_recv) {
		wc = vt_expect(p->b.cq, 7, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, ops[op].recv);
		assert_int_equal(wc.byte_len, bytes + grh);
		assert_int_equal(wc.qp_num, p->b.qp->qp_num);
		assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, ops[op].imm ? IBV_WC_WITH_IMM : 0);
		if (ops[op].imm)
			assert_int_equal(be32toh(wc.imm_data), bytes);
	}
	wc = vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, ops[op].send);
	assert_int_equal(wc.qp_num, p->a.qp->qp_num);
	/* A UC WRITE has nobody who tells when it is there. */
	for (int i = 0; i < 2000 && p->opt.type == IBV_QPT_UC; i++) {
		if (vt_is_filled(to->buf + EDGE, bytes, bytes))
			break;
		vt_sleep_ms(1);
	}
	assert_true(vt_is_filled(to->buf + EDGE + grh, bytes, bytes));
	assert_true(vt_is_octet(to->buf, EDGE, CANARY));
	assert_true(vt_is_octet(to->buf + EDGE + grh + bytes, EDGE, CANARY));
}

static void every_operation_in_every_size(enum ibv_qp_type type, enum ibv_mtu mtu)
{
	struct vt_options opt = { .type = type, .bytes = BYTES, .mtu = mtu };
	/* UC has nobody who sends again: only what fits the socket's buffer at once. */
	uint32_t max = type == IBV_QPT_RC ? BYTES : type == IBV_QPT_UC ? 65537 : 4096;
	struct vt_pair p;

	vt_pair_open(&p, &opt);
	for (int op = 0; op < OPS; op++)
		for (int i = 0; i < SIZES; i++)
			if (vt_types[ops[op].types - 1] >= type && sizes[i] <= max)
				one_message(&p, op, sizes[i]);
	vt_expect_none(p.a.cq);
	vt_expect_none(p.b.cq);
	vt_no_event();
	vt_pair_close(&p);
}

vt_test(rc_with_mtu_256)
{
	every_operation_in_every_size(IBV_QPT_RC, IBV_MTU_256);
}

vt_test(rc_with_mtu_1024)
{
	every_operation_in_every_size(IBV_QPT_RC, IBV_MTU_1024);
}

vt_test(rc_with_mtu_4096)
{
	every_operation_in_every_size(IBV_QPT_RC, IBV_MTU_4096);
}

vt_test(uc_with_each_mtu)
{
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		every_operation_in_every_size(IBV_QPT_UC, mtu);
}

vt_test(ud)
{
	every_operation_in_every_size(IBV_QPT_UD, IBV_MTU_4096);
}

/* --- pieces --- */

/* Pieces of odd lengths, some of none, which lie backwards in memory, from another region each. */
static uint32_t cut(struct vt_end *end, struct ibv_mr *mr[2], struct ibv_sge *sge, uint32_t count,
		    uint32_t seed)
{
	uint32_t bytes = 0, at = (uint32_t)end->bytes;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = (i * 37 + seed) % 5 ? (i * 977 + seed) % 3000 : 0;

		at -= n + 16;
		sge[i] = (struct ibv_sge){ (uintptr_t)end->buf + at, n, mr[i & 1]->lkey };
		bytes += n;
	}
	return bytes;
}

static void fill_pieces(const struct ibv_sge *sge, uint32_t count, uint32_t seed)
{
	uint8_t n = (uint8_t)seed;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < sge[i].length; k++)
			((uint8_t *)(uintptr_t)sge[i].addr)[k] = n += 7;
}

static void check_pieces(const struct ibv_sge *sge, uint32_t count, uint32_t seed, uint32_t bytes)
{
	uint8_t n = (uint8_t)seed;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < sge[i].length && bytes; k++, bytes--) {
			n += 7;
			if (((uint8_t *)(uintptr_t)sge[i].addr)[k] != n)
				fail_msg("piece %u, octet %u", i, k);
		}
	assert_int_equal(bytes, 0);
}

vt_test(pieces_of_any_length)
{
	struct ibv_device_attr device = vt_device();

	for (uint32_t seed = 0; seed < 24; seed++) {
		struct vt_options opt = { .sge = (uint32_t)device.max_sge, .bytes = 256 << 10,
					  .mtu = 1 + seed % 5 };
		uint32_t count = seed % 3 ? opt.sge : 3, bytes, room;
		struct ibv_recv_wr recv = { .wr_id = 7 }, *bad_recv;
		struct ibv_sge from[64], to[64];
		struct ibv_send_wr *bad;
		struct ibv_mr *mr[2][2];
		struct vt_pair p;
		struct vt_wr w;

		vt_pair_open(&p, &opt);
		for (int i = 0; i < 2; i++) {
			mr[0][i] = i ? p.a.mr : vt_mr(vt.pd, p.a.buf, p.a.bytes, VT_ALL_ACCESS);
			mr[1][i] = i ? p.b.mr : vt_mr(vt.pd, p.b.buf, p.b.bytes, VT_ALL_ACCESS);
		}
		bytes = cut(&p.a, mr[0], from, count, seed);
		room = cut(&p.b, mr[1], to, opt.sge, seed + 3);
		assert_true(bytes <= room || count == opt.sge);
		fill_pieces(from, count, seed);
		recv.sg_list = to;
		recv.num_sge = (int)opt.sge;
		/* Whatever does not fit comes last, so cut the sender's last pieces. */
		while (bytes > room)
			bytes -= from[--count].length;
		assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad_recv), 0);
		vt_wr(&w, IBV_WR_SEND, &p.a, &p.b, 0);
		w.wr.sg_list = from;
		w.wr.num_sge = (int)count;
		assert_int_equal(ibv_post_send(p.a.qp, &w.wr, &bad), 0);
		assert_int_equal(vt_expect(p.b.cq, 7, IBV_WC_SUCCESS).byte_len, bytes);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		check_pieces(to, opt.sge, seed, bytes);
		assert_int_equal(ibv_dereg_mr(mr[0][0]), 0);
		assert_int_equal(ibv_dereg_mr(mr[1][0]), 0);
		vt_pair_close(&p);
	}
}

/* A READ is scattered over pieces as well. */
vt_test(a_read_into_pieces)
{
	struct vt_options opt = { .sge = 16, .bytes = 256 << 10 };
	struct ibv_sge to[16];
	struct ibv_send_wr *bad;
	struct ibv_mr *mr[2];
	struct vt_pair p;
	struct vt_wr w;
	uint32_t bytes;

	for (uint32_t seed = 1; seed < 6; seed++) {
		uint8_t n = (uint8_t)seed;

		vt_pair_open(&p, &opt);
		mr[0] = mr[1] = p.a.mr;
		bytes = cut(&p.a, mr, to, 16, seed);
		for (uint32_t i = 0; i < bytes; i++)
			p.b.buf[i] = n += 7;
		vt_wr(&w, IBV_WR_RDMA_READ, &p.a, &p.b, 0);
		w.wr.sg_list = to;
		w.wr.num_sge = 16;
		assert_int_equal(ibv_post_send(p.a.qp, &w.wr, &bad), 0);
		vt_expect(p.a.cq, 1, IBV_WC_SUCCESS);
		check_pieces(to, 16, seed, bytes);
		vt_pair_close(&p);
	}
}

/* No pieces at all is a message of no octets. */
vt_pairs_test(a_message_of_no_pieces, t, 0, VT_TYPES, .type = vt_types[t])
{
	struct ibv_send_wr *bad;
	struct vt_wr w;

	vt_recv(&p->b, 7);
	vt_wr(&w, IBV_WR_SEND_WITH_IMM, &p->a, &p->b, 0);
	w.wr.num_sge = 0;
	w.wr.sg_list = NULL;
	w.wr.imm_data = 99;
	assert_int_equal(ibv_post_send(p->a.qp, &w.wr, &bad), 0);
	assert_int_equal(vt_expect(p->b.cq, 7, IBV_WC_SUCCESS).imm_data, 99);
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
}

/* --- atomics --- */

static uint64_t *word(const struct vt_end *end)
{
	return (uint64_t *)(void *)end->buf;
}

vt_pair_test(atomics_do_what_they_say)
{
	struct vt_wr w;

	*word(&p->b) = 40;
	vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 8);
	w.wr.wr.atomic.compare_add = 2;
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->a.cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(*word(&p->a), 40);
	assert_int_equal(*word(&p->b), 42);
	w.wr.wr.atomic.compare_add = UINT64_MAX; /* wraps */
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(*word(&p->b), 41);
	vt_wr(&w, IBV_WR_ATOMIC_CMP_AND_SWP, &p->a, &p->b, 8);
	w.wr.wr.atomic.compare_add = 40; /* is not */
	w.wr.wr.atomic.swap = 7;
	vt_post(&p->a, &w);
	assert_int_equal(vt_expect(p->a.cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*word(&p->a), 41);
	assert_int_equal(*word(&p->b), 41);
	w.wr.wr.atomic.compare_add = 41;
	vt_done(&p->a, &w, IBV_WC_SUCCESS);
	assert_int_equal(*word(&p->a), 41);
	assert_int_equal(*word(&p->b), 7);
	assert_true(vt_is_octet(p->b.buf + 8, 64, 0));
}

/* More at once than there are places for: they wait, each is executed once. */
vt_pair_test(many_atomics_add_up)
{
	struct vt_wr w;

	for (int n = 0; n < 20; n++) {
		vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, 8);
		w.wr.wr.atomic.compare_add = 1;
		for (uint64_t i = 0; i < 50; i++) {
			w.wr.wr_id = i;
			vt_post(&p->a, &w);
		}
		for (uint64_t i = 0; i < 50; i++)
			vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(*word(&p->b), 1000);
	assert_int_equal(*word(&p->a), 999);
}

/* --- order --- */

/* Operations of all kinds in one queue complete in the order they were posted. */
vt_pair_test(everything_completes_in_order, .bytes = 1 << 20)
{
	static const enum ibv_wr_opcode mixed[] = {
		IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct vt_wr w;

	for (int round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 56; i++) {
			enum ibv_wr_opcode op = mixed[i % 7];
			bool atomic = i % 7 == 3 || i % 7 == 6;

			if (op == IBV_WR_SEND || op == IBV_WR_RDMA_WRITE_WITH_IMM)
				vt_recv(&p->b, i);
			vt_wr(&w, op, &p->a, &p->b, atomic ? 8 : (uint32_t)(i * 997 % 9000));
			w.wr.wr_id = i;
			if (i % 5 == 4)
				w.wr.send_flags |= IBV_SEND_FENCE;
			vt_post(&p->a, &w);
		}
		for (uint64_t i = 0; i < 56; i++) {
			vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
			if (i % 7 == 1 || i % 7 == 4)
				vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
		}
	}
}

/* With a fence, a READ before it has brought its data before the SEND behind it takes them on. */
vt_pair_test(a_fence_waits_for_reads, .bytes = 256 << 10)
{
	struct vt_wr w;

	for (unsigned round = 0; round < 20; round++) {
		vt_fill(p->b.buf, 100000, round);
		assert_int_equal(vt_recv_at(&p->b, 7, 128 << 10, 100000), 0);
		vt_start(IBV_WR_RDMA_READ, &p->a, &p->b, 100000);
		vt_wr(&w, IBV_WR_SEND, &p->a, &p->b, 100000);
		w.wr.wr_id = 2;
		w.wr.send_flags |= IBV_SEND_FENCE;
		vt_post(&p->a, &w);
		vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, 2, IBV_WC_SUCCESS);
		vt_expect(p->b.cq, 7, IBV_WC_SUCCESS);
		assert_true(vt_is_filled(p->b.buf + (128 << 10), 100000, round));
	}
}

/* Unsignaled requests come back with the next signaled one, and their places with them. */
vt_pair_test(unsignaled_requests_give_their_places_back, .send_wr = 16)
{
	struct vt_wr w;

	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 100);
	for (uint64_t i = 0; i < 1600; i++) {
		w.wr.wr_id = i;
		w.wr.send_flags = i % 16 == 15 ? IBV_SEND_SIGNALED : 0;
		vt_post(&p->a, &w);
		if (i % 16 == 15)
			vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
	vt_expect_none(p->a.cq);
}

/* Both ends send at once, more than the window holds. */
vt_pair_test(both_directions_at_once, .bytes = 2 << 20)
{
	struct vt_wr w;

	vt_fill(p->a.buf, 1 << 20, 1);
	vt_fill(p->b.buf, 1 << 20, 2);
	for (uint64_t i = 0; i < 16; i++) {
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, 1 << 20);
		w.wr.wr.rdma.remote_addr += 1 << 20;
		w.wr.wr_id = i;
		vt_post(&p->a, &w);
		vt_wr(&w, IBV_WR_RDMA_WRITE, &p->b, &p->a, 1 << 20);
		w.wr.wr.rdma.remote_addr += 1 << 20;
		w.wr.wr_id = i;
		vt_post(&p->b, &w);
	}
	for (uint64_t i = 0; i < 16; i++) {
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
	}
	assert_true(vt_is_filled(p->b.buf + (1 << 20), 1 << 20, 1));
	assert_true(vt_is_filled(p->a.buf + (1 << 20), 1 << 20, 2));
}

/* A receiver that is late: RNR NAKs, and everything arrives once and in order. */
vt_pair_test(a_late_receiver_gets_everything, .rnr_timer = 12 /* 0.64 ms */)
{
	for (uint64_t i = 0; i < 40; i++)
		vt_send(&p->a, &p->b, i);
	for (uint64_t i = 0; i < 40; i++) {
		if (i % 8 == 0)
			vt_sleep_ms(3);
		vt_recv(&p->b, 100 + i);
		vt_expect(p->b.cq, 100 + i, IBV_WC_SUCCESS);
	}
	for (uint64_t i = 0; i < 40; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
}

/* Nobody polls, nobody calls: one-sided operations are answered all the same. */
vt_pair_test(a_target_that_sleeps_is_written_to)
{
	vt_fill(p->a.buf, 4096, 3);
	vt_start(IBV_WR_RDMA_WRITE, &p->a, &p->b, 4096);
	for (int i = 0; i < VT_WAIT_MS && !vt_is_filled(p->b.buf, 4096, 3); i++)
		vt_sleep_ms(1);
	assert_true(vt_is_filled(p->b.buf, 4096, 3));
	vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
}

static struct {
	uint8_t *at;
	size_t bytes;
	atomic_bool over;
} scribble;

static void *scribble_run(void *arg)
{
	for (unsigned i = 0; !atomic_load(&scribble.over); i++)
		memset(scribble.at, (int)i, scribble.bytes);
	return arg;
}

/* What is read is old or new, octet by octet; but it is read. */
vt_pair_test(memory_that_always_changes_is_read_and_written_from, .mtu = IBV_MTU_4096,
	     .retry_cnt = 1)
{
	enum { ROUNDS = 50, PAGE = 4096 };
	static const enum ibv_wr_opcode ops_both[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE };
	pthread_t thread;

	for (unsigned i = 0; i < 2; i++) {
		scribble.at = i ? p->a.buf : p->b.buf;
		scribble.bytes = PAGE;
		atomic_store(&scribble.over, false);
		assert_int_equal(pthread_create(&thread, NULL, scribble_run, NULL), 0);
		for (unsigned round = 0; round < ROUNDS; round++) {
			vt_do(ops_both[i], &p->a, &p->b, PAGE, IBV_WC_SUCCESS);
		}
		atomic_store(&scribble.over, true);
		pthread_join(thread, NULL);
	}
}

/* What the thread below found: it must not assert. */
static const char *one_of_each(struct vt_pair *p)
{
	static const enum ibv_wr_opcode each[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						   IBV_WR_RDMA_READ };
	struct ibv_wc wc;
	struct vt_wr w;

	for (unsigned i = 0; i < VT_COUNT(each); i++) {
		vt_wr(&w, each[i], &p->a, &p->b, (uint32_t)p->a.bytes);
		if (vt_try(&p->a, &w))
			return "a request was refused";
		if (!vt_poll_ms(p->a.cq, &wc, VT_WAIT_MS) || wc.status != IBV_WC_SUCCESS)
			return "a request did not complete";
	}
	if (!vt_poll_ms(p->b.cq, &wc, VT_WAIT_MS) || wc.byte_len != p->b.bytes)
		return "a receive did not complete";
	return NULL;
}

static void *small_stack_run(void *arg)
{
	return (void *)one_of_each(arg);
}

/* The least that a thread can have, and a page for the test: it does the work of both ends. */
vt_test(a_thread_may_have_a_small_stack)
{
	const struct vt_options opt = { .bytes = 100000 };
	pthread_attr_t attr;
	pthread_t thread;
	struct vt_pair p;
	void *failed;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer needs a larger stack"); /* they need more for themselves */
#endif
	vt_pair_open(&p, &opt);
	vt_recv(&p.b, 1);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN) +
								  4096), 0);
	assert_int_equal(pthread_create(&thread, &attr, small_stack_run, &p), 0);
	pthread_join(thread, &failed);
	if (failed)
		fail_msg("%s", (const char *)failed);
	pthread_attr_destroy(&attr);
	vt_pair_close(&p);
}
