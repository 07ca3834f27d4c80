/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/mem/import.h"

#include <pthread.h>
#include <stdlib.h>

#include "nic/core/domain.h"
#include "nic/mem/foreign.h"
#include "nic/mem/mem_kinds.h"
#include "nic_fixture.h"

enum { BYTES = 4096 };

static uint8_t memory[BYTES] __attribute__((aligned(4096)));

/* The NIC of another process, and what is imported of it; its addresses are ours here. */
static struct side abroad;

static struct {
	struct vb_foreign *foreign;
	unsigned maps, unmaps, left;
	bool refuses;
} owner;

static void *foreign_map(void *arg, struct vb_foreign *foreign, uint64_t address, uint64_t bytes)
{
	assert_ptr_equal(foreign, owner.foreign);
	if (owner.refuses)
		return NULL;
	owner.maps++;
	return (void *)(uintptr_t)address;
}

static void unmap(void *arg, void *at, uint64_t bytes)
{
	owner.unmaps++;
}

static void foreign_leave(void *arg, struct vb_foreign *foreign)
{
	owner.left++;
	free(foreign);
}

static const struct vb_host_foreign host_foreign = {
	.map = foreign_map, .unmap = unmap, .leave = foreign_leave,
};

static int import_begin(void **state)
{
	begin(state);
	memset(&owner, 0, sizeof(owner));
	abroad = (struct side){ .slot = 4 };
	side_open(&abroad, 7, 1500);
	fix.nic->host.foreign = &host_foreign;
	owner.foreign = calloc(1, sizeof(*owner.foreign));
	owner.foreign->nic = fix.nic;
	owner.foreign->export = abroad.nic->export;
	owner.foreign->family = abroad.ctx->family;
	vb_foreign_init(owner.foreign);
	return 0;
}

static int import_end(void **state)
{
	assert_int_equal(owner.left, 1);
	assert_int_equal(owner.maps, owner.unmaps);
	side_close(&abroad);
	return end(state);
}

#define FOREIGN(name) TEST_BETWEEN(name, import_begin, import_end)

static struct vb_mr *reg(struct vb_pd *pd, unsigned access)
{
	struct vb_mr *mr;

	assert_int_equal(vb_mr_reg(pd, memory, BYTES, (uintptr_t)memory, access, &mr), 0);
	return mr;
}

/* A context of ours that stands for the owner's, and its PD in it. */
static struct vb_ctx *ctx_import(struct vb_pd **pd)
{
	struct vb_ctx *ctx;

	assert_int_equal(vb_ctx_create(fix.nic, FD_ASYNC, &ctx), 0);
	vb_ctx_adopt_foreign(ctx, owner.foreign);
	assert_int_equal(vb_pd_import(ctx, abroad.pd->ibv.handle, pd), 0);
	return ctx;
}

static void ctx_close(struct vb_ctx *ctx)
{
	vb_ctx_disown(ctx);
	vb_ctx_destroy(ctx);
}

static uint8_t *get(struct vb_pd *pd, uint32_t key, uint64_t va, uint64_t bytes, unsigned access)
{
	return vb_mr_get(fix.nic, &pd->ibv, key, va, bytes, access);
}

/* --- within a NIC --- */

/* It has the same number: so whatever compares numbers takes the one for the other. */
NIC_TEST(an_import_of_a_pd_is_that_pd)
{
	struct vb_ctx *ctx;
	struct vb_pd *pd;
	struct vb_mr *mr = reg(fix.pd, 0), *own;

	assert_int_equal(vb_ctx_create(fix.nic, FD_ASYNC, &ctx), 0);
	assert_int_equal(vb_pd_import(ctx, fix.pd->ibv.handle, &pd), EINVAL);
	vb_ctx_adopt(ctx, fix.ctx->family);
	assert_int_equal(vb_pd_import(ctx, VB_PDS_MAX, &pd), EINVAL);
	assert_int_equal(vb_pd_import(ctx, fix.pd->ibv.handle, &pd), 0);
	assert_int_equal(pd->id, fix.pd->id);
	assert_ptr_equal(get(pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0), memory);
	own = reg(pd, 0);
	assert_ptr_equal(get(fix.pd, own->ibv.lkey, (uintptr_t)memory, 8, 0), memory);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	assert_int_equal(vb_mr_dereg(own), 0);
	vb_pd_unimport(pd);
	ctx_close(ctx);
}

