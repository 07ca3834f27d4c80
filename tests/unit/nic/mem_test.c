/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "nic_fixture.h"

#include "engine/newer.h"

enum { BYTES = 4096 };

static uint8_t memory[2 * BYTES] __attribute__((aligned(4096)));

static struct vb_mr *reg(unsigned access)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, (uintptr_t)memory, access, &mr), 0);
	return mr;
}

static void dereg(struct vb_mr *mr)
{
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* Where an access would go, NULL: it is refused. */
static uint8_t *get(struct vb_pd *pd, uint32_t key, uint64_t va, uint64_t bytes, unsigned access)
{
	return vb_mr_get(fix.nic, &pd->ibv, key, va, bytes, access);
}

NIC_TEST(bounds_are_exact)
{
	struct vb_mr *mr = reg(0);
	uint64_t va = (uintptr_t)memory;
	const struct {
		uint64_t va, bytes;
		bool good;
	} rows[] = {
		{ va, BYTES, true },
		{ va, BYTES + 1, false },
		{ va, 0, true },
		{ va + 1, BYTES, false },
		{ va + 1, BYTES - 1, true },
		{ va - 1, 1, false },
		{ va + BYTES, 0, true },
		{ va + BYTES, 1, false },
		{ va + BYTES - 1, 1, true },
		{ va - 1, BYTES, false },
		{ va + BYTES + 1, 0, false },
		{ va, UINT64_MAX, false },
		{ 0, 1, false },
		{ UINT64_MAX, 1, false },
		{ UINT64_MAX, 2, false },
		{ va + 8, UINT64_MAX - 7, false },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		uint8_t *at = get(fix.pd, mr->ibv.lkey, rows[i].va, rows[i].bytes, 0);

		assert_int_equal(at != NULL, rows[i].good);
		if (at)
			assert_ptr_equal(at, (uint8_t *)(uintptr_t)rows[i].va);
	}
	dereg(mr);
}

NIC_TEST(every_bit_of_the_key_counts)
{
	struct vb_mr *mr = reg(0);

	assert_int_equal(mr->ibv.lkey, mr->ibv.rkey);
	for (unsigned bit = 0; bit < 32; bit++)
		assert_null(get(fix.pd, mr->ibv.lkey ^ 1u << bit, (uintptr_t)memory, 1, 0));
	assert_null(get(fix.pd, 0, (uintptr_t)memory, 1, 0));
	dereg(mr);
}

NIC_TEST(a_region_belongs_to_its_pd)
{
	struct vb_pd *other;
	struct vb_mr *mr = reg(0);

	assert_int_equal(vb_pd_create(fix.ctx, &other), 0);
	assert_non_null(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 1, 0));
	assert_null(get(other, mr->ibv.lkey, (uintptr_t)memory, 1, 0));
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	dereg(mr);
	assert_int_equal(vb_pd_destroy(other), 0);
}

/* Every right granted against every right wanted. */
NIC_TEST(rights_are_what_was_granted)
{
	static const unsigned rights[] = { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE,
					   IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC };

	for (unsigned set = 0; set < 16; set++) {
		unsigned access = 0;
		struct vb_mr *mr;

		for (unsigned i = 0; i < 4; i++)
			access |= set >> i & 1 ? rights[i] : 0;
		/* ibv_reg_mr(3): writing from afar needs writing locally. */
		if ((set & (2 | 8)) && !(set & 1)) {
			assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0, access, &mr), EINVAL);
			continue;
		}
		mr = reg(access);
		assert_non_null(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 1, 0));
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 1,
					     rights[i]) != NULL,
					 set >> i & 1);
		dereg(mr);
	}
}

NIC_TEST(unknown_rights_are_refused)
{
	struct vb_mr *mr;

	for (unsigned bit = 0; bit < 32; bit++) {
		unsigned access = 1u << bit | IBV_ACCESS_LOCAL_WRITE;
		bool known = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |
				       IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
				       IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE |
				       VB_ACCESS_FLUSH_GLOBAL) ||
			     bit == 0;

		assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0, access, &mr),
				 known ? 0 : EINVAL);
		if (known)
			dereg(mr);
	}
}

