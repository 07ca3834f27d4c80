/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/overlay.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "group.h"
#include "trees.h"

/* clang-format off */
static const struct trees_node nodes[] = {
	{ false, TREES_FOLDER, "/sys" },
	{ false, TREES_FOLDER, "/sys/class" },
	{ false, TREES_FOLDER, "/sys/class/net" },
	{ false, TREES_LINK,   "/sys/class/net/eth0", "../../devices/pci0/eth0" },
	{ false, TREES_LINK,   "/sys/class/net/lo", "../../devices/lo" },
	{ false, TREES_FOLDER, "/sys/devices" },
	{ false, TREES_FOLDER, "/sys/devices/lo" },
	{ false, TREES_FILE,   "/sys/devices/lo/speed" },
	{ false, TREES_FOLDER, "/sys/devices/pci0" },
	{ false, TREES_FOLDER, "/sys/devices/pci0/eth0" },
	{ false, TREES_FILE,   "/sys/devices/pci0/eth0/mtu" },
	{ false, TREES_LINK,   "/sys/round", "round" },
	{ false, TREES_FILE,   "/sys/both" },
	{ true,  TREES_FOLDER, "/sys" },
	{ true,  TREES_FILE,   "/sys/both" },
	{ true,  TREES_FOLDER, "/sys/class" },
	{ true,  TREES_FOLDER, "/sys/class/net" },
	{ true,  TREES_LINK,   "/sys/class/net/lo", "../../devices/pci9/net/lo" },
	{ true,  TREES_FOLDER, "/sys/class/rdma" },
	{ true,  TREES_LINK,   "/sys/class/rdma/v0", "../../devices/pci9/rdma/v0/" },
	{ true,  TREES_FOLDER, "/sys/devices" },
	{ true,  TREES_FOLDER, "/sys/devices/pci0" },
	{ true,  TREES_FOLDER, "/sys/devices/pci0/eth0" },
	{ true,  TREES_LINK,   "/sys/devices/pci0/eth0/device", "/sys/devices/pci9" },
	{ true,  TREES_FOLDER, "/sys/devices/pci9" },
	{ true,  TREES_FOLDER, "/sys/devices/pci9/net" },
	{ true,  TREES_FOLDER, "/sys/devices/pci9/net/lo" },
	{ true,  TREES_LINK,   "/sys/devices/pci9/net/lo/speed", "/sys/devices/lo/speed" },
	{ true,  TREES_FOLDER, "/sys/devices/pci9/rdma" },
	{ true,  TREES_FOLDER, "/sys/devices/pci9/rdma/v0" },
	{ true,  TREES_LINK,   "/sys/devices/pci9/rdma/v0/device", "../../../pci9" },
	{ true,  TREES_FILE,   "/sys/devices/pci9/rdma/v0/guid" },
};

#define V0 "/sys/devices/pci9/rdma/v0"
enum { PLAIN, DETOUR };
enum {
	NOTHING = VB_OVERLAY_NOTHING,
	LOWER = VB_OVERLAY_LOWER,
	UPPER = VB_OVERLAY_UPPER,
	BOTH = VB_OVERLAY_BOTH,
};

static const struct {
	const char *path;
	bool follow;
	int rc;
	int has;
	const char *to;
	int detour;
} ways[] = {
	/* What only one tree has, or both. */
	{ "/", true, 0, BOTH, "/", PLAIN },
	{ "/sys", true, 0, BOTH, "/sys", PLAIN },
	{ "//sys/./class/", true, 0, BOTH, "/sys/class", PLAIN },
	{ "/sys/both", true, 0, UPPER, "/sys/both", PLAIN },
	{ "/sys/class/rdma", true, 0, UPPER, "/sys/class/rdma", PLAIN },
	{ "/sys/devices/lo/speed", true, 0, LOWER, "/sys/devices/lo/speed", PLAIN },
	/* Links of either, into either. */
	{ "/sys/class/rdma/v0", true, 0, UPPER, V0, DETOUR },
	{ "/sys/class/rdma/v0", false, 0, UPPER, "/sys/class/rdma/v0", PLAIN },
	{ "/sys/class/rdma/v0/", false, 0, UPPER, V0, DETOUR },
	{ "/sys/class/rdma/v0/guid", true, 0, UPPER, V0 "/guid", DETOUR },
	{ "/sys/class/rdma/v0/device/rdma/v0/guid", true, 0, UPPER, V0 "/guid", DETOUR },
	{ "/sys/class/net/eth0/mtu", true, 0, LOWER, "/sys/devices/pci0/eth0/mtu", PLAIN },
	{ "/sys/class/net/eth0/device", true, 0, UPPER, "/sys/devices/pci9", DETOUR },
	{ "/sys/class/net/lo/speed", true, 0, LOWER, "/sys/devices/lo/speed", DETOUR },
	{ "/sys/class/net/lo", false, 0, UPPER, "/sys/class/net/lo", PLAIN },
	/* ".." leaves where links have led to. */
	{ "/sys/class/rdma/v0/..", true, 0, UPPER, "/sys/devices/pci9/rdma", DETOUR },
	{ "/sys/class/rdma/../net/eth0", true, 0, BOTH, "/sys/devices/pci0/eth0", DETOUR },
	{ "/../sys/devices/lo", true, 0, LOWER, "/sys/devices/lo", PLAIN },
	{ "/sys/devices/lo/../../class/rdma", true, 0, UPPER, "/sys/class/rdma", PLAIN },
	/* What is missing, and what is no folder. */
	{ "/sys/class/rdma/v1", true, 0, NOTHING, "/sys/class/rdma/v1", PLAIN },
	{ "/sys/class/rdma/v1/x", true, ENOENT },
	{ "/sys/class/rdma/v1/..", true, ENOENT },
	{ "/sys/class/rdma/v0/guid/.", true, ENOTDIR },
	{ "/sys/class/rdma/v0/guid/..", true, ENOTDIR },
	{ "/sys/devices/lo/speed/..", true, ENOTDIR },
	{ "/sys/class/rdma/v0/guid/x/y", true, ENOTDIR },
	{ "/sys/round", true, ELOOP },
	{ "/sys/round", false, 0, LOWER, "/sys/round", PLAIN },
	{ "/usr/lib/x", true, ENOENT },
};
/* clang-format on */

