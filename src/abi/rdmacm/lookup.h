/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_LOOKUP_H
#define VB_ABI_RDMACM_LOOKUP_H

/* Names looked up by a thread of ours, and told by an event (rdma_resolve_addrinfo(3)). */

struct rdma_addrinfo;
struct rdma_cm_id;
struct vb_cma_id;

/* Of RDMACM_1.4, as the man pages of rdma-core 60 have them. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/* The id goes: nobody waits for the answer any more. Locked. */
void vb_cma_lookup_forget(struct vb_cma_id *id);

#endif
