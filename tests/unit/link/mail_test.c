/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"
#include "link/mail.h"

static struct vb_mail mail;

static int begin(void **state)
{
	vb_mail_init(&mail);
	return 0;
}

static int end(void **state)
{
	vb_mail_fini(&mail);
	return 0;
}

#define MAIL_TEST(name) TEST_BETWEEN(name, begin, end)

static bool put(uint8_t octet, uint32_t bytes)
{
	uint8_t data[VB_MAIL_FRAME_BYTES + 1];
	struct vb_frame frame = {.path.sport = octet, .data = data, .bytes = bytes};

	memset(data, octet, sizeof(data));
	return vb_mail_put(&mail, &frame);
}

static void assert_frame(const struct vb_frame *frame, uint8_t octet, uint32_t bytes)
{
	assert_int_equal(frame->path.sport, octet);
	assert_int_equal(frame->bytes, bytes);
	assert_int_equal(frame->data[0], octet);
	assert_int_equal(frame->data[bytes - 1], octet);
}

MAIL_TEST(frames_are_taken_in_their_order)
{
	struct vb_frame frames[4];

	assert_false(vb_mail_waits(&mail));
	assert_int_equal(vb_mail_take(&mail, frames, 4), 0);
	for (uint8_t i = 1; i <= 3; i++)
		assert_true(put(i, 100 + i));
	assert_true(vb_mail_waits(&mail));
	assert_int_equal(vb_mail_take(&mail, frames, 2), 2);
	assert_frame(&frames[0], 1, 101);
	assert_frame(&frames[1], 2, 102);
	assert_true(vb_mail_waits(&mail));
	assert_true(put(4, 20));
	/* What was taken is valid until the next look. */
	assert_frame(&frames[1], 2, 102);
	assert_int_equal(vb_mail_take(&mail, frames, 4), 2);
	assert_frame(&frames[0], 3, 103);
	assert_frame(&frames[1], 4, 20);
	assert_false(vb_mail_waits(&mail));
	assert_int_equal(vb_mail_take(&mail, frames, 4), 0);
}

MAIL_TEST(what_is_too_long_or_too_much_is_refused)
{
	struct vb_frame frame;

	assert_true(put(1, VB_MAIL_FRAME_BYTES));
	assert_false(put(2, VB_MAIL_FRAME_BYTES + 1));
	for (unsigned i = 1; i < VB_MAIL_MAX; i++)
		assert_true(put(3, 1));
	assert_false(put(4, 1));
	assert_int_equal(vb_mail_take(&mail, &frame, 1), 1);
	assert_frame(&frame, 1, VB_MAIL_FRAME_BYTES);
	assert_true(put(5, 1));
	assert_false(put(6, 1));
}
