/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "engine/resp.h"
#include "group.h"
#include "nic/control/store.h"

/* What processes share of XRC: who has what, and what goes with the last of them. */

enum { A = 3, B = 7, C = 1023 }; /* processes, by their slots */

static const uint64_t file[2] = { 5, 1234 }, other[2] = { 6, 1234 };
static struct vb_store *all;
static struct vb_xrc_store *store;

static int begin(void **state)
{
	all = calloc(1, sizeof(*all));
	store = &all->xrc;
	vb_xrc_store_init(store);
	return all == NULL;
}

static int end(void **state)
{
	free(all);
	return 0;
}

#define XRC_STORE_TEST(name) TEST_BETWEEN(name, begin, end)

static uint64_t opened(const uint64_t *of, int flags, uint16_t slot)
{
	uint64_t id;

	assert_int_equal(vb_xrc_domain_open(store, of, flags, slot, &id), 0);
	return id;
}

static void expect_none(const uint64_t *of, int flags, int err)
{
	uint64_t id = 77;

	assert_int_equal(vb_xrc_domain_open(store, of, flags, A, &id), err);
	assert_int_equal(id, 77);
}

static uint32_t made(uint64_t domain, uint16_t slot)
{
	uint32_t qpn;

	assert_int_equal(vb_xrc_rcv_make(store, domain, slot, &qpn), 0);
	return qpn;
}

static bool lives(uint32_t qpn)
{
	const struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, qpn);

	return rcv && atomic_load(&rcv->domain) != 0;
}

XRC_STORE_TEST(a_domain_is_that_of_a_file)
{
	uint64_t id;

	expect_none(file, 0, ENOENT);
	id = opened(file, O_CREAT | O_EXCL, A);
	assert_int_equal(opened(file, O_CREAT, B), id);
	assert_int_equal(opened(file, 0, A), id);
	expect_none(file, O_CREAT | O_EXCL, EEXIST);
	assert_int_not_equal(opened(other, O_CREAT, A), id);
	expect_none(NULL, 0, EINVAL);
	assert_int_not_equal(opened(NULL, O_CREAT, A), opened(NULL, O_CREAT, A));
}

XRC_STORE_TEST(it_goes_with_its_last_reference)
{
	uint64_t id = opened(file, O_CREAT, A);

	opened(file, 0, A);
	opened(file, 0, B);
	vb_xrc_domain_close(store, id, A);
	vb_xrc_domain_close(store, id, A);
	vb_xrc_domain_close(store, id, A); /* none is left to give back */
	assert_int_equal(opened(file, 0, C), id);
	vb_xrc_domain_close(store, id, C);
	vb_xrc_domain_close(store, id, B);
	expect_none(file, 0, ENOENT);
	assert_int_not_equal(opened(file, O_CREAT, A), id);
}

XRC_STORE_TEST(a_receive_qp_goes_with_its_last_holder)
{
	uint64_t id = opened(file, O_CREAT, A), strange = opened(NULL, O_CREAT, B);
	uint32_t qpn = made(id, A);

	assert_int_equal(vb_xrc_rcv_open(store, strange, qpn, B), EINVAL);
	assert_int_equal(vb_xrc_rcv_open(store, id, qpn + 1, B), EINVAL);
	assert_int_equal(vb_xrc_rcv_open(store, id, 0xffffff, B), EINVAL);
	assert_int_equal(vb_xrc_rcv_open(store, id, qpn, B), 0);
	vb_xrc_rcv_close(store, qpn, A);
	assert_true(lives(qpn));
	vb_xrc_rcv_close(store, qpn, A); /* has it no more */
	assert_true(lives(qpn));
	vb_xrc_rcv_close(store, qpn, B);
	assert_false(lives(qpn));
}

/* RFC: "persists until the XRC domain is closed", whoever made it. */
XRC_STORE_TEST(what_the_dead_made_lives_as_long_as_its_domain)
{
	uint64_t id = opened(file, O_CREAT, A);
	bool holders[VB_SLOTS];
	uint32_t qpn = made(id, A);

	opened(file, 0, B);
	assert_true(vb_xrc_collect(store, A));
	assert_false(vb_xrc_collect(store, A));
	assert_true(lives(qpn));
	assert_true(vb_xrc_holders(store, holders));
	assert_true(holders[B] && !holders[A]);
	assert_int_equal(vb_xrc_rcv_open(store, id, qpn, B), 0);
	assert_true(vb_xrc_collect(store, B));
	assert_false(lives(qpn));
	expect_none(file, 0, ENOENT);
	assert_false(vb_xrc_holders(store, holders));
}

