/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_PERSONA_H
#define VB_NIC_PERSONA_H

/*
 * The vendor and part that the device reports in ibv_query_device(3). Programs choose code by them,
 * so another vendor's can be requested (VERBATIM_PERSONA). Apart from that it changes only what
 * that vendor's devices do by default.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"

struct vb_persona {
	const char *name;
	const char *fw_ver;
	uint32_t vendor_id, part_id, hw_ver;
	bool has_parcels; /* small data travels inside completions by default (parcel.h) */
};

/* The names of personas; the neutral one has none. */
extern const struct vb_words vb_persona_names;

/* Finds a persona by name; name NULL: the neutral one. NULL: no such persona. */
const struct vb_persona *vb_persona_find(const char *name);

#endif
