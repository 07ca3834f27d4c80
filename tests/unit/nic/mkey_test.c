/* SPDX-License-Identifier: BSD-2-Clause */

/* Indirect keys seen from inside: where they lead, whom they let in, and what becomes of them. */
#include "nic/mem/mem_kinds.h"
#include "nic_fixture.h"

#include <pthread.h>
#include <stdlib.h>

#include "nic/control/qp_dv.h"
#include "nic/data/window.h"
#include "nic/mem/mkey.h"
#include "nic/core/export.h"
#include "nic/way/send.h"

enum { BYTES = 4096, ROOM = 31, INLINE_BYTES = ROOM * 16 };

#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL (REMOTE | IBV_ACCESS_LOCAL_WRITE)

static uint8_t memory[2][BYTES] __attribute__((aligned(4096)));

static struct {
	struct vb_cq *cq;
	struct vb_qp *qp;
	struct vb_mr *mr[2];
	struct vb_mkey *mkey;
	struct {
		struct vb_mkey_request request;
		struct vb_mkey_entry room[VB_MKEY_ENTRIES_MAX];
	} ask;
} k;

static struct vb_qp *make_mkey_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = &k.cq->ibv.cq, .recv_cq = &k.cq->ibv.cq, .qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = &fix.pd->ibv,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = INLINE_BYTES },
	};
	const struct vb_qp_dv_attr dv = { .flags = VB_QP_MKEY_CONFIGURE | VB_QP_MEMCPY };
	struct vb_qp *qp;

	assert_int_equal(vb_qp_create_dv(&init, &dv, &qp), 0);
	bring(qp, IBV_QPS_RTS);
	return qp;
}

static int open_with(uint32_t flags)
{
	uint16_t entries = ROOM + 1;

	begin(NULL);
	memset(&k, 0, sizeof(k));
	k.cq = make_cq(16, NULL);
	k.qp = make_mkey_qp();
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned b = 0; b < BYTES; b++)
			memory[i][b] = (uint8_t)(b * 7 + i);
		assert_int_equal(vb_mr_reg(fix.pd, memory[i], BYTES, (uintptr_t)memory[i],
					   IBV_ACCESS_LOCAL_WRITE, &k.mr[i]), 0);
	}
	assert_int_equal(vb_mkey_create(fix.pd, flags, &entries, &k.mkey), 0);
	assert_int_equal(entries, ROOM + 1);
	return 0;
}

static int open(void **state)
{
	return open_with(0);
}

static int open_all(void **state)
{
	return open_with(VB_MKEY_UPDATE_TAG | VB_MKEY_REMOTE_INVALIDATE);
}

static int close(void **state)
{
	if (k.mkey)
		assert_int_equal(vb_mkey_destroy(k.mkey), 0);
	for (unsigned i = 0; i < 2; i++) {
		if (k.mr[i])
			assert_int_equal(vb_mr_dereg(k.mr[i]), 0);
	}
	drop_qp(k.qp);
	drop_cq(k.cq);
	return end(state);
}

#define MKEY_TEST_ALL(name) TEST_BETWEEN(name, open_all, close)
#define MKEY_TEST(name) TEST_BETWEEN(name, open, close)

/* --- what is asked for --- */

static void request_begin(unsigned setters)
{
	assert_int_equal(vb_mkey_request_begin(&k.ask.request, &k.qp->made.cap, k.mkey, setters),
			 0);
}

static int post(const struct vb_post *post)
{
	return vb_qp_post_batch(k.qp, post, 1);
}

static int post_request(void)
{
	const struct vb_post request = {
		.wr = { .opcode = (enum ibv_wr_opcode)VB_WR_MKEY, .send_flags = IBV_SEND_SIGNALED },
		.mkey = &k.ask.request,
	};

	return post(&request);
}

static void assert_completes(enum ibv_wc_status status, int opcode)
{
	struct ibv_wc wc;

	assert_int_equal(vb_cq_poll(k.cq, 1, &wc), 1);
	assert_int_equal(wc.status, status);
	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
}

