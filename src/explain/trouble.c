/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/trouble.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

const struct vb_trouble_words vb_trouble_words[VB_TROUBLES] = {
#define X(id, name, weight, what, look) \
	[VB_TROUBLE_##id] = {name, VB_WEIGHT_##weight, what, look},
#include "explain/trouble.def"
#undef X
};

void vb_trouble_say(struct vb_trouble *trouble, const char *format, ...)
{
	size_t room = sizeof(trouble->words) - trouble->used;
	va_list args;
	int rc;

	va_start(args, format);
	rc = vsnprintf(trouble->words + trouble->used, room, format, args);
	va_end(args);
	if (rc > 0)
		trouble->used += vb_min_u64((size_t)rc, room - 1);
}
