/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/persona.h"

#include <stddef.h>
#include <string.h>

#include "nic/core/limits.h"

/*
 * ConnectX-7: Mellanox's OUI and its PCI device. The firmware version is the lowest of its family,
 * since programs assume more features with a higher one.
 */
static const struct vb_persona personas[] = {
	{ "connectx7", "28.0.0", 0x02c9, 4129, 0, true },
};

const struct vb_words vb_persona_names = VB_WORDS(personas);

const struct vb_persona *vb_persona_find(const char *name)
{
	static const struct vb_persona neutral = {
		"", VB_VERSION, VB_VENDOR_ID, VB_PART_ID, 1, false,
	};
	unsigned i = name ? vb_words_find(&vb_persona_names, name, strlen(name)) : 0;

	if (!name || !*name)
		return &neutral;
	return i < vb_persona_names.count ? &personas[i] : NULL;
}