NIC_TEST(a_zero_based_region_begins_at_0)
{
	struct vb_mr *mr = reg(IBV_ACCESS_ZERO_BASED);

	assert_ptr_equal(get(fix.pd, mr->ibv.lkey, 0, BYTES, 0), memory);
	assert_ptr_equal(get(fix.pd, mr->ibv.lkey, 100, 1, 0), memory + 100);
	assert_null(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 1, 0));
	assert_null(get(fix.pd, mr->ibv.lkey, 1, BYTES, 0));
	dereg(mr);
}

NIC_TEST(a_region_may_lie_elsewhere)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0x100000, 0, &mr), 0);
	assert_ptr_equal(get(fix.pd, mr->ibv.lkey, 0x100000 + 5, 1, 0), memory + 5);
	assert_null(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 1, 0));
	dereg(mr);
}

NIC_TEST(what_does_not_fit_is_refused)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(fix.pd, memory, VB_MR_BYTES_MAX + 1, 0, 0, &mr), EINVAL);
	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, UINT64_MAX - 5, 0, &mr), EINVAL);
	fix.probe = EFAULT;
	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0, 0, &mr), EFAULT);
	assert_false(fix.probed_write);
	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0, IBV_ACCESS_LOCAL_WRITE, &mr), EFAULT);
	assert_true(fix.probed_write);
	/* On demand: nothing has to be there yet. */
	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0, IBV_ACCESS_ON_DEMAND, &mr), 0);
	dereg(mr);
}

NIC_TEST(a_key_dies_with_its_region)
{
	struct vb_mr *mr = reg(0), *other;
	uint32_t key = mr->ibv.lkey;

	dereg(mr);
	assert_null(get(fix.pd, key, (uintptr_t)memory, 1, 0));
	for (unsigned i = 0; i < 1000; i++) {
		other = reg(0);
		assert_int_not_equal(other->ibv.lkey, key);
		assert_int_not_equal(other->ibv.lkey, 0);
		dereg(other);
	}
}

NIC_TEST(there_are_as_many_regions_as_we_say)
{
	static struct vb_mr *all[VB_MRS_MAX];
	struct ibv_device_attr attr;
	struct vb_mr *mr;
	int n = 0;

	vb_nic_query_device(fix.nic, &attr);
	while (vb_mr_reg(fix.pd, memory, BYTES, 0, 0, &mr) == 0)
		all[n++] = mr;
	assert_int_equal(n, attr.max_mr);
	while (n)
		dereg(all[--n]);
}

/* --- ibv_rereg_mr(3) --- */

NIC_TEST(rereg_changes_what_it_is_told_to)
{
	struct vb_mr *mr = reg(IBV_ACCESS_LOCAL_WRITE);
	uint32_t key = mr->ibv.lkey;
	struct vb_pd *other;

	assert_int_equal(vb_pd_create(fix.ctx, &other), 0);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_REMOTE_READ),
			 0);
	assert_null(get(fix.pd, key, (uintptr_t)memory, 1, IBV_ACCESS_LOCAL_WRITE));
	assert_non_null(get(fix.pd, key, (uintptr_t)memory, 1, IBV_ACCESS_REMOTE_READ));
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_null(get(fix.pd, key, (uintptr_t)memory, 1, 0));
	assert_non_null(get(other, key, (uintptr_t)memory, 1, IBV_ACCESS_REMOTE_READ));
	assert_ptr_equal(mr->ibv.pd, &other->ibv);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + BYTES,
				     BYTES, 0),
			 0);
	assert_null(get(other, key, (uintptr_t)memory, 1, 0));
	assert_ptr_equal(get(other, key, (uintptr_t)memory + BYTES, BYTES, 0), memory + BYTES);
	assert_ptr_equal(mr->ibv.addr, memory + BYTES);
	assert_int_equal(mr->ibv.lkey, key);
	assert_int_equal(vb_pd_destroy(other), EBUSY);
	dereg(mr);
	assert_int_equal(vb_pd_destroy(other), 0);
}

