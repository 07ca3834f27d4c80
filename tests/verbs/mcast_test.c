/* SPDX-License-Identifier: BSD-2-Clause */
#include "mcast.h"

/*
 * ibv_attach_mcast(3), sentence by sentence: the words above a test are the manual's, and
 * SENTENCES.md lists them. What goes over the wire and between processes is in mcast_wire_test.c.
 */

/* attach: "attaches the QP qp to the multicast group having MGID gid and MLID lid" */
/* attach: "detaches the QP qp to the multicast group having MGID gid and MLID lid" */
/* attach: "returns 0 on success, or the value of errno on failure" */
mcast_test(who_is_attached_hears_the_group)
{
	static const uint32_t sizes[] = { 0, 1, 5, 256, 257, 1024 };
	struct vt_end from, member;

	member_open(&from);
	member_open(&member);
	vt_fill(from.buf, 1024, 9);
	assert_int_equal(attach(&member, 1), 0);
	for (unsigned i = 0; i < 6; i++) {
		listen_at(&member, i);
		cast(&from, 1, sizes[i]);
		expect_copy(&member, i, &from, 1, sizes[i]);
	}
	assert_int_equal(detach(&member, 1), 0);
	listen_at(&member, 0);
	cast(&from, 1, 8);
	vt_expect_none(member.cq);
	/* And again, as often as one likes. */
	assert_int_equal(attach(&member, 1), 0);
	cast(&from, 1, 8);
	expect_copy(&member, 0, &from, 1, 8);
	assert_int_equal(detach(&member, 1), 0);
	vt_end_close(&member);
	vt_end_close(&from);
}

