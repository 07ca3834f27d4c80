/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/order.h"

#include "base/check.h"
#include "base/prng.h"

/* As many of a stream stay together as that, so that they are placed together (journal.h). */
#define RUN_MAX 8u

/* Long enough for a thread on another processor to look, short beside any timeout. */
#define DAWDLE_NS_MIN 10000u
#define DAWDLE_NS_MAX 150000u

uint64_t vb_order_begin(struct vb_nic *nic, enum vb_order_of what)
{
	uint64_t number = atomic_fetch_add_explicit(&nic->orders[what], 1, memory_order_relaxed);
	uint64_t draws = nic->host.order->seed;

	draws = vb_prng_next(&draws) ^ (number * VB_ORDERS + what);
	return vb_prng_next(&draws);
}

uint32_t vb_order_below(uint64_t *draws, uint32_t bound)
{
	return (uint32_t)((vb_prng_next(draws) >> 32) * bound >> 32);
}

void vb_order_streams(uint64_t *draws, const uint32_t *stream, unsigned count,
		      uint8_t place[VB_ORDER_MAX])
{
	uint8_t left[VB_ORDER_MAX];
	unsigned placed = 0;

	vb_check(count <= VB_ORDER_MAX);
	for (unsigned i = 0; i < count; i++)
		left[i] = (uint8_t)i;
	while (count) {
		uint32_t chosen = stream[left[vb_order_below(draws, count)]];
		uint32_t run = 1 + vb_order_below(draws, RUN_MAX);
		unsigned kept = 0;

		for (unsigned i = 0; i < count; i++) {
			if (run && stream[left[i]] == chosen) {
				place[placed++] = left[i];
				run--;
			} else {
				left[kept++] = left[i];
			}
		}
		count = kept;
	}
}

void vb_order_dawdle(struct vb_nic *nic, uint64_t *draws, uint32_t one_in)
{
	uint64_t ns = DAWDLE_NS_MIN + vb_order_below(draws, DAWDLE_NS_MAX - DAWDLE_NS_MIN);

	if (vb_order_below(draws, one_in) == 0)
		nic->host.order->dawdle(nic->host.arg, ns);
}
