/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/facts.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/text.h"
#include "topology/persona.h"
#include "run/address/guid.h"

/* A domain that no bus of a machine has, so that nothing of the machine is hidden. */
#define PCI_PLACE "7662:00:%02x.0"

enum { FIRST_SLOT = 6, CPUS_MAX = 1024, CPUS_PER_WORD = 32 };

/* --- the part --- */

/* The maker's number on the bus is ours, if there is no reason to have another's. */
#define OWN_VENDOR 0x7662

/*
 * By the vendor_id of ibv_query_device(3). A ConnectX's number on the bus promises queues in
 * hardware: UCX would take its mlx5 transports for it, and not fall back to verbs.
 */
static const struct maker {
	uint32_t vendor;
	uint16_t pci_vendor;
	const char *driver, *type, *board;
} makers[] = {
	{ 0x02c9, OWN_VENDOR, "mlx5_core", "MT%u", "MT_0000000838" },
	{ 0x1d0f, 0x1d0f, "efa", "%x", "EFA" },
	{ 0, OWN_VENDOR, "verbatim", "verbatim", "verbatim" },
};

static void part_fill(struct vb_view_part *part, const struct vb_persona *persona)
{
	const struct maker *maker = makers;

	while (maker->vendor && maker->vendor != persona->vendor_id)
		maker++;
	part->vendor = maker->pci_vendor;
	part->device = (uint16_t)persona->part_id;
	part->revision = persona->hw_ver;
	snprintf(part->driver, sizeof(part->driver), "%s", maker->driver);
	snprintf(part->type, sizeof(part->type), maker->type, persona->part_id);
	snprintf(part->board, sizeof(part->board), "%s", maker->board);
	snprintf(part->firmware, sizeof(part->firmware), "%s", persona->fw_ver);
}

/* --- its place --- */

const char *vb_view_cpu_mask(char *text, size_t bytes, const char *list)
{
	uint32_t words[CPUS_MAX / CPUS_PER_WORD] = { 0 };
	struct vb_text mask = vb_text_in(text, bytes);
	unsigned long first, last;
	unsigned used = 0;
	char *end, word[16];

	for (; *list; list = *end == ',' ? end + 1 : end) {
		first = last = strtoul(list, &end, 10);
		if (end == list)
			break;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPUS_MAX; first++) {
			words[first / CPUS_PER_WORD] |= 1u << first % CPUS_PER_WORD;
			used = (unsigned)vb_max_u64(used, first / CPUS_PER_WORD);
		}
	}
	for (unsigned i = used + 1; i-- > 0;) {
		snprintf(word, sizeof(word), i < used ? ",%08x" : "%08x", words[i]);
		vb_text_add(&mask, word, NULL);
	}
	return text;
}

/* The first line of a file; "": there is none. */
static void line_read(char *line, size_t bytes, const char *path)
{
	FILE *file = fopen(path, "re");

	*line = 0;
	if (!file)
		return;
	if (!fgets(line, (int)bytes, file))
		*line = 0;
	fclose(file);
	line[strcspn(line, "\n")] = 0;
}

static void place_fill(struct vb_view_device *device, const struct vb_topology_device *said,
		       unsigned index)
{
	char path[96] = "/sys/devices/system/cpu/online";

	device->numa = said->has_numa ? (int)said->numa : -1;
	if (said->has_numa)
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", said->numa);
	line_read(device->cpu_list, sizeof(device->cpu_list), path);
	vb_view_cpu_mask(device->cpu_mask, sizeof(device->cpu_mask), device->cpu_list);
	snprintf(device->pci, sizeof(device->pci), *said->pci ? "%s" : "", said->pci);
	if (!*device->pci)
		snprintf(device->pci, sizeof(device->pci), PCI_PLACE, FIRST_SLOT + index);
}

static void rate_fill(struct vb_view_device *device, uint32_t mbps)
{
	const struct vb_rate *rate = vb_rate_of(mbps);

	device->width = rate->width;
	device->speed = rate->speed;
}

/* --- addresses --- */

