/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/domain.h"

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/verbs/ops.h"
#include "tape/calls.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct vb_pd *pd;
	int rc = vb_abi_is_dead(context) ? EIO : vb_taped_pd_create(vb_ctx_of(context), &pd);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_PD, &pd->ibv);
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_PD, pd);

	if (rc != 0)
		return vb_abi_result(rc);
	context = pd->context;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_PD, pd, vb_taped_pd_destroy((struct vb_pd *)pd));
	return vb_abi_ended(context, vb_abi_result(rc));
}

struct ibv_pd *vb_abi_alloc_parent_domain(struct ibv_context *context,
					  struct ibv_parent_domain_init_attr *attr)
{
	struct vb_pd *pd;
	int rc = EIO;

	if (!vb_abi_is_dead(context))
		rc = vb_taped_parent_domain_create(vb_ctx_of(context), attr, &pd);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_PD, &pd->ibv);
	return &pd->ibv;
}

struct ibv_td *vb_abi_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vb_td *td;
	int rc = vb_abi_is_dead(context) ? EIO : vb_taped_td_create(vb_ctx_of(context), attr, &td);

	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_TD, &td->ibv);
	return &td->ibv;
}

int vb_abi_dealloc_td(struct ibv_td *td)
{
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_TD, td);

	if (rc != 0)
		return vb_abi_result(rc);
	context = td->context;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_TD, td, vb_taped_td_destroy((struct vb_td *)td));
	return vb_abi_ended(context, vb_abi_result(rc));
}
