/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SRQs with tags: ibv_create_srq_ex(3) with IBV_SRQT_TM, ibv_post_srq_ops(3), and the headers of
 * <infiniband/tm_types.h>. An end `a` sends what begins with such headers, `b` has the tags.
 */
#include "tm.h"

/* --- the queue --- */

vt_test(the_device_says_what_it_can)
{
	struct ibv_device_attr_ex device;
	struct ibv_cq_ex *cq = tm_cq();
	struct ibv_srq_init_attr_ex init = tm_srq_init(ibv_cq_ex_to_cq(cq));
	const struct ibv_tm_caps *caps = &device.tm_caps;
	struct ibv_srq *srq;

	assert_int_equal(ibv_query_device_ex(vt.ctx, NULL, &device), 0);
	assert_int_equal(caps->flags, IBV_TM_CAP_RC);
	assert_true(caps->max_rndv_hdr_size >= TM_TMH + TM_RVH);
	assert_true(caps->max_num_tags >= 127);
	assert_true(caps->max_sge >= 1);
	assert_true(caps->max_ops >= caps->max_num_tags);
	init.tm_cap = (struct ibv_tm_cap){ caps->max_num_tags, caps->max_ops };
	srq = vt_made(ibv_create_srq_ex(vt.ctx, &init));
	assert_int_equal(init.tm_cap.max_num_tags, caps->max_num_tags);
	assert_int_equal(init.tm_cap.max_ops, caps->max_ops);
	/* Its CQ and PD are in use. */
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	assert_int_equal(ibv_dealloc_pd(vt.pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void expect_no_srq(struct ibv_srq_init_attr_ex init)
{
	vt_refused(EINVAL, ibv_create_srq_ex(vt.ctx, &init));
}

vt_test(what_it_cannot_is_refused)
{
	struct ibv_device_attr_ex device = vt_device_ex();
	struct ibv_cq_ex *cq = tm_cq();
	struct ibv_srq_init_attr_ex good = tm_srq_init(ibv_cq_ex_to_cq(cq)), init;

	init = good;
	init.tm_cap.max_num_tags = device.tm_caps.max_num_tags + 1;
	expect_no_srq(init);
	init.tm_cap.max_num_tags = 0;
	expect_no_srq(init);
	init = good;
	init.tm_cap.max_ops = device.tm_caps.max_ops + 1;
	expect_no_srq(init);
	for (uint32_t bit = IBV_SRQ_INIT_ATTR_PD; bit <= IBV_SRQ_INIT_ATTR_TM; bit <<= 1) {
		init = good;
		init.comp_mask ^= bit; /* one that is needed missing, or an XRC domain too many */
		expect_no_srq(init);
	}
	init = good;
	init.cq = NULL;
	expect_no_srq(init);
	/* Nothing of that keeps the CQ. */
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* IBV_TM_CAP_RC is the only service with tags. */
vt_test(it_is_for_rc_only)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_cq_ex *cq = tm_cq();
	struct ibv_srq_init_attr_ex srq_attr = tm_srq_init(ibv_cq_ex_to_cq(cq));
	struct ibv_srq *srq = vt_made(ibv_create_srq_ex(vt.ctx, &srq_attr));

	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq),
			.srq = srq, .cap = { 1, 0, 1, 0, 0 }, .qp_type = types[i],
		};

		vt_refused(EINVAL, ibv_create_qp(vt.pd, &init));
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* --- eager messages --- */

tm_test(a_matched_message_comes_without_its_header)
{
	static const uint32_t lengths[] = { 0, 1, 100, 1008, 1009, 2032, 10000, TM_ORDINARY };

	for (size_t i = 0; i < VT_COUNT(lengths); i++) {
		memset(s->b.buf, 0, s->b.bytes);
		tm_add(s, i, 0x1000 + i);
		tm_send_eager(s, 0x1000 + i, lengths[i]);
		tm_expect_matched(s, i, 0x1000 + i, lengths[i]);
		assert_true(vt_is_octet(s->b.buf + lengths[i], s->b.bytes - lengths[i], 0));
	}
}

/* "SGE list size is limited by max_sge." */
tm_test(a_tagged_buffer_may_be_in_pieces)
{
	struct ibv_device_attr_ex device = vt_device_ex();
	struct ibv_sge sge[33];
	struct tm_op o;
	int pieces;

	pieces = (int)device.tm_caps.max_sge;
	assert_in_range(pieces, 1, 32);
	for (int i = 0; i <= pieces; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)s->b.buf + (size_t)i * 700, 700,
					   s->b.mr->lkey };
	tm_tag(&o, s, 5, 9, 0, 0);
	o.wr.tm.add.sg_list = sge;
	o.wr.tm.add.num_sge = pieces + 1;
	assert_int_equal(tm_post(s, &o), EINVAL);
	o.wr.tm.add.num_sge = -1;
	assert_int_equal(tm_post(s, &o), EINVAL);
	o.wr.tm.add.num_sge = pieces;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 5, IBV_WC_TM_ADD, 0);
	tm_send_eager(s, 9, 700 * (uint32_t)pieces);
	tm_expect_matched(s, 5, 9, 700 * (uint32_t)pieces);
	/* And of no piece at all, for a message that is empty. */
	tm_tag(&o, s, 6, 10, 0, 0);
	o.wr.tm.add.num_sge = 0;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 6, IBV_WC_TM_ADD, 0);
	tm_send_eager(s, 10, 0);
	tm_expect_matched(s, 6, 10, 0);
}

