/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "topology/limits.h"

TEST(what_lies_above_counts)
{
	struct vb_limits low = { 0 }, high = { 0 };

	vb_limit_set(&low, VB_LIMIT_QP, 100);
	vb_limit_set(&low, VB_LIMIT_CQ, 7);
	vb_limit_set(&high, VB_LIMIT_QP, 16);
	vb_limits_lay(&low, &high);
	assert_int_equal(low.most[VB_LIMIT_QP], 16);
	assert_int_equal(low.most[VB_LIMIT_CQ], 7);
	assert_false(vb_limit_is_said(&low, VB_LIMIT_MR));
}

TEST(each_limit_has_a_name_and_a_least)
{
	assert_int_equal(vb_limit_names.count, VB_LIMITS);
	assert_string_equal(vb_words_at(&vb_limit_names, VB_LIMIT_QP), "max_qp");
	assert_int_equal(vb_limit_least(VB_LIMIT_QP), 1);
	assert_int_equal(vb_limit_least(VB_LIMIT_INLINE), 0);
}

TEST(a_list_is_read_whole_or_not_at_all)
{
	struct vb_limits limits = { 0 };
	char chars[VB_LIMITS_WHY_BYTES];
	struct vb_text why = vb_text_in(chars, sizeof(chars));

	assert_true(vb_limits_parse(&limits, "max_qp=16,max_cqe=64", &why));
	assert_int_equal(limits.most[VB_LIMIT_QP], 16);
	assert_int_equal(limits.most[VB_LIMIT_CQE], 64);
	assert_false(vb_limits_parse(&limits, "max_qp=8,max_pd=0", &why));
	assert_string_equal(chars, "max_pd is a number from 1 to 65536");
	assert_int_equal(limits.most[VB_LIMIT_QP], 16);
	why = vb_text_in(chars, sizeof(chars));
	assert_false(vb_limits_parse(&limits, "max_qp=65525", &why));
	assert_string_equal(chars, "max_qp is a number from 1 to 65524");
	why = vb_text_in(chars, sizeof(chars));
	assert_false(vb_limits_parse(&limits, "max_qp_wrr=1", &why));
	assert_memory_equal(chars, "there is no limit 'max_qp_wrr'; did you mean 'max_qp_wr'?", 57);
	why = vb_text_in(chars, sizeof(chars));
	assert_false(vb_limits_parse(&limits, "max_qp", &why));
	assert_string_equal(chars, "max_qp is a number from 1 to 65524, without blanks: max_qp=N");
	why = vb_text_in(chars, sizeof(chars));
	assert_false(vb_limits_parse(&limits, "max_qp = 3", &why));
	assert_string_equal(chars, "max_qp is a number from 1 to 65524, without blanks: max_qp=N");
	why = vb_text_in(chars, sizeof(chars));
	assert_false(vb_limits_parse(&limits, "max_qp=3,max_pd=4,max_qp=5", &why));
	assert_string_equal(chars, "max_qp is said twice");
	assert_int_equal(limits.most[VB_LIMIT_QP], 16);
}
