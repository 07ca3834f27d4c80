/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_GIDS_H
#define VB_RUN_GIDS_H

/*
 * The GID table: every address of every interface that is up, as a RoCEv2 GID, and the node GUID.
 *
 * Order at open: IPv4 addresses of real interfaces, their IPv6 addresses, link-local addresses,
 * and the loopback ones last, so that index 0 is what a peer on another host can reach if there is
 * such an address at all. After that an address keeps its index: address handles and connected QPs
 * remember indices. The entry of an address that is gone becomes zero, a new address takes the
 * first free one.
 */

#include <ifaddrs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lent.h"
#include "nic/core/nic.h"

struct vb_gids {
	struct vb_gid_entry entry[VB_GIDS_MAX];
	unsigned count;	  /* entries at or above are zero */
	int watch_fd;	  /* tells of changes, -1 where the kernel cannot */
	uint64_t read_ns; /* when the table was read, where watch_fd cannot tell */
};

/* Reads the interfaces; starts watching for changes. 0, or what getifaddrs() failed with. */
int vb_gids_open(struct vb_gids *gids);
void vb_gids_close(struct vb_gids *gids);

/*
 * Reads the interfaces again if anything about them changed: true if the table is a new one. One
 * system call that finds nothing is the usual cost. On any failure the table stays as it is.
 */
bool vb_gids_refresh(struct vb_gids *gids, uint64_t now_ns);

/* The entries for a list of interface addresses, in the order above: their number, at most max. */
unsigned vb_gids_collect(struct vb_gid_entry *found, unsigned max, const struct ifaddrs *list);

/* Bring the table up to date with what was found. */
void vb_gids_merge(struct vb_gids *gids, const struct vb_gid_entry *found, unsigned count);

#endif
