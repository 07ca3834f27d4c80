/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small programs about order (docs/order.md), for tests/clients/order.sh. Each name says what
 * becomes of it:
 *
 *   luck_     it relies on what nobody promised, and fails under VERBATIM_ORDER
 *   adapter_  it relies on what adapters do and the specification does not promise: iba fails it
 *   right_    its correct twin, which never fails
 */
#include "lib.h"

#include <time.h>

enum { ROUNDS = 40, BYTES = 4096, WORD = 8, MANY = 5 };

#define RELAXED (VT_ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING)

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

static uint64_t word_at(const uint8_t *at)
{
	return __atomic_load_n((const uint64_t *)(uintptr_t)at, __ATOMIC_ACQUIRE);
}

/* Spins on memory, as programs do that want no completion. */
static void spin(const uint8_t *at, uint64_t value)
{
	uint64_t end_ms = vt_now_ms() + VT_WAIT_MS;

	while (word_at(at) != value) {
		if (vt_now_ms() > end_ms)
			fail_msg("the flag never came");
	}
}

static void expect_data(const uint8_t *from, size_t bytes, uint64_t value)
{
	for (size_t i = 0; i < bytes; i += WORD) {
		if (word_at(from + i) != value)
			fail_msg("the word at %zu is not there yet", i);
	}
}

static void fill_words(uint8_t *to, size_t bytes, uint64_t value)
{
	for (size_t i = 0; i < bytes; i += WORD)
		memcpy(to + i, &value, WORD);
}

static void post_at(struct vt_pair *p, enum ibv_wr_opcode op, size_t at, uint32_t bytes,
		    uint64_t id)
{
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, bytes);
	w.wr.wr_id = id;
	w.sge.addr += at;
	w.wr.wr.rdma.remote_addr += op == IBV_WR_SEND ? 0 : at;
	vt_post(&p->a, &w);
}

/* --- a flag and data in one message --- */

static void flag_in_one(struct vt_pair *p, enum ibv_wr_opcode op, size_t flag_at)
{
	bool read = op == IBV_WR_RDMA_READ;
	uint8_t *from = read ? p->b.buf : p->a.buf, *to = read ? p->a.buf : p->b.buf;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fill_words(from, BYTES, i);
		if (op == IBV_WR_SEND)
			vt_recv(&p->b, i);
		post_at(p, op, 0, BYTES, i);
		spin(to + flag_at, i);
		expect_data(to, BYTES, i);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		if (op == IBV_WR_SEND)
			vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
	}
}

vt_pair_test(luck_the_flag_is_ahead_of_the_data, .timeout = 18)
{
	flag_in_one(p, IBV_WR_RDMA_WRITE, 0);
}

vt_pair_test(adapter_the_flag_is_behind_the_data, .timeout = 18)
{
	flag_in_one(p, IBV_WR_RDMA_WRITE, BYTES - WORD);
}

vt_pair_test(luck_the_flag_is_behind_relaxed_data, .timeout = 18, .mr_access = RELAXED)
{
	flag_in_one(p, IBV_WR_RDMA_WRITE, BYTES - WORD);
}

vt_pair_test(luck_a_read_is_done_with_its_last_word, .timeout = 18, .mr_access = RELAXED)
{
	flag_in_one(p, IBV_WR_RDMA_READ, BYTES - WORD);
}

vt_pair_test(luck_a_receive_is_done_with_its_last_word, .timeout = 18, .mr_access = RELAXED)
{
	flag_in_one(p, IBV_WR_SEND, BYTES - WORD);
}

static void completed(struct vt_pair *p, enum ibv_wr_opcode op)
{
	bool read = op == IBV_WR_RDMA_READ;
	uint8_t *from = read ? p->b.buf : p->a.buf, *to = read ? p->a.buf : p->b.buf;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fill_words(from, BYTES, i);
		if (!read)
			vt_recv(&p->b, i);
		post_at(p, op, 0, BYTES, i);
		vt_expect(read ? p->a.cq : p->b.cq, i, IBV_WC_SUCCESS);
		expect_data(to, BYTES, i);
		if (!read)
			vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
}

