/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_TOPOLOGY_TABLE_H
#define VB_TOPOLOGY_TABLE_H

/*
 * The table of the devices that a process has, and its text form (docs/devices.md). Pure: any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "topology/keys.h"
#include "topology/limits.h"
#include "topology/values.h"

enum {
	VB_TOPOLOGY_DEVICES_MAX = 16,
	VB_TOPOLOGY_PLACES_MAX = 16, /* interfaces and addresses of a device */
	VB_TOPOLOGY_UVERBS_MAX = 255,
	VB_TOPOLOGY_NUMA_MAX = 1023,
	VB_TOPOLOGY_NAME_BYTES = 64, /* IBV_SYSFS_NAME_MAX */
	VB_TOPOLOGY_INTERFACE_BYTES = 16, /* IFNAMSIZ */
	VB_TOPOLOGY_FABRIC_BYTES = 32,
	VB_TOPOLOGY_PERSONA_BYTES = 256,
	VB_TOPOLOGY_TEXT_BYTES_MAX = 1 << 16, /* of a file */
	VB_TOPOLOGY_WHY_BYTES = 512,
};

/* An interface, or an address of any interface. */
struct vb_topology_place {
	char interface[VB_TOPOLOGY_INTERFACE_BYTES]; /* "": it is the address */
	uint8_t address[VB_GID_BYTES];		     /* IPv4 is ::ffff:a.b.c.d */
};

struct vb_topology_device {
	char name[VB_TOPOLOGY_NAME_BYTES];
	unsigned uverbs; /* of uverbsN */
	char persona[VB_TOPOLOGY_PERSONA_BYTES]; /* a name or a path; "": VERBATIM_PERSONA's */
	struct vb_topology_place place[VB_TOPOLOGY_PLACES_MAX];
	unsigned place_count; /* 0: every interface that no other device names */
	char fabric[VB_TOPOLOGY_FABRIC_BYTES];
	char pci[VB_TOPOLOGY_PCI_BYTES]; /* "0000:17:00.0"; "": virtual */
	uint32_t rate_mbps; /* 0: what the device says by itself */
	unsigned numa;
	bool has_numa; /* else the device belongs to no node */
	bool has_gids; /* else the persona says it */
	uint8_t gids;	/* bits of enum vb_gid_variety */
	struct vb_limits limits; /* above those of its persona */
	unsigned line; /* where it begins in the file */
};

struct vb_topology {
	struct vb_topology_device device[VB_TOPOLOGY_DEVICES_MAX];
	unsigned count; /* at least 1 */
};

/* The table without a setting: verbatim0, uverbs0, every interface. */
extern const struct vb_topology vb_topology_default;

/*
 * Reads the text of a file, whose name begins messages. Returns 0; or EINVAL with *topology
 * untouched, and `why` says on one line where and what is wrong, and what is valid.
 */
int vb_topology_parse(struct vb_topology *topology, const char *name, const char *text,
		      size_t bytes, char why[VB_TOPOLOGY_WHY_BYTES]);

/*
 * The same of the short form: NAME=PLACE[+PLACE...][,NAME=...], where a place is an interface or
 * an address: "rail0=eth0,rail1=eth1+10.0.0.7".
 */
int vb_topology_parse_short(struct vb_topology *topology, const char *text, size_t bytes,
			    char why[VB_TOPOLOGY_WHY_BYTES]);

/* Is a setting the short form, and not the path of a file? It has '=', and no '/'. */
bool vb_topology_is_short(const char *setting);

/* The device of this name; NULL: none. */
const struct vb_topology_device *vb_topology_find(const struct vb_topology *topology,
						  const char *name);

/* Does the device name this interface, or this address? */
bool vb_topology_names(const struct vb_topology_device *device, const char *interface,
		       const uint8_t address[VB_GID_BYTES]);

/*
 * Is such an address on such an interface this device's? An address that a device names is its
 * own; else it goes with its interface; and what no device names belongs to those that name no
 * place.
 */
bool vb_topology_has(const struct vb_topology *topology, const struct vb_topology_device *device,
		     const char *interface, const uint8_t address[VB_GID_BYTES]);

#endif
