/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/mem_kinds.h"
#include "nic_fixture.h"

static uint8_t device[VB_DM_BYTES_MAX] __attribute__((aligned(4096)));
static unsigned asked;
static bool has_none;

static void *device_memory(void *arg, size_t bytes)
{
	assert_int_equal(bytes, VB_DM_BYTES_MAX);
	asked++;
	return has_none ? NULL : device;
}

static const struct vb_host_memory memory = {
	.device = device_memory, .map_file = idle_map_file, .unmap = idle_unmap,
};

static int dm_begin(void **state)
{
	begin(state);
	asked = 0;
	has_none = false;
	memset(device, 0xee, sizeof(device));
	fix.nic->host.memory = &memory;
	return 0;
}

#define DM_TEST(name) TEST_BETWEEN(name, dm_begin, end)

#undef TEST

static int alloc(size_t bytes, uint32_t align_log, struct vb_dm **dm)
{
	const struct ibv_alloc_dm_attr attr = { .length = bytes, .log_align_req = align_log };

	return vb_dm_alloc(fix.ctx, &attr, dm);
}

static struct vb_dm *have(size_t bytes, uint32_t align_log)
{
	struct vb_dm *dm;

	assert_int_equal(alloc(bytes, align_log, &dm), 0);
	assert_int_equal((uintptr_t)dm->memory % (1ull << align_log), 0);
	assert_true(dm->memory >= device && dm->memory + bytes <= device + sizeof(device));
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(dm->memory[i], 0);
	memset(dm->memory, 0xff, bytes);
	return dm;
}

static void drop(struct vb_dm *dm)
{
	assert_int_equal(vb_dm_free(dm), 0);
}

DM_TEST(all_of_it_can_be_had_in_units)
{
	static struct vb_dm *all[VB_DM_UNITS];
	struct vb_dm *dm;

	for (unsigned i = 0; i < VB_DM_UNITS; i++)
		all[i] = have(1 + i % VB_DM_UNIT_BYTES, 0);
	assert_int_equal(alloc(1, 0, &dm), ENOMEM);
	/* Every other one: there is much, but none is large. */
	for (unsigned i = 0; i < VB_DM_UNITS; i += 2)
		drop(all[i]);
	assert_int_equal(alloc(VB_DM_UNIT_BYTES + 1, 0, &dm), ENOMEM);
	drop(have(VB_DM_UNIT_BYTES, 0));
	for (unsigned i = 1; i < VB_DM_UNITS; i += 2)
		drop(all[i]);
	drop(have(VB_DM_BYTES_MAX, VB_DM_ALIGN_LOG_MAX));
	assert_int_equal(asked, 1);
}

/* Of any sizes and alignments that are taken and given back, no two overlap. */
DM_TEST(no_two_overlap)
{
	struct vb_dm *held[64] = { NULL };
	uint32_t seed = 12345;

	for (unsigned round = 0; round < 4000; round++) {
		struct vb_dm **slot;

		seed = seed * 1664525 + 1013904223;
		slot = &held[seed >> 26];
		if (*slot) {
			uint8_t mark = (uint8_t)(slot - held);

			for (size_t i = 0; i < (*slot)->bytes; i++)
				assert_int_equal((*slot)->memory[i], mark);
			drop(*slot);
			*slot = NULL;
		} else if (alloc(1 + (seed >> 8) % 40000, seed % (VB_DM_ALIGN_LOG_MAX + 1),
				 slot) == 0) {
			assert_int_equal((uintptr_t)(*slot)->memory &
						 ((1u << seed % (VB_DM_ALIGN_LOG_MAX + 1)) - 1),
					 0);
			memset((*slot)->memory, (int)(slot - held), (*slot)->bytes);
		} else {
			*slot = NULL;
		}
	}
	for (unsigned i = 0; i < 64; i++) {
		if (held[i])
			drop(held[i]);
	}
	drop(have(VB_DM_BYTES_MAX, 0));
}

DM_TEST(where_there_is_none_that_is_said)
{
	struct ibv_device_attr_ex attr;
	struct vb_dm *dm;

	has_none = true;
	assert_int_equal(alloc(64, 0, &dm), EOPNOTSUPP);
	fix.nic->host.memory = NULL;
	assert_int_equal(alloc(64, 0, &dm), EOPNOTSUPP);
	vb_nic_query_device_ex(fix.nic, &attr);
	assert_int_equal(attr.max_dm_size, 0);
	fix.nic->host.memory = &memory;
	vb_nic_query_device_ex(fix.nic, &attr);
	assert_int_equal(attr.max_dm_size, VB_DM_BYTES_MAX);
}

/* In a forked child: nothing of the NIC is looked at. */
DM_TEST(apart_from_the_nic_it_has_memory_of_its_own)
{
	const struct ibv_alloc_dm_attr attr = { .length = 100 }, bad = { .length = 0 };
	uint8_t octets[100];
	struct vb_dm *dm;

	assert_int_equal(vb_dm_alloc_apart(fix.ctx, &bad, &dm), EINVAL);
	vb_lock_take(&fix.nic->dms.lock);
	vb_lock_take(&fix.nic->handles.dms.lock);
	assert_int_equal(vb_dm_alloc_apart(fix.ctx, &attr, &dm), 0);
	assert_int_equal(vb_dm_read(dm, 0, octets, 100), 0);
	assert_int_equal(octets[99], 0);
	vb_dm_free_apart(dm);
	vb_lock_drop(&fix.nic->handles.dms.lock);
	vb_lock_drop(&fix.nic->dms.lock);
	assert_int_equal(asked, 0);
}

DM_TEST(a_region_holds_it)
{
	struct vb_dm *dm = have(256, 0);
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg_dm(fix.pd, dm, 64, 128,
				      IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE, &mr),
			 0);
	assert_ptr_equal(vb_mr_get(fix.nic, &fix.pd->ibv, mr->ibv.lkey, 8, 120, 0),
			 dm->memory + 72);
	assert_null(vb_mr_get(fix.nic, &fix.pd->ibv, mr->ibv.lkey, 8, 121, 0));
	assert_int_equal(vb_dm_free(dm), EBUSY);
	assert_int_equal(vb_mr_dereg(mr), 0);
	drop(dm);
}