NIC_TEST(a_rereg_that_fails_changes_nothing)
{
	struct vb_mr *mr = reg(0);
	static const struct {
		int flags;
		unsigned access;
		int probe, err;
	} rows[] = {
		{ 0, 0, 0, EINVAL },
		{ 64, 0, 0, EINVAL },
		{ IBV_REREG_MR_CHANGE_PD, 0, 0, EINVAL }, /* to no PD */
		{ IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_REMOTE_WRITE, 0, EINVAL },
		{ IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_LOCAL_WRITE, EFAULT, EFAULT },
		{ IBV_REREG_MR_CHANGE_TRANSLATION, 0, EFAULT, EFAULT },
	};

	for (unsigned i = 0; i < VB_ARRAY_LEN(rows); i++) {
		fix.probe = rows[i].probe;
		assert_int_equal(vb_mr_rereg(mr, rows[i].flags, NULL, memory + BYTES, BYTES,
					     rows[i].access),
				 rows[i].err);
		assert_ptr_equal(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, BYTES, 0), memory);
		assert_null(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 1,
				IBV_ACCESS_LOCAL_WRITE));
	}
	dereg(mr);
}

NIC_TEST(rereg_keeps_where_a_region_begins)
{
	struct vb_mr *mr;

	/* Registered at another address; a change of rights alone must not move it. */
	assert_int_equal(vb_mr_reg(fix.pd, memory, BYTES, 0x100000, 0, &mr), 0);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_LOCAL_WRITE),
			 0);
	assert_ptr_equal(get(fix.pd, mr->ibv.lkey, 0x100000, BYTES, IBV_ACCESS_LOCAL_WRITE),
			 memory);
	dereg(mr);
	mr = reg(IBV_ACCESS_ZERO_BASED);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + BYTES,
				     BYTES, 0),
			 0);
	assert_ptr_equal(get(fix.pd, mr->ibv.lkey, 0, BYTES, 0), memory + BYTES);
	dereg(mr);
}

/* --- while others look --- */

static struct {
	uint32_t key;
	_Atomic bool stop;
	_Atomic unsigned looks, found;
} watched;

/* As a packet would: with the rx right held, as long as the memory is in use. */
static void *write_by_packet(void *arg)
{
	while (!atomic_load(&watched.stop)) {
		uint8_t *at;

		if (!vb_nic_rx_try(fix.nic))
			continue;
		at = get(fix.pd, watched.key, (uintptr_t)memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
		if (at) {
			memset(at, 0xaa, BYTES);
			atomic_fetch_add(&watched.found, 1);
		}
		vb_nic_rx_drop(fix.nic);
		atomic_fetch_add(&watched.looks, 1);
	}
	return NULL;
}

static void wait_for_looks(_Atomic unsigned *count, unsigned more)
{
	unsigned from = atomic_load(count);

	while (atomic_load(count) - from < more)
		;
}

/* ibv_dereg_mr(3): whoever deregistered may free, or use for something else. */
NIC_TEST(nobody_is_inside_after_deregistration)
{
	pthread_t thread;

	for (unsigned round = 0; round < 100; round++) {
		struct vb_mr *mr = reg(IBV_ACCESS_LOCAL_WRITE);

		watched.key = mr->ibv.lkey;
		atomic_store(&watched.stop, false);
		pthread_create(&thread, NULL, write_by_packet, NULL);
		wait_for_looks(&watched.found, 3);
		dereg(mr);
		memset(memory, 0x55, BYTES);
		wait_for_looks(&watched.looks, 3);
		for (unsigned i = 0; i < BYTES; i++)
			assert_int_equal(memory[i], 0x55);
		atomic_store(&watched.stop, true);
		pthread_join(thread, NULL);
	}
}

/* Peers read the table too, without any right: what they read belongs together. */
static void *watch_entry(void *arg)
{
	uint32_t place = vb_key_place(watched.key);
	const struct vb_export_key *entry = &fix.nic->export->key[place];
	struct vb_export_region region;

	while (!atomic_load(&watched.stop)) {
		if (!vb_export_key_read(entry, &region) || !region.pd)
			continue;
		vb_check(region.key == watched.key && region.pd == fix.pd->id);
		vb_check(region.base == region.iova);
		vb_check(region.bytes == (region.base == (uintptr_t)memory ? BYTES : BYTES / 2));
		atomic_fetch_add(&watched.found, 1);
	}
	return NULL;
}

NIC_TEST(what_peers_read_belongs_together)
{
	struct vb_mr *mr = reg(0);
	pthread_t thread;

	watched.key = mr->ibv.lkey;
	atomic_store(&watched.stop, false);
	pthread_create(&thread, NULL, watch_entry, NULL);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
					     i & 1 ? memory : memory + BYTES,
					     i & 1 ? BYTES : BYTES / 2, 0),
				 0);
	wait_for_looks(&watched.found, 10);
	atomic_store(&watched.stop, true);
	pthread_join(thread, NULL);
	dereg(mr);
}

