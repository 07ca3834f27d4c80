/* SPDX-License-Identifier: BSD-2-Clause */
/* Two devices in a process, which VERBATIM_DEVICES names; their limits and GID tables. */
#include <errno.h>
#include <infiniband/verbs.h>

#include "group.h"
#include "skip.h"
#include "tables.h"

enum { RAILS = 2, QPS = 3, MESSAGE_BYTES = 64 };

static const char table[] = "[device rail0]\n"
			    "addresses = 127.0.0.1\n"
			    "fabric = a\n"
			    "rate = 400Gbit\n"
			    "gids = v1\n"
			    "[device rail1]\n"
			    "addresses = ::1\n"
			    "fabric = b\n"
			    "uverbs = 7\n"
			    "max_qp = 3\n"
			    "max_cqe = 64\n";

struct rail {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_port_attr port;
	int gid_index;
	union ibv_gid gid;
};

static struct rail rails[RAILS];

/* The row of RoCE v2; where there is no such address, as without IPv6, the test is skipped. */
static void gid_find(struct rail *rail)
{
	struct ibv_gid_entry entry;

	for (int i = 0; i < rail->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(rail->context, 1, (uint32_t)i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		rail->gid_index = i;
		rail->gid = entry.gid;
		return;
	}
	rail->gid_index = -1;
}

static int rails_open(void **state)
{
	int count;
	struct ibv_device **list = table_devices(table, &count);

	if (count != RAILS)
		return -1;
	for (int i = 0; i < RAILS; i++) {
		rails[i].context = ibv_open_device(list[i]);
		if (!rails[i].context)
			return -1;
		rails[i].pd = ibv_alloc_pd(rails[i].context);
		rails[i].cq = ibv_create_cq(rails[i].context, 8, NULL, NULL, 0);
		if (ibv_query_port(rails[i].context, 1, &rails[i].port))
			return -1;
		gid_find(&rails[i]);
	}
	ibv_free_device_list(list);
	return 0;
}

static int rails_close(void **state)
{
	for (int i = 0; i < RAILS; i++) {
		ibv_destroy_cq(rails[i].cq);
		ibv_dealloc_pd(rails[i].pd);
		ibv_close_device(rails[i].context);
	}
	return 0;
}

GROUP(rails_open, rails_close)

static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &init);
}

/* To RTR, at itself or at another address. Returns what ibv_modify_qp says. */
static int aim(const struct rail *rail, struct ibv_qp *qp, int gid_index, const union ibv_gid *to)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = *to, .sgid_index = (uint8_t)gid_index } },
	};

	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							  IBV_QP_ACCESS_FLAGS), 0);
	return ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

TEST(each_has_its_name_and_guid)
{
	struct ibv_device *a = rails[0].context->device, *b = rails[1].context->device;
	struct ibv_device_attr attr[RAILS];

	assert_string_equal(ibv_get_device_name(a), "rail0");
	assert_string_equal(ibv_get_device_name(b), "rail1");
	assert_string_equal(a->dev_name, "uverbs0");
	assert_string_equal(b->dev_name, "uverbs7");
	assert_true(ibv_get_device_guid(a) != ibv_get_device_guid(b));
	for (int i = 0; i < RAILS; i++)
		assert_int_equal(ibv_query_device(rails[i].context, &attr[i]), 0);
	assert_true(attr[0].node_guid == ibv_get_device_guid(a));
	assert_true(attr[0].sys_image_guid == attr[1].sys_image_guid);
	assert_int_equal(attr[1].max_qp, QPS);
	assert_true(attr[0].max_qp > QPS);
	assert_int_equal(rails[0].port.active_speed, 128);
}

TEST(limits_hold_at_the_device_that_has_them)
{
	struct ibv_qp *qp[QPS];

	for (int i = 0; i < QPS; i++)
		assert_non_null(qp[i] = qp_make(rails[1].pd, rails[1].cq));
	errno = 0;
	assert_null(qp_make(rails[1].pd, rails[1].cq));
	assert_int_equal(errno, ENOMEM);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	errno = 0;
	assert_null(ibv_create_cq(rails[1].context, 65, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
}

TEST(their_objects_do_not_mix)
{
	errno = 0;
	assert_null(qp_make(rails[0].pd, rails[1].cq));
	assert_int_equal(errno, EINVAL);
}

TEST(a_row_of_roce_v1_is_shown_and_not_spoken)
{
	struct ibv_qp *qp = qp_make(rails[0].pd, rails[0].cq);
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_ex(rails[0].context, 1, 0, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V1);
	assert_int_equal(rails[0].gid_index, 1);
	assert_memory_equal(&entry.gid, &rails[0].gid, sizeof(entry.gid));
	assert_int_equal(aim(&rails[0], qp, 0, &rails[0].gid), EOPNOTSUPP);
	ibv_destroy_qp(qp);
}

TEST(another_fabric_is_out_of_reach)
{
	union ibv_gid there = { .raw = { [15] = 1 } };
	struct ibv_qp *qp = qp_make(rails[1].pd, rails[1].cq);

	if (rails[1].gid_index < 0)
		SKIP("there is no ::1");
	assert_memory_equal(&rails[1].gid, &there, sizeof(there));
	assert_int_equal(aim(&rails[1], qp, rails[1].gid_index, &rails[0].gid), ENETUNREACH);
	ibv_destroy_qp(qp);
}

static void echo(const struct rail *rail)
{
	static uint8_t memory[2 * MESSAGE_BYTES];
	struct ibv_mr *mr = ibv_reg_mr(rail->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = qp_make(rail->pd, rail->cq);
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				   .rnr_retry = 7 };
	struct ibv_sge from = { (uintptr_t)memory, MESSAGE_BYTES, mr->lkey };
	struct ibv_sge to = { (uintptr_t)memory + MESSAGE_BYTES, MESSAGE_BYTES, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_wc wc;

	memset(memory, 0, sizeof(memory));
	memset(memory, 0x5a, MESSAGE_BYTES);
	assert_int_equal(aim(rail, qp, rail->gid_index, &rail->gid), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
							 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
							 IBV_QP_MAX_QP_RD_ATOMIC), 0);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	for (int done = 0; done < 2;) {
		int got = ibv_poll_cq(rail->cq, 1, &wc);

		assert_true(got >= 0);
		assert_true(got == 0 || wc.status == IBV_WC_SUCCESS);
		done += got;
	}
	assert_memory_equal(memory, memory + MESSAGE_BYTES, MESSAGE_BYTES);
	ibv_destroy_qp(qp);
	ibv_dereg_mr(mr);
}

TEST(both_carry_messages)
{
	for (int i = 0; i < RAILS; i++) {
		if (rails[i].gid_index >= 0)
			echo(&rails[i]);
	}
}
