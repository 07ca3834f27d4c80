/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes of protection, thread and parent domains, regions, device memory and windows. */
#include "probe.h"

#include <sys/mman.h>
#include <unistd.h>

static uint8_t memory[8192] __attribute__((aligned(4096)));

/* --- domains --- */

static int pd(uint64_t unused)
{
	struct ibv_pd *made = ibv_alloc_pd(vt.ctx);

	return made ? ibv_dealloc_pd(made) : errno;
}

static int import_pd(uint64_t unused)
{
	struct ibv_pd *found = ibv_import_pd(vt.ctx, vt.pd->handle);

	if (!found)
		return probe_made(found);
	ibv_unimport_pd(found);
	return 0;
}

/* A handle that is not there: what an object that was never made has for its destruction. */
static int td_alloc(uint64_t unused)
{
	struct ibv_td_init_attr attr = { .comp_mask = 0 };

	return PROBE_ONCE(ibv_alloc_td(vt.ctx, &attr), ibv_dealloc_td);
}

static int td_dealloc(uint64_t unused)
{
	struct ibv_td_init_attr attr = { .comp_mask = 0 };
	struct ibv_td *td = ibv_alloc_td(vt.ctx, &attr), none = { .context = vt.ctx };

	return ibv_dealloc_td(td ? td : &none);
}

static void *allocate(struct ibv_pd *domain, void *pd_context, size_t size, size_t alignment,
		      uint64_t resource_type)
{
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void release(struct ibv_pd *domain, void *pd_context, void *ptr, uint64_t resource_type)
{
}

static int parent_domain(uint64_t mask)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = vt.pd,
		.comp_mask = (uint32_t)mask,
		.alloc = allocate,
		.free = release,
		.pd_context = &attr,
	};

	return PROBE_ONCE(ibv_alloc_parent_domain(vt.ctx, &attr), ibv_dealloc_pd);
}

/* --- regions --- */

static int deregistered(struct ibv_mr *mr)
{
	return mr ? ibv_dereg_mr(mr) : probe_made(mr);
}

static int mr(uint64_t access)
{
	return deregistered(ibv_reg_mr(vt.pd, memory, sizeof(memory), (int)access));
}

static int mr_with(uint64_t access)
{
	return mr(IBV_ACCESS_LOCAL_WRITE | access);
}

static int mr_iova(uint64_t unused)
{
	return deregistered(ibv_reg_mr_iova(vt.pd, memory, sizeof(memory), 0x10000,
					    IBV_ACCESS_LOCAL_WRITE));
}

static int mr_iova2(uint64_t unused)
{
	return deregistered(ibv_reg_mr_iova2(vt.pd, memory, sizeof(memory), 0x10000,
					     IBV_ACCESS_LOCAL_WRITE));
}

static int dmabuf_mr(uint64_t unused)
{
	int fd = memfd_create("probe", MFD_CLOEXEC), rc;

	assert_int_equal(ftruncate(fd, 4096), 0);
	errno = 0;
	rc = deregistered(ibv_reg_dmabuf_mr(vt.pd, 0, 4096, 0, fd, IBV_ACCESS_LOCAL_WRITE));
	close(fd);
	return rc;
}

static int null_mr(uint64_t unused)
{
	return deregistered(ibv_alloc_null_mr(vt.pd));
}