XRC_STORE_TEST(numbers_go_on_counting)
{
	uint64_t id = opened(file, O_CREAT, A);
	uint32_t first = made(id, A), next;

	vb_xrc_rcv_close(store, first, A);
	next = made(id, A);
	assert_int_not_equal(first, next);
	for (uint32_t i = 1; i < VB_XRC_RCVS_MAX - VB_XRC_INDEX_FIRST; i++)
		assert_true(made(id, A) >= VB_XRC_INDEX_FIRST);
	assert_int_equal(vb_xrc_rcv_make(store, id, A, &next), ENOMEM);
	vb_xrc_domain_close(store, id, A);
	assert_false(lives(first));
}

XRC_STORE_TEST(there_are_so_many_domains)
{
	uint64_t id = 0;

	for (unsigned i = 0; i < VB_XRC_DOMAINS_MAX; i++)
		id = opened(NULL, O_CREAT, A);
	expect_none(file, O_CREAT, ENOMEM);
	vb_xrc_domain_close(store, id, A);
	opened(file, O_CREAT, A);
}

XRC_STORE_TEST(what_it_is_set_to_is_read_whole)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, made(opened(file, O_CREAT, A), A));
	struct vb_xrc_attr at = { .attr = { .qp_state = IBV_QPS_RTR,
					   .path_mtu = IBV_MTU_1024,
					   .rq_psn = 0xabcdef } },
			   now;
	uint32_t seq, again, life = atomic_load(&rcv->life);

	vb_xrc_rcv_write(rcv, &at, true);
	assert_true(vb_xrc_rcv_read(rcv, &now, &seq));
	assert_int_equal(now.attr.rq_psn, 0xabcdef);
	assert_int_equal(vb_xrc_at(atomic_load(&rcv->word)).epsn, 0xabcdef);
	assert_int_not_equal(atomic_load(&rcv->life), life);
	life = atomic_load(&rcv->life);
	vb_xrc_rcv_write(rcv, &at, false);
	assert_int_equal(atomic_load(&rcv->life), life);
	assert_true(vb_xrc_rcv_read(rcv, &now, &again));
	assert_int_not_equal(again, seq);
}

enum { WRITES = 20000 };

static _Atomic bool written;

static void *write_often(void *arg)
{
	for (uint32_t i = 1; i <= WRITES; i++) {
		struct vb_xrc_attr at = { .attr = { .rq_psn = i, .dest_qp_num = i },
					  .path.ifindex = i };

		vb_xrc_rcv_write(arg, &at, false);
		if (i % 16 == 0)
			vb_xrc_rcv_state_set(arg, IBV_QPS_ERR);
	}
	atomic_store(&written, true);
	return NULL;
}

/* Who receives reads it with no lock, while others change it. */
XRC_STORE_TEST(it_is_read_whole_while_it_is_written)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, made(opened(file, O_CREAT, A), A));
	struct vb_xrc_attr now;
	bool whole = true, last;
	pthread_t thread;
	uint32_t seq;

	atomic_store(&written, false);
	assert_int_equal(pthread_create(&thread, NULL, write_often, rcv), 0);
	do {
		last = atomic_load(&written);
		if (vb_xrc_rcv_read(rcv, &now, &seq))
			whole &= now.attr.rq_psn == now.attr.dest_qp_num &&
				 now.attr.rq_psn == now.path.ifindex;
	} while (!last);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(whole);
	assert_int_equal(now.attr.rq_psn, WRITES);
	assert_int_equal(now.attr.qp_state, IBV_QPS_ERR);
}

/* Whoever died while it wrote leaves an odd number: nobody reads what is half there. */
XRC_STORE_TEST(what_is_half_written_is_in_error)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, made(opened(file, O_CREAT, A), A));
	struct vb_xrc_attr now;
	uint32_t seq;

	atomic_fetch_add(&rcv->seq, 1);
	assert_false(vb_xrc_rcv_read(rcv, &now, &seq));
	vb_xrc_store_repair(store);
	assert_true(vb_xrc_rcv_read(rcv, &now, &seq));
	assert_int_equal(now.attr.qp_state, IBV_QPS_ERR);
}

TEST(how_far_it_has_come_is_one_word)
{
	struct vb_xrc_at at = { .epsn = 0xfedcba, .msn = 0x123456, .slot = C }, back;

	back = vb_xrc_at(vb_xrc_word(at));
	assert_int_equal(back.epsn, at.epsn);
	assert_int_equal(back.msn, at.msn);
	assert_int_equal(back.slot, at.slot);
}

