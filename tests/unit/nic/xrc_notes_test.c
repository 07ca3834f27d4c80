/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "group.h"
#include "nic/service/xrc/xrc_notes.h"

/* What people are told of XRC: SRQs, and a log that forgets the oldest. */

enum { A = 3, B = 7 }; /* processes, by their slots */

static unsigned count(const struct vb_xrc_srqs *srqs, uint64_t domain)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < srqs->top; i++)
		n += atomic_load(&srqs->srq[i].domain) == domain;
	return n;
}

TEST(srqs_come_and_go)
{
	struct vb_xrc_srqs *srqs = calloc(1, sizeof(*srqs));
	uint32_t place[3];

	assert_non_null(srqs);
	assert_int_equal(vb_xrc_srq_note(srqs, 5, 0xc001, A, &place[0]), 0);
	assert_int_equal(vb_xrc_srq_note(srqs, 5, 0xc002, A, &place[1]), 0);
	assert_int_equal(vb_xrc_srq_note(srqs, 5, 0x1c001, B, &place[2]), 0);
	assert_int_equal(count(srqs, 5), 3);
	vb_xrc_srq_strike(srqs, place[1], 0xc002);
	assert_int_equal(count(srqs, 5), 2);
	/* A process dies, its place is another's, and then it is told that it has died. */
	vb_xrc_srqs_collect(srqs, A);
	assert_int_equal(count(srqs, 5), 1);
	assert_int_equal(srqs->srq[place[2]].number, 0x1c001);
	vb_xrc_srq_strike(srqs, place[2], 0xc001);
	assert_int_equal(count(srqs, 5), 1);
	free(srqs);
}

TEST(srqs_are_bounded_and_every_place_is_used_again)
{
	struct vb_xrc_srqs *srqs = calloc(1, sizeof(*srqs));
	uint32_t place;

	assert_non_null(srqs);
	for (unsigned i = 0; i < VB_XRC_SRQS_MAX; i++)
		assert_int_equal(vb_xrc_srq_note(srqs, 5, i, A, &place), 0);
	place = 77;
	assert_int_equal(vb_xrc_srq_note(srqs, 5, 1, B, &place), ENOMEM);
	assert_int_equal(place, 77);
	vb_xrc_srq_strike(srqs, 1234, 1234);
	assert_int_equal(vb_xrc_srq_note(srqs, 6, 1, B, &place), 0);
	assert_int_equal(place, 1234);
	free(srqs);
}

TEST(the_log_forgets_the_oldest)
{
	struct vb_xrc_log *log = calloc(1, sizeof(*log));
	struct vb_xrc_note note = { .qpn = 7 };

	assert_non_null(log);
	assert_false(vb_xrc_log_read(log, 0, &note));
	for (unsigned i = 0; i < VB_XRC_NOTES_MAX - 1; i++) {
		note.domain = i;
		vb_xrc_log_add(log, &note);
	}
	assert_int_equal(vb_xrc_log_first(atomic_load(&log->count)), 0);
	assert_true(vb_xrc_log_read(log, 0, &note));
	assert_int_equal(note.domain, 0);
	note.domain = VB_XRC_NOTES_MAX - 1;
	vb_xrc_log_add(log, &note);
	assert_int_equal(vb_xrc_log_first(atomic_load(&log->count)), 1);
	assert_false(vb_xrc_log_read(log, 0, &note));
	for (unsigned i = 1; i < VB_XRC_NOTES_MAX; i++) {
		assert_true(vb_xrc_log_read(log, i, &note));
		assert_int_equal(note.domain, i);
	}
	assert_false(vb_xrc_log_read(log, VB_XRC_NOTES_MAX, &note));
	free(log);
}
