/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_BASE_LENT_H
#define VB_BASE_LENT_H

/*
 * Marks a function that libibverbs.so.1 lends to the other libraries of ours, under the version
 * VERBATIM_PRIVATE (abi/verbs/libibverbs.map, where its name has to stand as well). They come from
 * one build, so what it looks like may change at any time. Inside libibverbs.so.1 such a call is as
 * direct as any other.
 */
#ifdef VB_BORROWS /* we are compiled for a library that finds it in another */
#define VB_LENT
#else
#define VB_LENT __attribute__((visibility("protected")))
#endif

#endif
