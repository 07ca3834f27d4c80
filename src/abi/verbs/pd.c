/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/verbs/abi.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct vb_pd *pd;
	int rc = vb_abi_is_gone(context) ? EIO : vb_pd_create(vb_ctx_of(context), &pd);

	if (rc != 0) {
		errno = rc;
		return NULL;
	}
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return vb_abi_is_gone(pd->context) ? 0 : vb_pd_destroy((struct vb_pd *)pd);
}
