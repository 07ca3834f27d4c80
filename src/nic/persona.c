/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/persona.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "nic/limits.h"

/*
 * ConnectX-7: Mellanox's OUI and its PCI device. Its firmware is of the 28th family; of that, the
 * lowest there can be, since programs take a higher one for the promise of more.
 */
static const struct vb_persona personas[] = {
	{ "", VB_VERSION, VB_VENDOR_ID, VB_PART_ID, 1, false },
	{ "connectx7", "28.0.0", 0x02c9, 4129, 0, true },
};

const struct vb_persona *vb_persona_find(const char *name)
{
	for (size_t i = 0; i < VB_ARRAY_LEN(personas); i++) {
		if (strcmp(personas[i].name, name ? name : "") == 0)
			return &personas[i];
	}
	return NULL;
}
