/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each limit that a device may have lowered: ibv_query_device reports it, one object too many is
 * ENOMEM, one that is too large EINVAL, and a refused call leaves room for the next one.
 */
#include <errno.h>
#include <infiniband/verbs.h>

#include "group.h"
#include "tables.h"

enum { FEW, NONE, DEVICES, MOST = 8, OBJECTS = 4, REGION_BYTES = 8192 };

static const char table[] = "[device few]\n"
			    "addresses = 127.0.0.1\n"
			    "max_qp = 4\n"
			    "max_qp_wr = 8\n"
			    "max_sge = 2\n"
			    "max_sge_rd = 1\n"
			    "max_inline_data = 16\n"
			    "max_cq = 3\n"
			    "max_cqe = 16\n"
			    "max_mr = 3\n"
			    "max_mr_size = 8192\n"
			    "max_mw = 2\n"
			    "max_pd = 3\n"
			    "max_srq = 2\n"
			    "max_srq_wr = 8\n"
			    "max_srq_sge = 1\n"
			    "max_ah = 2\n"
			    "max_mcast_grp = 1\n"
			    "max_mcast_qp_attach = 1\n"
			    "max_qp_rd_atom = 2\n"
			    "max_qp_init_rd_atom = 1\n"
			    "[device none]\n"
			    "addresses = ::1\n"
			    "max_inline_data = 0\n"
			    "max_mw = 0\n"
			    "max_srq = 0\n"
			    "max_mcast_grp = 0\n"
			    "max_qp_rd_atom = 0\n"
			    "max_qp_init_rd_atom = 0\n";

static struct ibv_context *devices[DEVICES];
static struct ibv_pd *pds[DEVICES];
static struct ibv_cq *cqs[DEVICES];
static uint8_t memory[2 * REGION_BYTES];

static int devices_open(void **state)
{
	int count;
	struct ibv_device **list = table_devices(table, &count);

	for (int i = 0; i < DEVICES; i++) {
		devices[i] = count == DEVICES ? ibv_open_device(list[i]) : NULL;
		if (!devices[i])
			return -1;
		pds[i] = ibv_alloc_pd(devices[i]);
		cqs[i] = ibv_create_cq(devices[i], 16, NULL, NULL, 0);
	}
	ibv_free_device_list(list);
	return 0;
}

static int devices_close(void **state)
{
	for (int i = 0; i < DEVICES; i++) {
		if (ibv_destroy_cq(cqs[i]) || ibv_dealloc_pd(pds[i]) ||
		    ibv_close_device(devices[i]))
			return -1;
	}
	return 0;
}

GROUP(devices_open, devices_close)

static struct ibv_device_attr attr_of(int device)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(devices[device], &attr), 0);
	return attr;
}