/* "Incoming message considered matching if TMH.tag & entry.mask == entry.tag" */
vt_test(the_mask_says_what_matters)
{
	static const struct {
		uint64_t tag, mask, of_message;
		bool matches;
	} rows[] = {
		{ 0x1122334455667788, UINT64_MAX, 0x1122334455667788, true },
		{ 0x1122334455667788, UINT64_MAX, 0x1122334455667789, false },
		{ 0x1122334455667788, UINT64_MAX, 0x0122334455667788, false },
		{ 0x88, 0xff, 0x1122334455667788, true },
		{ 0x88, 0xff, 0x1122334455667787, false },
		{ 0, 0, 0x1122334455667788, true },
		{ 1ull << 63, 1ull << 63, 0xffffffffffffffff, true },
		{ 1ull << 63, 1ull << 63, 0x7fffffffffffffff, false },
		/* Bits of the tag that the mask has not: nothing can match. */
		{ 0x188, 0xff, 0x1122334455667188, false },
	};
	struct tm_scene s;

	for (size_t i = 0; i < VT_COUNT(rows); i++) {
		struct tm_op o;

		tm_open(&s);
		tm_tag(&o, &s, 3, rows[i].tag, 0, TM_ORDINARY);
		o.wr.tm.add.mask = rows[i].mask;
		assert_int_equal(tm_post(&s, &o), 0);
		tm_expect(&s, 3, IBV_WC_TM_ADD, 0);
		tm_ordinary(&s, 4);
		tm_send_eager(&s, rows[i].of_message, 50);
		if (rows[i].matches)
			tm_expect_matched(&s, 3, rows[i].of_message, 50);
		else
			tm_expect_unexpected(&s, 4, rows[i].of_message, 50, 0);
		tm_close(&s);
	}
}

/* "the earliest send ... in the order in which the Receives were posted", and each once. */
tm_test(the_oldest_that_matches_is_taken)
{
	struct tm_op o;

	tm_add(s, 1, 100);
	tm_tag(&o, s, 2, 0, 0, TM_ORDINARY);
	o.wr.tm.add.mask = 0; /* any */
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 2, IBV_WC_TM_ADD, 0);
	tm_add(s, 3, 100);
	tm_add(s, 4, 200);
	tm_ordinary(s, 5);
	tm_send_eager(s, 200, 8);
	tm_expect_matched(s, 2, 200, 8);
	tm_send_eager(s, 100, 8);
	tm_expect_matched(s, 1, 100, 8);
	tm_send_eager(s, 200, 8);
	tm_expect_matched(s, 4, 200, 8);
	tm_send_eager(s, 100, 8);
	tm_expect_matched(s, 3, 100, 8);
	tm_send_eager(s, 100, 8);
	tm_expect_unexpected(s, 5, 100, 8, 0);
}

