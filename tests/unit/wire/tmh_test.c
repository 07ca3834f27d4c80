/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers of tag matching, against the structures of <infiniband/tm_types.h>. */
#include <endian.h>
#include <infiniband/tm_types.h>

#include "group.h"
#include "wire/tmh.h"

struct request {
	struct ibv_tmh tmh;
	struct ibv_rvh rvh;
};

_Static_assert(sizeof(struct request) == VB_TMH_BYTES + VB_RVH_BYTES, "no gap between them");

static const struct request rendezvous = {
	.tmh = { .opcode = IBV_TMH_RNDV },
	.rvh = { .len = 0 },
};

static struct request filled(enum ibv_tmh_op op)
{
	struct request r = rendezvous;

	r.tmh.opcode = (uint8_t)op;
	r.tmh.app_ctx = htobe32(0x11223344);
	r.tmh.tag = htobe64(0x0102030405060708);
	r.rvh.va = htobe64(0xf1f2f3f4f5f6f7f8);
	r.rvh.rkey = htobe32(0xa1a2a3a4);
	r.rvh.len = htobe32(0xc1c2c3c4);
	return r;
}

TEST(test_fields)
{
	struct request r = filled(IBV_TMH_EAGER);
	struct vb_tmh tmh;

	assert_true(vb_tmh_parse(&tmh, (const uint8_t *)&r, VB_TMH_BYTES));
	assert_int_equal(tmh.op, VB_TMH_EAGER);
	assert_int_equal(tmh.app_ctx, 0x11223344);
	assert_true(tmh.tag == 0x0102030405060708);
	assert_int_equal(tmh.len, 0);
	r = filled(IBV_TMH_RNDV);
	assert_true(vb_tmh_parse(&tmh, (const uint8_t *)&r, sizeof(r)));
	assert_int_equal(tmh.op, VB_TMH_RNDV);
	assert_true(tmh.va == 0xf1f2f3f4f5f6f7f8);
	assert_int_equal(tmh.rkey, 0xa1a2a3a4);
	assert_int_equal(tmh.len, 0xc1c2c3c4);
}

/* What is too short for its headers has none; only a rendezvous has the second. */
TEST(test_lengths)
{
	for (int op = 0; op < 256; op++) {
		struct request r = filled((enum ibv_tmh_op)op);
		size_t least = op == IBV_TMH_RNDV ? sizeof(r) : sizeof(r.tmh);

		for (size_t bytes = 0; bytes <= sizeof(r); bytes++) {
			struct vb_tmh untouched, tmh;
			bool parsed;

			memset(&untouched, 0x5a, sizeof(untouched));
			tmh = untouched;
			parsed = vb_tmh_parse(&tmh, (const uint8_t *)&r, bytes);
			assert_int_equal(parsed, op <= IBV_TMH_EAGER && bytes >= least);
			if (!parsed)
				assert_memory_equal(&tmh, &untouched, sizeof(tmh));
		}
	}
}

/* Some senders put something of their own there. */
TEST(test_reserved_octets_do_not_matter)
{
	struct request r = filled(IBV_TMH_NO_TAG);
	struct vb_tmh tmh;

	memset(r.tmh.reserved, 0xff, sizeof(r.tmh.reserved));
	assert_true(vb_tmh_parse(&tmh, (const uint8_t *)&r, sizeof(r.tmh)));
	assert_int_equal(tmh.op, VB_TMH_NO_TAG);
	assert_int_equal(tmh.app_ctx, 0x11223344);
}

TEST(test_put)
{
	struct request r = filled(IBV_TMH_FIN);
	uint8_t out[VB_TMH_BYTES + 1];

	memset(out, 0xa5, sizeof(out));
	vb_tmh_put(out, VB_TMH_FIN, 0x11223344, 0x0102030405060708);
	assert_memory_equal(out, &r.tmh, VB_TMH_BYTES);
	assert_int_equal(out[VB_TMH_BYTES], 0xa5);
}
