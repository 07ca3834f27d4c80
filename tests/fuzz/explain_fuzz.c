/* SPDX-License-Identifier: BSD-2-Clause */
/* Any octets as a capture: what is read of them is judged, and all that is found has words. */
#include <string.h>

#include "base/check.h"
#include "explain/judge.h"
#include "explain/say.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[VB_SAY_BYTES];
	struct vb_story story;

	vb_check(vb_story_begin(&story));
	if (vb_story_add(&story, "a", data, bytes)) {
		/* Once more: as if it were the other end's. */
		vb_story_add(&story, "b", data, bytes);
		vb_judge(&story);
	}
	for (uint32_t i = 0; i < story.troubles.count; i++) {
		const struct vb_trouble *trouble = &story.trouble[i];

		vb_check(trouble->kind < VB_TROUBLES && trouble->count);
		vb_check(trouble->half == VB_NONE || trouble->half < story.halves.count);
		vb_check(trouble->event == VB_NONE || trouble->event < story.events.count);
		vb_check(strnlen(trouble->words, VB_TROUBLE_BYTES) < VB_TROUBLE_BYTES);
	}
	for (uint32_t i = 0; i < story.halves.count; i++) {
		struct vb_summary summary = vb_judge_summary(&story, i);

		vb_check(summary.packets <= 2ull * story.events.count);
		vb_check(*vb_say_sender(text, &story, i) && *vb_say_receiver(text, &story, i));
	}
	vb_story_end(&story);
	return 0;
}