tm_test(immediate_data_comes_along)
{
	struct tm_done done;
	struct vt_wr w;

	tm_add(s, 1, 100);
	tm_ordinary(s, 2);
	tm_put_header(s->a.buf, IBV_TMH_EAGER, 100);
	vt_wr(&w, IBV_WR_SEND_WITH_IMM, &s->a, &s->b, TM_TMH + 9);
	w.wr.imm_data = htobe32(0x55667788);
	vt_post(&s->a, &w);
	done = tm_expect(s, 1, IBV_WC_TM_RECV, TM_MATCHED | IBV_WC_WITH_IMM);
	assert_int_equal(done.imm, htobe32(0x55667788));
	assert_int_equal(done.bytes, 9);
	/* A WRITE has no header: it takes an ordinary request, and tells the same CQ. */
	vt_wr(&w, IBV_WR_RDMA_WRITE_WITH_IMM, &s->a, &s->b, TM_TMH + 9);
	w.wr.imm_data = htobe32(0x11223344);
	vt_post(&s->a, &w);
	done = tm_expect(s, 2, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(done.imm, htobe32(0x11223344));
	assert_memory_equal(s->b.buf, s->a.buf, TM_TMH + 9);
}

/* --- for software --- */

tm_test(what_has_no_tag_takes_an_ordinary_request)
{
	struct tm_done done;

	tm_add(s, 1, 0); /* would match a tag of 0 */
	for (uint64_t i = 10; i < 16; i++)
		tm_ordinary(s, i);
	tm_send_header(s, IBV_TMH_NO_TAG, 0, 40);
	done = tm_expect(s, 10, IBV_WC_TM_NO_TAG, 0);
	assert_int_equal(done.bytes, TM_TMH + 40);
	assert_true(done.tag == 0);
	assert_memory_equal(s->b.buf + TM_ORDINARY, s->a.buf, TM_TMH + 40);
	/* The end of a rendezvous that software began here. */
	tm_send_header(s, IBV_TMH_FIN, 0, 0);
	tm_expect(s, 11, IBV_WC_TM_NO_TAG, 0);
	/* No header that anybody knows, and none at all. */
	tm_send_header(s, (enum ibv_tmh_op)77, 0, 8);
	tm_expect(s, 12, IBV_WC_TM_NO_TAG, 0);
	tm_put_header(s->a.buf, IBV_TMH_EAGER, 0);
	tm_send_raw(s, TM_TMH - 1);
	done = tm_expect(s, 13, IBV_WC_TM_NO_TAG, 0);
	assert_int_equal(done.bytes, TM_TMH - 1);
	tm_send_raw(s, 0);
	done = tm_expect(s, 14, IBV_WC_TM_NO_TAG, 0);
	assert_int_equal(done.bytes, 0);
	/* A rendezvous that does not say what is to be read. */
	tm_send_header(s, IBV_TMH_RNDV, 0, TM_RVH - 1);
	tm_expect(s, 15, IBV_WC_TM_NO_TAG, 0);
	for (int i = 0; i < 6; i++)
		tm_sent(s);
	/* Nothing of that counts as unexpected. */
	tm_sync(s, 0, 0);
	tm_send_eager(s, 0, 8);
	tm_expect_matched(s, 1, 0, 8);
}

tm_test(without_a_request_the_sender_waits)
{
	tm_send_eager(s, 5, 30);
	tm_expect_none(s);
	vt_expect_none(s->a.cq);
	/* Not counted before it is taken; and what was added meanwhile may have it. */
	tm_sync(s, 0, 0);
	tm_add(s, 1, 5);
	tm_expect_matched(s, 1, 5, 30);
	tm_send_eager(s, 6, 30);
	tm_expect_none(s);
	tm_ordinary(s, 2);
	tm_expect_unexpected(s, 2, 6, 30, 0);
	tm_sync(s, 1, 0); /* once, although it was asked for again and again */
}

/* --- phases --- */

/*
 * tag_matching.md: as soon as a message is deemed unexpected, new tags do not count until the
 * numbers agree; those that were there before do.
 */
tm_test(tags_wait_until_the_counts_agree)
{
	for (uint64_t i = 100; i < 104; i++)
		tm_ordinary(s, i);
	tm_add_counting(s, 1, 10, 0, 0);
	tm_send_eager(s, 20, 8);
	tm_expect_unexpected(s, 100, 20, 8, 0);
	/* Software has not seen it yet, and adds the very tag that it is for. */
	tm_add_counting(s, 2, 20, 0, IBV_WC_TM_SYNC_REQ);
	tm_send_eager(s, 20, 8);
	tm_expect_unexpected(s, 101, 20, 8, 0);
	tm_send_eager(s, 10, 8);
	tm_expect_matched(s, 1, 10, 8);
	/* Now it has seen one of the two. */
	tm_sync(s, 1, IBV_WC_TM_SYNC_REQ);
	tm_send_eager(s, 20, 8);
	tm_expect_unexpected(s, 102, 20, 8, 0);
	tm_sync(s, 3, 0);
	tm_send_eager(s, 20, 8);
	tm_expect_matched(s, 2, 20, 8);
}

/* An ADD brings the count along as well as a SYNC does, and then counts itself. */
tm_test(an_add_may_bring_the_count)
{
	struct tm_op o;

	tm_ordinary(s, 100);
	tm_send_eager(s, 20, 8);
	tm_expect_unexpected(s, 100, 20, 8, 0);
	/* Without IBV_OPS_TM_SYNC the count says nothing. */
	tm_tag(&o, s, 1, 30, 0, TM_ORDINARY);
	o.wr.tm.unexpected_cnt = 1;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 1, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	tm_add_counting(s, 2, 40, 1, 0);
	tm_send_eager(s, 40, 8);
	tm_expect_matched(s, 2, 40, 8);
	tm_send_eager(s, 30, 8);
	tm_expect_matched(s, 1, 30, 8);
	/* In step, an ADD needs no count. */
	tm_add(s, 3, 50);
	tm_send_eager(s, 50, 8);
	tm_expect_matched(s, 3, 50, 8);
}

tm_test(a_waiting_tag_can_be_removed)
{
	struct tm_op waiting;

	tm_ordinary(s, 100);
	tm_send_eager(s, 20, 8);
	tm_expect_unexpected(s, 100, 20, 8, 0);
	/* Software finds that the message is for the tag that it has just added. */
	tm_tag(&waiting, s, 1, 20, 0, TM_ORDINARY);
	assert_int_equal(tm_post(s, &waiting), 0);
	tm_expect(s, 1, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	tm_add_counting(s, 2, 30, 0, IBV_WC_TM_SYNC_REQ);
	assert_int_equal(tm_del(s, waiting.wr.tm.handle), IBV_WC_SUCCESS);
	/* The next one still waits. */
	tm_ordinary(s, 101);
	tm_send_eager(s, 30, 8);
	tm_expect_unexpected(s, 101, 30, 8, 0);
	tm_sync(s, 2, 0);
	tm_send_eager(s, 30, 8);
	tm_expect_matched(s, 2, 30, 8);
}

/* --- operations --- */

tm_test(what_is_not_signaled_is_not_told)
{
	struct tm_op o;

	tm_tag(&o, s, 1, 10, 0, TM_ORDINARY);
	o.wr.flags = 0;
	assert_int_equal(tm_post(s, &o), 0);
	tm_op(&o, IBV_WR_TAG_SYNC, 2);
	o.wr.flags = IBV_OPS_TM_SYNC;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect_none(s);
	tm_send_eager(s, 10, 8);
	tm_expect_matched(s, 1, 10, 8);
	tm_tag(&o, s, 3, 10, 0, TM_ORDINARY);
	o.wr.flags = 0;
	assert_int_equal(tm_post(s, &o), 0);
	o.wr.opcode = IBV_WR_TAG_DEL;
	assert_int_equal(tm_post(s, &o), 0);
	assert_int_equal(tm_post(s, &o), 0); /* one that is gone, too */
	tm_expect_none(s);
	tm_ordinary(s, 4);
	tm_send_eager(s, 10, 8);
	tm_expect_unexpected(s, 4, 10, 8, 0);
}

/* "Operation may fail due to concurrent tag consumption" */
tm_test(a_removed_tag_matches_nothing)
{
	uint32_t first, second, again;

	tm_ordinary(s, 100);
	first = tm_add(s, 1, 10);
	second = tm_add(s, 2, 20);
	assert_int_not_equal(first, second);
	assert_int_equal(tm_del(s, first), IBV_WC_SUCCESS);
	assert_int_equal(tm_del(s, first), IBV_WC_TM_ERR);
	tm_send_eager(s, 10, 8);
	tm_expect_unexpected(s, 100, 10, 8, 0);
	tm_send_eager(s, 20, 8);
	tm_expect_matched(s, 2, 20, 8);
	assert_int_equal(tm_del(s, second), IBV_WC_TM_ERR);
	/* A handle is of one tag only, even where its place is used again. */
	tm_sync(s, 1, 0);
	for (uint64_t i = 0; i < 3 * TM_TAGS; i++) {
		again = tm_add(s, 3, 30);
		assert_int_not_equal(again, second);
		assert_int_equal(tm_del(s, second), IBV_WC_TM_ERR);
		assert_int_equal(tm_del(s, again), IBV_WC_SUCCESS);
	}
}

/* "Size of tag matching list is limited by max_num_tags." */
tm_test(the_list_is_as_long_as_asked_for)
{
	uint32_t handle[TM_TAGS];
	struct tm_op o;

	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < TM_TAGS; i++)
			handle[i] = tm_add(s, i, i);
		tm_tag(&o, s, 99, 99, 0, TM_ORDINARY);
		assert_int_equal(tm_post(s, &o), ENOMEM);
		tm_expect_none(s);
		/* From the middle, by a message and by hand: there is room again. */
		tm_send_eager(s, TM_TAGS / 2, 8);
		tm_expect_matched(s, TM_TAGS / 2, TM_TAGS / 2, 8);
		assert_int_equal(tm_post(s, &o), 0);
		tm_expect(s, 99, IBV_WC_TM_ADD, 0);
		assert_int_equal(tm_post(s, &o), ENOMEM);
		tm_send_eager(s, 99, 8);
		tm_expect_matched(s, 99, 99, 8);
		for (uint64_t i = 0; i < TM_TAGS; i++)
			assert_int_equal(tm_del(s, handle[i]), i == TM_TAGS / 2 ? IBV_WC_TM_ERR
									   : IBV_WC_SUCCESS);
	}
}

