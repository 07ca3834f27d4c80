/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_TREE_H
#define VB_VIEW_TREE_H

/*
 * What files a kernel shows for such devices, and what is in them (tree.def). Pure: any thread.
 * The files are written by files.h, and shown by mount.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"

enum {
	VB_VIEW_GIDS = 256,
	VB_VIEW_NETS_MAX = 32,
	VB_VIEW_DEVICES_MAX = 16,
	VB_VIEW_NET_BYTES = 16,
	VB_VIEW_CPUS_BYTES = 256,
	VB_VIEW_PATH_BYTES = 256,
	VB_VIEW_TEXT_BYTES = 1024,
};

/* A row of the GID table; all zero: none. */
struct vb_view_gid {
	uint8_t gid[VB_GID_BYTES];
	char net[VB_VIEW_NET_BYTES];
	bool v1;
};

/* How the bus and the kernel would name the part. */
struct vb_view_part {
	uint16_t vendor, device; /* on the PCI bus */
	uint32_t revision;
	char driver[16], type[16], board[16], firmware[64];
};

struct vb_view_net {
	char name[VB_VIEW_NET_BYTES];
	unsigned index;
};

struct vb_view_device {
	char name[64];
	unsigned uverbs;
	uint64_t guid_be, system_guid_be;
	char description[64];
	struct vb_view_part part;
	char pci[16]; /* "7662:00:06.0" */
	int numa;     /* -1: no node */
	char cpu_list[VB_VIEW_CPUS_BYTES], cpu_mask[VB_VIEW_CPUS_BYTES]; /* near it */
	unsigned width, speed; /* as ibv_query_port(3) says them */
	uint32_t port_caps;
	bool up;
	struct vb_view_gid gid[VB_VIEW_GIDS];
	struct vb_view_net net[VB_VIEW_NETS_MAX];
	unsigned nets;
};

enum vb_view_kind {
	VB_VIEW_FILE,
	VB_VIEW_LINK,	/* symbolic; the content is its target */
	VB_VIEW_NODE,	/* a device file; the content is one that can stand for it */
	VB_VIEW_CONFIG, /* a file of octets */
};

struct vb_view_entry {
	enum vb_view_kind kind;
	const char *path;    /* without a slash in front */
	const char *content; /* of a file: with a newline at the end */
	size_t bytes;
};

/* Calls emit for each entry, until it fails. Returns 0 or what emit returned. */
int vb_view_tree(const struct vb_view_device *devices, unsigned count,
		 int (*emit)(void *arg, const struct vb_view_entry *entry), void *arg);

/* "0000:0000:0000:0000:0000:ffff:0a09:0001" */
void vb_view_gid_text(char text[40], const uint8_t gid[VB_GID_BYTES]);

#endif