static struct trees trees = { nodes, VB_ARRAY_LEN(nodes), 0 };
static const struct vb_overlay overlay = { trees_look, &trees };

TEST(a_path_leads_through_both_trees)
{
	struct vb_overlay_walk walk;

	for (unsigned i = 0; i < VB_ARRAY_LEN(ways); i++) {
		int rc = vb_overlay_walk(&overlay, ways[i].path, ways[i].follow, &walk);

		if (rc != ways[i].rc)
			fail_msg("%s: %d", ways[i].path, rc);
		if (rc)
			continue;
		if (strcmp(walk.path, ways[i].to) || (int)walk.has != ways[i].has)
			fail_msg("%s: %s, %d", ways[i].path, walk.path, walk.has);
		if (walk.is_detour != ways[i].detour)
			fail_msg("%s: a detour? %d", ways[i].path, walk.is_detour);
	}
}

TEST(it_says_what_is_at_the_end)
{
	struct vb_overlay_walk walk;

	assert_int_equal(vb_overlay_walk(&overlay, "/sys/class/rdma", true, &walk), 0);
	assert_true(walk.is_folder && !walk.is_link && !walk.is_slashed);
	assert_int_equal(vb_overlay_walk(&overlay, "/sys/class/rdma/v0", false, &walk), 0);
	assert_true(!walk.is_folder && walk.is_link);
	/* The slash behind the link's target, and one of the path's own. */
	assert_int_equal(vb_overlay_walk(&overlay, "/sys/class/rdma/v0", true, &walk), 0);
	assert_true(walk.is_folder && walk.is_slashed);
	assert_int_equal(vb_overlay_walk(&overlay, V0 "/guid/", true, &walk), 0);
	assert_true(!walk.is_folder && !walk.is_link && walk.is_slashed);
	assert_int_equal(vb_overlay_walk(&overlay, V0 "/guid/x", true, &walk), 0);
	assert_true(walk.has == VB_OVERLAY_NOTHING && walk.error == ENOTDIR);
}

TEST(a_path_that_is_too_long_is_refused)
{
	char path[VB_OVERLAY_CHARS + 8];
	struct vb_overlay_walk walk;

	memset(path, '/', sizeof(path));
	path[VB_OVERLAY_CHARS - 1] = '\0';
	assert_int_equal(vb_overlay_walk(&overlay, path, true, &walk), 0);
	path[VB_OVERLAY_CHARS - 1] = '/';
	path[VB_OVERLAY_CHARS] = '\0';
	assert_int_equal(vb_overlay_walk(&overlay, path, true, &walk), ENAMETOOLONG);
	/* It would be, with the link followed. */
	memset(path, '/', sizeof(path));
	memcpy(path, "/sys/class/rdma/v0", 18);
	path[VB_OVERLAY_CHARS - 4] = '\0';
	assert_int_equal(vb_overlay_walk(&overlay, path, true, &walk), ENAMETOOLONG);
}

TEST(without_an_upper_tree_all_is_the_lower)
{
	struct trees lower = { nodes, 13, 0 };
	struct vb_overlay alone = { trees_look, &lower };
	struct vb_overlay_walk walk;

	for (unsigned i = 0; i < VB_ARRAY_LEN(ways); i++) {
		if (vb_overlay_walk(&alone, ways[i].path, true, &walk) || !walk.path[1])
			continue;
		assert_true(walk.has == VB_OVERLAY_LOWER || walk.has == VB_OVERLAY_NOTHING);
		assert_false(walk.is_detour);
	}
}
