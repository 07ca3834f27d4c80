/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/*
 * Rate limits: ibv_modify_qp(3) with IBV_QP_RATE_LIMIT, ibv_modify_qp_rate_limit(3), and what
 * ibv_query_device_ex(3) says of them. What is measured here is never that something is fast: it
 * takes at least as long as the rate lets it.
 */

enum { RATE_KBPS = 50000, BYTES = 1 << 20, CHUNK = 1 << 16 };

/* What BYTES take at that rate, without the burst that may go ahead. */
#define LEAST_MS (8ull * (BYTES - CHUNK) / RATE_KBPS)

static struct ibv_packet_pacing_caps caps(void)
{
	return vt_device_ex().packet_pacing_caps;
}

static int set_rate(struct ibv_qp *qp, uint32_t kbps)
{
	struct ibv_qp_attr attr = { .rate_limit = kbps };

	return ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT);
}

static uint32_t rate_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	attr = vt_query(qp, IBV_QP_RATE_LIMIT);
	return attr.rate_limit;
}

/* BYTES of this opcode from a to b, and how long that took. */
static uint64_t send_all_ms(struct vt_pair *p, enum ibv_wr_opcode op, uint32_t chunk)
{
	uint64_t begin_ms = vt_now_ms();
	unsigned count = BYTES / chunk, posted = 0;
	struct vt_wr w;

	vt_wr(&w, op, &p->a, &p->b, chunk);
	for (unsigned done = 0; done < count; done++) {
		for (; posted < count && posted < done + 32; posted++) {
			if (op == IBV_WR_SEND)
				vt_recv(&p->b, posted);
			w.wr.wr_id = posted;
			vt_post(&p->a, &w);
		}
		vt_expect(p->a.cq, done, IBV_WC_SUCCESS);
		if (op == IBV_WR_SEND)
			vt_expect(p->b.cq, done, IBV_WC_SUCCESS);
	}
	return vt_now_ms() - begin_ms;
}

vt_test(the_device_says_what_it_can)
{
	struct ibv_packet_pacing_caps c = caps();
	struct ibv_device_attr_ex attr = vt_device_ex();
	unsigned frames;

	/* Where there is no Ethernet segment, there are no QPs on it. */
	frames = attr.raw_packet_caps ? 1 << IBV_QPT_RAW_PACKET : 0;
	assert_true(c.qp_rate_limit_min > 0 && c.qp_rate_limit_min <= RATE_KBPS);
	assert_true(c.qp_rate_limit_max >= RATE_KBPS);
	assert_int_equal(c.supported_qpts,
			 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD | frames);
}

vt_pair_test(what_it_cannot_is_refused)
{
	struct ibv_packet_pacing_caps c = caps();

	assert_int_equal(set_rate(p->a.qp, RATE_KBPS), 0);
	assert_int_equal(set_rate(p->a.qp, c.qp_rate_limit_min - 1), EINVAL);
	assert_int_equal(set_rate(p->a.qp, c.qp_rate_limit_max + 1), EINVAL);
	assert_int_equal(rate_of(p->a.qp), RATE_KBPS);
	assert_int_equal(set_rate(p->a.qp, c.qp_rate_limit_min), 0);
	assert_int_equal(rate_of(p->a.qp), c.qp_rate_limit_min);
	assert_int_equal(set_rate(p->a.qp, c.qp_rate_limit_max), 0);
	assert_int_equal(set_rate(p->a.qp, 0), 0);
	assert_int_equal(rate_of(p->a.qp), 0);
}

