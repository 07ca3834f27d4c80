/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/records.h"

#include <stddef.h>

struct vb_cm_record *vb_cm_lender_lend(struct vb_cm_lender *lender)
{
	struct vb_cm_records *records = lender->records;

	if (lender->free_count)
		return &records->record[lender->free[--lender->free_count]];
	if (!records || lender->used == VB_CM_RECORDS_MAX)
		return NULL;
	lender->used++;
	atomic_store_explicit(&records->top, lender->used, memory_order_release);
	return &records->record[lender->used - 1];
}

void vb_cm_lender_take_back(struct vb_cm_lender *lender, struct vb_cm_record *record)
{
	lender->free[lender->free_count++] = (uint16_t)(record - lender->records->record);
}