static void configure(uint32_t access, uint32_t repeat, uint32_t count,
		      const struct vb_mkey_entry *entries)
{
	request_begin(2);
	assert_int_equal(vb_mkey_request_access(&k.ask.request, access), 0);
	assert_int_equal(vb_mkey_request_layout(&k.ask.request, repeat, count, entries), 0);
	assert_int_equal(post_request(), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER1);
}

static struct vb_mkey_entry entry(unsigned mr, unsigned from, uint32_t bytes, uint32_t skip)
{
	return (struct vb_mkey_entry){ .addr = (uintptr_t)memory[mr] + from, .bytes = bytes,
				       .skip = skip, .lkey = k.mr[mr]->ibv.lkey };
}

static int invalidate(uint32_t key)
{
	const struct vb_post request = {
		.wr = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = key },
	};

	return post(&request);
}

static uint8_t *get(uint32_t key, uint64_t va, uint64_t bytes, unsigned access)
{
	return vb_mr_get(fix.nic, &fix.pd->ibv, key, va, bytes, access);
}

/* Walk, and say in which pieces: false if it was refused before the end. */
static bool walk(uint64_t va, uint64_t bytes, unsigned access, const uint8_t **at, unsigned *pieces)
{
	struct vb_walk w;
	uint8_t *from;
	uint64_t n;

	*pieces = 0;
	vb_walk_begin(&w, fix.nic, &fix.pd->ibv, k.mkey->lkey, va, bytes, access);
	while ((from = vb_walk_next(&w, UINT64_MAX, &n))) {
		for (uint64_t i = 0; i < n; i++)
			*at++ = from + i;
		++*pieces;
	}
	return !w.bytes;
}

/* --- where a key leads --- */

/* Every octet of every stretch is the one that a plain list of octets says. */
static void assert_leads(const uint8_t *const *octets, unsigned total)
{
	const uint8_t *at[512];
	unsigned pieces;

	for (unsigned va = 0; va <= total; va++) {
		for (unsigned n = 1; n <= total + 1; n++) {
			bool inside = va + n <= total;
			bool whole = inside;

			assert_int_equal(walk(va, n, 0, at, &pieces), inside);
			assert_int_equal(vb_mkey_allows(fix.nic, &fix.pd->ibv, k.mkey->lkey, va, n,
							0),
					 inside);
			for (unsigned i = 0; inside && i < n; i++) {
				assert_ptr_equal(at[i], octets[va + i]);
				whole = whole && at[i] == at[0] + i && pieces == 1;
			}
			assert_ptr_equal(get(k.mkey->lkey, va, n, 0), whole ? octets[va] : NULL);
		}
	}
}

MKEY_TEST(it_leads_to_pieces_one_behind_the_other)
{
	const struct vb_mkey_entry entries[] = {
		entry(0, 100, 7, 0), entry(1, 3, 0, 0), entry(1, 50, 1, 0), entry(0, 0, 16, 0),
		entry(0, 500, 0, 0),
	};
	const uint8_t *octets[64];
	unsigned n = 0;

	for (unsigned e = 0; e < VB_ARRAY_LEN(entries); e++) {
		for (unsigned i = 0; i < entries[e].bytes; i++)
			octets[n++] = (const uint8_t *)(uintptr_t)entries[e].addr + i;
	}
	configure(0, 1, VB_ARRAY_LEN(entries), entries);
	assert_leads(octets, n);
}

MKEY_TEST(it_leads_over_gaps_row_by_row)
{
	const struct vb_mkey_entry entries[] = {
		entry(0, 100, 3, 5), entry(1, 200, 4, 0), entry(1, 300, 0, 9), entry(0, 900, 1, 40),
	};
	const uint8_t *octets[64];
	unsigned n = 0;

	for (unsigned row = 0; row < 4; row++) {
		for (unsigned e = 0; e < VB_ARRAY_LEN(entries); e++) {
			uint64_t step = entries[e].bytes + entries[e].skip;

			for (unsigned i = 0; i < entries[e].bytes; i++)
				octets[n++] = (const uint8_t *)(uintptr_t)(entries[e].addr +
									   row * step) + i;
		}
	}
	configure(0, 4, VB_ARRAY_LEN(entries), entries);
	assert_leads(octets, n);
}