/* Handles are given anew, and limits count objects, not handles. */
NIC_TEST(handles_do_not_run_out)
{
	uint32_t last = fix.pd->ibv.handle;

	for (unsigned i = 0; i < 2 * VB_PDS_MAX; i++) {
		struct vb_pd *pd, *again;

		assert_int_equal(vb_pd_create(fix.ctx, &pd), 0);
		assert_int_not_equal(pd->ibv.handle, last);
		last = pd->ibv.handle;
		assert_int_equal(vb_pd_import(fix.ctx, pd->ibv.handle, &again), 0);
		assert_ptr_not_equal(pd, again);
		assert_int_equal(vb_pd_destroy(again), 0);
		assert_int_equal(vb_pd_destroy(pd), ENOENT);
		vb_pd_unimport(pd);
	}
	assert_int_equal(fix.nic->counts.pds, 1);
}

NIC_TEST(a_region_is_destroyed_by_either_handle)
{
	struct vb_mr *mr = reg(fix.pd, 0), *import;
	uint32_t key = mr->ibv.lkey;

	assert_int_equal(vb_mr_import(fix.pd, mr->ibv.handle ^ 1, &import), EINVAL);
	assert_int_equal(vb_mr_import(fix.pd, mr->ibv.handle, &import), 0);
	assert_int_equal(vb_mr_rereg(import, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), EINVAL);
	assert_int_equal(vb_mr_dereg(import), 0);
	assert_null(get(fix.pd, key, (uintptr_t)memory, 8, 0));
	assert_int_equal(fix.pd->users, 0);
	assert_int_equal(vb_mr_dereg(mr), ENOENT);
	vb_mr_unimport(mr);
}

static void *destroy_region(void *mr)
{
	return (void *)(intptr_t)vb_mr_dereg(mr);
}

/* Two threads at once: one of them destroys it, and the other is told. */
NIC_TEST(a_region_is_destroyed_once)
{
	for (unsigned i = 0; i < 200; i++) {
		struct vb_mr *mr = reg(fix.pd, 0), *import;
		pthread_t thread;
		void *theirs;
		int ours;

		assert_int_equal(vb_mr_import(fix.pd, mr->ibv.handle, &import), 0);
		assert_int_equal(pthread_create(&thread, NULL, destroy_region, import), 0);
		ours = vb_mr_dereg(mr);
		pthread_join(thread, &theirs);
		assert_true((ours == 0 && theirs == (void *)(intptr_t)ENOENT) ||
			    (ours == ENOENT && !theirs));
		vb_mr_unimport(ours ? mr : import);
		assert_int_equal(fix.pd->users, 0);
		assert_int_equal(fix.nic->keys.mrs, 0);
	}
}

/* --- of another process --- */

static struct vb_ctx *ctx;
static struct vb_pd *pd;

static int import_pd_begin(void **state)
{
	import_begin(state);
	ctx = ctx_import(&pd);
	return 0;
}

static int import_pd_end(void **state)
{
	vb_pd_unimport(pd);
	ctx_close(ctx);
	return import_end(state);
}

#define FOREIGN_PD(name) TEST_BETWEEN(name, import_pd_begin, import_pd_end)

FOREIGN_PD(its_regions_are_found_by_its_pd)
{
	struct vb_mr *mr = reg(abroad.pd, IBV_ACCESS_REMOTE_READ);
	struct vb_pd *other;

	assert_int_equal(vb_pd_create(abroad.ctx, &other), 0);
	assert_ptr_equal(get(pd, mr->ibv.lkey, (uintptr_t)memory + 8, BYTES - 8, 0), memory + 8);
	assert_ptr_equal(get(pd, mr->ibv.rkey, (uintptr_t)memory, 8, IBV_ACCESS_REMOTE_READ),
			 memory);
	assert_int_equal(owner.maps, 1);
	assert_null(get(pd, mr->ibv.rkey, (uintptr_t)memory, 8, IBV_ACCESS_REMOTE_WRITE));
	assert_null(get(pd, mr->ibv.rkey, (uintptr_t)memory, 8, IBV_ACCESS_LOCAL_WRITE));
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory + 8, BYTES - 7, 0));
	assert_null(get(pd, mr->ibv.lkey ^ 1, (uintptr_t)memory, 8, 0));
	assert_null(get(fix.pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0));
	/* Its number counts there, not here, where a PD of ours may have it. */
	assert_int_not_equal(pd->id, fix.pd->id);
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_pd_destroy(other), 0);
}

