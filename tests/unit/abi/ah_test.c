/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles, from attributes and from what was received (ibv_create_ah_from_wc(3)). */
#include <errno.h>

#include "verbs.h"

enum { QKEY = 0x11111111, GRH_BYTES = 40, DATA_OFFSET = 1024 };

static struct ibv_qp *qp[2];

static struct ibv_qp *ud_qp(void)
{
	struct ibv_qp *ud = verbs_qp(&v, IBV_QPT_UD);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	assert_int_equal(ibv_modify_qp(ud, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_QKEY),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(ud, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return ud;
}

static int setup(void **state)
{
	verbs_begin(&v);
	qp[0] = ud_qp();
	qp[1] = ud_qp();
	return 0;
}

static int teardown(void **state)
{
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	verbs_end(&v);
	return 0;
}

#define AH_TEST(name) TEST_BETWEEN(name, setup, teardown)

static struct ibv_ah_attr attr_to(uint8_t gid_index)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	assert_int_equal(ibv_query_gid(v.context, 1, gid_index, &attr.grh.dgid), 0);
	attr.grh.sgid_index = gid_index;
	attr.grh.hop_limit = 64;
	attr.grh.traffic_class = 0x28;
	return attr;
}

/* From qp[from] to the other; the completion of the receive. */
static struct ibv_wc send_to(struct ibv_ah *ah, int from, const char *text)
{
	struct ibv_sge sge = { (uintptr_t)v.buffer, 8, v.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qp[!from]->qp_num, .remote_qkey = QKEY },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc, received = { .wr_id = 0 };

	memcpy(v.buffer, text, 8);
	verbs_post_recv(&v, qp[!from], 2, DATA_OFFSET, 128);
	assert_int_equal(ibv_post_send(qp[from], &wr, &bad), 0);
	for (int i = 0; i < 2; i++) {
		wc = verbs_wait(v.cq, IBV_WC_SUCCESS);
		if (wc.wr_id == 2)
			received = wc;
	}
	assert_int_equal(received.byte_len, GRH_BYTES + 8);
	assert_memory_equal(v.buffer + DATA_OFFSET + GRH_BYTES, text, 8);
	return received;
}

static void check_answer(uint8_t gid_index)
{
	struct ibv_ah_attr attr = attr_to(gid_index), answer;
	struct ibv_ah *ah = ibv_create_ah(v.pd, &attr), *back;
	struct ibv_grh *grh = (struct ibv_grh *)(v.buffer + DATA_OFFSET);
	struct ibv_wc wc;

	assert_non_null(ah);
	wc = send_to(ah, 0, "question");
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_int_equal(wc.src_qp, qp[0]->qp_num);
	assert_int_equal(ibv_init_ah_from_wc(v.context, 1, &wc, grh, &answer), 0);
	assert_true(answer.is_global);
	assert_memory_equal(&answer.grh.dgid, &attr.grh.dgid, sizeof(union ibv_gid));
	assert_int_equal(answer.grh.sgid_index, gid_index);
	assert_int_equal(answer.grh.traffic_class, 0x28);
	assert_int_equal(answer.port_num, 1);
	back = ibv_create_ah_from_wc(v.pd, &wc, grh, 1);
	assert_non_null(back);
	send_to(back, 1, "answer!!");
	assert_int_equal(ibv_destroy_ah(back), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

AH_TEST(an_ipv4_message_can_be_answered)
{
	check_answer(v.gid_index);
}

AH_TEST(an_ipv6_message_can_be_answered)
{
	static const union ibv_gid loopback = { .raw = { [15] = 1 } };
	union ibv_gid gid;

	for (int i = 0; ibv_query_gid(v.context, 1, i, &gid) == 0; i++) {
		if (memcmp(&gid, &loopback, sizeof(gid)) == 0) {
			check_answer(i);
			return;
		}
	}
	SKIP("lo has no IPv6 address");
}

AH_TEST(a_header_that_is_none_fails)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .src_qp = 1 };
	struct ibv_ah_attr attr = { .sl = 7 };
	struct ibv_grh grh;

	memset(&grh, 0xff, sizeof(grh));
	assert_int_equal(ibv_init_ah_from_wc(v.context, 1, &wc, &grh, &attr), -1);
	assert_int_equal(attr.sl, 7);
	assert_null(ibv_create_ah_from_wc(v.pd, &wc, &grh, 1));
}

/* Without a GRH there is no address on Ethernet, so the attributes make no address handle. */
AH_TEST(without_a_header_there_is_no_handle)
{
	struct ibv_wc wc = { .slid = 3, .sl = 2 };
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_init_ah_from_wc(v.context, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.dlid, 3);
	assert_int_equal(attr.sl, 2);
	assert_int_equal(attr.is_global, 0);
	errno = 0;
	assert_null(ibv_create_ah(v.pd, &attr));
	assert_int_equal(errno, EINVAL);
}

AH_TEST(groups_are_of_their_kind)
{
	static const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };
	static const union ibv_gid group4 = { .raw = { [10] = 0xff, 0xff, 224, 1, 2, 3 } };
	struct ibv_qp *rc = verbs_qp(&v, IBV_QPT_RC);

	assert_int_equal(ibv_attach_mcast(qp[0], &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp[0], &group4, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp[0], &v.gid, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(rc, &group, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(qp[0], &group4, 0), 0);
	ibv_destroy_qp(rc);
}
