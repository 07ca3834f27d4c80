/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_QUERY_H
#define VB_HUB_QUERY_H

/*
 * Questions to a running hub, for the command line. None starts one: ECONNREFUSED if there is
 * none. Also ETIMEDOUT, EPERM (the hub's name is taken by another uid), EPROTO. They wait for some
 * seconds, at most.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "hub/proto.h"

/*
 * What the hub knows. *rows: summary->rows of them, by slot, to be freed with free(); one whose
 * holder has not spoken to this hub yet has program.pid 0. Where a pid is not 0, it is the one that
 * the process has in our own PID namespace; where it is 0, it has none there. A hub that is new
 * gets its sockets from its clients soon; EAGAIN: it has not for some seconds.
 */
int vb_hub_status_read(struct vb_hub_summary *summary, struct vb_hub_row **rows);

/* The same with summary->links links, in the order in which clients told of them. */
int vb_hub_links_read(struct vb_hub_summary *summary, struct vb_hub_row **rows,
		      struct vb_hub_link **links);

/*
 * Ask the hub to leave; *pid is its process, 0 if that has no number here. EBUSY: *clients are
 * connected, and force was not set; if it is, they go on, and start another.
 */
int vb_hub_stop(bool force, unsigned *clients, pid_t *pid);

/*
 * Have the device of process pid of that PID namespace fail, which are program.pid and pid_ns of
 * vb_hub_status_read(). ESRCH: no such process has the device open; EAGAIN: it does not listen.
 */
int vb_hub_fail(uint32_t pid, uint64_t pid_ns);

/*
 * The memory in which XRC domains live (vb_hub_client_store()): a descriptor of the caller's. A hub
 * that is new gets it from its clients soon; EAGAIN: it has not for some seconds.
 */
int vb_hub_domains_read(int *fd);

/* There is something new in the log of XRC domains: all clients are told. Never waits. */
void vb_hub_note(void);

#endif
