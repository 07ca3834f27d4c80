/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm.so.1 for programs that link it but can do without. There is no connection manager here:
 * functions that make an id, an endpoint or a socket fail with ENODEV, and functions that take one,
 * which no program can have, with ENOSYS.
 */

#include "abi/stub.h"

/* clang-format off */

/* Functions that make something. */
VB_STUB_MINUS_ONE(rdma_create_ep, ENODEV)
VB_STUB_MINUS_ONE(rdma_getaddrinfo, ENODEV)
VB_STUB_MINUS_ONE(rsocket, ENODEV)

/* Functions that take an id. */
VB_STUB_MINUS_ONE(rdma_get_request, ENOSYS)

/* Port numbers of an id. */

/* Functions that return nothing. */
VB_STUB_VOID(rdma_destroy_ep)
VB_STUB_VOID(rdma_freeaddrinfo)

/* Functions that take an rsocket. */
VB_STUB_MINUS_ONE(raccept, ENOSYS)
VB_STUB_MINUS_ONE(rbind, ENOSYS)
VB_STUB_MINUS_ONE(rclose, ENOSYS)
VB_STUB_MINUS_ONE(rconnect, ENOSYS)
VB_STUB_MINUS_ONE(rfcntl, ENOSYS)
VB_STUB_MINUS_ONE(rgetpeername, ENOSYS)
VB_STUB_MINUS_ONE(rgetsockname, ENOSYS)
VB_STUB_MINUS_ONE(rgetsockopt, ENOSYS)
VB_STUB_MINUS_ONE(riomap, ENOSYS)
VB_STUB_MINUS_ONE(riounmap, ENOSYS)
VB_STUB_MINUS_ONE(riowrite, ENOSYS)
VB_STUB_MINUS_ONE(rlisten, ENOSYS)
VB_STUB_MINUS_ONE(rpoll, ENOSYS)
VB_STUB_MINUS_ONE(rread, ENOSYS)
VB_STUB_MINUS_ONE(rreadv, ENOSYS)
VB_STUB_MINUS_ONE(rrecv, ENOSYS)
VB_STUB_MINUS_ONE(rrecvfrom, ENOSYS)
VB_STUB_MINUS_ONE(rrecvmsg, ENOSYS)
VB_STUB_MINUS_ONE(rselect, ENOSYS)
VB_STUB_MINUS_ONE(rsend, ENOSYS)
VB_STUB_MINUS_ONE(rsendmsg, ENOSYS)
VB_STUB_MINUS_ONE(rsendto, ENOSYS)
VB_STUB_MINUS_ONE(rsetsockopt, ENOSYS)
VB_STUB_MINUS_ONE(rshutdown, ENOSYS)
VB_STUB_MINUS_ONE(rwrite, ENOSYS)
VB_STUB_MINUS_ONE(rwritev, ENOSYS)
