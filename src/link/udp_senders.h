/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_SENDERS_H
#define VB_LINK_UDP_SENDERS_H

/*
 * Sockets that only send: one for each slot that a link sends to, bound to a source port for that
 * slot. So frames to different slots are different flows (RoCEv2 leaves the source port to the
 * sender for such purposes), and the GRO of the receiving host never merges frames for different
 * sockets.
 *
 * A sender is also bound to the source address of the first path to its slot and has that path's
 * hop limit. Usually there is only one path, and then datagrams need no control messages. Over IPv6
 * it is connected to that path's destination as well, which saves the route lookup; it can still
 * send elsewhere. Over IPv4 connecting would make the kernel count identifications, so a second
 * socket is used for that (udp_counted.h).
 *
 * A socket stays as long as the link. Where none can be made, the slot's own port is used for good,
 * so that later calls do not wait for the kernel.
 *
 * Sockets are for peers that this process has addressed (VB_OURS). Guests get them only while
 * enough are left, unconnected ones, and a failure for a guest is not remembered. All strangers
 * share one, whose datagrams have no UDP checksum: these are never merged, whatever their slots.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/path.h"
#include "link/udp_counted.h"

enum {
	VB_UDP_SLOTS = 1024,	    /* a slot has 10 bits */
	VB_UDP_SENDERS_MAX = 256,   /* per link */
	VB_UDP_GUESTS_MAX = 128,    /* up to this count guests get one */
	VB_UDP_SENDER_PORT = 0xc000, /* slot 0's; the dynamic ports begin there (RFC 6335) */
	VB_UDP_ANSWER_PORT = 0xbfff, /* of all answers to strangers */
	VB_UDP_COUNTED_MAX = 64,    /* of the senders, those with a second socket */
	VB_UDP_CHOSEN_MAX = 64	    /* chosen ports of a link */
};

struct vb_udp_sender {
	atomic_int fd_plus_1;	   /* 0: not made yet; -1: cannot be made */
	uint8_t src[VB_GID_BYTES]; /* bound to; all zero: to none */
	uint8_t dst[VB_GID_BYTES]; /* connected to; all zero: to none */
	uint8_t whom[VB_GID_BYTES]; /* the destination it was made for */
	uint8_t hop_limit;	   /* set on the socket */
	struct vb_udp_counted counted;
};

/* A port chosen instead of the slot's (vb_udp_senders_choose()). */
struct vb_udp_chosen {
	uint16_t port, slot;
	struct vb_udp_sender sender;
};

struct vb_udp_senders {
	int family;
	vb_lock lock; /* held to make a socket */
	unsigned count, counted;
	struct vb_udp_sender answers; /* to strangers, of either family */
	struct vb_udp_sender ipv4[VB_UDP_SLOTS], ipv6[VB_UDP_SLOTS];
	atomic_uint chosen_count; /* written with the lock held */
	struct vb_udp_chosen chosen[VB_UDP_CHOSEN_MAX];
};

/* The structure must be all zero. */
void vb_udp_senders_init(struct vb_udp_senders *senders, int family);

/* Closes the sockets; also in a forked child, whatever thread held the lock. */
void vb_udp_senders_close(struct vb_udp_senders *senders);

/*
 * The source port of frames on this path to a slot: the slot's own port, or VB_UDP_PORT if there
 * can be no socket for that (VB_UDP_SENDERS_MAX exist, another program has the port, or half of
 * this process's descriptors are in use; the other half is the application's). The first call for a
 * slot makes the socket; later ones are a load. For strangers: the slot's own port if it has a
 * socket, else VB_UDP_ANSWER_PORT. Any thread.
 */
uint16_t vb_udp_senders_port(struct vb_udp_senders *senders, const struct vb_path *path,
			     uint16_t slot, enum vb_whom whom);

/* Has this link a sender to that host? Slow: looks through all. Any thread. */
bool vb_udp_senders_reach(struct vb_udp_senders *senders, const uint8_t gid[VB_GID_BYTES]);

/*
 * Makes a socket with this port for frames on this path to this slot. Receivers must not merge
 * frames for different slots, so each port is for one slot and one process: EADDRINUSE if it is
 * taken, as the ports of slots always are. ENOSPC: VB_UDP_CHOSEN_MAX, or descriptors as above. Or
 * an errno of socket(2). 0 also if it exists already. It stays as long as the link.
 */
int vb_udp_senders_choose(struct vb_udp_senders *senders, const struct vb_path *path,
			  uint16_t slot, uint16_t port);

/*
 * The socket for a path, by its source port, which one of the functions above returned; or -1.
 * *sender: the defaults of that socket.
 */
int vb_udp_senders_fd(struct vb_udp_senders *senders, const struct vb_path *path,
		      const struct vb_udp_sender **sender);

/* The connected socket for such a path; NULL: none that fits. */
struct vb_udp_counted *vb_udp_senders_counted(struct vb_udp_senders *senders,
					      const struct vb_path *path);

#endif
