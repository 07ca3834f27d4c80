/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_PEERS_H
#define VB_RUN_PEERS_H

/*
 * The memory behind the NIC's peers (nic/way/peer.h). Rings are made and mapped here; their
 * descriptors travel through the hub. The bell wakes a sleeping peer. The line of each ring, a
 * socket pair, tells when the process at the other end is gone.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "hub/client.h"
#include "hub/client_reach.h"
#include "link/shm.h"
#include "run/direct.h"

struct vb_device;
struct vb_peer;

/* Our end of a ring's line. */
struct vb_peer_line {
	struct vb_peer_maps *maps;
	int fd;
};

enum { VB_LINE_TX, VB_LINE_RX, VB_LINES };

/* The memory of a peer object; kept for reuse. */
struct vb_peer_maps {
	struct vb_peer_maps *next;
	struct vb_peer *peer;
	void *tx, *rx, *export;
	struct vb_peer_line line[VB_LINES]; /* of the ring we made, and of the one received */
	struct vb_bell_target bell;
	bool known; /* export and bell belong to the maker of this file: */
	uint64_t device, inode;
	struct vb_direct_peer direct;
};

/* A received ring that is not used until there is a ring back. */
struct vb_peers_ring {
	struct vb_peers_ring *next;
	uint16_t from, to;
	int fd;
	struct vb_hub_peer peer;
};

/*
 * How long a call waits for the hub at most, if it waits at all (vb_peers_await): a busy machine
 * may need that long to answer. PATIENCE applies to VERBATIM_LINK=shm, where the wire is no
 * alternative.
 */
#define VB_PEERS_WAIT_NS 40000000u
#define VB_PEERS_PATIENCE_NS 3000000000u

struct vb_peers {
	bool allowed; /* VERBATIM_LINK and the other settings allow shared memory */
	enum vb_hub_link_why why; /* reason why not allowed; VB_HUB_LINK_SHM if allowed */
	vb_lock lock;	   /* held while a peer is set up */
	vb_lock bell_lock; /* guards peers' bells and lines against changes while in use */
	int bell_fd;	   /* ours; no other process has it */
	struct vb_bell_target bell;
	int token_fd;	/* proves our identity to the hub and to peers (SO_PEERCRED) */
	/* The files of a ring being handed out: a child forked meanwhile closes them all. */
	struct vb_hub_ring_files handing;
	int hup_fd;	/* epoll set of the lines */
	int export_fd;
	void *export;
	/* copy of the export's, in our own memory where no other process can write it */
	uint64_t nonce;
	struct vb_peer_maps *maps; /* all that were ever made */
	struct vb_peers_ring *kept;
};

/* Makes what the hub offers to peers; called before the hub. Returns 0 or a positive errno. */
int vb_peers_open(struct vb_device *dev);

/* After the NIC is destroyed. */
void vb_peers_close(struct vb_device *dev);

/* In a forked child: close the descriptors. */
void vb_peers_forget(struct vb_device *dev);

/* What we offer to peers by way of the hub. */
struct vb_hub_offer vb_peers_offer(const struct vb_device *dev);

/* A vb_hub_ring_fn; arg: the device. */
void vb_peers_ring_came(void *arg, uint16_t from, uint16_t to, int ring_fd,
			const struct vb_hub_peer *peer);

/* Is its line cut? The answer may come earlier than vb_peers_hup(). Any thread. */
bool vb_peers_is_dead(struct vb_device *dev, const struct vb_peer *peer);

/* Called when hup_fd is readable: some peers are gone. */
void vb_peers_hup(struct vb_device *dev);

/* Handlers for the hub's answers; arg: the device. */
extern const struct vb_hub_answers vb_peers_answers;

/* Wakes the sleeping threads of this process. Any thread. */
void vb_peers_wake_self(struct vb_device *dev);

/*
 * What the NIC asks of its host; arg is the struct vb_device. await: once a question has been under
 * way for the longest wait allowed, the hub counts as unreachable and no caller waits for it again.
 */
extern const struct vb_host_peers vb_peers_host;
int vb_peers_reach(void *arg, uint16_t own_slot, uint16_t slot);
void vb_peers_bell(void *arg, struct vb_peer *peer);

#endif