MKEY_TEST(nothing_lies_behind_an_empty_layout)
{
	const struct vb_mkey_entry nothing = entry(0, 0, 0, 8);
	const uint8_t *at[1];
	unsigned pieces;

	configure(ALL, 3, 0, NULL);
	assert_null(get(k.mkey->lkey, 0, 1, 0));
	assert_true(walk(0, 0, 0, at, &pieces));
	configure(ALL, 3, 1, &nothing);
	assert_null(get(k.mkey->lkey, 0, 1, 0));
	configure(ALL, 0, 1, (struct vb_mkey_entry[]){ entry(0, 0, 8, 0) });
	assert_null(get(k.mkey->lkey, 0, 1, 0));
}

MKEY_TEST(a_layout_may_be_larger_than_any_memory)
{
	const struct vb_mkey_entry huge[] = { entry(0, 0, UINT32_MAX, UINT32_MAX),
					      entry(1, 0, UINT32_MAX, 0) };
	uint64_t last = 2ull * UINT32_MAX * 1000 - 1;

	configure(0, 1000, 2, huge);
	assert_ptr_equal(get(k.mkey->lkey, 8, 8, 0), memory[0] + 8);
	assert_ptr_equal(get(k.mkey->lkey, (uint64_t)UINT32_MAX + 9, 8, 0), memory[1] + 9);
	/* The key lets in, the region does not. */
	assert_true(vb_mkey_allows(fix.nic, &fix.pd->ibv, k.mkey->lkey, last, 1, 0));
	assert_null(get(k.mkey->lkey, last, 1, 0));
	assert_false(vb_mkey_allows(fix.nic, &fix.pd->ibv, k.mkey->lkey, last + 1, 1, 0));
	assert_false(vb_mkey_allows(fix.nic, &fix.pd->ibv, k.mkey->lkey, 1, UINT64_MAX, 0));
	request_begin(2);
	assert_int_equal(vb_mkey_request_layout(&k.ask.request, UINT32_MAX, 2, huge), EINVAL);
	assert_int_equal(vb_mkey_request_layout(&k.ask.request, 2, 2, huge), 0);
}

/* --- whom it lets in --- */

MKEY_TEST(rights_are_the_keys_and_the_regions)
{
	static const unsigned rights[] = { 0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ,
					   IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC,
					   VB_ACCESS_FLUSH_GLOBAL };
	struct vb_mr *read_only;
	struct vb_mkey_entry entries[2] = { entry(0, 0, 8, 0) };

	assert_int_equal(vb_mr_reg(fix.pd, memory[1], BYTES, (uintptr_t)memory[1], 0, &read_only),
			 0);
	entries[1] = (struct vb_mkey_entry){ .addr = (uintptr_t)memory[1], .bytes = 8,
					     .lkey = read_only->ibv.lkey };
	for (unsigned given = 0; given <= ALL; given++) {
		if (given & ~ALL)
			continue;
		configure(given, 1, 2, entries);
		for (unsigned i = 0; i < VB_ARRAY_LEN(rights); i++) {
			unsigned want = rights[i];
			bool reads = !(want & ~(unsigned)IBV_ACCESS_REMOTE_READ);
			bool granted = (given & want) == want;

			assert_int_equal(get(k.mkey->lkey, 0, 8, want) == memory[0], granted);
			assert_int_equal(get(k.mkey->lkey, 8, 8, want) == memory[1],
					 granted && reads);
		}
	}
	assert_int_equal(vb_mr_dereg(read_only), 0);
	assert_null(get(k.mkey->lkey, 8, 8, 0));
}

