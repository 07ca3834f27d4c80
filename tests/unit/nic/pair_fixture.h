/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_PAIR_FIXTURE_H
#define VB_TESTS_PAIR_FIXTURE_H

/* Two QPs that know each other, a of side 0 and b of side 1. */

#include "lanes_fixture.h"

static struct vb_qp *a, *b;
static struct vb_ah *ah; /* of side 0, to this host */

static inline void pair_create(enum ibv_qp_type type)
{
	a = qp_make(&side[0], type);
	b = qp_make(&side[1], type);
}

static inline void pair_make(enum ibv_qp_type type)
{
	pair_create(type);
	qp_connect(a, b);
}

static inline void pair_drop(void)
{
	drop_qp(a);
	drop_qp(b);
}

/* Side 0's, by a; `to`: b, mostly. */
static inline int datagram_of(struct ibv_sge sge, uint64_t wr_id, uint32_t to)
{
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	wr.wr.ud.ah = &ah->ibv;
	wr.wr.ud.remote_qpn = to;
	wr.wr.ud.remote_qkey = QKEY;
	return vb_qp_post_send(a, &wr, &bad);
}

static inline int datagram(uint64_t wr_id, uint32_t bytes, uint32_t to)
{
	return datagram_of(sge_of(&side[0], 0, bytes), wr_id, to);
}

static inline void datagrams_make(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh = { .traffic_class = 0xb4, .flow_label = 0x54321 } };

	memcpy(attr.grh.dgid.raw, own_gid, VB_GID_BYTES);
	pair_make(IBV_QPT_UD);
	assert_int_equal(vb_ah_create(side[0].pd, &attr, &ah), 0);
}

static inline void datagrams_drop(void)
{
	pair_drop();
	assert_int_equal(vb_ah_destroy(ah), 0);
}

/* --- tests that have them from the beginning to the end --- */

static inline int rc_begin(void **state)
{
	lanes_begin(state);
	pair_make(IBV_QPT_RC);
	return 0;
}

static inline int uc_begin(void **state)
{
	lanes_begin(state);
	pair_make(IBV_QPT_UC);
	return 0;
}

static inline int pair_end(void **state)
{
	pair_drop();
	return lanes_end(state);
}

static inline int ud_begin(void **state)
{
	lanes_begin(state);
	datagrams_make();
	return 0;
}

static inline int ud_end(void **state)
{
	datagrams_drop();
	return lanes_end(state);
}

#define RC_PAIR(name) TEST_BETWEEN(name, rc_begin, pair_end)
#define UC_PAIR(name) TEST_BETWEEN(name, uc_begin, pair_end)
#define UD_PAIR(name) TEST_BETWEEN(name, ud_begin, ud_end)

#endif
