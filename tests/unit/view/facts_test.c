/* SPDX-License-Identifier: BSD-2-Clause */
#include <ifaddrs.h>

#include "group.h"
#include "run/address/guid.h"
#include "topology/persona.h"
#include "view/facts.h"

static void mask_is(const char *list, const char *mask)
{
	char text[64];

	assert_string_equal(vb_view_cpu_mask(text, sizeof(text), list), mask);
}

TEST(a_list_of_cpus_is_a_mask)
{
	mask_is("0", "00000001");
	mask_is("0-3,8", "0000010f");
	mask_is("31-32", "00000001,80000000");
	mask_is("", "00000000");
	mask_is("x", "00000000");
}

TEST(what_is_true_of_this_host)
{
	struct vb_view_facts facts;
	const struct vb_view_device *device;
	struct vb_persona persona;

	assert_true(vb_persona_make(&persona, "connectx7"));
	assert_int_equal(vb_view_facts_open(&facts, &vb_topology_default, &persona), 0);
	device = &facts.device[0];
	assert_string_equal(device->name, "verbatim0");
	assert_true(device->guid_be == vb_guid_get());
	/* UCX would take another's for a promise. */
	assert_int_not_equal(device->part.vendor, 0x15b3);
	assert_string_equal(device->part.type, "MT4129");
	assert_string_equal(device->pci, "7662:00:06.0");
	for (unsigned i = 0; i < facts.gids[0].count; i++)
		assert_memory_equal(device->gid[i].gid, facts.gids[0].entry[i].gid, VB_GID_BYTES);
	vb_view_facts_close(&facts);
}

TEST(rows_are_those_of_the_devices_variety)
{
	struct vb_view_facts facts;
	struct vb_persona persona;

	assert_true(vb_persona_make(&persona, "neutral"));
	persona.gids = VB_GIDS_V1 | VB_GIDS_HOLES;
	assert_int_equal(vb_view_facts_open(&facts, &vb_topology_default, &persona), 0);
	if (facts.gids[0].count) {
		const struct vb_view_gid *gid = facts.device[0].gid;

		assert_true(gid[0].v1 && !gid[2].v1);
		assert_string_equal(gid[1].net, "");
		assert_memory_equal(gid[0].gid, gid[2].gid, VB_GID_BYTES);
	}
	vb_view_facts_close(&facts);
}