MKEY_TEST(it_is_for_its_pd_and_leads_into_it)
{
	struct vb_mkey_entry entries[1] = { entry(0, 0, 8, 0) };
	struct vb_pd *other;
	struct vb_mr *mr;

	assert_int_equal(vb_pd_create(fix.ctx, &other), 0);
	configure(ALL, 1, 1, entries);
	assert_non_null(get(k.mkey->lkey, 0, 8, IBV_ACCESS_REMOTE_ATOMIC));
	assert_null(vb_mr_get(fix.nic, &other->ibv, k.mkey->lkey, 0, 8, 0));
	assert_int_equal(vb_mr_reg(other, memory[0], 8, (uintptr_t)memory[0], 0, &mr), 0);
	entries[0].lkey = mr->ibv.lkey;
	configure(ALL, 1, 1, entries);
	assert_null(get(k.mkey->lkey, 0, 8, 0));
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_pd_destroy(other), 0);
}

/* Otherwise a key that leads to itself would lead nowhere. */
MKEY_TEST(it_leads_to_no_indirect_key)
{
	const struct vb_mkey_entry itself = { .bytes = 8, .lkey = k.mkey->lkey };

	configure(ALL, 1, 1, &itself);
	assert_null(get(k.mkey->lkey, 0, 8, 0));
}

MKEY_TEST(peers_find_no_way_in)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);
	struct vb_export_region region;
	uint32_t key = k.mkey->rkey;

	configure(ALL, 1, 1, &one);
	assert_true(vb_export_key_read(&fix.nic->export->key[vb_key_place(key)], &region));
	assert_int_equal(region.key, key);
	assert_false(vb_export_region_allows(&region, fix.pd->id, key, 0, 8, 0));
	assert_true(atomic_load(&fix.nic->export->key[vb_key_place(key)].shared) < 0);
	assert_null(vb_window_get(k.qp->nic, k.qp->ibv.qp.pd, k.qp->ibv.qp.qp_num, key, 0, 8,
				  IBV_ACCESS_REMOTE_READ));
	assert_int_equal(vb_mr_advise(fix.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0),
			 EOPNOTSUPP); /* nobody fetches here */
}

/* --- what becomes of it --- */

MKEY_TEST(it_is_nothing_before_and_after)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);
	uint32_t key = k.mkey->lkey;

	assert_null(get(key, 0, 1, 0));
	assert_int_equal(k.mkey->rkey, key);
	configure(ALL, 1, 1, &one);
	for (unsigned bit = 0; bit < 32; bit++)
		assert_null(get(key ^ 1u << bit, 0, 8, 0));
	assert_int_equal(invalidate(key), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
	assert_null(get(key, 0, 1, 0));
	configure(ALL, 1, 1, &one);
	assert_non_null(get(key, 0, 1, 0));
	assert_int_equal(vb_mkey_destroy(k.mkey), 0);
	assert_null(get(key, 0, 1, 0));
	assert_int_equal(vb_mkey_destroy(k.mkey), EINVAL);
	k.mkey = NULL;
}

MKEY_TEST(clearing_clears_rights_as_well)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);

	configure(ALL, 1, 1, &one);
	assert_int_equal(invalidate(k.mkey->lkey), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
	request_begin(1);
	assert_int_equal(vb_mkey_request_layout(&k.ask.request, 1, 1, &one), 0);
	assert_int_equal(post_request(), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER1);
	assert_non_null(get(k.mkey->lkey, 0, 64, 0));
	for (unsigned bit = 1; bit <= ALL; bit <<= 1)
		assert_null(get(k.mkey->lkey, 0, 64, bit));
}

MKEY_TEST(nothing_can_be_cleared_twice)
{
	assert_int_equal(invalidate(k.mkey->lkey), 0);
	assert_completes(IBV_WC_MW_BIND_ERR, 0);
	assert_int_equal(vb_qp_state(k.qp), IBV_QPS_ERR);
}

MKEY_TEST(a_peer_clears_what_is_made_for_it)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);

	configure(ALL, 1, 1, &one);
	assert_int_equal(vb_window_invalidate(k.qp, k.mkey->rkey),
			 (k.mkey->flags & VB_MKEY_REMOTE_INVALIDATE) != 0);
	assert_int_equal(get(k.mkey->lkey, 0, 64, 0) != NULL,
			 !(k.mkey->flags & VB_MKEY_REMOTE_INVALIDATE));
}

