/* SPDX-License-Identifier: BSD-2-Clause */

/* Who was not told a key has to guess 32 bits; and by UC, not as fast as he likes. */
#include "pair_fixture.h"

enum { DEVICES = 64, REGIONS = 16, KEYS = DEVICES * REGIONS };

static uint32_t keys[KEYS];

/* Of devices that did the same one after the other, from seeds that follow one another. */
static void draw_keys(void)
{
	struct vb_mr *mr[REGIONS];

	for (unsigned d = 0; d < DEVICES; d++) {
		struct side s = { .slot = SLOT_FIRST };

		side_open(&s, d + 1, 5000);
		for (unsigned i = 0; i < REGIONS; i++) {
			assert_int_equal(vb_mr_reg(s.pd, side[0].mem, 64, 0, 0, &mr[i]), 0);
			assert_int_equal(mr[i]->ibv.lkey, mr[i]->ibv.rkey);
			keys[d * REGIONS + i] = mr[i]->ibv.rkey;
		}
		for (unsigned i = 0; i < REGIONS; i++)
			assert_int_equal(vb_mr_dereg(mr[i]), 0);
		side_close(&s);
	}
}

LANES(every_bit_is_as_often_set_as_not)
{
	draw_keys();
	for (unsigned bit = 0; bit < 32; bit++) {
		unsigned set = 0;

		for (unsigned i = 0; i < KEYS; i++)
			set += keys[i] >> bit & 1;
		/* Six standard deviations of 1024 throws. */
		assert_in_range(set, KEYS / 2 - 96, KEYS / 2 + 96);
	}
}

/* Of 1024 that are drawn, 8 lie in a given hundred and twenty-eighth part. */
LANES(no_place_is_likelier_than_another)
{
	unsigned parts[128] = { 0 };

	draw_keys();
	for (unsigned i = 0; i < KEYS; i++)
		parts[vb_key_place(keys[i]) / (VB_KEYS / 128)]++;
	for (unsigned i = 0; i < 128; i++)
		assert_in_range(parts[i], 0, 24);
}

/* Neither what the device told before, nor what another told, says anything about the next. */
LANES(a_key_tells_nothing_about_the_next)
{
	unsigned near = 0, same = 0;

	draw_keys();
	for (unsigned i = 1; i < KEYS; i++) {
		uint32_t between = vb_key_place(keys[i]) - vb_key_place(keys[i - 1]);

		near += between + 64 <= 128;
		same += (uint8_t)keys[i] == (uint8_t)keys[i - 1];
		assert_int_not_equal(keys[i], keys[i - 1]);
	}
	/* Expected: 1 and 4. */
	assert_in_range(near, 0, 8);
	assert_in_range(same, 0, 16);
}

/* --- by UC, where a wrong key costs nothing --- */

static int guess_begin(void **state)
{
	lanes_begin(state);
	pair_make(IBV_QPT_UC);
	memset(side[0].mem, 0xff, 8);
	return 0;
}

static int guess_end(void **state)
{
	fake_ns_hook = NULL;
	pair_drop();
	return lanes_end(state);
}

#define GUESS(name) TEST_BETWEEN(name, guess_begin, guess_end)

/* One octet is written; true: it has come. */
static bool try_key(uint32_t key)
{
	struct ibv_sge sge = sge_of(&side[0], 0, 1);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	bool came;

	wr.wr.rdma.remote_addr = (uintptr_t)side[1].mem;
	wr.wr.rdma.rkey = key;
	assert_int_equal(vb_qp_post_send(a, &wr, &bad), 0);
	vb_nic_lanes_scan(side[1].nic);
	assert_wc(side[0].cq, 0, IBV_WC_SUCCESS);
	came = side[1].mem[0] != 0;
	side[1].mem[0] = 0;
	return came;
}

static void patience(void)
{
	fake_ns += VB_BRAKE_NS;
}

/* The places that the first regions had when they were counted, with all that was random then. */
GUESS(the_first_places_lead_nowhere)
{
	fake_ns_hook = patience;
	for (uint32_t place = 1; place <= 4; place++) {
		for (uint32_t rest = 0; rest < 1 << 15; rest++)
			assert_false(try_key(rest >> 8 << 25 | place << 8 | (rest & 0xff)));
	}
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_ACCESS), 4 << 15);
	assert_true(try_key(side[1].mr->ibv.rkey));
}

GUESS(whoever_guesses_fast_does_not_learn_that_he_was_right)
{
	uint32_t key = side[1].mr->ibv.rkey;

	for (unsigned i = 0; i <= VB_BRAKE_FREE; i++)
		assert_false(try_key(key ^ (i + 1)));
	for (unsigned i = 0; i < 100; i++)
		assert_false(try_key(key));
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_ACCESS), VB_BRAKE_FREE + 1);
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_BRAKE), 100);
	/* The one that comes when its time has come does, and for it another must wait again. */
	fake_ns += VB_BRAKE_NS;
	assert_false(try_key(key ^ 1));
	assert_false(try_key(key));
	fake_ns += VB_BRAKE_NS;
	for (unsigned i = 0; i < 100; i++)
		assert_true(try_key(key));
}

/* IBA 9.9.3: class D takes nothing from anybody else; nor does the brake. */
GUESS(what_uses_no_key_is_not_held_up)
{
	for (unsigned i = 0; i < 2 * VB_BRAKE_FREE; i++)
		assert_false(try_key(side[1].mr->ibv.rkey ^ (i + 1)));
	qp_recv(&side[1], b, 7, 4096, 64);
	assert_int_equal(qp_send(&side[0], a, 8, 64), 0);
	settle();
	assert_wc(side[0].cq, 8, IBV_WC_SUCCESS);
	assert_wc(side[1].cq, 7, IBV_WC_SUCCESS);
	assert_int_equal(vb_qp_state(b), IBV_QPS_RTS);
}

GUESS(wrong_keys_are_forgotten)
{
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < VB_BRAKE_FREE; i++)
			assert_false(try_key(side[1].mr->ibv.rkey ^ (i + 1)));
		assert_true(try_key(side[1].mr->ibv.rkey));
		fake_ns += (uint64_t)VB_BRAKE_FREE * VB_BRAKE_NS;
		assert_true(try_key(side[1].mr->ibv.rkey));
		assert_int_equal(b->special.brake_ns, 0);
	}
	assert_int_equal(stat_of(&side[1], VB_STAT_DROP_BRAKE), 0);
}