/* --- anybody may write anything there --- */

enum { ROUNDS = 300, CALLS = 8, NUMBERS = 16 };

static uint64_t random_state = 20;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* All of it, or what leads somewhere: counts and places, which are few among all the octets. */
static void scribble(void)
{
	uint32_t *const counts[] = { &store->next_rcv, &store->domains_top, &store->rcvs_top,
				     &store->srqs.top, &store->srqs.next };
	uint64_t *words = (uint64_t *)all;

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		*counts[i] = random_next() & 1 ? (uint32_t)random_next() : UINT32_MAX;
	atomic_store(&store->log.count, random_next() & 1 ? random_next() : UINT64_MAX);
	atomic_store(&all->segment.uplink, (uint32_t)random_next());
	for (unsigned i = 0; i < sizeof(*all) / sizeof(*words) / 16; i++)
		words[random_next() % (sizeof(*all) / sizeof(*words))] = random_next();
	for (unsigned i = 0; i < VB_SEGMENT_WORDS; i++)
		atomic_store(&all->segment.members[i], random_next() | random_next());
}

static void attr_expect_sane(const struct vb_xrc_attr *at)
{
	assert_in_range(at->attr.qp_state, IBV_QPS_RESET, IBV_QPS_ERR);
	assert_in_range(at->attr.path_mtu, 0, IBV_MTU_4096);
	assert_in_range(at->attr.max_dest_rd_atomic, 0, VB_RD_ATOMIC_MAX);
	assert_in_range(at->attr.min_rnr_timer, 0, 31);
	assert_in_range(at->attr.rq_psn, 0, 0xffffff);
}

static void receive_qps_use(uint64_t id)
{
	struct vb_xrc_attr at;
	uint32_t qpn, seq;

	if (vb_xrc_rcv_make(store, id, A, &qpn) == 0) {
		vb_xrc_rcv_open(store, id, qpn, B);
		vb_xrc_rcv_register(store, id, qpn, B);
		vb_xrc_rcv_unregister(store, id, qpn, B);
		vb_xrc_rcv_close(store, qpn, B);
	}
	for (unsigned i = 0; i < NUMBERS; i++) {
		qpn = (uint32_t)random_next() % (2 * VB_XRC_RCVS_MAX);
		vb_xrc_rcv_open(store, id, qpn, A);
		vb_xrc_rcv_close(store, qpn, A);
		if (!vb_xrc_rcv_of(store, qpn))
			continue;
		vb_xrc_rcv_get(vb_xrc_rcv_of(store, qpn), &at);
		attr_expect_sane(&at);
		if (vb_xrc_rcv_read(vb_xrc_rcv_of(store, qpn), &at, &seq))
			attr_expect_sane(&at);
		vb_xrc_rcv_state_set(vb_xrc_rcv_of(store, qpn), IBV_QPS_ERR);
	}
}

static void notes_use(uint64_t id)
{
	struct vb_xrc_note note = { .domain = id };
	uint64_t count = atomic_load(&store->log.count);
	uint32_t place;

	if (vb_xrc_srq_note(&store->srqs, id, 5, A, &place) == 0) {
		assert_in_range(place, 0, VB_XRC_SRQS_MAX - 1);
		vb_xrc_srq_strike(&store->srqs, place, 5);
	}
	vb_xrc_log_add(&store->log, &note);
	for (uint64_t i = vb_xrc_log_first(count); i < count; i++)
		vb_xrc_log_read(&store->log, i, &note);
	vb_segment_wants(&all->segment, C, random_next());
}

XRC_STORE_TEST(garbage_leads_nowhere)
{
	bool holders[VB_SLOTS];
	uint64_t id;

	for (unsigned i = 0; i < ROUNDS / CALLS; i++) {
		scribble();
		store->magic = VB_XRC_MAGIC;
		store->version = VB_XRC_VERSION;
		for (unsigned k = 0; k < CALLS; k++) {
			id = 1;
			vb_xrc_domain_open(store, random_next() & 1 ? file : NULL, O_CREAT, A,
					   &id);
			receive_qps_use(id);
			notes_use(id);
			vb_xrc_domain_close(store, id, A);
		}
		/* What the hub does. */
		vb_xrc_store_repair(store);
		vb_xrc_holders(store, holders);
		vb_xrc_collect(store, A);
		vb_xrc_collect(store, (uint16_t)(random_next() % VB_SLOTS));
	}
}
