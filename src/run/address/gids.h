/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_GIDS_H
#define VB_RUN_GIDS_H

/*
 * The GID table: every address of every interface that is up, as a RoCEv2 GID, and the node GUID.
 *
 * Order at open: IPv4 addresses of real interfaces, their IPv6 addresses, link-local addresses,
 * loopback addresses. So index 0 is reachable from other hosts if any address is. Afterwards an
 * address keeps its index, since address handles and connected QPs store indices. The entry of a
 * removed address becomes zero; a new address takes the first free entry.
 */

#include <ifaddrs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "nic/core/nic.h"
#include "topology/table.h"

/* Whose addresses, and how the table shows them. */
struct vb_gids_of {
	const struct vb_topology *topology;
	const struct vb_topology_device *device; /* of it; NULL: every address is the device's */
	uint8_t variety; /* bits of enum vb_gid_variety */
	bool anew; /* a change numbers all rows anew, as a table that is opened then */
};

struct vb_gids {
	struct vb_gids_of of;
	struct vb_gid_entry entry[VB_GIDS_MAX];
	struct vb_neighbour neighbour[VB_GIDS_MAX]; /* addresses of others */
	unsigned neighbour_count;
	unsigned count;	  /* entries from here on are zero */
	int watch_fd;	  /* netlink socket that reports changes; -1 if the kernel refuses */
	uint64_t read_ns; /* when the table was read; used without watch_fd */
};

/*
 * Reads the interfaces and starts watching for changes; what `of` points to has to stay. Returns
 * 0, or the errno of getifaddrs().
 */
int vb_gids_open(struct vb_gids *gids, const struct vb_gids_of *of);
void vb_gids_close(struct vb_gids *gids);

/*
 * Reads the interfaces again if anything changed. Returns true if the table changed. Usually costs
 * one system call that finds nothing. On failure the table stays as it is.
 */
bool vb_gids_refresh(struct vb_gids *gids, uint64_t now_ns);

/*
 * Collects the entries for a list of interface addresses, in the order above. Returns their number,
 * at most max.
 */
unsigned vb_gids_collect(struct vb_gid_entry *found, unsigned max, const struct ifaddrs *list);

/*
 * The table as the device shows it, in its variety: *count entries, at most VB_GIDS_MAX. A row of
 * the table above keeps its place there.
 */
void vb_gids_shown(const struct vb_gids *gids, struct vb_gid_entry shown[VB_GIDS_MAX],
		   unsigned *count);

/* Bring the table up to date with what was found. */
void vb_gids_merge(struct vb_gids *gids, const struct vb_gid_entry *found, unsigned count);

#endif