tm_test(wrong_operations_are_refused)
{
	struct tm_op o;

	tm_op(&o, (enum ibv_ops_wr_opcode)(IBV_WR_TAG_SYNC + 1), 1);
	assert_int_equal(tm_post(s, &o), EINVAL);
	tm_op(&o, IBV_WR_TAG_SYNC, 1);
	o.wr.flags |= 1 << 5;
	assert_int_equal(tm_post(s, &o), EINVAL);
	tm_op(&o, IBV_WR_TAG_DEL, 1);
	o.wr.tm.handle = TM_TAGS; /* beyond the list that was asked for */
	assert_int_equal(tm_post(s, &o), EINVAL);
	tm_tag(&o, s, 1, 1, 0, 0);
	o.wr.tm.add.num_sge = 2;
	o.wr.tm.add.sg_list = (struct ibv_sge[2]){ { .length = 1u << 31 }, { .length = 1 } };
	assert_int_equal(tm_post(s, &o), EINVAL);
	tm_expect_none(s);
}

/* A list: what stands before the one that is refused is done, and nothing behind it. */
tm_test(a_list_stops_where_it_is_wrong)
{
	struct ibv_ops_wr *bad = NULL;
	struct tm_op o[4];

	for (uint64_t i = 0; i < 4; i++) {
		tm_tag(&o[i], s, i, i, 0, TM_ORDINARY);
		o[i].wr.tm.add.sg_list = &o[i].sge;
		o[i].wr.next = i < 3 ? &o[i + 1].wr : NULL;
	}
	o[2].wr.tm.add.num_sge = -1;
	assert_int_equal(ibv_post_srq_ops(s->b.srq, &o[0].wr, &bad), EINVAL);
	assert_ptr_equal(bad, &o[2].wr);
	tm_expect(s, 0, IBV_WC_TM_ADD, 0);
	tm_expect(s, 1, IBV_WC_TM_ADD, 0);
	tm_expect_none(s);
	tm_ordinary(s, 100);
	tm_send_eager(s, 3, 8);
	tm_expect_unexpected(s, 100, 3, 8, 0);
	tm_send_eager(s, 1, 8);
	tm_expect_matched(s, 1, 1, 8);
}

