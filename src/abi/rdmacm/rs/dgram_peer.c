/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/rdmacm/rs/dgram_peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/rs/dgram_qp.h"

enum { PEERS_MAX = 1 << 16, HOP_LIMIT = 64 };

/* Not the flow: it says nothing about who it is. */
bool vb_rs_peer_is_at(const struct vb_rs_peer *peer, const struct sockaddr *addr)
{
	const struct sockaddr *own = (const struct sockaddr *)&peer->addr;
	uint8_t gid[VB_GID_BYTES], own_gid[VB_GID_BYTES];
	uint32_t scope, own_scope;

	vb_cma_gid_of(addr, gid, &scope);
	vb_cma_gid_of(own, own_gid, &own_scope);
	return addr->sa_family == own->sa_family && vb_cma_port_of(addr) == vb_cma_port_of(own) &&
	       scope == own_scope && !memcmp(gid, own_gid, VB_GID_BYTES);
}

static unsigned bucket_of(const struct sockaddr *addr)
{
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	vb_cma_gid_of(addr, gid, &scope);
	return (vb_cma_port_of(addr) * 31u + gid[15] * 7u + gid[14]) % VB_RS_PEER_BUCKETS;
}

int vb_rs_peer_get(struct vb_rs_dgram *d, const struct sockaddr *addr, struct vb_rs_peer **found)
{
	struct sockaddr_storage mapped;
	struct vb_rs_peer *peer;
	unsigned bucket;
	int rc;

	if (d->rs.is_ipv6) {
		memcpy(&mapped, addr, vb_cma_sockaddr_bytes(addr));
		vb_cma_sockaddr_map(&mapped, false);
		addr = (struct sockaddr *)&mapped;
	}
	bucket = bucket_of(addr);
	LIST_FOREACH(peer, &d->peers[bucket], link) {
		if (vb_rs_peer_is_at(peer, addr)) {
			*found = peer;
			return 0;
		}
	}
	if (d->peer_count == PEERS_MAX)
		return ENOBUFS;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return ENOMEM;
	memcpy(&peer->addr, addr, vb_cma_sockaddr_bytes(addr));
	rc = vb_rs_qp_for(d, addr, &peer->qp);
	if (rc) {
		free(peer);
		return rc;
	}
	LIST_INSERT_HEAD(&d->peers[bucket], peer, link);
	d->peer_count++;
	*found = peer;
	return 0;
}

bool vb_rs_peer_learn(struct vb_rs_peer *peer, uint32_t qpn)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = peer->qp->sgid_index, .hop_limit = HOP_LIMIT},
	};
	bool is_news = !peer->ah || peer->qpn != qpn;
	uint32_t scope;

	peer->qpn = qpn;
	if (peer->ah)
		return is_news;
	vb_cma_gid_of((struct sockaddr *)&peer->addr, attr.grh.dgid.raw, &scope);
	peer->ah = ibv_create_ah(peer->qp->id->pd, &attr);
	return is_news;
}

void vb_rs_peers_free(struct vb_rs_dgram *d)
{
	for (unsigned i = 0; i < VB_RS_PEER_BUCKETS; i++) {
		while (!LIST_EMPTY(&d->peers[i])) {
			struct vb_rs_peer *peer = LIST_FIRST(&d->peers[i]);

			LIST_REMOVE(peer, link);
			if (peer->ah)
				ibv_destroy_ah(peer->ah);
			free(peer);
		}
	}
}