vt_pair_test(right_a_write_is_done_with_its_immediate_data, .timeout = 18, .mr_access = RELAXED)
{
	completed(p, IBV_WR_RDMA_WRITE_WITH_IMM);
}

vt_pair_test(right_a_read_is_done_with_its_completion, .timeout = 18, .mr_access = RELAXED)
{
	completed(p, IBV_WR_RDMA_READ);
}

vt_pair_test(right_a_receive_is_done_with_its_completion, .timeout = 18, .mr_access = RELAXED)
{
	completed(p, IBV_WR_SEND);
}

/* --- a flag in a message of its own --- */

static void flag_in_second(struct vt_pair *p)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fill_words(p->a.buf, BYTES + WORD, i);
		post_at(p, IBV_WR_RDMA_WRITE, 0, BYTES, i);
		post_at(p, IBV_WR_RDMA_WRITE, BYTES, WORD, i);
		spin(p->b.buf + BYTES, i);
		expect_data(p->b.buf, BYTES, i);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
}

vt_pair_test(luck_a_second_relaxed_write_has_the_flag, .timeout = 18, .mr_access = RELAXED)
{
	flag_in_second(p);
}

vt_pair_test(adapter_a_second_write_has_the_flag, .timeout = 18)
{
	flag_in_second(p);
}

vt_pair_test(right_a_send_tells_of_the_write, .timeout = 18, .mr_access = RELAXED)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fill_words(p->a.buf, BYTES, i);
		assert_int_equal(vt_recv_at(&p->b, i, BYTES, WORD), 0);
		post_at(p, IBV_WR_RDMA_WRITE, 0, BYTES, i);
		post_at(p, IBV_WR_SEND, 0, WORD, i);
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
		expect_data(p->b.buf, BYTES, i);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
}

vt_pair_test(right_an_atomic_tells_of_the_write, .timeout = 18, .mr_access = RELAXED)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		struct vt_wr w;

		fill_words(p->a.buf, BYTES, i);
		post_at(p, IBV_WR_RDMA_WRITE, 0, BYTES, i);
		vt_wr(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, &p->a, &p->b, WORD);
		w.wr.wr_id = i;
		w.sge.addr += 2 * BYTES;
		w.wr.wr.atomic.remote_addr += BYTES;
		w.wr.wr.atomic.compare_add = 1;
		if (i == 1)
			memset(p->b.buf + BYTES, 0, WORD);
		vt_post(&p->a, &w);
		spin(p->b.buf + BYTES, i);
		expect_data(p->b.buf, BYTES, i);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
}

vt_pair_test(right_a_later_read_sees_the_write, .timeout = 18, .mr_access = RELAXED)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		struct vt_wr w;

		fill_words(p->a.buf, BYTES, i);
		post_at(p, IBV_WR_RDMA_WRITE, 0, BYTES, i);
		vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, BYTES);
		w.wr.wr_id = i;
		w.sge.addr += BYTES;
		vt_post(&p->a, &w);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		expect_data(p->a.buf + BYTES, BYTES, i);
	}
}

/*
 * What a READ brings, though a WRITE to the same place was posted behind it (IBA 9.5, fences). One
 * call posts all, so that they come together.
 */
static void read_before_write(struct vt_pair *p, unsigned flags)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		struct vt_wr w[3];

		fill_words(p->b.buf, BYTES, 2 * i);
		fill_words(p->a.buf + BYTES, BYTES, 2 * i + 1);
		vt_wr(&w[0], IBV_WR_RDMA_READ, &p->a, &p->b, BYTES);
		vt_wr(&w[1], IBV_WR_RDMA_WRITE, &p->a, &p->b, BYTES);
		w[1].wr.send_flags |= flags;
		/* Another one says that the WRITE is in place, before that is filled again. */
		vt_wr(&w[2], IBV_WR_RDMA_READ, &p->a, &p->b, WORD);
		for (unsigned k = 0; k < 3; k++) {
			w[k].wr.wr_id = k;
			w[k].sge.addr += k * BYTES;
			w[k].wr.next = k < 2 ? &w[k + 1].wr : NULL;
		}
		vt_post(&p->a, w);
		for (unsigned k = 0; k < 3; k++)
			vt_expect(p->a.cq, k, IBV_WC_SUCCESS);
		expect_data(p->a.buf, BYTES, 2 * i);
	}
}

