/* SPDX-License-Identifier: BSD-2-Clause */

/* What a sample says of a QP agrees with what was done with it. */
#include <stdlib.h>

#include "nic/control/sample.h"
#include "pair_fixture.h"

static struct vb_sample_qp sample_of(const struct side *s)
{
	struct vb_sample_qp qp;
	size_t bytes;
	struct vb_sample *sample = vb_nic_sample(s->nic, 0, &bytes);

	assert_non_null(sample);
	assert_int_equal(sample->qps, 1);
	assert_int_equal(bytes, sizeof(*sample) + sizeof(qp));
	assert_int_equal(sample->taken_ns, fake_ns);
	assert_int_equal(sample->cqs, 1);
	assert_int_equal(sample->regions, 1);
	qp = sample->qp[0];
	free(sample);
	return qp;
}

static void exchange(uint32_t bytes)
{
	qp_recv(&side[1], b, 0, 0, bytes);
	assert_int_equal(qp_send(&side[0], a, 0, bytes), 0);
	settle();
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 0, IBV_WC_SUCCESS);
}

RC_PAIR(it_says_what_the_qp_is)
{
	struct vb_sample_qp qp = sample_of(&side[0]);

	assert_int_equal(qp.qpn, a->ibv.qp.qp_num);
	assert_int_equal(qp.dqpn, b->ibv.qp.qp_num);
	assert_string_equal(qp.service, "RC");
	assert_int_equal(qp.state, IBV_QPS_RTS);
	assert_int_equal(qp.way, VB_SAMPLE_RING);
	assert_memory_equal(qp.dst, own_gid, sizeof(own_gid));
	assert_int_equal(qp.done, 0);
	assert_int_equal(qp.outstanding, 0);
}

RC_PAIR(sums_are_exact_while_the_queue_still_has_the_requests)
{
	uint64_t octets = 0;

	for (uint32_t i = 0; i < 10; i++) {
		for (uint32_t k = 0; k <= i; k++) {
			exchange(100 * i + k);
			octets += 100 * i + k;
		}
		assert_int_equal(sample_of(&side[0]).done, (i + 1) * (i + 2) / 2);
		assert_int_equal(sample_of(&side[0]).octets, octets);
		assert_int_equal(sample_of(&side[1]).served, (i + 1) * (i + 2) / 2);
	}
	assert_int_equal(sample_of(&side[1]).done, 0);
	assert_int_equal(sample_of(&side[1]).octets, 0);
}

RC_PAIR(octets_of_overwritten_requests_are_estimated)
{
	uint32_t places = a->req.sq.mask + 1;

	for (uint32_t i = 0; i < 3 * places; i++)
		exchange(64);
	assert_int_equal(sample_of(&side[0]).done, 3 * places);
	assert_int_equal(sample_of(&side[0]).octets, 3 * places * 64);
}

/* All places may be taken by requests that are not carried out yet. */
RC_PAIR(octets_are_estimated_by_what_waits_if_nothing_else_is_there)
{
	uint32_t places = a->req.sq.mask + 1;

	for (uint32_t i = 0; i < places; i++) {
		qp_recv(&side[1], b, 0, 0, 64);
		assert_int_equal(qp_send(&side[0], a, 0, 64), 0);
	}
	settle();
	for (uint32_t i = 0; i < places; i++)
		assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < places; i++)
		assert_int_equal(qp_send(&side[0], a, 0, 64), 0);
	assert_int_equal(sample_of(&side[0]).outstanding, places);
	assert_int_equal(sample_of(&side[0]).done, places);
	assert_int_equal(sample_of(&side[0]).octets, places * 64);
}

RC_PAIR(what_waits_is_told_apart)
{
	struct vb_sample_qp qp;

	assert_int_equal(qp_send(&side[0], a, 1, 8), 0);
	assert_int_equal(qp_send(&side[0], a, 2, 8), 0);
	scan_all(&side[1]);
	scan_all(&side[0]);
	qp = sample_of(&side[0]);
	assert_int_equal(qp.done, 0);
	assert_int_equal(qp.outstanding, 2);
	assert_int_equal(qp.rnr_waits, 1);
	assert_int_equal(qp.rnr_seen, 1);
	assert_int_equal(sample_of(&side[1]).rnr_sent, 1);
	assert_int_equal(sample_of(&side[1]).receives, 0);
	qp_recv(&side[1], b, 1, 0, 8);
	assert_int_equal(sample_of(&side[1]).receives, 1);
}

RC_PAIR(sums_go_on_after_a_reset)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct vb_sample_qp qp;

	for (unsigned i = 0; i < 5; i++)
		exchange(10);
	assert_int_equal(sample_of(&side[0]).done, 5);
	assert_int_equal(vb_qp_modify(a, &attr, IBV_QP_STATE), 0);
	qp = sample_of(&side[0]);
	assert_int_equal(qp.done, 5);
	assert_int_equal(qp.octets, 50);
	assert_int_equal(qp.way, VB_SAMPLE_NOWHERE);
	assert_int_equal(vb_qp_modify(b, &attr, IBV_QP_STATE), 0);
	qp_connect(a, b);
	for (unsigned i = 0; i < 3; i++)
		exchange(10);
	qp = sample_of(&side[0]);
	assert_int_equal(qp.done, 8);
	assert_int_equal(qp.octets, 80);
	assert_int_equal(sample_of(&side[1]).served, 8);
}