static int rereg(uint64_t flags)
{
	struct ibv_mr *made = vt_mr(vt.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_pd *other = ibv_alloc_pd(vt.ctx);
	/* Rights go with the flag that changes them, and with no other. */
	int access = flags & IBV_REREG_MR_CHANGE_ACCESS
			     ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ
			     : 0;
	int rc = ibv_rereg_mr(made, (int)flags, other, memory + 4096, 4096, access);

	rc = rc ? errno : 0;
	ibv_dereg_mr(made);
	ibv_dealloc_pd(other);
	return rc;
}

/* A change of nothing that there is; the region stays as it was. */
static int rereg_wrong(uint64_t code)
{
	struct ibv_mr *made = vt_mr(vt.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	int rc = ibv_rereg_mr(made, IBV_REREG_MR_FLAGS_SUPPORTED + 1, NULL, NULL, 0, 0);

	ibv_dereg_mr(made);
	return rc == (int)(int64_t)code ? 0 : ENODATA;
}

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags)
{
	struct ibv_mr *made = vt_mr(vt.pd, memory, sizeof(memory),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = { (uintptr_t)memory, sizeof(memory), made->lkey };
	int rc = ibv_advise_mr(vt.pd, advice, flags, &sge, 1);

	ibv_dereg_mr(made);
	return rc;
}

static int advice(uint64_t which)
{
	return advise((enum ibv_advise_mr_advice)which, 0);
}

static int advice_flag(uint64_t flag)
{
	return advise(IBV_ADVISE_MR_ADVICE_PREFETCH, (uint32_t)flag);
}

static int import_mr(uint64_t unused)
{
	struct ibv_mr *made = vt_mr(vt.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE), *found;
	int rc;

	errno = 0;
	found = ibv_import_mr(vt.pd, made->handle);
	rc = probe_made(found);
	if (found)
		ibv_unimport_mr(found);
	ibv_dereg_mr(made);
	return rc;
}

/* --- device memory --- */

static int copy_none_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	return EOPNOTSUPP;
}

static int copy_none_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	return EOPNOTSUPP;
}

/* What there is to call the functions with if none can be allocated. */
static struct ibv_dm no_dm;

static struct ibv_dm *dm_new(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(vt.ctx, &attr);

	no_dm = (struct ibv_dm){
		.context = vt.ctx,
		.memcpy_to_dm = copy_none_to,
		.memcpy_from_dm = copy_none_from,
	};
	return dm ? dm : &no_dm;
}

static int dm_free(uint64_t unused)
{
	return ibv_free_dm(dm_new());
}

static int dm_alloc(uint64_t unused)
{
	struct ibv_dm *dm = dm_new();

	return dm == &no_dm ? probe_made(NULL) : ibv_free_dm(dm);
}

static int dm_to(uint64_t unused)
{
	struct ibv_dm *dm = dm_new();
	int rc = ibv_memcpy_to_dm(dm, 0, memory, 64);

	ibv_free_dm(dm);
	return rc;
}

static int dm_from(uint64_t unused)
{
	struct ibv_dm *dm = dm_new();
	int rc = ibv_memcpy_from_dm(memory, dm, 0, 64);

	ibv_free_dm(dm);
	return rc;
}