vt_pair_test(luck_a_read_is_ahead_of_a_later_write, .timeout = 18)
{
	read_before_write(p, 0);
}

vt_pair_test(right_a_fence_keeps_a_later_write_back, .timeout = 18)
{
	read_before_write(p, IBV_SEND_FENCE);
}

/* What overlaps stays in order. */
vt_pair_test(adapter_the_later_write_wins, .timeout = 18)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		fill_words(p->a.buf, BYTES, 2 * i);
		fill_words(p->a.buf + BYTES, BYTES, 2 * i + 1);
		for (unsigned k = 0; k < 2; k++) {
			struct vt_wr w;

			vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, BYTES);
			w.wr.wr_id = k;
			w.sge.addr += k * BYTES;
			vt_post(&p->a, &w);
		}
		vt_expect(p->a.cq, 0, IBV_WC_SUCCESS);
		vt_expect(p->a.cq, 1, IBV_WC_SUCCESS);
		pause_us(300);
		expect_data(p->b.buf, BYTES, 2 * i + 1);
	}
}

/* --- several queue pairs --- */

static struct ibv_cq *common_cq;
static struct ibv_srq *common_srq;

static struct ibv_qp *make_common(struct ibv_qp_init_attr *attr)
{
	attr->recv_cq = common_cq;
	attr->srq = common_srq;
	return ibv_create_qp(vt.pd, attr);
}

struct several {
	struct vt_pair p[MANY];
};

static void several_open(struct several *s, bool srq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 64, .max_sge = 1 } };

	common_cq = vt_cq(256, NULL);
	common_srq = srq ? vt_made(ibv_create_srq(vt.pd, &attr)) : NULL;
	for (unsigned i = 0; i < MANY; i++)
		vt_pair_open(&s->p[i], &(struct vt_options){ .timeout = 18,
							     .make_qp = make_common });
}

static void several_close(struct several *s)
{
	for (unsigned i = 0; i < MANY; i++)
		vt_pair_close(&s->p[i]);
	if (common_srq)
		assert_int_equal(ibv_destroy_srq(common_srq), 0);
	assert_int_equal(ibv_destroy_cq(common_cq), 0);
	common_cq = NULL;
	common_srq = NULL;
}

static void srq_recv(struct several *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->p[0].b.buf + WORD * id, WORD, s->p[0].b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(common_srq, &wr, &bad), 0);
}

/* Sends from each in turn; order[i]: whose SEND the i-th completion is of, told by its QP. */
static void send_each(struct several *s, struct ibv_wc wc[MANY], unsigned order[MANY])
{
	for (unsigned i = 0; i < MANY; i++) {
		if (common_srq)
			srq_recv(s, i);
		else
			vt_recv(&s->p[i].b, i);
	}
	for (unsigned i = 0; i < MANY; i++)
		vt_send(&s->p[i].a, &s->p[i].b, i);
	pause_us(500);
	for (unsigned i = 0; i < MANY; i++) {
		if (!vt_poll_ms(common_cq, &wc[i], VT_WAIT_MS))
			fail_msg("a completion is missing");
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		for (unsigned k = 0; k < MANY; k++) {
			if (s->p[k].b.qp->qp_num == wc[i].qp_num)
				order[i] = k;
		}
	}
	for (unsigned i = 0; i < MANY; i++)
		vt_expect(s->p[i].a.cq, i, IBV_WC_SUCCESS);
}

static void each_round(struct several *s, bool by_order, bool by_wr_id)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned order[MANY], seen = 0;
		struct ibv_wc wc[MANY];

		send_each(s, wc, order);
		for (unsigned i = 0; i < MANY; i++) {
			if (by_order && order[i] != i)
				fail_msg("completion %u is of QP %u", i, order[i]);
			if (by_wr_id && wc[i].wr_id != order[i])
				fail_msg("QP %u took receive %u", order[i], (unsigned)wc[i].wr_id);
			seen |= 1u << order[i];
		}
		assert_int_equal(seen, (1u << MANY) - 1);
	}
}

