/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/xrc/xrc_notes.h"

#include <errno.h>

#include "base/torn.h"

int vb_xrc_srq_note(struct vb_xrc_srqs *srqs, uint64_t domain, uint32_t number, uint16_t slot,
		    uint32_t *place)
{
	for (uint32_t i = 0; i < VB_XRC_SRQS_MAX; i++) {
		uint32_t at = srqs->next++ % VB_XRC_SRQS_MAX;
		struct vb_xrc_srq_row *note = &srqs->srq[at];

		if (atomic_load(&note->domain))
			continue;
		note->number = number;
		note->slot = slot;
		atomic_store(&note->domain, domain);
		if (at >= srqs->top)
			srqs->top = at + 1;
		*place = at;
		return 0;
	}
	return ENOMEM;
}

void vb_xrc_srq_strike(struct vb_xrc_srqs *srqs, uint32_t place, uint32_t number)
{
	struct vb_xrc_srq_row *note = &srqs->srq[place];

	if (note->number == number)
		atomic_store(&note->domain, 0);
}

void vb_xrc_srqs_collect(struct vb_xrc_srqs *srqs, uint16_t slot)
{
	for (uint32_t i = 0; i < vb_xrc_srqs_top(srqs); i++) {
		if (srqs->srq[i].slot == slot)
			atomic_store(&srqs->srq[i].domain, 0);
	}
}

void vb_xrc_log_add(struct vb_xrc_log *log, const struct vb_xrc_note *note)
{
	uint64_t number = atomic_load(&log->count);

	/* Readers ignore this place now. */
	vb_torn_write(&log->note[number % VB_XRC_NOTES_MAX], note, sizeof(*note));
	atomic_store(&log->count, number + 1);
}

uint64_t vb_xrc_log_first(uint64_t count)
{
	return count >= VB_XRC_NOTES_MAX ? count - VB_XRC_NOTES_MAX + 1 : 0;
}

bool vb_xrc_log_read(const struct vb_xrc_log *log, uint64_t number, struct vb_xrc_note *note)
{
	uint64_t count = atomic_load(&log->count);

	if (number < vb_xrc_log_first(count) || number >= count)
		return false;
	vb_torn_read(note, &log->note[number % VB_XRC_NOTES_MAX], sizeof(*note));
	atomic_thread_fence(memory_order_seq_cst);
	return number >= vb_xrc_log_first(atomic_load(&log->count));
}
