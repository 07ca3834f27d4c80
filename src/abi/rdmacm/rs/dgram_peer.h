/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_DGRAM_PEER_H
#define VB_ABI_RDMACM_RS_DGRAM_PEER_H

/* Whom a datagram rsocket has to do with, by address. All with the socket's lock. */

#include "abi/rdmacm/rs/dgram.h"

struct vb_rs_peer {
	LIST_ENTRY(vb_rs_peer) link;
	struct sockaddr_storage addr;
	struct vb_rs_qp *qp; /* ours */
	struct ibv_ah *ah;   /* NULL: its QP is not known yet */
	uint32_t qpn;
	uint64_t tell_ns; /* when it is told again who we are */
};

/*
 * The peer with that address, made if there is none. One of IPv4 is known as that, although the
 * socket may be of IPv6 (::ffff:a.b.c.d). 0 or an errno.
 */
int vb_rs_peer_get(struct vb_rs_dgram *d, const struct sockaddr *addr, struct vb_rs_peer **peer);

/* Its QP is this from now on. Returns whether that is news. */
bool vb_rs_peer_learn(struct vb_rs_peer *peer, uint32_t qpn);

bool vb_rs_peer_is_at(const struct vb_rs_peer *peer, const struct sockaddr *addr);

void vb_rs_peers_free(struct vb_rs_dgram *d);

#endif