/* attach: "Only QPs of Transport Service Type IBV_QPT_UD may be attached to multicast groups." */
mcast_test(only_ud_and_only_groups)
{
	union ibv_gid gid = group_of(1);
	struct vt_end end;

	for (int i = 0; i < 2; i++) {
		struct vt_options opt = { .type = vt_types[i] };
		struct ibv_qp_attr attr;
		int mask;

		vt_end_open(&end, &opt);
		assert_int_equal(ibv_attach_mcast(end.qp, &gid, 0), EINVAL);
		assert_int_equal(ibv_detach_mcast(end.qp, &gid, 0), EINVAL);
		/* Nor is a group somebody to be connected to. */
		vt_climb(end.qp, &opt, IBV_QPS_INIT, 0);
		mask = vt_attr(&attr, &opt, IBV_QPS_RTR, 5);
		attr.ah_attr.grh.dgid = gid;
		attr.ah_attr.grh.sgid_index = (uint8_t)source_index;
		assert_int_equal(ibv_modify_qp(end.qp, &attr, mask), EINVAL);
		vt_end_close(&end);
	}
	member_open(&end);
	assert_int_equal(ibv_attach_mcast(end.qp, &source, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(end.qp, &source, 0), EINVAL);
	memset(&gid, 0, sizeof(gid));
	assert_int_equal(ibv_attach_mcast(end.qp, &gid, 0), EINVAL);
	vt_end_close(&end);
}

mcast_test(what_is_not_attached_cannot_be_detached)
{
	struct vt_end a, b;

	member_open(&a);
	member_open(&b);
	assert_int_equal(detach(&a, 1), EINVAL);
	assert_int_equal(attach(&a, 1), 0);
	assert_int_equal(detach(&b, 1), EINVAL);
	assert_int_equal(detach(&a, 2), EINVAL);
	assert_int_equal(detach(&a, 1), 0);
	assert_int_equal(detach(&a, 1), EINVAL);
	vt_end_close(&a);
	vt_end_close(&b);
}

/*
 * attach: "If a QP is attached to the same multicast group multiple times, the QP will still
 * receive a single copy of a multicast message."
 */
mcast_test(attached_twice_it_gets_one_copy)
{
	struct vt_end from, member;

	member_open(&from);
	member_open(&member);
	for (int i = 0; i < 3; i++)
		assert_int_equal(attach(&member, 1), 0);
	listen_at(&member, 0);
	listen_at(&member, 1);
	cast(&from, 1, 8);
	expect_copy(&member, 0, &from, 1, 8);
	vt_expect_none(member.cq);
	/* Once it was enough, and so is once the other way. */
	assert_int_equal(detach(&member, 1), 0);
	cast(&from, 1, 8);
	vt_expect_none(member.cq);
	assert_int_equal(detach(&member, 1), EINVAL);
	vt_end_close(&member);
	vt_end_close(&from);
}

/*
 * attach: "In order to receive multicast messages, a join request for the multicast group must be
 * sent"
 */
mcast_test(the_kernel_joins_and_leaves)
{
	const char *interface = is_ipv6() ? "vb0" : "lo";
	struct vt_end a, b;

	member_open(&a);
	member_open(&b);
	assert_false(has_joined(interface, 1));
	assert_int_equal(attach(&a, 1), 0);
	assert_int_equal(attach(&b, 1), 0);
	assert_true(has_joined(interface, 1));
	assert_int_equal(detach(&a, 1), 0);
	assert_true(has_joined(interface, 1));
	assert_int_equal(detach(&b, 1), 0);
	assert_false(has_joined(interface, 1));
	vt_end_close(&a);
	vt_end_close(&b);
}

/* --- many --- */

mcast_test(each_member_gets_a_copy_of_what_its_groups_get)
{
	enum { MEMBERS = 20, GROUPS = 5 };
	struct vt_end from, member[MEMBERS];

	member_open(&from);
	for (unsigned m = 0; m < MEMBERS; m++) {
		member_open(&member[m]);
		for (unsigned n = 0; n < GROUPS; n++) {
			if (m >> n & 1)
				assert_int_equal(attach(&member[m], n), 0);
			listen_at(&member[m], n);
		}
	}
	for (unsigned n = 0; n < GROUPS; n++)
		cast(&from, n, 64 + n);
	for (unsigned m = 0; m < MEMBERS; m++) {
		unsigned slice = 0;

		for (unsigned n = 0; n < GROUPS; n++) {
			if (m >> n & 1)
				expect_copy(&member[m], slice++, &from, n, 64 + n);
		}
	}
	for (unsigned m = 0; m < MEMBERS; m++) {
		struct ibv_wc wc;

		assert_int_equal(ibv_poll_cq(member[m].cq, 1, &wc), 0);
		for (unsigned n = 0; n < GROUPS; n++) {
			if (m >> n & 1)
				assert_int_equal(detach(&member[m], n), 0);
		}
		vt_end_close(&member[m]);
	}
	vt_end_close(&from);
}

/* All of it in one post: it may leave in one go, and comes in its order. */
mcast_test(a_burst_arrives_in_its_order)
{
	enum { COUNT = 24 };
	union ibv_gid gid = group_of(3);
	struct vt_end from, member;
	struct ibv_send_wr *bad;
	struct vt_wr w[COUNT];
	struct ibv_ah *ah;

	member_open(&from);
	member_open(&member);
	assert_int_equal(attach(&member, 3), 0);
	ah = vt_made(try_ah(&gid, source_index, HOPS));
	for (unsigned i = 0; i < COUNT; i++) {
		listen_at(&member, i);
		message(&w[i], &from, ah, 512);
		w[i].wr.opcode = IBV_WR_SEND_WITH_IMM;
		w[i].wr.imm_data = htonl(i);
		w[i].wr.next = i + 1 < COUNT ? &w[i + 1].wr : NULL;
		w[i].wr.sg_list = &w[i].sge;
	}
	assert_int_equal(ibv_post_send(from.qp, &w[0].wr, &bad), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		struct ibv_wc wc = vt_expect(member.cq, 100 + i, IBV_WC_SUCCESS);

		assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(ntohl(wc.imm_data), i);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(detach(&member, 3), 0);
	vt_end_close(&member);
	vt_end_close(&from);
}

mcast_test(as_many_as_the_device_says)
{
	struct ibv_device_attr device = vt_device();
	struct ibv_qp *qps[64];
	struct vt_end end;

	assert_true(device.max_mcast_grp > 0 && device.max_mcast_qp_attach >= 64);
	assert_int_equal(device.max_total_mcast_qp_attach,
			 device.max_mcast_grp * device.max_mcast_qp_attach);
	member_open(&end);
	for (int n = 0; n < device.max_mcast_grp; n++)
		assert_int_equal(attach(&end, (unsigned)n), 0);
	assert_int_equal(attach(&end, (unsigned)device.max_mcast_grp), ENOMEM);
	for (int i = 0; i < 64; i++) {
		struct ibv_qp_init_attr init = { .send_cq = end.cq, .recv_cq = end.cq,
						 .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
		union ibv_gid gid = group_of(0);

		qps[i] = vt_made(ibv_create_qp(vt.pd, &init));
		assert_int_equal(ibv_attach_mcast(qps[i], &gid, 0), 0);
		assert_int_equal(ibv_detach_mcast(qps[i], &gid, 0), 0);
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
	for (int n = 0; n < device.max_mcast_grp; n++)
		assert_int_equal(detach(&end, (unsigned)n), 0);
	vt_end_close(&end);
}

/* --- one's own copy --- */

/* create_ex: "Prevent self multicast loopback" */
mcast_test(who_sends_hears_himself_unless_he_blocks_it)
{
	struct vt_end plain, blocking;

	member_open(&plain);
	blocking_open(&blocking);
	assert_int_equal(attach(&plain, 1), 0);
	assert_int_equal(attach(&blocking, 1), 0);
	listen_at(&plain, 0);
	listen_at(&blocking, 0);
	listen_at(&plain, 1);
	/* Others hear who blocks his own, */
	cast(&blocking, 1, 8);
	expect_copy(&plain, 0, &blocking, 1, 8);
	vt_expect_none(blocking.cq);
	/* and he hears others; without the flag there is no difference. */
	cast(&plain, 1, 8);
	expect_copy(&plain, 1, &plain, 1, 8);
	expect_copy(&blocking, 0, &plain, 1, 8);
	assert_int_equal(detach(&plain, 1), 0);
	assert_int_equal(detach(&blocking, 1), 0);
	vt_end_close(&plain);
	vt_end_close(&blocking);
}

/* --- what is dropped --- */

mcast_test(what_is_not_for_a_member_is_dropped)
{
	struct vt_options opt = { .type = IBV_QPT_UD };
	union ibv_gid gid = group_of(1);
	struct vt_end from, member, deaf;
	struct ibv_ah *ah, *to_one;
	struct vt_wr w;

	member_open(&from);
	member_open(&member);
	vt_end_open(&deaf, &opt);
	vt_climb(deaf.qp, &opt, IBV_QPS_INIT, 0);
	assert_int_equal(attach(&member, 1), 0);
	assert_int_equal(attach(&deaf, 1), 0);
	ah = try_ah(&gid, source_index, HOPS);
	to_one = try_ah(&source, source_index, HOPS);
	assert_true(ah && to_one);
	/* Without a receive request it is lost, and the sender does not know. */
	cast(&from, 1, 8);
	vt_expect_none(member.cq);
	listen_at(&member, 0);
	listen_at(&deaf, 0);
	/* Another Q_Key; a QP's own number at a group's address; the other way round. */
	message(&w, &from, ah, 8);
	w.wr.wr.ud.remote_qkey = VT_QKEY + 1;
	vt_post(&from, &w);
	message(&w, &from, ah, 8);
	w.wr.wr.ud.remote_qpn = member.qp->qp_num;
	vt_post(&from, &w);
	message(&w, &from, to_one, 8);
	vt_post(&from, &w);
	for (int i = 0; i < 3; i++)
		vt_expect(from.cq, 1, IBV_WC_SUCCESS);
	vt_expect_none(member.cq);
	cast(&from, 1, 8);
	expect_copy(&member, 0, &from, 1, 8);
	vt_expect_none(deaf.cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(to_one), 0);
	assert_int_equal(detach(&member, 1), 0);
	assert_int_equal(detach(&deaf, 1), 0);
	vt_end_close(&deaf);
	vt_end_close(&member);
	vt_end_close(&from);
}

/* A group of the other family; one of IPv6 on loopback, to which the kernel has no way. */
mcast_test(no_way_is_told_when_the_address_is_made)
{
	union ibv_gid ipv4 = { .raw = { [10] = 0xff, [11] = 0xff, 239, 79, 0, 1 } };
	union ibv_gid ipv6 = { .raw = { 0xff, 0x0e, [15] = 1 } };
	union ibv_gid gid;
	int index4, index6;

	assert_true(find_gid("127.0.0.1", &gid, &index4));
	assert_true(find_gid("::1", &gid, &index6));
	vt_refused(EINVAL, try_ah(&ipv4, index6, HOPS));
	vt_refused(EINVAL, try_ah(&ipv6, index4, HOPS));
	vt_refused(ENETUNREACH, try_ah(&ipv6, index6, HOPS));
}