FOREIGN(a_parent_domain_is_its_pd_there_too)
{
	struct vb_mr *mr = reg(abroad.pd, 0);
	struct ibv_parent_domain_init_attr attr;
	struct vb_pd *domain;

	ctx = ctx_import(&pd);
	attr = (struct ibv_parent_domain_init_attr){ .pd = &pd->ibv };
	assert_int_equal(vb_parent_domain_create(ctx, &attr, &domain), 0);
	assert_ptr_equal(get(domain, mr->ibv.lkey, (uintptr_t)memory, 8, 0), memory);
	/* It is ours to destroy. */
	vb_pd_unimport(pd);
	assert_int_equal(vb_pd_destroy(domain), 0);
	ctx_close(ctx);
	assert_int_equal(owner.left, 0);
	assert_int_equal(vb_pd_create(fix.ctx, &pd), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

static uint8_t device[VB_DM_BYTES_MAX] __attribute__((aligned(4096)));

static void *device_memory(void *arg, size_t bytes)
{
	return device;
}

static const struct vb_host_memory memory_of_owner = {
	.device = device_memory, .map_file = idle_map_file, .unmap = idle_unmap,
};

FOREIGN_PD(its_device_memory_is_mapped)
{
	const struct ibv_alloc_dm_attr attr = { .length = 100 };
	struct vb_dm *made, *other, *dm;
	struct vb_mr *mr;
	uint32_t handle;

	abroad.nic->host.memory = &memory_of_owner;
	assert_int_equal(vb_dm_import(ctx, 0, &dm), EINVAL);
	assert_int_equal(vb_dm_alloc(abroad.ctx, &attr, &other), 0);
	assert_int_equal(vb_dm_alloc(abroad.ctx, &attr, &made), 0);
	handle = made->ibv.handle;
	assert_int_equal(vb_dm_import(ctx, handle, &dm), 0);
	assert_int_equal(dm->ibv.handle, handle);
	assert_ptr_equal(dm->memory, made->memory);
	assert_int_equal(dm->bytes, 100);
	assert_int_equal(vb_mr_reg_dm(pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED, &mr), 0);
	assert_int_equal(vb_dm_free(dm), EOPNOTSUPP);
	vb_dm_unimport(dm);
	/* A region keeps it. */
	assert_int_equal(owner.unmaps, 0);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_dm_import(ctx, handle + 1, &dm), EINVAL);
	assert_int_equal(vb_dm_import(ctx, VB_DM_UNITS, &dm), EINVAL);
	/* Its owner may write nonsense. */
	VB_EXPORT_SET(abroad.nic->export->dm[handle].bytes, VB_DM_BYTES_MAX);
	assert_int_equal(vb_dm_import(ctx, handle, &dm), EINVAL);
	assert_int_equal(vb_dm_free(made), 0);
	assert_int_equal(vb_dm_import(ctx, handle, &dm), EINVAL);
	owner.refuses = true;
	assert_int_equal(vb_dm_import(ctx, other->ibv.handle, &dm), EOPNOTSUPP);
	owner.refuses = false;
	/* Whoever looks next lets go of what was given up. */
	assert_int_equal(vb_dm_import(ctx, other->ibv.handle, &dm), 0);
	assert_int_equal(owner.unmaps, 1);
	vb_dm_unimport(dm);
	assert_int_equal(owner.unmaps, 2);
	assert_int_equal(vb_dm_free(other), 0);
}

/* Ours live in its PD as well, and the owner knows nothing of them. */
FOREIGN_PD(regions_of_ours_are_found_first)
{
	struct vb_mr *mr = reg(pd, 0);

	assert_ptr_equal(get(pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0), memory);
	assert_int_equal(owner.maps, 0);
	assert_null(vb_mr_get(abroad.nic, &abroad.pd->ibv, mr->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* Another region at the same address, or the same at another, is mapped anew. */
FOREIGN_PD(a_mapping_is_of_one_registration)
{
	struct vb_mr *mr = reg(abroad.pd, 0), *import;
	uint32_t handle = mr->ibv.handle;

	assert_non_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_int_equal(vb_mr_rereg(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 64, 64, 0),
			 0);
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_ptr_equal(get(pd, mr->ibv.lkey, (uintptr_t)memory + 64, 64, 0), memory + 64);
	assert_int_equal(owner.maps, 2);
	assert_int_equal(owner.unmaps, 0);
	/* An import makes room. */
	assert_int_equal(vb_mr_import(pd, mr->ibv.handle, &import), 0);
	assert_int_equal(owner.maps, 2);
	assert_int_equal(owner.unmaps, 1);
	vb_mr_unimport(import);
	assert_int_equal(vb_mr_dereg(mr), 0);
	assert_int_equal(vb_mr_import(pd, handle, &import), EINVAL);
}

/* The export is the owner's to write: what it says there later does not lead us astray. */
FOREIGN_PD(a_mapping_is_not_left)
{
	struct vb_mr *mr;
	struct vb_export_key *entry;

	assert_int_equal(vb_mr_reg(abroad.pd, memory, 64, (uintptr_t)memory, 0, &mr), 0);
	assert_non_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 64, 0));
	entry = &abroad.nic->export->key[vb_key_place(mr->ibv.lkey)];
	VB_EXPORT_SET(entry->bytes, 1ull << 40);
	assert_non_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 64, 0));
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 65, 0));
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory + 64, 1, 0));
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory + (1ull << 39), 1, 0));
	assert_int_equal(vb_mr_dereg(mr), 0);
}

