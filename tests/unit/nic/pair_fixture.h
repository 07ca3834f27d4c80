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

#endif
