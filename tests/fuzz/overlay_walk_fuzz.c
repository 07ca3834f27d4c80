/* SPDX-License-Identifier: BSD-2-Clause */
/* Any path in any two small trees: where it leads is there, without links, and the walk ends. */
#include <stdio.h>

#include "base/check.h"
#include "base/overlay.h"
#include "fuzz.h"
#include "trees.h"

enum { NODES_MAX = 24, NODE_BYTES = 4, PATH_BYTES = 128, WORDS = 4 };

static struct {
	struct trees_node nodes[NODES_MAX];
	char paths[NODES_MAX][PATH_BYTES];
	struct trees trees;
} world;

/* Short names, so that paths meet what is there. */
static const char *const names[WORDS] = {"a", "b", "c", "d"};
static const char *const targets[] = {"a",     "b",  "..",	".",   "../a", "../../b/c",
				      "/",     "/a", "/b",	"/c/", "a/b",  "./c",
				      "../..", "d",  "//a/./b", "/d"};

/* A node lies at the top, or in one before it that is of the same tree. */
static void node_make(unsigned i, const uint8_t *octets)
{
	const struct trees_node *in = i && octets[1] % (i + 1) ? &world.nodes[octets[1] % i] : NULL;
	struct trees_node *node = &world.nodes[i];

	node->is_upper = octets[0] & 1;
	node->kind = octets[0] / 2 % 3;
	node->target = targets[octets[3] % VB_ARRAY_LEN(targets)];
	node->path = world.paths[i];
	snprintf(world.paths[i], PATH_BYTES, "%.*s/%s", PATH_BYTES - 3,
		 in && in->is_upper == node->is_upper ? in->path : "", names[octets[2] % WORDS]);
}

static void check_plain(const char *path)
{
	vb_check(path[0] == '/' && strlen(path) < VB_OVERLAY_CHARS);
	for (const char *at = path; *at; at++)
		if (*at == '/') {
			size_t chars = strcspn(at + 1, "/");

			vb_check(chars && !(chars == 1 && at[1] == '.') &&
				 !(chars == 2 && at[1] == '.' && at[2] == '.'));
		}
}

static void walk_check(const char *path, bool follow)
{
	struct vb_overlay overlay = {trees_look, &world.trees};
	struct vb_overlay_walk walk, again;
	char target[VB_OVERLAY_CHARS] = "";
	bool upper;

	world.trees.looks = 0;
	if (vb_overlay_walk(&overlay, path, follow, &walk))
		return;
	/* Of a path, and of each link that is followed, no name is asked for more than thrice. */
	vb_check(world.trees.looks <= (VB_OVERLAY_LINKS_MAX + 1) * 3 * VB_OVERLAY_CHARS);
	if (!walk.path[1])
		return;
	check_plain(walk.path);
	upper = !trees_look(&world.trees, true, walk.path, target);
	vb_check(!upper || !follow || !target[0]);
	vb_check(upper == (walk.has == VB_OVERLAY_UPPER || walk.has == VB_OVERLAY_BOTH));
	if (walk.has == VB_OVERLAY_LOWER || walk.has == VB_OVERLAY_BOTH)
		vb_check(!trees_look(&world.trees, false, walk.path, target));
	if (walk.has == VB_OVERLAY_NOTHING)
		return;
	vb_check(!vb_overlay_walk(&overlay, walk.path, false, &again));
	vb_check(!strcmp(again.path, walk.path) && again.has == walk.has && !again.is_detour);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char letters[] = "/abcd../";
	unsigned count = bytes ? data[0] % (NODES_MAX + 1) : 0, used = 1 + count * NODE_BYTES;
	char path[VB_OVERLAY_CHARS + 64];
	size_t chars = 0;

	if (bytes < used)
		return 0;
	world.trees = (struct trees){world.nodes, count, 0};
	for (unsigned i = 0; i < count; i++)
		node_make(i, data + 1 + i * NODE_BYTES);
	path[chars++] = '/';
	while (used < bytes && chars < sizeof(path) - 1)
		path[chars++] = letters[data[used++] % (sizeof(letters) - 1)];
	path[chars] = '\0';
	walk_check(path, true);
	walk_check(path, false);
	return 0;
}