FOREIGN_PD(mappings_are_bounded)
{
	struct vb_mr *mr[VB_FOREIGN_MAPS + 1], *import;

	for (unsigned i = 0; i <= VB_FOREIGN_MAPS; i++)
		mr[i] = reg(abroad.pd, 0);
	for (unsigned i = 0; i < VB_FOREIGN_MAPS; i++)
		assert_non_null(get(pd, mr[i]->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_null(get(pd, mr[VB_FOREIGN_MAPS]->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_int_equal(vb_mr_import(pd, mr[VB_FOREIGN_MAPS]->ibv.handle, &import), ENOMEM);
	assert_int_equal(vb_mr_dereg(mr[3]), 0);
	assert_int_equal(vb_mr_import(pd, mr[VB_FOREIGN_MAPS]->ibv.handle, &import), 0);
	assert_non_null(get(pd, mr[VB_FOREIGN_MAPS]->ibv.lkey, (uintptr_t)memory, 8, 0));
	vb_mr_unimport(import);
	for (unsigned i = 0; i <= VB_FOREIGN_MAPS; i++) {
		if (i != 3)
			assert_int_equal(vb_mr_dereg(mr[i]), 0);
	}
}

FOREIGN_PD(what_cannot_be_mapped_is_refused)
{
	struct vb_mr *mr = reg(abroad.pd, 0), *import;
	struct vb_mr *paged = reg(abroad.pd, IBV_ACCESS_ON_DEMAND);

	/* What comes on demand may be elsewhere tomorrow. */
	assert_int_equal(vb_mr_import(pd, paged->ibv.handle, &import), EOPNOTSUPP);
	assert_null(get(pd, paged->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_int_equal(vb_mr_dereg(paged), 0);
	owner.refuses = true;
	assert_int_equal(vb_mr_import(pd, mr->ibv.handle, &import), EOPNOTSUPP);
	assert_null(get(pd, mr->ibv.lkey, (uintptr_t)memory, 8, 0));
	assert_int_equal(vb_pd_destroy(pd), EOPNOTSUPP);
	assert_int_equal(vb_mr_dereg(mr), 0);
}

/* Others' PDs, those of other contexts there, and those that are gone. */
FOREIGN_PD(only_pds_of_that_context_are_imported)
{
	struct vb_ctx *other_ctx;
	struct vb_pd *other, *none;
	uint32_t handle;

	assert_int_equal(vb_ctx_create(abroad.nic, FD_ASYNC, &other_ctx), 0);
	assert_int_equal(vb_pd_create(other_ctx, &other), 0);
	assert_int_equal(vb_pd_import(ctx, other->ibv.handle, &none), EINVAL);
	assert_int_equal(vb_pd_destroy(other), 0);
	assert_int_equal(vb_pd_create(abroad.ctx, &other), 0);
	handle = other->ibv.handle;
	assert_int_equal(vb_pd_destroy(other), 0);
	assert_int_equal(vb_pd_import(ctx, handle, &none), EINVAL);
	assert_int_equal(vb_pd_create(ctx, &none), EOPNOTSUPP);
	vb_ctx_destroy(other_ctx);
}

/* Objects in a PD keep what it stands for, even when the context is closed. */
FOREIGN(the_last_user_ends_it)
{
	ctx = ctx_import(&pd);
	atomic_fetch_add(&pd->users, 1);
	vb_pd_unimport(pd);
	ctx_close(ctx);
	assert_int_equal(owner.left, 0);
	atomic_fetch_sub(&pd->users, 1);
	/* The next who looks at PDs sees to it. */
	assert_int_equal(vb_pd_create(fix.ctx, &pd), 0);
	assert_int_equal(owner.left, 1);
	assert_int_equal(vb_pd_destroy(pd), 0);
}
