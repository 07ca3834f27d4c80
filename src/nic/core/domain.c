/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/domain.h"

#include <errno.h>
#include <stdlib.h>

#include "base/refusal.h"
#include "nic/core/internal.h"
#include "nic/core/lowered.h"

enum { BUFFER_ALIGN = 64 };

int vb_td_create(struct vb_ctx *ctx, const struct ibv_td_init_attr *attr, struct vb_td **out)
{
	struct vb_td *td;
	int err;

	if (attr->comp_mask)
		return vb_refuse(EINVAL, "comp_mask is 0x%x, not 0", attr->comp_mask);
	err = vb_nic_count_up(&ctx->nic->counts.tds, VB_TDS_MAX);
	if (err)
		return err;
	td = calloc(1, sizeof(*td));
	if (!td) {
		atomic_fetch_sub(&ctx->nic->counts.tds, 1);
		return ENOMEM;
	}
	td->ibv.context = &ctx->ibv.context;
	*out = td;
	return 0;
}

int vb_td_destroy(struct vb_td *td)
{
	if (atomic_load(&td->users))
		return vb_refuse(EBUSY, "%u parent domains still use it",
				 (unsigned)atomic_load(&td->users));
	atomic_fetch_sub(&vb_nic_of(td->ibv.context)->counts.tds, 1);
	free(td);
	return 0;
}

static int check(const struct vb_ctx *ctx, const struct ibv_parent_domain_init_attr *attr)
{
	static const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				      IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
				      VB_PARENT_DOMAIN_CC_UNPROTECTED;

	if (!attr->pd || attr->pd->context != &ctx->ibv.context || (attr->comp_mask & ~known))
		return vb_refuse(EINVAL,
				 "pd is NULL or of another context, or comp_mask 0x%x is not "
				 "known",
				 attr->comp_mask);
	if (attr->td && attr->td->context != &ctx->ibv.context)
		return EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

static void fill(struct vb_domain *domain, const struct ibv_parent_domain_init_attr *attr)
{
	domain->pd = (struct vb_pd *)attr->pd;
	domain->td = (struct vb_td *)attr->td;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		domain->alloc = attr->alloc;
		domain->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		domain->context = attr->pd_context;
}

/* Makes a struct vb_pd with all that objects need. Importing its handle gives the PD behind it. */
static struct vb_pd *pd_make(struct vb_ctx *ctx, const struct vb_pd *behind)
{
	struct vb_domain *domain = calloc(1, sizeof(*domain));
	struct vb_pd *pd = calloc(1, sizeof(*pd));

	if (!domain || !pd) {
		free(domain);
		free(pd);
		return NULL;
	}
	pd->ibv.context = &ctx->ibv.context;
	pd->ibv.handle = behind->ibv.handle;
	pd->id = behind->id;
	pd->foreign = behind->foreign;
	pd->foreign_id = behind->foreign_id;
	pd->domain = domain;
	return pd;
}

int vb_parent_domain_create(struct vb_ctx *ctx, const struct ibv_parent_domain_init_attr *attr,
			    struct vb_pd **out)
{
	struct vb_domain *domain;
	struct vb_pd *pd;
	int err = check(ctx, attr);

	if (!err)
		err = vb_lowered_count_up(ctx->nic, &ctx->nic->counts.pds, VB_LIMIT_PD);
	if (err)
		return err;
	pd = pd_make(ctx, (struct vb_pd *)attr->pd);
	if (!pd) {
		atomic_fetch_sub(&ctx->nic->counts.pds, 1);
		return ENOMEM;
	}
	domain = pd->domain;
	fill(domain, attr);
	atomic_fetch_add(&domain->pd->users, 1);
	if (domain->td)
		atomic_fetch_add(&domain->td->users, 1);
	*out = pd;
	return 0;
}

void vb_domain_destroy(struct vb_domain *domain)
{
	atomic_fetch_sub(&domain->pd->users, 1);
	if (domain->td)
		atomic_fetch_sub(&domain->td->users, 1);
	free(domain);
}

int vb_buffer_borrow(struct vb_pd *pd, enum vb_buffer what, size_t bytes, void **memory)
{
	const struct vb_domain *domain = pd ? pd->domain : NULL;
	void *lent;

	*memory = NULL;
	if (!domain || !domain->alloc)
		return 0;
	lent = domain->alloc(&pd->ibv, domain->context, bytes, BUFFER_ALIGN, what);
	if (!lent)
		return ENOMEM;
	if (lent != IBV_ALLOCATOR_USE_DEFAULT)
		*memory = lent;
	return 0;
}

void vb_buffer_return(struct vb_pd *pd, enum vb_buffer what, void *memory)
{
	const struct vb_domain *domain = pd->domain;

	domain->free(&pd->ibv, domain->context, memory, what);
}