TEST(a_query_reports_them)
{
	struct ibv_device_attr few = attr_of(FEW), none = attr_of(NONE);
	const struct {
		int reported, said;
	} rows[] = {
		{ few.max_qp, 4 }, { few.max_qp_wr, 8 }, { few.max_sge, 2 }, { few.max_sge_rd, 1 },
		{ few.max_cq, 3 }, { few.max_cqe, 16 }, { few.max_mr, 3 }, { few.max_mw, 2 },
		{ few.max_pd, 3 }, { few.max_srq, 2 }, { few.max_srq_wr, 8 },
		{ few.max_srq_sge, 1 }, { few.max_ah, 2 }, { few.max_mcast_grp, 1 },
		{ few.max_mcast_qp_attach, 1 }, { few.max_total_mcast_qp_attach, 1 },
		{ few.max_qp_rd_atom, 2 }, { few.max_res_rd_atom, 8 },
		{ few.max_qp_init_rd_atom, 1 },
		{ none.max_mw, 0 }, { none.max_srq, 0 }, { none.max_mcast_grp, 0 },
		{ none.max_qp_rd_atom, 0 }, { none.max_qp_init_rd_atom, 0 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(rows[i].reported, rows[i].said);
	assert_int_equal(few.max_mr_size, REGION_BYTES);
	assert_true(none.max_qp > few.max_qp && none.max_mr_size > few.max_mr_size);
}

/* --- so many objects --- */

static struct ibv_qp *qp_make(int device, enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cqs[device], .recv_cq = cqs[device], .qp_type = type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	if (cap)
		init.cap = *cap;
	errno = 0;
	qp = ibv_create_qp(pds[device], &init);
	if (cap && qp)
		*cap = init.cap;
	return qp;
}

static void *pd_one(int device)
{
	return ibv_alloc_pd(devices[device]);
}

static int pd_end(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *cq_one(int device)
{
	return ibv_create_cq(devices[device], 1, NULL, NULL, 0);
}

static int cq_end(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *mr_one(int device)
{
	return ibv_reg_mr(pds[device], memory, 64, IBV_ACCESS_LOCAL_WRITE);
}

static int mr_end(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *mw_one(int device)
{
	return ibv_alloc_mw(pds[device], IBV_MW_TYPE_1);
}

static int mw_end(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static struct ibv_srq *srq_make(int device, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = wr, .max_sge = sge } };

	errno = 0;
	return ibv_create_srq(pds[device], &init);
}

static void *srq_one(int device)
{
	return srq_make(device, 1, 1);
}

static int srq_end(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *qp_one(int device)
{
	return qp_make(device, IBV_QPT_RC, NULL);
}

static int qp_end(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void *ah_one(int device)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	if (ibv_query_gid(devices[device], 1, 0, &attr.grh.dgid))
		return NULL;
	return ibv_create_ah(pds[device], &attr);
}

static int ah_end(void *ah)
{
	return ibv_destroy_ah(ah);
}

/* So many can be made, one more is ENOMEM, and when one has gone another takes its place. */
static void count(unsigned most, void *(*one)(int device), int (*end)(void *))
{
	void *made[MOST];

	for (unsigned i = 0; i < most; i++)
		assert_non_null(made[i] = one(FEW));
	for (unsigned again = 0; again < 2; again++) {
		errno = 0;
		assert_null(one(FEW));
		assert_int_equal(errno, ENOMEM);
		assert_int_equal(end(made[0]), 0);
		assert_non_null(made[0] = one(FEW));
	}
	for (unsigned i = 0; i < most; i++)
		assert_int_equal(end(made[i]), 0);
}

TEST(one_object_too_many)
{
	count(3 - 1, pd_one, pd_end); /* one is ours */
	count(3 - 1, cq_one, cq_end);
	count(3, mr_one, mr_end);
	count(2, mw_one, mw_end);
	count(2, srq_one, srq_end);
	count(4, qp_one, qp_end);
	count(2, ah_one, ah_end);
}

TEST(none_at_all)
{
	errno = 0;
	assert_null(mw_one(NONE));
	assert_int_equal(errno, ENOMEM);
	assert_null(srq_one(NONE));
	assert_int_equal(errno, ENOMEM);
}

/* --- how large they may be --- */

TEST(a_region_that_is_too_large)
{
	struct ibv_mr *mr = ibv_reg_mr(pds[FEW], memory, REGION_BYTES, 0);

	assert_non_null(mr);
	errno = 0;
	assert_null(ibv_reg_mr(pds[FEW], memory, REGION_BYTES + 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
					  REGION_BYTES + 1, 0), 0);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mr->length, REGION_BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(a_queue_of_completions_that_is_too_long)
{
	errno = 0;
	assert_null(ibv_create_cq(devices[FEW], 17, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_resize_cq(cqs[FEW], 17), EINVAL);
	assert_int_equal(ibv_resize_cq(cqs[FEW], 16), 0);
}

TEST(a_shared_receive_queue_that_is_too_large)
{
	struct ibv_srq_attr longer = { .max_wr = 9 };
	struct ibv_srq *srq;

	assert_null(srq_make(FEW, 9, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(srq_make(FEW, 8, 2));
	assert_int_equal(errno, EINVAL);
	assert_non_null(srq = srq_make(FEW, 8, 1));
	assert_int_equal(ibv_modify_srq(srq, &longer, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &longer), 0);
	assert_int_equal(longer.max_wr, 8);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(a_queue_pair_that_is_too_large)
{
	const struct ibv_qp_cap most = { 8, 8, 2, 2, 16 };
	struct ibv_qp_cap wrong[5], cap = most;
	struct ibv_qp *qp = qp_make(FEW, IBV_QPT_RC, &cap);

	assert_non_null(qp);
	assert_memory_equal(&cap, &most, sizeof(cap));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		wrong[i] = most;
	wrong[0].max_send_wr++;
	wrong[1].max_recv_wr++;
	wrong[2].max_send_sge++;
	wrong[3].max_recv_sge++;
	wrong[4].max_inline_data++;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_null(qp_make(FEW, IBV_QPT_RC, &wrong[i]));
		assert_int_equal(errno, EINVAL);
	}
	cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 1 };
	assert_null(qp_make(NONE, IBV_QPT_RC, &cap));
	assert_int_equal(errno, EINVAL);
}

/* --- what a connection may have outstanding --- */

static int aim(int device, struct ibv_qp *qp, uint8_t reads_served)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
		.min_rnr_timer = 1, .max_dest_rd_atomic = reads_served,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	assert_int_equal(ibv_query_gid(devices[device], 1, 0, &rtr.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							  IBV_QP_ACCESS_FLAGS), 0);
	return ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ready(struct ibv_qp *qp, uint8_t reads)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				   .rnr_retry = 7, .max_rd_atomic = reads };

	return ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC);
}

TEST(more_reads_than_are_served)
{
	struct ibv_qp *qp = qp_make(FEW, IBV_QPT_RC, NULL);

	assert_int_equal(aim(FEW, qp, 3), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(aim(FEW, qp, 2), 0);
	assert_int_equal(ready(qp, 2), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_RTR);
	assert_int_equal(ready(qp, 1), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* --- groups --- */

TEST(groups_and_their_members)
{
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 9 } };
	union ibv_gid other = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 10 } };
	struct ibv_qp *qp = qp_make(FEW, IBV_QPT_UD, NULL);
	struct ibv_qp *second = qp_make(FEW, IBV_QPT_UD, NULL);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

	assert_int_equal(ibv_modify_qp(qp, &init, mask), 0);
	assert_int_equal(ibv_modify_qp(second, &init, mask), 0);
	assert_int_equal(ibv_attach_mcast(qp, &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp, &other, 0), ENOMEM);
	assert_int_equal(ibv_attach_mcast(second, &group, 0), ENOMEM);
	assert_int_equal(ibv_detach_mcast(qp, &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(second, &other, 0), 0);
	assert_int_equal(ibv_detach_mcast(second, &other, 0), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(second), 0);
	qp = qp_make(NONE, IBV_QPT_UD, NULL);
	assert_int_equal(ibv_modify_qp(qp, &init, mask), 0);
	assert_int_equal(ibv_attach_mcast(qp, &group, 0), ENOMEM);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}
