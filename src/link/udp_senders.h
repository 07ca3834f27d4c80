/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_UDP_SENDERS_H
#define VB_LINK_UDP_SENDERS_H

/*
 * Sockets that only send: one for each slot that a link sends to, bound to a source port of that
 * slot's. Frames to different slots are different flows then (RoCEv2 leaves the source port to
 * the sender, for the sake of such differences), so the GRO of the host that receives them never
 * merges what belongs to different sockets there.
 *
 * It is bound to the address that the first path to that slot comes from as well, and has that
 * path's hop limit, since there is mostly one only: then nothing has to be said with each datagram.
 * For the same reason it is connected with where that path leads, over IPv6, so that the kernel
 * need not look for the way each time; it can send elsewhere all the same. Over IPv4 that makes
 * the kernel count, and there is a second socket for it (udp_counted.h).
 *
 * A socket stays until the link goes. Where there can be none, the slot's own port has to do,
 * for good: whoever asks again is not kept waiting by the kernel.
 *
 * Sockets are for those whom the process has addressed. Guests get some as long as there are many,
 * and plain ones; that they got none is not remembered. All strangers together have one, whose
 * datagrams have no UDP checksum: those are not merged, whatever slots they go to.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/path.h"
#include "link/udp_counted.h"

enum {
	VB_UDP_SLOTS = 1024,	    /* a slot is 10 bits */
	VB_UDP_SENDERS_MAX = 256,   /* of a link */
	VB_UDP_GUESTS_MAX = 128,    /* of these there are, and guests get no more */
	VB_UDP_SENDER_PORT = 0xc000, /* slot 0's, where the dynamic ports begin (RFC 6335) */
	VB_UDP_ANSWER_PORT = 0xbfff, /* of all that is answered to strangers */
	VB_UDP_COUNTED_MAX = 64,    /* of those, with a second socket */
	VB_UDP_CHOSEN_MAX = 64	    /* ports of a link that somebody chose */
};

struct vb_udp_sender {
	atomic_int fd_plus_1;	   /* 0: not asked for yet; -1: there can be none */
	uint8_t src[VB_GID_BYTES]; /* that it is bound to; all zero: to none */
	uint8_t dst[VB_GID_BYTES]; /* that it is connected with; all zero: none */
	uint8_t whom[VB_GID_BYTES]; /* that it was made for */
	uint8_t hop_limit;	   /* that it was given */
	struct vb_udp_counted counted;
};

/* A port that was asked for, in place of the slot's (vb_udp_senders_choose()). */
struct vb_udp_chosen {
	uint16_t port, slot;
	struct vb_udp_sender sender;
};

struct vb_udp_senders {
	int family;
	vb_lock lock; /* whoever makes one */
	unsigned count, counted;
	struct vb_udp_sender answers; /* to strangers, of either family */
	struct vb_udp_sender ipv4[VB_UDP_SLOTS], ipv6[VB_UDP_SLOTS];
	atomic_uint chosen_count; /* written with the lock held */
	struct vb_udp_chosen chosen[VB_UDP_CHOSEN_MAX];
};

/* The structure is all zero. */
void vb_udp_senders_init(struct vb_udp_senders *senders, int family);

/* Closes the sockets. In a forked child as well, whoever held the lock. */
void vb_udp_senders_close(struct vb_udp_senders *senders);

/*
 * The source port of frames to a slot on this path: its own, or VB_UDP_PORT if there can be no
 * socket for that: there are VB_UDP_SENDERS_MAX, the port is somebody else's, or half of the
 * descriptors that this process may have are in use (the rest is the application's). Makes the
 * socket when first asked; later it is a load. For strangers: the slot's own port if there is one,
 * else VB_UDP_ANSWER_PORT. Any thread.
 */
uint16_t vb_udp_senders_port(struct vb_udp_senders *senders, const struct vb_path *path,
			     uint16_t slot, enum vb_whom whom);

/* Was one made for that host? Slow: it looks through all. Any thread. */
bool vb_udp_senders_reach(struct vb_udp_senders *senders, const uint8_t gid[VB_GID_BYTES]);

/*
 * Make a socket of this very port for frames on this path to this slot. Whoever receives them must
 * not merge what goes to different slots, so a port is one slot's, and one process's: EADDRINUSE if
 * it is not to be had, which none of the slots' own is. ENOSPC: VB_UDP_CHOSEN_MAX, or descriptors
 * as above; or an errno of socket(2). 0, also where it is so already. It stays until the link goes.
 */
int vb_udp_senders_choose(struct vb_udp_senders *senders, const struct vb_path *path,
			  uint16_t slot, uint16_t port);

/*
 * The socket for a path, by its source port, which one of the two above told; or -1. *sender: what
 * need not be said of a datagram from there.
 */
int vb_udp_senders_fd(struct vb_udp_senders *senders, const struct vb_path *path,
		      const struct vb_udp_sender **sender);

/* The connected socket for a path that one of them told; NULL: none that would do as it is. */
struct vb_udp_counted *vb_udp_senders_counted(struct vb_udp_senders *senders,
					      const struct vb_path *path);

#endif
