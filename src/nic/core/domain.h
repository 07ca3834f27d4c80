/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_DOMAIN_H
#define VB_NIC_DOMAIN_H

/*
 * Thread domains and parent domains (ibv_alloc_td(3), ibv_alloc_parent_domain(3)).
 *
 * A parent domain is a struct vb_pd with the id of the PD behind it, so memory and queues of both
 * can be combined. It also tells the objects created in it whether a single thread uses them, and
 * where their buffers come from.
 */

#include "nic/core/ctx.h"

/*
 * IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC of rdma-core 65: where a device cannot
 * reach a guest's protected memory, buffers may lie in unprotected memory. Ours reaches all.
 */
#define VB_PARENT_DOMAIN_CC_UNPROTECTED (1u << 2)

struct vb_td {
	struct ibv_td ibv;
	_Atomic uint32_t users; /* parent domains */
};

/* EINVAL: unknown attributes; ENOMEM. */
int vb_td_create(struct vb_ctx *ctx, const struct ibv_td_init_attr *attr, struct vb_td **td);
int vb_td_destroy(struct vb_td *td); /* EBUSY while a parent domain uses it */

/*
 * EINVAL: no PD, an object of another context, unknown attributes, one allocator function without
 * the other; ENOMEM. vb_pd_destroy() ends it.
 */
int vb_parent_domain_create(struct vb_ctx *ctx, const struct ibv_parent_domain_init_attr *attr,
			    struct vb_pd **pd);

/* --- for the rest of the NIC --- */

struct vb_domain {
	struct vb_pd *pd; /* the PD behind it */
	struct vb_td *td; /* or NULL */
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t bytes, size_t align,
		       uint64_t resource);
	void (*free)(struct ibv_pd *pd, void *context, void *memory, uint64_t resource);
	void *context;
};

/* For vb_pd_destroy(): releases what the domain uses. */
void vb_domain_destroy(struct vb_domain *domain);

/* The application promised that one thread at a time uses objects of this PD. */
static inline bool vb_pd_is_lone(const struct vb_pd *pd)
{
	return pd && pd->domain && pd->domain->td;
}

/*
 * The purpose of a buffer, as passed to an allocator. The upper half of resource_type would name
 * the kernel driver; it is 0, since there is none.
 */
enum vb_buffer {
	VB_BUFFER_SQ = 1,
	VB_BUFFER_RQ = 2,
	VB_BUFFER_SRQ = 3,
	VB_BUFFER_CQ = 4,
};

/*
 * Asks the parent domain's allocator for a buffer, aligned to a cache line. Returns 0 or ENOMEM.
 * *memory is NULL if there is no allocator, or it leaves the buffer to us. Only while the
 * application creates, resizes or destroys an object: its functions must not be called from our
 * thread.
 */
int vb_buffer_borrow(struct vb_pd *pd, enum vb_buffer what, size_t bytes, void **memory);

/* Returns a borrowed buffer. */
void vb_buffer_return(struct vb_pd *pd, enum vb_buffer what, void *memory);

#endif
