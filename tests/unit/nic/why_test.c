/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/data/why.h"

#include <stdlib.h>

#include "group.h"

enum { PD = 7, KEY = 0x12003456 };

static struct vb_export *export;

static void region(unsigned access)
{
	struct vb_export_key *entry;

	export = export ? export : calloc(1, sizeof(*export));
	assert_non_null(export);
	entry = &export->key[vb_key_place(KEY)];
	entry->key = KEY;
	entry->pd = PD;
	entry->iova = 0x1000;
	entry->bytes = 256;
	entry->access = access;
}

static enum vb_why ask(uint32_t key, uint64_t pd, uint64_t va, uint64_t bytes, unsigned rights,
		       const char *has)
{
	const struct vb_access access = { .export = export, .pd = pd, .va = va, .bytes = bytes,
					  .key = key, .rights = rights, .what = "rkey" };
	char words[VB_WHY_BYTES];
	enum vb_why why = vb_why_key(&access, words);

	assert_non_null(strstr(words, has));
	assert_int_equal(vb_why_sge(&access, words), why - 0x10);
	return why;
}

TEST(each_fault_of_an_access_has_its_code)
{
	region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(ask(KEY ^ 1, PD, 0x1000, 8, 0, "no region has rkey 0x12003457"), 0x41);
	assert_int_equal(ask(0, PD, 0x1000, 8, 0, "no region has rkey 0x0"), 0x41);
	assert_int_equal(ask(KEY, PD + 1, 0x1000, 8, 0, "another PD"), 0x42);
	assert_int_equal(ask(KEY, PD, 0x1000, 8, IBV_ACCESS_REMOTE_WRITE,
			     "so without IBV_ACCESS_REMOTE_WRITE"), 0x43);
	assert_int_equal(ask(KEY, PD, 0x10fc, 8, 0, "by 4: it has 256 octets from 0x1000"), 0x44);
	assert_int_equal(ask(KEY, PD, 0xfff, 8, 0, "0xfff is outside of the region"), 0x44);
	assert_int_equal(ask(KEY, PD, 0x1100, 1, 0, "0x1100 is outside of the region"), 0x44);
	assert_int_equal(ask(KEY, PD, 0x1000, 257, 0, "by 1:"), 0x44);
	/* Nothing is wrong with the key: it is the memory. */
	assert_int_equal(ask(KEY, PD, 0x1000, 256, IBV_ACCESS_REMOTE_READ, "not mapped"), 0x45);
	free(export);
	export = NULL;
}

TEST(an_entry_that_is_always_being_changed_is_not_waited_for)
{
	region(0);
	export->key[vb_key_place(KEY)].seq = 1;
	assert_int_equal(ask(KEY, PD, 0x1000, 8, 0, "no region"), 0x41);
	free(export);
	export = NULL;
}

TEST(every_verdict_has_a_code_with_words_and_advice)
{
	for (int v = VB_OK + 1; v < VB_VERDICTS; v++) {
		enum vb_why why = vb_why_verdict((enum vb_verdict)v);

		assert_int_not_equal(why, VB_WHY_NONE);
		assert_int_not_equal(strlen(vb_why_words(why)), 0);
		assert_int_not_equal(strlen(vb_why_look(why)), 0);
	}
	assert_string_equal(vb_why_words((enum vb_why)0xee), "");
}