vt_test(luck_who_sent_first_completes_first)
{
	struct several s;

	several_open(&s, false);
	each_round(&s, true, false);
	several_close(&s);
}

vt_test(right_who_completes_is_told_by_its_number)
{
	struct several s;

	several_open(&s, false);
	each_round(&s, false, true);
	several_close(&s);
}

vt_test(luck_who_sent_first_takes_the_first_receive)
{
	struct several s;

	several_open(&s, true);
	each_round(&s, false, true);
	several_close(&s);
}

vt_test(right_anybody_takes_any_receive)
{
	struct several s;

	several_open(&s, true);
	each_round(&s, false, false);
	several_close(&s);
}

/* --- both queues of a QP, datagrams, events --- */

static void answer(struct vt_pair *p, struct ibv_wc wc[2])
{
	vt_recv(&p->a, 2);
	vt_recv(&p->b, 3);
	vt_send(&p->a, &p->b, 1);
	vt_expect(p->b.cq, 3, IBV_WC_SUCCESS);
	vt_send(&p->b, &p->a, 4);
	vt_expect(p->b.cq, 4, IBV_WC_SUCCESS);
	pause_us(300);
	for (unsigned i = 0; i < 2; i++) {
		if (!vt_poll_ms(p->a.cq, &wc[i], VT_WAIT_MS))
			fail_msg("a completion is missing");
	}
}

vt_pair_test(luck_a_send_completes_before_its_answer_comes, .timeout = 18)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc[2];

		answer(p, wc);
		assert_int_equal(wc[0].wr_id, 1);
	}
}

vt_pair_test(right_a_send_completes_and_its_answer_comes, .timeout = 18)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc[2];

		answer(p, wc);
		assert_int_equal(wc[0].wr_id + wc[1].wr_id, 3);
	}
}

/* The i-th datagram has the number i in it. Returns how many came out of order. */
static unsigned datagrams(struct vt_pair *p)
{
	unsigned wrong = 0, seen = 0;

	for (uint64_t i = 0; i < MANY; i++) {
		assert_int_equal(vt_recv_at(&p->b, i, 64 * i, 64), 0);
		memcpy(p->a.buf + 64 * i, &i, WORD);
	}
	for (unsigned i = 0; i < MANY; i++)
		post_at(p, IBV_WR_SEND, 64 * i, WORD, i);
	for (unsigned i = 0; i < MANY; i++) {
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
		wrong += word_at(p->b.buf + 64 * i + 40) != i;
		seen |= 1u << word_at(p->b.buf + 64 * i + 40);
	}
	assert_int_equal(seen, (1u << MANY) - 1);
	return wrong;
}

vt_pair_test(luck_datagrams_come_in_order, .type = IBV_QPT_UD)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_int_equal(datagrams(p), 0);
}

vt_pair_test(right_datagrams_are_told_by_a_number, .type = IBV_QPT_UD)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		datagrams(p);
}

static void events(bool at_once)
{
	struct ibv_comp_channel *channel = vt_made(ibv_create_comp_channel(vt.ctx));
	struct vt_pair pair, *p = &pair;

	vt_pair_open(p, &(struct vt_options){ .timeout = 18, .channel = channel });
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_int_equal(ibv_req_notify_cq(p->b.cq, 0), 0);
		vt_recv(&p->b, i);
		vt_send(&p->a, &p->b, i);
		vt_expect(p->b.cq, i, IBV_WC_SUCCESS);
		if (at_once && !vt_readable(channel->fd, 0))
			fail_msg("the completion is here, and no event");
		vt_take_event(channel, p->b.cq);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
	vt_pair_close(p);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

vt_test(luck_an_event_is_there_with_its_completion)
{
	events(true);
}

vt_test(right_an_event_is_waited_for)
{
	events(false);
}

int main(void)
{
	return vt_main();
}
