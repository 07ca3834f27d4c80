/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <string.h>

#include "cm/known.h"

static const uint64_t secret[2] = {3, 4};

/* The mark is in a half-word that is reserved: whoever reads the message does not see it. */
TEST(a_mark_changes_no_message)
{
	const struct vb_cm_msg msg = {
		.attr = VB_CM_RTU,
		.transaction_id = 1,
		.local_comm_id = 2,
		.remote_comm_id = 3,
	};
	struct vb_cm_msg parsed;
	uint8_t plain[VB_MAD_BYTES], marked[VB_MAD_BYTES];

	vb_cm_emit(&msg, plain);
	memcpy(marked, plain, sizeof(marked));
	vb_cm_mark(marked);
	assert_false(vb_cm_is_marked(plain));
	assert_true(vb_cm_is_marked(marked));
	assert_memory_equal(plain, marked, 18);
	assert_memory_equal(plain + 20, marked + 20, VB_MAD_BYTES - 20);
	assert_true(vb_cm_parse(&parsed, marked));
	assert_int_equal(parsed.attr, VB_CM_RTU);
	assert_int_equal(parsed.remote_comm_id, 3);
}

TEST(addresses_are_known_and_forgotten)
{
	static struct vb_cm_known known;
	const uint8_t one[VB_GID_BYTES] = {1}, two[VB_GID_BYTES] = {2};

	assert_false(vb_cm_known_has(&known, secret, one));
	vb_cm_known_note(&known, secret, one, true);
	assert_true(vb_cm_known_has(&known, secret, one));
	assert_false(vb_cm_known_has(&known, secret, two));
	vb_cm_known_note(&known, secret, two, false);
	assert_true(vb_cm_known_has(&known, secret, one));
	vb_cm_known_note(&known, secret, one, false);
	assert_false(vb_cm_known_has(&known, secret, one));
}

TEST(a_hello_is_none_of_the_mras)
{
	struct vb_cm_msg hello, answer;
	const struct vb_cm_msg mra = {.attr = VB_CM_MRA, .mra.message_mraed = VB_CM_MESSAGE_OTHER};
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_hello(&hello, 0x1234, 99);
	vb_cm_hello_answer(&answer, &hello);
	assert_true(vb_cm_is_hello(&hello));
	assert_true(vb_cm_is_hello(&answer));
	assert_false(vb_cm_is_hello(&mra));
	assert_int_equal(hello.remote_comm_id, 0);
	assert_int_equal(answer.remote_comm_id, 0x1234);
	assert_int_equal(answer.transaction_id, 99);
	vb_cm_emit(&answer, mad);
}
