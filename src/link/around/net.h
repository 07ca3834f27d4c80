/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_AROUND_NET_H
#define VB_LINK_AROUND_NET_H

/*
 * A link around another one that makes a network of it: each address is a host with a port of its
 * own at one switch. A frame waits until its sender's port has sent it, goes to the switch, waits
 * in the queue of its receiver's port, and arrives after the delay. What finds a full queue is
 * lost, and what finds a long one is marked (RFC 3168), if ECN is on.
 *
 * The sender does all of that, when it sends: what it waits for is computed (net_ports.h), and the
 * frame leaves when it is to arrive. So it acts on tx only, and the settings are the sender's.
 *
 * A sender that is ahead of its port by more than a moment gets EAGAIN. At high rates several
 * frames leave as a burst, which is lost or marked as one.
 */

#include <stdint.h>

#include "link/link.h"
#include "link/around/net_parse.h"

/* Called in rx for each frame that was marked on its way, before rx returns it. */
typedef void vb_net_marked(void *arg, const struct vb_frame *frame);

struct vb_net_counts {
	uint64_t frames; /* sent by the layer above */
	uint64_t lost;	 /* at a full queue */
	uint64_t marked;
	uint64_t refused; /* lost because the inner link could not send them later */
};

/*
 * Returns as link.h says, and as vb_net_ports_open(). text: as net_parse.h says; EINVAL if it is
 * invalid.
 */
int vb_link_net_create(struct vb_link **link, struct vb_link *inner, const char *text,
		       vb_net_marked *marked, void *arg);

/* All that is on its way arrives now, as when the link is destroyed. Any thread. */
void vb_link_net_flush(struct vb_link *link);

/* The counts so far. Any thread. */
void vb_link_net_counts(struct vb_link *link, struct vb_net_counts *counts);

#endif
