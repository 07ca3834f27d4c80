/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/refusal.h"

#include <errno.h>

#include "group.h"

TEST(nothing_is_kept_that_nobody_wants)
{
	struct vb_refusal refusal;

	vb_refusals_want(false);
	assert_int_equal(vb_refuse(EINVAL, "port_num is %d", 2), EINVAL);
	vb_refusal_about("QPN 0x%x", 1);
	vb_refusal_take(EINVAL, &refusal);
	assert_string_equal(refusal.why, "");
	assert_string_equal(refusal.about, "");
}

TEST(words_are_taken_once)
{
	struct vb_refusal refusal;

	vb_refusals_want(true);
	assert_int_equal(vb_refuse(EINVAL, "port_num is %d", 2), EINVAL);
	vb_refusal_about("QPN 0x%x", 1);
	vb_refusal_take(EINVAL, &refusal);
	assert_string_equal(refusal.why, "port_num is 2");
	assert_string_equal(refusal.about, "QPN 0x1");
	vb_refusal_take(EINVAL, &refusal);
	assert_string_equal(refusal.why, "");
	assert_string_equal(refusal.about, "");
}

TEST(words_about_another_error_are_not_given)
{
	struct vb_refusal refusal;

	vb_refusals_want(true);
	assert_int_equal(vb_refuse(EBUSY, "it is in use"), EBUSY);
	vb_refusal_take(ENOMEM, &refusal);
	assert_string_equal(refusal.why, "");
}

TEST(no_error_has_no_words)
{
	struct vb_refusal refusal;

	vb_refusals_want(true);
	assert_int_equal(vb_refuse(0, "all is well"), 0);
	vb_refusal_take(0, &refusal);
	assert_string_equal(refusal.why, "");
}

TEST(words_that_are_long_are_cut)
{
	struct vb_refusal refusal;

	vb_refusals_want(true);
	vb_refuse(EINVAL, "%0500d", 7);
	vb_refusal_take(EINVAL, &refusal);
	assert_int_equal(strlen(refusal.why), VB_REFUSAL_BYTES - 1);
}
