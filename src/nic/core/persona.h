/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PERSONA_H
#define VB_NIC_PERSONA_H

/*
 * What the device says it is: ibv_query_device(3), vendor and part. Programs key on that which way
 * they go, so another make's name can be asked for (VERBATIM_PERSONA). It changes nothing else but
 * what that make does by default.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"

struct vb_persona {
	const char *name;
	const char *fw_ver;
	uint32_t vendor_id, part_id, hw_ver;
	bool has_parcels; /* small data travels inside completions, asked for or not (parcel.h) */
};

/* The names there are, but for the neutral one's, which has none. */
extern const struct vb_words vb_persona_names;

/* The one of this name; NULL, or no name: the neutral one. NULL if there is no such. */
const struct vb_persona *vb_persona_find(const char *name);

#endif
