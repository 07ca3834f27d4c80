/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TESTS_TREES_H
#define VB_TESTS_TREES_H

/* Two trees of files that are only a list, for what asks struct vb_overlay. */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/overlay.h"

enum { TREES_FOLDER, TREES_FILE, TREES_LINK };

struct trees_node {
	bool is_upper;
	int kind;
	const char *path, *target;
};

struct trees {
	const struct trees_node *nodes;
	unsigned count, looks;
};

static inline const struct trees_node *trees_find(const struct trees *trees, bool is_upper,
						  const char *path, size_t chars)
{
	for (unsigned i = 0; i < trees->count; i++) {
		const struct trees_node *node = &trees->nodes[i];

		if (node->is_upper == is_upper && strlen(node->path) == chars &&
		    !memcmp(node->path, path, chars))
			return node;
	}
	return NULL;
}

/* vb_overlay.look: each of a path's folders has to be one, as for the kernel. */
static inline int trees_look(void *host, bool is_upper, const char *path, char *target)
{
	struct trees *trees = host;
	const struct trees_node *node = NULL;

	trees->looks++;
	for (const char *end = path; *end;) {
		const char *name = end + 1, *next = strchr(name, '/');

		if (node && node->kind != TREES_FOLDER)
			return ENOTDIR;
		end = next ? next : name + strlen(name);
		if (end - name == 1 && *name == '.')
			continue;
		node = trees_find(trees, is_upper, path, (size_t)(end - path));
		if (!node)
			return ENOENT;
	}
	if (node && node->kind == TREES_LINK)
		memcpy(target, node->target, strlen(node->target) + 1);
	return 0;
}

#endif
