/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_HUB_QUERY_H
#define VB_HUB_QUERY_H

/*
 * Questions to a running hub, for the command line. They do not start one: ECONNREFUSED if there is
 * none. Also ETIMEDOUT, EPERM (another uid has the hub's name), EPROTO. They wait some seconds at
 * most.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/lent.h"
#include "hub/proto.h"

/*
 * Reads the hub's state. *rows has summary->rows entries, by slot; the caller frees it with free().
 * program.pid is 0 if the holder has not contacted this hub yet. pid is the process's number in our
 * PID namespace, 0 if it has none there. EAGAIN: a new hub has not received its sockets from its
 * clients within some seconds.
 */
int vb_hub_status_read(struct vb_hub_summary *summary, struct vb_hub_row **rows);

/* The same, with summary->links links in the order in which clients reported them. */
int vb_hub_links_read(struct vb_hub_summary *summary, struct vb_hub_row **rows,
		      struct vb_hub_link **links);

/*
 * What the hub's processes have of rdma_cm. *rows has *count entries, process by process; the
 * caller frees it with free(). *left: so many listeners are left out, since there are many.
 */
int vb_hub_cm_read(struct vb_hub_cm_row **rows, unsigned *count, unsigned *left);

/* Who listens at the port nearest to that one, in a port space. ENOENT: nobody. */
VB_LENT int vb_hub_listener_nearest(uint32_t space, uint16_t port, struct vb_hub_cm_row *row);

/*
 * Asks the hub to leave. *pid: its process, 0 if it has no number here. EBUSY: *clients are
 * connected, and force is not set; with force they continue, and start another hub.
 */
int vb_hub_stop(bool force, unsigned *clients, pid_t *pid);

/*
 * Lets the device of a process fail; pid and pid_ns are program.pid and pid_ns of
 * vb_hub_status_read(). ESRCH: no such process has the device open; EAGAIN: it takes no messages
 * now.
 */
int vb_hub_fail(uint32_t pid, uint64_t pid_ns);

/*
 * The memory of the XRC domains (vb_hub_client_store()), as a descriptor that the caller owns.
 * EAGAIN: a new hub has not received it from its clients within some seconds.
 */
int vb_hub_domains_read(int *fd);

/* Tells all clients that the log of XRC domains has news. Never waits. */
void vb_hub_note(void);

/* --- for samples.c --- */

/* Is it worth asking again? If so pauses. */
bool vb_hub_ask_again(int rc, uint64_t deadline_ns);

/* Receives the next message, which must be of that type, without descriptors. */
int vb_hub_ask_expect(int fd, struct vb_hub_msg *msg, enum vb_hub_type type, uint64_t deadline_ns);

#endif
