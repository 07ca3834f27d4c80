/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_ADDRINFO_H
#define VB_ABI_RDMACM_ADDRINFO_H

struct rdma_addrinfo;

/*
 * A copy of one, without those behind it, and without routes and connection data, of which we have
 * none; to be freed by rdma_freeaddrinfo(). NULL: no memory.
 */
struct rdma_addrinfo *vb_cma_info_copy(const struct rdma_addrinfo *info);

#endif
