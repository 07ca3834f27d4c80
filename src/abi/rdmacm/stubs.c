/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * There are no rsockets here (rsocket(7)): making one fails with ENODEV, and functions that take
 * one, which no program can have, with ENOSYS.
 */

#include "abi/stub.h"

/* clang-format off */

/* Functions that make something. */
VB_STUB_MINUS_ONE(rsocket, ENODEV)

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
