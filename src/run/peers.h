/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_RUN_PEERS_H
#define VB_RUN_PEERS_H

/*
 * The memory behind the NIC's peers (nic/way/peer.h): rings are made and mapped here, descriptors
 * go through the hub, the bell tells when to wake up, and each ring's line when its other end is
 * gone.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "hub/client.h"
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

/* Where a peer object's memory is; kept for its next use. */
struct vb_peer_maps {
	struct vb_peer_maps *next;
	struct vb_peer *peer;
	void *tx, *rx, *export;
	struct vb_peer_line line[VB_LINES]; /* of the ring that we made, and of the one that came */
	struct vb_bell_target bell;
	bool known; /* export and bell are of whoever made that file: */
	uint64_t device, inode;
	struct vb_direct_peer direct;
};

/* Another's ring, of which nothing is taken before there is a way back. */
struct vb_peers_ring {
	struct vb_peers_ring *next;
	uint16_t from, to;
	int fd;
	struct vb_hub_peer peer;
};

/*
 * So long a call waits for the hub at most, if it waits at all (vb_peers_await): a busy machine may
 * take that for the answer. With VERBATIM_LINK=shm, where nothing else would serve: PATIENCE.
 */
#define VB_PEERS_WAIT_NS 40000000u
#define VB_PEERS_PATIENCE_NS 3000000000u

struct vb_peers {
	bool allowed; /* VERBATIM_LINK and what else is set leave room for shared memory */
	enum vb_hub_link_why why; /* or what does not; VB_HUB_LINK_SHM: nothing */
	vb_lock lock;	   /* setting up a peer */
	vb_lock bell_lock; /* peers' bells and lines: so that none is used while it changes */
	int bell_fd;	   /* ours, which nobody else has */
	struct vb_bell_target bell;
	int token_fd;	/* says to the kernel who we are, for the hub and for those we reach */
	/* A ring that is being handed out: a child that is forked meanwhile closes all of it. */
	struct vb_hub_ring_files handing;
	int hup_fd;	/* an epoll set of the lines */
	int export_fd;
	void *export;
	uint64_t nonce; /* a copy of the export's, which only our own memory has */
	struct vb_peer_maps *maps; /* all there ever were */
	struct vb_peers_ring *kept;
};

/* Before the hub is called: make what is offered there. 0 or a positive errno. */
int vb_peers_open(struct vb_device *dev);

/* After the NIC is destroyed. */
void vb_peers_close(struct vb_device *dev);

/* In a forked child: close the descriptors. */
void vb_peers_forget(struct vb_device *dev);

/* What the hub is told of us. */
struct vb_hub_offer vb_peers_offer(const struct vb_device *dev);

/* A vb_hub_ring_fn; arg: the device. */
void vb_peers_ring_came(void *arg, uint16_t from, uint16_t to, int ring_fd,
			const struct vb_hub_peer *peer);

/* Its line says so before we hear of it (vb_peers_hup). Any thread. */
bool vb_peers_is_dead(struct vb_device *dev, const struct vb_peer *peer);

/* Called when hup_fd is readable: some peers are gone. */
void vb_peers_hup(struct vb_device *dev);

/* What answers of the hub are for; arg: the device. */
extern const struct vb_hub_answers vb_peers_answers;

/* Wake those of this process who sleep. Any thread. */
void vb_peers_wake_self(struct vb_device *dev);

/*
 * What the NIC asks of its host; arg is the struct vb_device. await: where some question has been
 * under way for as long as one waits, the hub is not to be had now, and nobody waits for it again.
 */
extern const struct vb_host_peers vb_peers_host;
int vb_peers_reach(void *arg, uint16_t own_slot, uint16_t slot);
void vb_peers_bell(void *arg, struct vb_peer *peer);

#endif