/* The number of a PD that is gone must not let the next one in. */
NIC_TEST(pds_are_never_taken_for_another)
{
	struct vb_pd *pd;
	uint64_t last = fix.pd->id;

	assert_true(last != 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(vb_pd_create(fix.ctx, &pd), 0);
		assert_true(pd->id > last);
		last = pd->id;
		assert_int_equal(vb_pd_destroy(pd), 0);
	}
}

/* --- memory whose file turns up later --- */

enum { FILE_NUMBER = 7 };

static struct {
	struct vb_shared *shared;
	bool at_once;
	unsigned ends;
	char item;
} late;

static bool share_late(void *arg, void *addr, size_t bytes, struct vb_shared *shared)
{
	*shared = (struct vb_shared){ .file = -1, .offset = 100, .id = 5, .item = &late.item };
	late.shared = shared;
	/* Before it has a key. */
	if (late.at_once)
		vb_mr_found(shared, FILE_NUMBER);
	return true;
}

static bool unshare_late(void *arg, const struct vb_shared *shared)
{
	assert_ptr_equal(shared, late.shared);
	late.ends++;
	return false;
}

static const struct vb_host_sharing sharing_late = {
	.share = share_late, .unshare = unshare_late,
};

static int32_t file_told(const struct vb_mr *mr)
{
	const struct vb_export_key *entry = &fix.nic->export->key[vb_key_place(mr->ibv.rkey)];

	assert_int_equal(VB_EXPORT_GET(entry->shared_offset), 100);
	assert_int_equal(VB_EXPORT_GET(entry->shared_id), 5);
	return VB_EXPORT_GET(entry->shared);
}

NIC_TEST(a_file_that_is_found_later_is_told_then)
{
	const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct vb_mr *mr;

	fix.nic->host.sharing = &sharing_late;
	for (unsigned i = 0; i < 2; i++) {
		memset(&late, 0, sizeof(late));
		late.at_once = i;
		mr = reg(access);
		assert_int_equal(file_told(mr), late.at_once ? FILE_NUMBER : -1);
		vb_mr_found(late.shared, FILE_NUMBER);
		assert_int_equal(file_told(mr), FILE_NUMBER);
		assert_non_null(get(fix.pd, mr->ibv.rkey, (uintptr_t)memory, BYTES, access));
		/* It is sought anew where it lies elsewhere. */
		late.at_once = false;
		assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
					     memory + BYTES, BYTES, 0), 0);
		assert_int_equal(late.ends, 1);
		assert_int_equal(file_told(mr), -1);
		/* Whether it is found or not, the host hears of the end. */
		dereg(mr);
		assert_int_equal(late.ends, 2);
	}
}
