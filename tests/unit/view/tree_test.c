/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "group.h"
#include "view/tree.h"

static struct vb_view_device devices[2];
static char content[VB_VIEW_TEXT_BYTES];
static const char *wanted;
static enum vb_view_kind kind;
static unsigned seen, entries;

static int begin(void **state)
{
	static const struct vb_view_device first = {
		.name = "verbatim0",
		.description = "here verbatim0",
		.part = { 0x15b3, 0x1021, 0, "mlx5_core", "MT4129", "MT_1", "28.0.0" },
		.pci = "7662:00:06.0",
		.numa = -1,
		.cpu_list = "0-1",
		.cpu_mask = "00000003",
		.width = 2,
		.speed = 32,
		.up = true,
		.gid[1] = { { [10] = 0xff, 0xff, 10, 9, 0, 1 }, "eth0" },
		.gid[2] = { { [0] = 0xfe, 0x80, [15] = 1 }, "eth0", true },
		.net[0] = { "eth0", 2 },
		.nets = 1,
	};
	static const uint8_t guid[8] = { 0x02, 0x00, 0x5e, 0xff, 0xfe, 0x10, 0x20, 0x30 };

	devices[0] = devices[1] = first;
	memcpy(&devices[0].guid_be, guid, sizeof(guid));
	snprintf(devices[1].name, sizeof(devices[1].name), "rail1");
	devices[1].uverbs = 3;
	return 0;
}

GROUP(begin, NULL)

static int look(void *arg, const struct vb_view_entry *entry)
{
	entries++;
	if (strcmp(entry->path, wanted))
		return 0;
	seen++;
	kind = entry->kind;
	memcpy(content, entry->content, entry->bytes);
	content[entry->bytes] = 0;
	return 0;
}

static void is(unsigned count, const char *path, enum vb_view_kind of, const char *text)
{
	wanted = path;
	seen = 0;
	assert_int_equal(vb_view_tree(devices, count, look, NULL), 0);
	if (seen != 1)
		fail_msg("%s is there %u times", path, seen);
	assert_int_equal(kind, of);
	assert_string_equal(content, text);
}

#define PCI "sys/devices/pci7662:00/7662:00:06.0"
#define PORT PCI "/infiniband/verbatim0/ports/1"

TEST(a_class_leads_to_the_device_on_its_bus)
{
	is(1, "sys/class/infiniband/verbatim0", VB_VIEW_LINK,
	   "../../devices/pci7662:00/7662:00:06.0/infiniband/verbatim0");
	is(1, PCI "/infiniband/verbatim0/device", VB_VIEW_LINK, "../../../7662:00:06.0");
	is(1, "sys/class/infiniband_verbs/uverbs0", VB_VIEW_LINK,
	   "../../devices/pci7662:00/7662:00:06.0/infiniband_verbs/uverbs0");
	is(1, "sys/class/net/eth0", VB_VIEW_LINK,
	   "../../devices/pci7662:00/7662:00:06.0/net/eth0");
	is(1, PCI "/net/eth0/device", VB_VIEW_LINK, "../../../7662:00:06.0");
	is(1, "sys/class/pci_bus/7662:00", VB_VIEW_LINK,
	   "../../devices/pci7662:00/pci_bus/7662:00");
}

TEST(a_part_is_as_its_bus_names_it)
{
	is(1, PCI "/vendor", VB_VIEW_FILE, "0x15b3\n");
	is(1, PCI "/device", VB_VIEW_FILE, "0x1021\n");
	is(1, PCI "/numa_node", VB_VIEW_FILE, "-1\n");
	is(1, PCI "/local_cpulist", VB_VIEW_FILE, "0-1\n");
	is(1, PCI "/modalias", VB_VIEW_FILE,
	   "pci:v000015B3d00001021sv000015B3sd00001021bc02sc00i00\n");
	wanted = PCI "/config";
	seen = 0;
	vb_view_tree(devices, 1, look, NULL);
	assert_int_equal(seen, 1);
	assert_memory_equal(content, "\xb3\x15\x21\x10", 4);
	assert_int_equal(content[11], 2);
}

TEST(a_port_says_its_state_and_rate)
{
	is(1, PORT "/state", VB_VIEW_FILE, "4: ACTIVE\n");
	is(1, PORT "/phys_state", VB_VIEW_FILE, "5: LinkUp\n");
	is(1, PORT "/rate", VB_VIEW_FILE, "100 Gb/sec (4X EDR)\n");
	is(1, PCI "/infiniband/verbatim0/node_guid", VB_VIEW_FILE, "0200:5eff:fe10:2030\n");
	devices[0].up = false;
	devices[0].width = 1;
	devices[0].speed = 1;
	is(1, PORT "/state", VB_VIEW_FILE, "1: DOWN\n");
	is(1, PORT "/rate", VB_VIEW_FILE, "2.5 Gb/sec (1X SDR)\n");
	devices[0].up = true;
}

TEST(a_row_has_a_gid_its_type_and_its_interface)
{
	is(1, PORT "/gids/1", VB_VIEW_FILE, "0000:0000:0000:0000:0000:ffff:0a09:0001\n");
	is(1, PORT "/gid_attrs/types/1", VB_VIEW_FILE, "RoCE v2\n");
	is(1, PORT "/gid_attrs/ndevs/1", VB_VIEW_FILE, "eth0\n");
	is(1, PORT "/gid_attrs/types/2", VB_VIEW_FILE, "IB/RoCE v1\n");
}

TEST(a_row_without_a_gid_is_zero_and_its_attributes_cannot_be_read)
{
	is(1, PORT "/gids/0", VB_VIEW_FILE, "0000:0000:0000:0000:0000:0000:0000:0000\n");
	is(1, PORT "/gids/255", VB_VIEW_FILE, "0000:0000:0000:0000:0000:0000:0000:0000\n");
	is(1, PORT "/gid_attrs/types/0", VB_VIEW_LINK, "/sys/devices/virtual/net/lo/speed");
}

TEST(each_device_has_files_of_its_own)
{
	is(2, "dev/infiniband/uverbs0", VB_VIEW_NODE, "/dev/null");
	is(2, "dev/infiniband/uverbs3", VB_VIEW_NODE, "/dev/null");
	is(2, "sys/class/infiniband/rail1", VB_VIEW_LINK,
	   "../../devices/pci7662:00/7662:00:06.0/infiniband/rail1");
	is(2, PCI "/infiniband_verbs/uverbs3/uevent", VB_VIEW_FILE,
	   "MAJOR=231\nMINOR=195\nDEVNAME=infiniband/uverbs3\n");
	is(2, "sys/class/infiniband_verbs/abi_version", VB_VIEW_FILE, "6\n");
}

static int refuse(void *arg, const struct vb_view_entry *entry)
{
	return ++entries == 3 ? EIO : 0;
}

TEST(a_failure_ends_it)
{
	entries = 0;
	assert_int_equal(vb_view_tree(devices, 1, refuse, NULL), EIO);
	assert_int_equal(entries, 3);
}
