/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_SLOTS_H
#define VB_DAEMON_SLOTS_H

/*
 * The sockets of all slots, their holders, and the keeper that keeps the sockets open.
 *
 * The kernel numbers the sockets of a port in the order of binding, and when one is closed the last
 * takes its number: then datagrams go to the wrong process. So none may close, not even when the
 * hub is killed. The keeper is a pair of unix sockets into which the slots' sockets were sent but
 * never received: descriptors in flight stay open while the pair is open. Every client holds both
 * ends. The next hub gets them from any client, peeks at the descriptors in flight, and continues.
 *
 * Sockets are made in chunks that go into the keeper first; then they are bound, one by one. A hub
 * that is killed in between leaves sockets that the next one binds in the right order, and closes
 * none.
 *
 * Each socket is accompanied by its slot's watch (hub/channel.h). So the kernel is the table of
 * leases, for the next hub as well, and no other process takes part in it.
 */

#include <stdbool.h>

#include "daemon/domains.h"
#include "hub/proto.h"

enum { VB_SLOTS_CHUNK = 8 };

struct vb_slots {
	int keeper[VB_HUB_KEEPER_FDS]; /* sent into [0], in flight, receivable from [1] */
	struct vb_domains domains;     /* the memory of [2] */
	unsigned made, bound;	       /* sockets in the keeper; those of them that are bound */
	int fd[VB_HUB_SLOTS_MAX], watch[VB_HUB_SLOTS_MAX];
	bool open[VB_HUB_SLOTS_MAX]; /* its filter lets datagrams in: it is leased, or was */
};

/* Makes the first sockets and the keeper. Port 4791 must be free. Returns 0 or a positive errno. */
int vb_slots_create(struct vb_slots *slots);

/* Takes over from a dead hub. After 0 the keeper's ends are ours. EPROTO: not a keeper. */
int vb_slots_adopt(struct vb_slots *slots, const int keeper[VB_HUB_KEEPER_FDS]);

/*
 * Leases a free slot: gives its number, and the name for its holder. Drops what was sent to the
 * slot before. Returns 0, ENOSPC (all 1023 are held, or our descriptors do not suffice), or an
 * errno.
 */
int vb_slots_lend(struct vb_slots *slots, unsigned *slot, int *name_fd);

/* Is that slot held? Without a keeper that is unknown, and the answer true. */
bool vb_slots_is_held(const struct vb_slots *slots, unsigned slot);

/* Is this descriptor the name that holds the slot? */
bool vb_slots_lease_is(const struct vb_slots *slots, unsigned slot, int name_fd);

/* Closes the filters of slots whose lease has ended. */
void vb_slots_shut(struct vb_slots *slots);

#endif
