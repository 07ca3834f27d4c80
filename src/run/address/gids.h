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

struct vb_gids {
	struct vb_gid_entry entry[VB_GIDS_MAX];
	unsigned count;	  /* entries from here on are zero */
	int watch_fd;	  /* netlink socket that reports changes; -1 if the kernel refuses */
	uint64_t read_ns; /* when the table was read; used without watch_fd */
};

/* Reads the interfaces and starts watching for changes. Returns 0, or the errno of getifaddrs(). */
int vb_gids_open(struct vb_gids *gids);
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

/* Bring the table up to date with what was found. */
void vb_gids_merge(struct vb_gids *gids, const struct vb_gid_entry *found, unsigned count);

#endif
