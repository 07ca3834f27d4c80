/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cm/records.h"
#include "group.h"

static struct vb_cm_lender lender;

static int begin(void **state)
{
	memset(&lender, 0, sizeof(lender));
	lender.records = calloc(1, sizeof(*lender.records));
	return !lender.records;
}

static int end(void **state)
{
	free(lender.records);
	return 0;
}

#define RECORDS_TEST(name) TEST_BETWEEN(name, begin, end)

RECORDS_TEST(a_record_is_lent_once_and_again_when_it_is_back)
{
	struct vb_cm_record *one = vb_cm_lender_lend(&lender), *two = vb_cm_lender_lend(&lender);

	assert_ptr_equal(one, &lender.records->record[0]);
	assert_ptr_equal(two, &lender.records->record[1]);
	assert_int_equal(vb_cm_records_top(lender.records), 2);
	vb_cm_lender_take_back(&lender, one);
	assert_ptr_equal(vb_cm_lender_lend(&lender), one);
	assert_int_equal(vb_cm_records_top(lender.records), 2);
}

RECORDS_TEST(there_is_an_end_to_them)
{
	for (unsigned i = 0; i < VB_CM_RECORDS_MAX; i++)
		assert_non_null(vb_cm_lender_lend(&lender));
	assert_null(vb_cm_lender_lend(&lender));
	for (unsigned i = 0; i < VB_CM_RECORDS_MAX; i++)
		vb_cm_lender_take_back(&lender, &lender.records->record[i]);
	assert_non_null(vb_cm_lender_lend(&lender));
}

/* Whoever wrote the memory may have written anything. */
RECORDS_TEST(a_count_that_is_nonsense_leads_nowhere)
{
	atomic_store(&lender.records->top, UINT32_MAX);
	assert_int_equal(vb_cm_records_top(lender.records), VB_CM_RECORDS_MAX);
}

TEST(without_memory_nothing_is_lent)
{
	memset(&lender, 0, sizeof(lender));
	assert_null(vb_cm_lender_lend(&lender));
}