MKEY_TEST_ALL(the_tag_changes_with_the_next_request)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);
	uint32_t before = k.mkey->lkey;

	configure(ALL, 1, 1, &one);
	k.mkey->lkey ^= 0xff;
	assert_non_null(get(before, 0, 64, 0));
	request_begin(0);
	assert_int_equal(post_request(), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER1);
	assert_null(get(before, 0, 64, 0));
	assert_non_null(get(k.mkey->lkey, 0, 64, 0));
	assert_int_equal(invalidate(before), 0);
	assert_completes(IBV_WC_MW_BIND_ERR, 0);
	assert_non_null(get(k.mkey->lkey, 0, 64, 0));
}

MKEY_TEST(the_tag_stays_unless_asked_for)
{
	k.mkey->lkey ^= 1;
	assert_int_equal(vb_mkey_request_begin(&k.ask.request, &k.qp->made.cap, k.mkey, 0),
			 EOPNOTSUPP);
	k.mkey->lkey ^= 1;
	request_begin(0);
}

/* A walk that has begun ends where the key is changed: nobody gets half of one, half of another. */
MKEY_TEST(a_change_ends_a_walk)
{
	const struct vb_mkey_entry entries[] = { entry(0, 0, 8, 0), entry(1, 0, 8, 0) };
	struct vb_walk w;
	uint64_t n;

	configure(ALL, 2, 2, entries);
	vb_walk_begin(&w, fix.nic, &fix.pd->ibv, k.mkey->lkey, 4, 16, 0);
	assert_ptr_equal(vb_walk_next(&w, 3, &n), memory[0] + 4);
	assert_int_equal(n, 3);
	assert_ptr_equal(vb_walk_next(&w, 64, &n), memory[0] + 7);
	assert_int_equal(n, 1);
	configure(ALL, 2, 2, entries);
	assert_null(vb_walk_next(&w, 64, &n));
	assert_int_equal(w.bytes, 12);
}

/* Its memory is used again, and whoever still looks at it sees that. */
MKEY_TEST(what_was_destroyed_is_used_again)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);
	struct vb_mkey *before = k.mkey;
	uint32_t key = k.mkey->lkey;
	uint16_t entries = 1;
	struct vb_walk w;
	uint64_t n;

	configure(ALL, 1, 1, &one);
	vb_walk_begin(&w, fix.nic, &fix.pd->ibv, key, 0, 64, 0);
	assert_int_equal(vb_mkey_destroy(k.mkey), 0);
	assert_int_equal(vb_mkey_create(fix.pd, 0, &entries, &k.mkey), 0);
	assert_ptr_equal(k.mkey, before);
	assert_int_not_equal(k.mkey->lkey, key);
	assert_null(vb_walk_next(&w, 64, &n));
	assert_null(get(k.mkey->lkey, 0, 1, 0));
}

/* Other QPs' threads look while it is changed: what they are led to is of one layout or of none. */
enum { LOOKS = 3000 };

static void *look(void *looks)
{
	uintptr_t mixed = 0;

	while (atomic_fetch_add((_Atomic unsigned *)looks, 1) < LOOKS) {
		const uint8_t *at;
		unsigned seen = 0;
		struct vb_walk w;
		uint64_t n;

		vb_walk_begin(&w, fix.nic, &fix.pd->ibv, k.mkey->lkey, 0, 3200, 0);
		while ((at = vb_walk_next(&w, 4, &n)))
			seen |= at < memory[1] ? 1 : 2;
		mixed += seen == 3;
		at = get(k.mkey->lkey, 4, 4, 0);
		mixed += at && at != memory[0] + 2048 && at != memory[1] + 2048;
	}
	return (void *)mixed;
}

