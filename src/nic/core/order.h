/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_ORDER_H
#define VB_NIC_ORDER_H

/*
 * Another order (docs/order.md): the choices that the standard leaves open are drawn from a seed. A
 * NIC has another order if its host has the group `order`; else nothing here is called. The rooms
 * do what is drawn: mem places octets (mem/journal.h), queue gives out completions
 * (queue/shuffle.h), way takes in packets (way/disorder.h).
 */

#include "nic/core/internal.h"

/* How many things are put in another order at a time. */
enum { VB_ORDER_MAX = 64 };

/* Where a sequence of draws begins: the n-th of a kind is always the same one. Any thread. */
uint64_t vb_order_begin(struct vb_nic *nic, enum vb_order_of what);

/* Draws a number below that bound, which is not 0. */
uint32_t vb_order_below(uint64_t *draws, uint32_t bound);

/*
 * Puts `count` things (up to VB_ORDER_MAX) in another order: place[i] is the index of the i-th.
 * Those of one stream stay in their order.
 */
void vb_order_streams(uint64_t *draws, const uint32_t *stream, unsigned count,
		      uint8_t place[VB_ORDER_MAX]);

/* Now and then, once in `one_in`, lets time pass. Any lock may be held. */
void vb_order_dawdle(struct vb_nic *nic, uint64_t *draws, uint32_t one_in);

#endif