static int dm_mr(uint64_t unused)
{
	struct ibv_dm *dm = dm_new();
	int rc;

	errno = 0;
	rc = deregistered(ibv_reg_dm_mr(vt.pd, dm, 0, 4096,
					IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
	ibv_free_dm(dm);
	return rc;
}

static int dm_import(uint64_t unused)
{
	struct ibv_dm *dm = dm_new(), *found;
	int rc;

	errno = 0;
	found = ibv_import_dm(vt.ctx, dm->handle);
	rc = probe_made(found);
	if (found)
		ibv_unimport_dm(found);
	ibv_free_dm(dm);
	return rc;
}

/* The handle of a device memory is valid if its comp_mask says so. */
static int dm_mask(uint64_t bit)
{
	struct ibv_dm *dm = dm_new();
	int rc = dm->comp_mask & bit ? 0 : ENODATA;

	ibv_free_dm(dm);
	return rc;
}

/* --- windows --- */

static int mw(uint64_t type)
{
	return PROBE_ONCE(ibv_alloc_mw(vt.pd, (enum ibv_mw_type)type), ibv_dealloc_mw);
}

static int mw_dealloc(uint64_t unused)
{
	struct ibv_mw *made = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_1);
	struct ibv_mw none = { .context = vt.ctx, .pd = vt.pd, .type = IBV_MW_TYPE_1 };

	return ibv_dealloc_mw(made ? made : &none);
}

static int mw_bind(uint64_t unused)
{
	struct ibv_mw *made = ibv_alloc_mw(vt.pd, IBV_MW_TYPE_1);
	struct ibv_mw none = { .context = vt.ctx, .pd = vt.pd, .type = IBV_MW_TYPE_1 };
	struct ibv_mw_bind bind = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED };
	struct vt_end end;
	int rc;

	probe_end_open(&end, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	bind.bind_info = (struct ibv_mw_bind_info){ end.mr, (uintptr_t)end.buf, 64,
						    IBV_ACCESS_REMOTE_READ };
	rc = ibv_bind_mw(end.qp, made ? made : &none, &bind);
	if (!rc)
		vt_expect(end.cq, 1, IBV_WC_SUCCESS);
	if (made)
		ibv_dealloc_mw(made);
	vt_end_close(&end);
	return rc;
}

/* clang-format off */
const struct probe probe_memory[] = {
	PROBE(ibv_alloc_pd, pd),
	PROBE(ibv_dealloc_pd, pd),
	PROBE(ibv_import_pd, import_pd),
	PROBE(ibv_unimport_pd, import_pd),
	PROBE(ibv_alloc_td, td_alloc),
	PROBE(ibv_dealloc_td, td_dealloc),
	PROBE(ibv_alloc_parent_domain, parent_domain),
	PROBE_FLAG(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, parent_domain),
	PROBE_FLAG(IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, parent_domain),

	PROBE(ibv_reg_mr, mr),
	PROBE(ibv_reg_mr_iova, mr_iova),
	PROBE(ibv_reg_mr_iova2, mr_iova2),
	PROBE(ibv_reg_dmabuf_mr, dmabuf_mr),
	PROBE(ibv_dereg_mr, mr),
	PROBE(ibv_alloc_null_mr, null_mr),
	PROBE_FLAG(IBV_ACCESS_LOCAL_WRITE, mr),
	PROBE_FLAG(IBV_ACCESS_REMOTE_WRITE, mr_with),
	PROBE_FLAG(IBV_ACCESS_REMOTE_READ, mr_with),
	PROBE_FLAG(IBV_ACCESS_REMOTE_ATOMIC, mr_with),
	PROBE_FLAG(IBV_ACCESS_MW_BIND, mr_with),
	PROBE_FLAG(IBV_ACCESS_ZERO_BASED, mr_with),
	PROBE_FLAG(IBV_ACCESS_ON_DEMAND, mr_with),
	PROBE_FLAG(IBV_ACCESS_HUGETLB, mr_with),
	PROBE_FLAG(IBV_ACCESS_RELAXED_ORDERING, mr_with),
	PROBE_FLAG(IBV_ACCESS_OPTIONAL_FIRST, mr_with),
	PROBE_FLAG(IBV_ACCESS_OPTIONAL_RANGE, mr_with),
	PROBE_OF(ibv_rereg_mr, rereg, IBV_REREG_MR_FLAGS_SUPPORTED),
	PROBE_FLAG(IBV_REREG_MR_CHANGE_TRANSLATION, rereg),
	PROBE_FLAG(IBV_REREG_MR_CHANGE_PD, rereg),
	PROBE_FLAG(IBV_REREG_MR_CHANGE_ACCESS, rereg),
	PROBE_FLAG(IBV_REREG_MR_ERR_INPUT, rereg_wrong),
	PROBE(ibv_advise_mr, advice),
	PROBE_FLAG(IBV_ADVISE_MR_ADVICE_PREFETCH, advice),
	PROBE_FLAG(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, advice),
	PROBE_FLAG(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, advice),
	PROBE_FLAG(IBV_ADVISE_MR_FLAG_FLUSH, advice_flag),
	PROBE(ibv_import_mr, import_mr),
	PROBE(ibv_unimport_mr, import_mr),

	PROBE(ibv_alloc_dm, dm_alloc),
	PROBE(ibv_free_dm, dm_free),
	PROBE(ibv_memcpy_to_dm, dm_to),
	PROBE(ibv_memcpy_from_dm, dm_from),
	PROBE(ibv_reg_dm_mr, dm_mr),
	PROBE(ibv_import_dm, dm_import),
	PROBE(ibv_unimport_dm, dm_import),
	PROBE_FLAG(IBV_DM_MASK_HANDLE, dm_mask),

	PROBE_OF(ibv_alloc_mw, mw, IBV_MW_TYPE_2),
	PROBE(ibv_dealloc_mw, mw_dealloc),
	PROBE(ibv_bind_mw, mw_bind),
	PROBE_FLAG(IBV_MW_TYPE_1, mw),
	PROBE_FLAG(IBV_MW_TYPE_2, mw),
	{ NULL },
};
