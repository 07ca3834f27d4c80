/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes beyond the verbs: flags of creation, numbers that are kept free, the device's name. */
#include "nic_fixture.h"

#include "nic/control/qp_dv.h"
#include "topology/persona.h"

static int create(enum ibv_qp_type type, struct vb_cq *cq, uint32_t flags, struct vb_qp **qp)
{
	const struct vb_qp_dv_attr dv = { .flags = flags };
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->ibv.cq, .recv_cq = &cq->ibv.cq, .qp_type = type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = &fix.pd->ibv,
	};

	return vb_qp_create_dv(&attr, &dv, qp);
}

#define DV_TEST(name) TEST_BETWEEN(name, begin, end)

/* mlx5dv_create_qp(3) leaves the types open; these are those where a flag means something. */
DV_TEST(a_flag_is_for_the_types_it_means_something_for)
{
	static const struct {
		uint32_t flag;
		int rc, uc, ud;
	} rows[] = {
		{ 0, 0, 0, 0 },
		{ VB_QP_SCATTER_TO_CQE_OFF, 0, 0, 0 },
		{ VB_QP_SCATTER_TO_CQE_ON, 0, 0, 0 },
		{ VB_QP_SCATTER_TO_CQE_OFF | VB_QP_SCATTER_TO_CQE_ON, EINVAL, EINVAL, EINVAL },
		{ VB_QP_PACKET_CREDITS, 0, EINVAL, EINVAL },
		{ VB_QP_TUNNEL_OFFLOADS, EINVAL, EINVAL, EINVAL },
		{ VB_QP_LOOPBACK_UC, EINVAL, EINVAL, EINVAL },
		{ VB_QP_LOOPBACK_MC, EINVAL, EINVAL, EINVAL },
		{ VB_QP_MR_INTERLEAVED, 0, EINVAL, EINVAL },
		{ VB_QP_MR_LIST, 0, EINVAL, EINVAL },
		{ VB_QP_MKEY_CONFIGURE, 0, EINVAL, EINVAL },
		{ VB_QP_MEMCPY, 0, EINVAL, EINVAL },
		{ VB_QP_RAW_WQE, EOPNOTSUPP, EINVAL, EINVAL },
		{ 1u << 31, EINVAL, EINVAL, EINVAL },
	};
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct vb_cq *cq = make_cq(4, NULL);
	struct vb_dv_caps caps;
	struct vb_qp *qp;

	vb_qp_dv_query(fix.nic, &caps);
	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		const int wanted[] = { rows[i].rc, rows[i].uc, rows[i].ud };

		for (unsigned t = 0; t < 3; t++) {
			int rc = create(types[t], cq, rows[i].flag, &qp);

			assert_int_equal(rc, wanted[t]);
			if (rc)
				continue;
			/* What can be had is what the device says that it has. */
			assert_int_equal(rows[i].flag & ~caps.flags, 0);
			drop_qp(qp);
		}
	}
	assert_false(caps.flags & VB_QP_RAW_WQE);
	drop_cq(cq);
}

DV_TEST(an_end_of_dc_is_a_driver_qp_and_no_other_is)
{
	struct vb_cq *cq = make_cq(4, NULL);
	struct vb_qp *qp;

	assert_int_equal(create(IBV_QPT_DRIVER, cq, 0, &qp), EINVAL);
	assert_int_equal(create((enum ibv_qp_type)77, cq, 0, &qp), EOPNOTSUPP);
	drop_cq(cq);
}

static int lease_none(void *arg, uint16_t *slot, uint32_t *next_index)
{
	return EAGAIN;
}

static int lease_one(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = 3;
	*next_index = 100;
	fix.nic->host.wire.lease = lease_none;
	return 0;
}

DV_TEST(reserved_numbers_are_bounded_and_come_back)
{
	static uint32_t qpn[VB_INDICES];
	uint32_t count = 0, other;

	fix.nic->host.wire.lease = lease_one;
	while (vb_nic_qpn_reserve(fix.nic, &qpn[count]) == 0)
		assert_true(++count < VB_INDICES);
	assert_int_equal(vb_nic_qpn_reserve(fix.nic, &other), EAGAIN);
	assert_int_equal(count, VB_INDICES_USED);
	assert_int_equal(vb_nic_qpn_release(fix.nic, qpn[7]), 0);
	assert_int_equal(vb_nic_qpn_release(fix.nic, qpn[7]), EINVAL);
	assert_int_equal(vb_nic_qpn_reserve(fix.nic, &other), 0);
	assert_int_equal(other, qpn[7]);
	assert_false(vb_nic_qpn_is_used(fix.nic, other));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(vb_nic_qpn_release(fix.nic, qpn[i]), 0);
}

DV_TEST(a_persona_is_a_name_and_nothing_else)
{
	struct ibv_device_attr before, after;
	struct vb_persona other;

	assert_true(vb_persona_make(&other, "connectx7"));
	vb_nic_query_device(fix.nic, &before);
	assert_int_equal(before.vendor_id, VB_VENDOR_ID);
	assert_string_equal(before.fw_ver, VB_VERSION);
	vb_nic_persona_set(fix.nic, &other);
	vb_nic_query_device(fix.nic, &after);
	assert_int_equal(after.vendor_id, 0x02c9);
	assert_int_equal(after.vendor_part_id, 4129);
	assert_string_equal(after.fw_ver, "28.0.0");
	memcpy(after.fw_ver, before.fw_ver, sizeof(after.fw_ver));
	after.vendor_id = before.vendor_id;
	after.vendor_part_id = before.vendor_part_id;
	after.hw_ver = before.hw_ver;
	assert_memory_equal(&after, &before, sizeof(after));
}

DV_TEST(both_clocks_are_told_where_there_are_two)
{
	uint64_t raw_ns, wall_ns;

	fix.raw_ns = 5;
	fix.wall_ns = 1700000000000000000u;
	assert_int_equal(vb_nic_query_times(fix.nic, &raw_ns, &wall_ns), 0);
	assert_int_equal(raw_ns, 5);
	assert_true(wall_ns == fix.wall_ns);
	fix.nic->host.stamps = NULL;
	assert_int_equal(vb_nic_query_times(fix.nic, &raw_ns, &wall_ns), EOPNOTSUPP);
}
