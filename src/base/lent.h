/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LENT_H
#define VB_BASE_LENT_H

/*
 * Marks a function that libibverbs.so.1 provides for our other libraries, under the version
 * VERBATIM_PRIVATE (abi/verbs/libibverbs.map must list it as well). All come from one build, so its
 * signature may change at any time. Within libibverbs.so.1 the call stays direct.
 */
#ifdef VB_BORROWS /* compiled for a library that takes it from libibverbs.so.1 */
#define VB_LENT
#else
#define VB_LENT __attribute__((visibility("protected")))
#endif

#endif
