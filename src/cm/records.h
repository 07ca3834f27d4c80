/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CM_RECORDS_H
#define VB_CM_RECORDS_H

/*
 * The records of one process's ids, in memory that outlives it: who has the memory can close what
 * is open there. Whoever reads it believes nothing: the process may have written anything.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "cm/record.h"

enum { VB_CM_RECORDS_MAX = 16384 };

struct vb_cm_records {
	_Atomic uint32_t top; /* no record from here on was ever used */
	_Atomic uint32_t unacked; /* events that are not acknowledged, for status */
	struct vb_cm_record record[VB_CM_RECORDS_MAX];
};

/* How many are worth a look. */
static inline uint32_t vb_cm_records_top(const struct vb_cm_records *records)
{
	uint32_t top = atomic_load_explicit(&records->top, memory_order_acquire);

	return top < VB_CM_RECORDS_MAX ? top : VB_CM_RECORDS_MAX;
}

/* The process's own: which ones are free. */
struct vb_cm_lender {
	struct vb_cm_records *records; /* NULL: there are none */
	uint32_t used;		       /* as records->top */
	uint32_t free_count;
	uint16_t free[VB_CM_RECORDS_MAX];
};

/* NULL: there is no room. */
struct vb_cm_record *vb_cm_lender_lend(struct vb_cm_lender *lender);
void vb_cm_lender_take_back(struct vb_cm_lender *lender, struct vb_cm_record *record);

#endif