/* ibv_modify_qp_rate_limit(3): EINVAL for invalid arguments; 0 for the last two is a default. */
vt_test(by_a_verb_of_its_own)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = RATE_KBPS, .max_burst_sz = 20000,
					       .typical_pkt_sz = 1024 };
	struct vt_options opt = { .type = IBV_QPT_RC };
	struct vt_end end;
	struct vt_pair p;

	vt_end_open(&end, &opt);
	assert_int_equal(ibv_modify_qp_rate_limit(end.qp, &attr), EINVAL);
	vt_climb(end.qp, &opt, IBV_QPS_RTR, end.qp->qp_num);
	assert_int_equal(ibv_modify_qp_rate_limit(end.qp, &attr), EINVAL);
	vt_end_close(&end);
	vt_pair_open(&p, NULL);
	assert_int_equal(ibv_modify_qp_rate_limit(p.a.qp, &attr), 0);
	assert_int_equal(rate_of(p.a.qp), RATE_KBPS);
	assert_true(send_all_ms(&p, IBV_WR_SEND, CHUNK) >= LEAST_MS);
	attr.rate_limit = caps().qp_rate_limit_max + 1;
	assert_int_equal(ibv_modify_qp_rate_limit(p.a.qp, &attr), EINVAL);
	attr.rate_limit = RATE_KBPS;
	attr.comp_mask = 1; /* no bit of it is known */
	assert_int_equal(ibv_modify_qp_rate_limit(p.a.qp, &attr), EINVAL);
	attr.comp_mask = 0;
	attr.rate_limit = 0;
	assert_int_equal(ibv_modify_qp_rate_limit(p.a.qp, &attr), EINVAL); /* a burst of nothing */
	assert_int_equal(rate_of(p.a.qp), RATE_KBPS);
	attr.max_burst_sz = attr.typical_pkt_sz = 0;
	assert_int_equal(ibv_modify_qp_rate_limit(p.a.qp, &attr), 0);
	assert_int_equal(rate_of(p.a.qp), 0);
	vt_pair_close(&p);
}

/* "The rate_limit defines the MAX send rate this QP will send" */
vt_test(no_more_leaves_than_that)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode op;
		uint32_t chunk;
	} how[] = {
		{ IBV_QPT_RC, IBV_WR_SEND, CHUNK },	 { IBV_QPT_RC, IBV_WR_RDMA_WRITE, CHUNK },
		{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, 1000 }, { IBV_QPT_UC, IBV_WR_RDMA_WRITE, CHUNK },
		{ IBV_QPT_UD, IBV_WR_SEND, 1024 },
	};

	for (unsigned i = 0; i < VT_COUNT(how); i++) {
		struct vt_options opt = { .type = how[i].type };
		struct vt_pair p;

		vt_pair_open(&p, &opt);
		assert_int_equal(set_rate(p.a.qp, RATE_KBPS), 0);
		assert_true(send_all_ms(&p, how[i].op, how[i].chunk) >= LEAST_MS);
		vt_pair_close(&p);
	}
}

/* A limit goes with RESET, and what waits for its turn leaves when it is lifted. */
vt_pair_test(a_limit_that_is_lifted_is_none)
{
	struct vt_wr w;

	assert_int_equal(set_rate(p->a.qp, caps().qp_rate_limit_min), 0);
	vt_wr(&w, IBV_WR_RDMA_WRITE, &p->a, &p->b, CHUNK);
	for (w.wr.wr_id = 0; w.wr.wr_id < 60; w.wr.wr_id++)
		vt_post(&p->a, &w); /* half a minute */
	assert_int_equal(set_rate(p->a.qp, 0), 0);
	for (unsigned i = 0; i < 60; i++)
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	assert_int_equal(set_rate(p->a.qp, RATE_KBPS), 0);
	assert_int_equal(vt_modify(p->a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(rate_of(p->a.qp), 0);
}

/* Answers to others are not held back: who reads from a QP that is limited is not. */
vt_pair_test(only_requests_are_limited)
{
	struct vt_wr w;

	assert_int_equal(set_rate(p->b.qp, caps().qp_rate_limit_min), 0);
	vt_wr(&w, IBV_WR_RDMA_READ, &p->a, &p->b, CHUNK);
	for (unsigned i = 0; i < 60; i++) {
		w.wr.wr_id = i;
		vt_post(&p->a, &w);
		vt_expect(p->a.cq, i, IBV_WC_SUCCESS);
	}
}
