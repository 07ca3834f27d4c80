/* SPDX-License-Identifier: BSD-2-Clause */
/* The short way of a responder through a READ's answer: it does what the long one would have. */
#include "resp_fixture.h"

#include "base/prng.h"

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(vb_prng_next(&random_state) % n);
}

/* As many as vb_resp_run() says leave one by one as it says, and to the same place. */
static uint32_t check_run(void)
{
	struct vb_resource were[RESOURCES], long_way[RESOURCES];
	struct vb_resp was = resp;
	uint32_t n = vb_resp_run(&resp);
	struct vb_pkt pkt, before = { .reth.va = 0 };
	struct vb_resp_pos to;
	bool data;

	memcpy(were, resources, sizeof(were));
	for (uint32_t i = 0; i < n; i++) {
		assert_true(vb_rc_response(&resp, &pkt, &data));
		assert_true(data);
		assert_int_equal(pkt.opcode, VB_OP_RC_READ_RESP_MIDDLE);
		assert_int_equal(pkt.reth.bytes, MTU);
		if (i) {
			assert_int_equal(pkt.reth.va, before.reth.va + MTU);
			assert_int_equal(pkt.psn, vb_psn_add(before.psn, 1));
		}
		before = pkt;
	}
	to = vb_resp_pos_get(&resp);
	memcpy(long_way, resources, sizeof(long_way));
	resp = was;
	memcpy(resources, were, sizeof(were));
	if (n)
		vb_resp_skip(&resp, n);
	assert_memory_equal(resources, long_way, sizeof(resources));
	assert_int_equal(vb_resp_pos_get(&resp).done, to.done);
	assert_int_equal(vb_resp_pos_get(&resp).fresh, to.fresh);
	return n;
}

/* New READs and atomics, and some of the READs asked for again, from within. */
static void ask(void)
{
	uint32_t bytes = below(9 * MTU);

	switch (below(4)) {
	case 0:
		request(VB_OP_RC_FETCH_ADD, resp.epsn, 0, 0);
		break;
	case 1:
		if (resp.tail && resources[(resp.tail - 1) % RESOURCES].kind == VB_K_READ_REQ) {
			struct vb_resource *last = &resources[(resp.tail - 1) % RESOURCES];
			uint32_t index = below(last->packets);
			struct vb_pkt pkt = packet(VB_OP_RC_READ_REQ, vb_psn_add(last->psn, index),
						   0, last->bytes - index * MTU);

			pkt.reth.va += (uint64_t)index * MTU;
			give(&pkt);
		}
		break;
	default:
		if (resp.tail - resp.done < RESOURCES)
			request(VB_OP_RC_READ_REQ, resp.epsn, 0, bytes);
		break;
	}
}

TEST_AFTER(a_run_is_what_would_leave_one_by_one, begin)
{
	struct vb_pkt pkt;
	uint32_t passed = 0;
	bool data;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		begin(state);
		random_state = seed;
		for (unsigned i = 0; i < 200; i++) {
			if (!below(3))
				ask();
			passed += check_run();
			for (unsigned n = below(4); n && vb_resp_owes(&resp); n--)
				vb_rc_response(&resp, &pkt, &data);
		}
	}
	assert_true(passed > 10000);
}
