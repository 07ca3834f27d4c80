/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as a topology file and as its short form: each address has one owner at most if every
 * device names its places; of what is refused, one line says where and why.
 */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "topology/table.h"

static void why_check(const char why[VB_TOPOLOGY_WHY_BYTES])
{
	size_t chars = strnlen(why, VB_TOPOLOGY_WHY_BYTES);

	/* Shorter than the room that there is: nothing was left out. */
	vb_check(chars && chars < VB_TOPOLOGY_WHY_BYTES - 1);
	for (size_t i = 0; i < chars; i++)
		vb_check((uint8_t)why[i] >= ' ' && why[i] != 0x7f);
}

static void device_check(const struct vb_topology *topology, unsigned i)
{
	const struct vb_topology_device *device = &topology->device[i];

	vb_check(device->name[0] && vb_topology_find(topology, device->name) == device);
	vb_check(device->place_count <= VB_TOPOLOGY_PLACES_MAX);
	vb_check(device->uverbs <= VB_TOPOLOGY_UVERBS_MAX);
	for (unsigned j = 0; j < i; j++)
		vb_check(topology->device[j].uverbs != device->uverbs);
	for (unsigned j = 0; j < device->place_count; j++) {
		const struct vb_topology_place *place = &device->place[j];

		if (!place->interface[0])
			vb_check(vb_topology_has(topology, device, "", place->address));
	}
}

static void parse_check(int rc, const struct vb_topology *topology,
			const struct vb_topology *before, const char *why)
{
	if (rc) {
		why_check(why);
		vb_check(memcmp(topology, before, sizeof(*before)) == 0);
		return;
	}
	vb_check(!why[0] && topology->count && topology->count <= VB_TOPOLOGY_DEVICES_MAX);
	for (unsigned i = 0; i < topology->count; i++)
		device_check(topology, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct vb_topology topology, before;
	const char *text = (const char *)data;
	char why[VB_TOPOLOGY_WHY_BYTES] = "";

	memset(&topology, 0xee, sizeof(topology));
	memset(&before, 0xee, sizeof(before));
	parse_check(vb_topology_parse(&topology, "x", text, bytes, why), &topology, &before, why);
	memset(&topology, 0xee, sizeof(topology));
	parse_check(vb_topology_parse_short(&topology, text, bytes, why), &topology, &before, why);
	return 0;
}