MKEY_TEST(who_looks_meanwhile_sees_one_layout)
{
	const struct vb_mkey_entry layouts[2][2] = {
		{ entry(0, 0, 4, 0), entry(0, 2048, 4, 0) },
		{ entry(1, 0, 4, 0), entry(1, 2048, 4, 0) },
	};
	_Atomic unsigned looks = 0;
	pthread_t thread;
	void *mixed;

	assert_int_equal(pthread_create(&thread, NULL, look, &looks), 0);
	for (unsigned i = 0; atomic_load(&looks) < LOOKS; i++) {
		configure(0, 400, 2, layouts[i % 2]);
		if (i % 5 == 0) {
			assert_int_equal(invalidate(k.mkey->lkey), 0);
			assert_completes(IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
		}
	}
	assert_int_equal(pthread_join(thread, &mixed), 0);
	assert_null(mixed);
}

/* What was posted names the key: it fails if that is gone when its turn comes. */
MKEY_TEST(a_key_may_vanish_before_its_request)
{
	assert_int_equal(set_state(k.qp, IBV_QPS_SQD), 0);
	request_begin(0);
	assert_int_equal(post_request(), 0);
	assert_int_equal(vb_mkey_destroy(k.mkey), 0);
	k.mkey = NULL;
	assert_int_equal(set_state(k.qp, IBV_QPS_RTS), 0);
	assert_completes(IBV_WC_MW_BIND_ERR, 0);
}

/* --- wrong use --- */

MKEY_TEST(creation_is_checked)
{
	struct vb_mkey *mkey = NULL;
	uint16_t entries = 0;

	assert_int_equal(vb_mkey_create(fix.pd, 0, &entries, &mkey), EINVAL);
	entries = 1;
	assert_int_equal(vb_mkey_create(fix.pd, 4, &entries, &mkey), EINVAL);
	fix.nic->keys.mrs += VB_MRS_MAX;
	assert_int_equal(vb_mkey_create(fix.pd, 0, &entries, &mkey), ENOMEM);
	fix.nic->keys.mrs -= VB_MRS_MAX;
	assert_null(mkey);
	assert_int_equal(entries, 1);
	assert_int_equal(vb_mkey_create(fix.pd, 0, &entries, &mkey), 0);
	assert_true(entries >= 1);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	assert_int_equal(vb_mkey_destroy(mkey), 0);
}

MKEY_TEST(setters_are_counted)
{
	const struct vb_mkey_entry one = entry(0, 0, 64, 0);
	const struct ibv_sge sge = { .length = 8 };
	struct vb_mkey_request *request = &k.ask.request;

	request_begin(0);
	assert_int_equal(vb_mkey_request_access(request, 0), EINVAL);
	assert_int_equal(vb_mkey_request_list(request, 1, &sge), EINVAL);
	request_begin(3);
	assert_int_equal(vb_mkey_request_access(request, IBV_ACCESS_MW_BIND), EINVAL);
	assert_int_equal(vb_mkey_request_access(request, 1u << 17 | 1), EINVAL);
	assert_int_equal(vb_mkey_request_access(request, ALL), 0);
	assert_int_equal(vb_mkey_request_access(request, ALL), EINVAL);
	assert_int_equal(post_request(), EINVAL);
	assert_int_equal(vb_mkey_request_layout(request, 1, 1, &one), 0);
	assert_int_equal(vb_mkey_request_layout(request, 1, 1, &one), EINVAL);
	assert_int_equal(vb_mkey_request_list(request, 1, &sge), EINVAL);
	assert_int_equal(post_request(), EINVAL);
	request_begin(2);
	assert_int_equal(vb_mkey_request_list(request, 1, &sge), 0);
	assert_int_equal(vb_mkey_request_layout(request, 1, 1, &one), EINVAL);
}

MKEY_TEST(entries_have_room_or_not)
{
	struct vb_mkey_entry entries[VB_MKEY_ENTRIES_MAX + 1] = { { .bytes = 8 } };
	struct ibv_sge sges[VB_MKEY_ENTRIES_MAX + 1] = { { .length = 8 } };
	const struct ibv_qp_cap none = { 0 }, most = { .max_inline_data = VB_INLINE_BYTES_MAX };
	struct vb_mkey_request *request = &k.ask.request;
	struct vb_mkey *small;
	uint16_t few = 8;

	assert_int_equal(vb_mkey_room(&none), 4);
	assert_int_equal(vb_mkey_room(&most), VB_MKEY_ENTRIES_MAX);
	assert_int_equal(vb_mkey_room(&k.qp->made.cap), ROOM);
	request_begin(2);
	assert_int_equal(vb_mkey_request_list(request, ROOM + 1, sges), ENOMEM);
	assert_int_equal(vb_mkey_request_list(request, ROOM, sges), 0);
	request_begin(1);
	assert_int_equal(vb_mkey_request_layout(request, 1, ROOM, entries), ENOMEM);
	assert_int_equal(vb_mkey_request_layout(request, 1, ROOM - 1, entries), 0);
	assert_int_equal(post_request(), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER1);
	assert_int_equal(vb_mkey_create(fix.pd, 0, &few, &small), 0);
	assert_int_equal(vb_mkey_request_begin(request, &k.qp->made.cap, small, 1), 0);
	assert_int_equal(vb_mkey_request_layout(request, 1, few, entries), ENOMEM);
	assert_int_equal(vb_mkey_request_list(request, few + 1u, sges), ENOMEM);
	assert_int_equal(vb_mkey_request_list(request, few, sges), 0);
	assert_int_equal(vb_mkey_destroy(small), 0);
}

MKEY_TEST(another_pds_key_cannot_be_configured)
{
	struct vb_mkey *other_key;
	struct vb_pd *other;
	uint16_t entries = 4;

	assert_int_equal(vb_pd_create(fix.ctx, &other), 0);
	assert_int_equal(vb_mkey_create(other, 0, &entries, &other_key), 0);
	assert_int_equal(vb_mkey_request_begin(&k.ask.request, &k.qp->made.cap, other_key, 0), 0);
	assert_int_equal(post_request(), 0);
	assert_completes(IBV_WC_MW_BIND_ERR, 0);
	assert_int_equal(vb_mkey_destroy(other_key), 0);
	assert_int_equal(vb_pd_destroy(other), 0);
}

/* ibv_post_send() cannot say what is to be done. */
MKEY_TEST(only_the_builder_posts_them)
{
	struct ibv_send_wr *bad, wr = { .opcode = (enum ibv_wr_opcode)VB_WR_MKEY };

	assert_int_equal(vb_qp_post_send(k.qp, &wr, &bad), EINVAL);
	wr.opcode = (enum ibv_wr_opcode)VB_WR_MEMCPY;
	assert_int_equal(vb_qp_post_send(k.qp, &wr, &bad), EINVAL);
}

/* --- payload --- */

MKEY_TEST(payload_in_many_pieces_is_copied)
{
	const struct vb_mkey_entry thin = entry(0, 1, 1, 2);
	struct vb_payload payload;
	struct vb_wqe *wqe = calloc(1, sizeof(*wqe) + 64);
	uint8_t out[1400] = { 0 };

	configure(0, 1000, 1, &thin);
	wqe->sge_count = 3;
	wqe->sge[0] = (struct ibv_sge){ (uintptr_t)memory[1], 100, k.mr[1]->ibv.lkey };
	wqe->sge[1] = (struct ibv_sge){ 10, 900, k.mkey->lkey };
	wqe->sge[2] = (struct ibv_sge){ (uintptr_t)memory[1] + 200, 300, k.mr[1]->ibv.lkey };
	assert_true(vb_payload_gather(k.qp->nic, k.qp->ibv.qp.pd, wqe, 50, 1200, &payload));
	assert_true(payload.scattered);
	assert_int_equal(payload.count, 0);
	assert_int_equal(payload.bytes, 1200);
	assert_true(vb_payload_copy(out, &payload));
	assert_memory_equal(out, memory[1] + 50, 50);
	for (unsigned i = 0; i < 900; i++)
		assert_int_equal(out[50 + i], memory[0][1 + (10 + i) * 3]);
	assert_memory_equal(out + 950, memory[1] + 200, 250);
	assert_int_equal(out[1200], 0);
	/* In one piece, it is as any other. */
	assert_true(vb_payload_gather(k.qp->nic, k.qp->ibv.qp.pd, wqe, 0, 101, &payload));
	assert_false(payload.scattered);
	assert_int_equal(payload.count, 2);
	wqe->sge[1].length = 991;
	assert_false(vb_payload_gather(k.qp->nic, k.qp->ibv.qp.pd, wqe, 50, 1200, &payload));
	free(wqe);
}

/* --- memcpy --- */

static int post_copy(uint32_t to_key, uint64_t to, uint32_t from_key, uint64_t from, uint64_t bytes)
{
	const struct vb_post request = {
		.wr = { .opcode = (enum ibv_wr_opcode)VB_WR_MEMCPY,
			.send_flags = IBV_SEND_SIGNALED },
		.copy = { .to = to, .to_key = to_key, .from = from, .from_key = from_key,
			  .bytes = bytes },
	};

	return post(&request);
}

MKEY_TEST(memory_is_copied_by_keys_of_any_kind)
{
	const struct vb_mkey_entry thin = entry(0, 0, 3, 2);
	uint8_t *from = memory[1];

	configure(IBV_ACCESS_LOCAL_WRITE, 100, 1, &thin);
	assert_int_equal(post_copy(k.mkey->lkey, 1, k.mr[1]->ibv.lkey, (uintptr_t)from, 200), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER3);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(memory[0][(i + 1) / 3 * 5 + (i + 1) % 3], from[i]);
	assert_int_equal(post_copy(k.mr[1]->ibv.lkey, (uintptr_t)from + 1000, k.mkey->lkey, 1, 200),
			 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER3);
	assert_memory_equal(from + 1000, from, 200);
}

/* ibv_alloc_null_mr(3): what is read there is zero, however much, and what is written vanishes. */
MKEY_TEST(nothing_is_copied_from_and_to_nowhere)
{
	enum { MANY = 200000 };
	uint8_t *octets = malloc(MANY);
	struct vb_mr *mr, *null;

	memset(octets, 0xee, MANY);
	assert_int_equal(vb_mr_reg(fix.pd, octets, MANY, 0, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(vb_mr_alloc_null(fix.pd, &null), 0);
	assert_int_equal(post_copy(null->ibv.lkey, 77, mr->ibv.lkey, 0, MANY), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER3);
	assert_int_equal(post_copy(mr->ibv.lkey, 1, null->ibv.lkey, 5, MANY - 1), 0);
	assert_completes(IBV_WC_SUCCESS, IBV_WC_DRIVER3);
	assert_int_equal(octets[0], 0xee);
	assert_true(!octets[1] && !memcmp(octets + 1, octets + 2, MANY - 2));
	assert_int_equal(vb_mr_dereg(null), 0);
	assert_int_equal(vb_mr_dereg(mr), 0);
	free(octets);
}

MKEY_TEST(a_copy_is_of_some_octets_and_not_too_many)
{
	assert_int_equal(post_copy(0, 0, 0, 0, 0), EINVAL);
	assert_int_equal(post_copy(0, 0, 0, 0, VB_MEMCPY_BYTES_MAX + 1), EINVAL);
	assert_int_equal(post_copy(0, 0, 0, 0, VB_MEMCPY_BYTES_MAX), 0);
	assert_completes(IBV_WC_LOC_PROT_ERR, 0);
}

MKEY_TEST(a_copy_beyond_its_key_touches_nothing)
{
	uint8_t first = memory[0][BYTES - 8];

	assert_int_equal(post_copy(k.mr[0]->ibv.lkey, (uintptr_t)memory[0] + BYTES - 8,
				   k.mr[1]->ibv.lkey, (uintptr_t)memory[1] + 1, 9),
			 0);
	assert_completes(IBV_WC_LOC_PROT_ERR, 0);
	assert_int_equal(memory[0][BYTES - 8], first);
}

TEST_AGAIN(a_peer_clears_what_is_made_for_it, a_peer_clears_a_key_that_is_made_for_it,
	   open_all, close)
