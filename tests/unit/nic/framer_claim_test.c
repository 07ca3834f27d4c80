/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifications that the host promises a burst: ICRCs are made for them, and no claim is kept.
 * Nor is the place where the burst was built.
 */
#include "nic_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/guard.h"
#include "packets.h"

enum { MTU = 1024, FRAMES = 60, BYTES = FRAMES * MTU - 100 };

static struct {
	struct vb_mr *mr;
	uint8_t *data;
	bool busy;	/* there is no claim */
	uint16_t next;	/* what the next claim says */
	bool claimed;	/* one is out */
	unsigned made, given_back;
	unsigned full;	/* so many bursts find the link full */
	unsigned frames;
} ends;

static void *host_claim(void *arg, uint16_t src_slot, const struct vb_path *path,
			uint16_t *first_id)
{
	assert_int_equal(src_slot, 3);
	assert_memory_equal(path->dst, peer_gid, VB_GID_BYTES);
	assert_false(ends.claimed);
	if (ends.busy)
		return NULL;
	ends.claimed = true;
	ends.made++;
	*first_id = ends.next;
	return &ends;
}

static void host_unclaim(void *arg, uint16_t src_slot, void *claim)
{
	assert_ptr_equal(claim, &ends);
	assert_true(ends.claimed);
	ends.claimed = false;
	ends.given_back++;
}

static int host_tx(void *arg, uint16_t src_slot, const struct vb_burst *burst)
{
	assert_int_equal(burst->claim != NULL, ends.claimed);
	assert_int_equal(burst->first_id, ends.claimed ? ends.next : 0);
	assert_int_equal(burst_right(burst), burst->frames);
	ends.claimed = false;
	if (ends.full) {
		ends.full--;
		return EAGAIN;
	}
	ends.next++;
	ends.frames += burst->frames;
	return 0;
}

static int begin_claims(void **state)
{
	int rc = begin(state);

	memset(&ends, 0, sizeof(ends));
	ends.next = 0xffd0; /* long bursts go round to 0 */
	fix.nic->host.wire.tx = host_tx;
	fix.nic->host.wire.claim = host_claim;
	fix.nic->host.wire.unclaim = host_unclaim;
	ends.data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ends.data, MAP_FAILED);
	assert_int_equal(vb_mr_reg(fix.pd, ends.data, BYTES, (uintptr_t)ends.data, 0, &ends.mr),
			 0);
	connect_as(IBV_QPT_RC);
	return rc;
}

static int end_claims(void **state)
{
	assert_false(ends.claimed);
	disconnect();
	assert_int_equal(vb_mr_dereg(ends.mr), 0);
	assert_int_equal(munmap(ends.data, BYTES), 0);
	return end(state);
}

#define FRAMER_CLAIM_TEST(name) TEST_BETWEEN(name, begin_claims, end_claims)

static void post(uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)ends.data, .length = bytes,
			       .lkey = ends.mr->ibv.lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	assert_int_equal(vb_qp_post_send(fix.qp, &wr, &bad), 0);
}

FRAMER_CLAIM_TEST(sums_are_made_for_what_is_claimed)
{
	post(20);
	assert_int_equal(ends.frames, 1);
	post(BYTES);
	assert_int_equal(ends.frames, 1 + FRAMES);
	assert_true(ends.made >= 2);
	assert_int_equal(ends.given_back, 0);
}

FRAMER_CLAIM_TEST(without_a_claim_they_are_made_for_0)
{
	ends.busy = true;
	post(20);
	post(BYTES);
	assert_int_equal(ends.frames, 1 + FRAMES);
}

/* What finds the link full is made again, for another claim. */
FRAMER_CLAIM_TEST(a_full_link_ends_a_claim)
{
	ends.full = 1;
	post(BYTES);
	assert_int_equal(ends.frames, 0);
	assert_int_equal(ends.made, 1);
	ends.next += 5;
	fake_ns = vb_nic_deadline_ns(fix.nic);
	vb_nic_turn(fix.nic);
	assert_int_equal(ends.frames, FRAMES);
}

/* Other threads are at all places but one where frames are built, and that one is new. */
FRAMER_CLAIM_TEST(there_is_a_place_for_each_thread)
{
	struct vb_framer_seat *seats = fix.nic->wire.framers, *last = &seats[VB_FRAMERS - 1];

	assert_null(last->framer);
	for (struct vb_framer_seat *seat = seats; seat < last; seat++)
		atomic_store(&seat->lock.taken, 1);
	post(20);
	assert_int_equal(ends.frames, 1);
	assert_non_null(last->framer);
	/* Given back. */
	assert_true(vb_lock_try(&last->lock));
	vb_lock_drop(&last->lock);
	for (struct vb_framer_seat *seat = seats; seat < last; seat++)
		atomic_store(&seat->lock.taken, 0);
}

static void on_fault(int signal)
{
	vb_guard_fault();
	abort();
}

FRAMER_CLAIM_TEST(what_cannot_be_read_gives_it_back)
{
	struct sigaction before, action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	struct ibv_wc wc;

	assert_int_equal(mprotect(ends.data, BYTES, PROT_NONE), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	post(MTU); /* summed up where it lies */
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(ends.frames, 0);
	assert_int_equal(ends.made, 1);
	assert_int_equal(ends.given_back, 1);
	assert_int_equal(vb_cq_poll(fix.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
}
