/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_SLOTS_H
#define VB_DAEMON_SLOTS_H

/*
 * The sockets of all slots, who holds which, and the keeper that keeps all of it open.
 *
 * The kernel counts the sockets of a port in the order in which they were bound, and when one is
 * closed, the last takes its place: then datagrams go to the wrong process. So none may close, not
 * even when the hub is killed. The keeper is a pair of unix sockets through which the slots'
 * sockets have been sent, and not received: what is in flight stays open while either somebody
 * could still receive it. Every client holds both ends. The next hub gets them from any client,
 * peeks at what is in flight, and goes on where the last one stopped.
 *
 * Sockets are made in chunks, put into the keeper first and bound then, one by one: a hub that is
 * killed in between leaves sockets that wait to be bound in the right order, and never closes one.
 *
 * With each goes its slot's watch (hub/channel.h): so the kernel is the table of leases, for the
 * next hub as well, and nobody else has any part in it.
 */

#include <stdbool.h>

#include "daemon/domains.h"
#include "hub/proto.h"

enum { VB_SLOTS_CHUNK = 8 };

struct vb_slots {
	int keeper[VB_HUB_KEEPER_FDS]; /* sent into [0], in flight, receivable from [1] */
	struct vb_domains domains;     /* what lies behind [2] */
	unsigned made, bound;	       /* sockets in the keeper; those of them that can be lent */
	int fd[VB_HUB_SLOTS_MAX], watch[VB_HUB_SLOTS_MAX];
	bool open[VB_HUB_SLOTS_MAX]; /* what is sent to it gets in: it is lent, or was */
};

/* Make the first sockets and the keeper. Port 4791 must be free. 0 or a positive errno. */
int vb_slots_create(struct vb_slots *slots);

/*
 * Take over from a hub that is gone. The keeper's ends are the caller's until 0 is returned.
 * EPROTO: this is no keeper.
 */
int vb_slots_adopt(struct vb_slots *slots, const int keeper[VB_HUB_KEEPER_FDS]);

/*
 * Lend a slot that nobody holds: its number, and its name for whoever is to hold it. What was sent
 * to it so far is gone. 0, ENOSPC (all 1023 are held, or there is no room for more), or an errno.
 */
int vb_slots_lend(struct vb_slots *slots, unsigned *slot, int *name_fd);

/* Does anybody hold that slot? As long as there is no keeper we cannot know: true. */
bool vb_slots_is_held(const struct vb_slots *slots, unsigned slot);

/* Does whoever shows this descriptor hold that slot? */
bool vb_slots_lease_is(const struct vb_slots *slots, unsigned slot, int name_fd);

/* Let nothing in any more where a lease has ended. */
void vb_slots_shut(struct vb_slots *slots);

#endif
