/* SPDX-License-Identifier: BSD-2-Clause */

/* The ring of what was executed for the peer, replaced by another while it is in use. */
#include "resp_fixture.h"

enum { PLACES = 16 };

static struct vb_resource other[PLACES];

static void replace(uint32_t max)
{
	assert_true(vb_resp_ring_fits(&resp, max));
	memset(other, 0, sizeof(other));
	assert_ptr_equal(vb_resp_ring_replace(&resp, other, max), resources);
	assert_int_equal(resp.resources_max, max);
}

/* IBA 9.7.4.1.5: an atomic that comes again is answered from memory, wherever that lies now. */
RESP_TEST(what_is_kept_for_duplicates_moves_along)
{
	for (uint32_t max = RESOURCES; max <= PLACES; max += PLACES - RESOURCES) {
		begin(NULL);
		for (uint32_t i = 0; i < 3 + RESOURCES; i++) {
			request(VB_OP_RC_FETCH_ADD, EPSN + i, 0, 0);
			assert_answer(VB_OP_RC_ATOMIC_ACK, EPSN + i);
		}
		replace(max);
		for (uint32_t i = 3; i < 3 + RESOURCES; i++) {
			struct vb_pkt pkt;

			assert_result(request(VB_OP_RC_FETCH_ADD, EPSN + i, 0, 0),
				      VB_RESP_DUPLICATE, VB_OK);
			pkt = response();
			assert_int_equal(pkt.atomic.orig, 1000 + i);
			assert_silent();
		}
		assert_int_equal(fake.word, 1000 + 3 + RESOURCES);
	}
}

/* A smaller one keeps the newest; places that were never used match nothing. */
RESP_TEST(a_smaller_one_keeps_the_newest)
{
	for (uint32_t i = 0; i < RESOURCES; i++) {
		request(VB_OP_RC_FETCH_ADD, EPSN + i, 0, 0);
		response();
	}
	replace(1);
	assert_result(request(VB_OP_RC_FETCH_ADD, EPSN + RESOURCES - 1, 0, 0), VB_RESP_DUPLICATE,
		      VB_OK);
	assert_int_equal(response().atomic.orig, 1000 + RESOURCES - 1);
	assert_result(request(VB_OP_RC_FETCH_ADD, EPSN, 0, 0), VB_RESP_DROPPED, VB_BAD_SEQUENCE);
	request(VB_OP_RC_FETCH_ADD, EPSN + RESOURCES, 0, 0);
	assert_int_equal(response().atomic.orig, 1000 + RESOURCES);
}

/* What has not been answered yet is, from the packet on at which it stood. */
RESP_TEST(what_is_owed_is_still_owed)
{
	request(VB_OP_RC_READ_REQ, EPSN, 0, 3 * MTU);
	request(VB_OP_RC_READ_REQ, EPSN + 3, 0, MTU);
	assert_answer(VB_OP_RC_READ_RESP_FIRST, EPSN);
	assert_false(vb_resp_ring_fits(&resp, 1));
	assert_true(vb_resp_ring_fits(&resp, 2));
	replace(2);
	assert_answer(VB_OP_RC_READ_RESP_MIDDLE, EPSN + 1);
	assert_answer(VB_OP_RC_READ_RESP_LAST, EPSN + 2);
	assert_answer(VB_OP_RC_READ_RESP_ONLY, EPSN + 3);
	assert_silent();
	assert_true(vb_resp_ring_fits(&resp, 0));
}

/* As many as were agreed anew may wait, and no more. */
RESP_TEST(the_new_number_counts)
{
	replace(PLACES);
	for (uint32_t i = 0; i < PLACES; i++)
		assert_result(request(VB_OP_RC_READ_REQ, EPSN + i, 0, 8), VB_RESP_OWES, VB_OK);
	assert_result(request(VB_OP_RC_READ_REQ, EPSN + PLACES, 0, 8), VB_RESP_FAILED,
		      VB_BAD_RESOURCES);
}