static void net_add(struct vb_view_device *device, const char *name, unsigned index)
{
	for (unsigned i = 0; i < device->nets; i++) {
		if (device->net[i].index == index)
			return;
	}
	if (device->nets == VB_VIEW_NETS_MAX)
		return;
	snprintf(device->net[device->nets].name, VB_VIEW_NET_BYTES, "%s", name);
	device->net[device->nets++].index = index;
}

/* The loopback interface is behind the device only where nothing else is. */
static void nets_fill(struct vb_view_device *device, const struct vb_gid_entry *shown,
		      unsigned count)
{
	device->nets = 0;
	for (unsigned loopback = 0; loopback < 2 && !device->nets; loopback++) {
		for (unsigned i = 0; i < count && i < VB_VIEW_GIDS; i++) {
			if (*device->gid[i].net && shown[i].loopback == loopback)
				net_add(device, device->gid[i].net, shown[i].ifindex);
		}
	}
}

static void gids_fill(struct vb_view_facts *facts, unsigned index)
{
	struct vb_view_device *device = &facts->device[index];
	struct vb_gid_entry shown[VB_GIDS_MAX];
	unsigned count;

	device->up = false;
	memset(device->gid, 0, sizeof(device->gid));
	vb_gids_shown(&facts->gids[index], shown, &count);
	for (unsigned i = 0; i < count && i < VB_VIEW_GIDS; i++) {
		const struct vb_gid_entry *entry = &shown[i];
		char name[IF_NAMESIZE];

		if (!entry->mtu_bytes || !if_indextoname(entry->ifindex, name))
			continue;
		memcpy(device->gid[i].gid, entry->gid, VB_GID_BYTES);
		snprintf(device->gid[i].net, VB_VIEW_NET_BYTES, "%s", name);
		device->gid[i].v1 = entry->v1;
		device->up |= !entry->no_carrier;
	}
	nets_fill(device, shown, count);
}

/* --- all of it --- */

static void device_fill(struct vb_view_facts *facts, unsigned index)
{
	const struct vb_topology_device *said = &facts->topology->device[index];
	struct vb_view_device *device = &facts->device[index];
	char host[32] = "";

	snprintf(device->name, sizeof(device->name), "%s", said->name);
	device->uverbs = said->uverbs;
	device->guid_be = vb_guid_of_device(facts->topology, index);
	device->system_guid_be = vb_guid_get();
	gethostname(host, sizeof(host) - 1);
	snprintf(device->description, sizeof(device->description), "%s %s", host, said->name);
	device->port_caps = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	part_fill(&device->part, &facts->persona[index]);
	place_fill(device, said, index);
	rate_fill(device, facts->persona[index].rate_mbps);
	gids_fill(facts, index);
}

static int gids_open(struct vb_view_facts *facts, unsigned index)
{
	/* Programs look into the tree when they start: its rows are as theirs will be. */
	const struct vb_gids_of of = {
		.topology = facts->topology,
		.device = &facts->topology->device[index],
		.variety = facts->persona[index].gids,
		.anew = true,
	};

	return vb_gids_open(&facts->gids[index], &of);
}

int vb_view_facts_open(struct vb_view_facts *facts, const struct vb_topology *topology,
		       const struct vb_persona *persona)
{
	int rc = 0;

	*facts = (struct vb_view_facts){ .topology = topology, .persona = persona };
	facts->device = calloc(topology->count, sizeof(*facts->device));
	facts->gids = calloc(topology->count, sizeof(*facts->gids));
	if (!facts->device || !facts->gids)
		rc = vb_failed(ENOMEM, "calloc");
	while (!rc && facts->opened < topology->count) {
		rc = gids_open(facts, facts->opened);
		if (!rc)
			device_fill(facts, facts->opened++);
	}
	if (rc)
		vb_view_facts_close(facts);
	return rc;
}

bool vb_view_facts_refresh(struct vb_view_facts *facts, uint64_t now_ns)
{
	bool changed = false;

	for (unsigned i = 0; i < facts->opened; i++) {
		if (!vb_gids_refresh(&facts->gids[i], now_ns))
			continue;
		gids_fill(facts, i);
		changed = true;
	}
	return changed;
}

void vb_view_facts_close(struct vb_view_facts *facts)
{
	for (unsigned i = 0; i < facts->opened; i++)
		vb_gids_close(&facts->gids[i]);
	free(facts->gids);
	free(facts->device);
}