/* --- faults --- */

tm_test(a_message_longer_than_its_buffer)
{
	struct tm_done done;

	tm_add_at(s, 1, 10, 0, 100);
	tm_send_eager(s, 10, 101);
	done = tm_expect_status(s, 1, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(done.opcode, IBV_WC_TM_RECV);
	vt_expect(s->a.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
}

/* The QP whose message it was fails; the queue and the others go on. */
tm_test(a_tag_with_a_wrong_key)
{
	struct ibv_qp *other;
	struct vt_end a2;
	struct tm_op o;

	other = tm_receiver(s->b.srq, 0);
	vt_end_open(&a2, &s->opt);
	vt_climb(a2.qp, &s->opt, IBV_QPS_RTS, other->qp_num);
	vt_climb(other, &s->opt, IBV_QPS_RTS, a2.qp->qp_num);
	tm_tag(&o, s, 1, 10, 0, 100);
	o.sge.lkey ^= 0x100;
	assert_int_equal(tm_post(s, &o), 0);
	tm_expect(s, 1, IBV_WC_TM_ADD, 0);
	tm_add(s, 2, 20);
	tm_send_eager(s, 10, 50);
	tm_expect_status(s, 1, IBV_WC_LOC_PROT_ERR);
	vt_expect(s->a.cq, 1, IBV_WC_REM_OP_ERR);
	vt_event_acked(IBV_EVENT_QP_LAST_WQE_REACHED);
	tm_put_header(a2.buf, IBV_TMH_EAGER, 20);
	vt_send(&a2, &s->b, 1); /* 8 octets: no header */
	tm_ordinary(s, 3);
	tm_expect(s, 3, IBV_WC_TM_NO_TAG, 0);
	vt_expect(a2.cq, 1, IBV_WC_SUCCESS);
	vt_end_close(&a2);
	tm_receiver_close(other);
}

/* What became of a tag is told even if the QP that brought the message is gone. */
tm_test(completions_of_tags_outlive_the_qp)
{
	tm_add(s, 1, 10);
	tm_add(s, 2, 20);
	tm_send_eager(s, 10, 50);
	tm_sent(s);
	tm_receiver_close(s->b.qp);
	s->b.qp = tm_receiver(s->b.srq, 0);
	tm_expect(s, 1, IBV_WC_TM_RECV, TM_MATCHED);
	/* The other tag is for whoever comes. */
	assert_int_equal(vt_modify(s->a.qp, IBV_QPS_RESET), 0);
	vt_climb(s->a.qp, &s->opt, IBV_QPS_RTS, s->b.qp->qp_num);
	vt_climb(s->b.qp, &s->opt, IBV_QPS_RTS, s->a.qp->qp_num);
	tm_send_eager(s, 20, 8);
	tm_expect_matched(s, 2, 20, 8);
	tm_add(s, 3, 30); /* and goes with the queue */
}
