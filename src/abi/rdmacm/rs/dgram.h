/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_DGRAM_H
#define VB_ABI_RDMACM_RS_DGRAM_H

/*
 * Datagram rsockets. Each has a UDP socket, whose number is its own: by it peers that do not know
 * each other's QPs yet say what these are, with the first datagrams as their data. Then they go
 * from QP to QP; there is one for each local address that is used. dgram_qp.h has these,
 * dgram_peer.h what is known of others.
 *
 * There is no thread: whoever looks at the socket also reads what has come to the UDP socket.
 */

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "abi/rdmacm/rs/socket.h"

#define VB_RS_DATAGRAM_BYTES 2048 /* at most, with its header */
#define VB_RS_PEER_BUCKETS 256

struct vb_rs_qp;
struct vb_rs_peer;

/* A datagram that nobody has read. */
struct vb_rs_arrival {
	TAILQ_ENTRY(vb_rs_arrival) link;
	struct vb_rs_qp *qp; /* whose receive it is; NULL: it came by UDP, and has been allocated */
	uint8_t *octets;     /* header and data */
	uint32_t bytes;
};

struct vb_rs_dgram {
	struct vb_rs rs;
	pthread_mutex_t lock; /* guards all */
	struct vb_rs_watches watches;
	LIST_HEAD(, vb_rs_qp) qps;
	struct ibv_comp_channel *channel; /* of all QPs; NULL: there is none */
	uint8_t *out;	       /* sends places of VB_RS_DATAGRAM_BYTES */
	struct ibv_mr *out_mr;
	uint32_t *out_free; /* a stack of free places */
	unsigned out_count;
	TAILQ_HEAD(, vb_rs_arrival) arrivals;
	unsigned udp_arrivals, looks;
	LIST_HEAD(, vb_rs_peer) peers[VB_RS_PEER_BUCKETS];
	unsigned peer_count;
	struct vb_rs_peer *connected;
	uint16_t port; /* of the UDP socket; 0: not known yet */
	bool no_more_in, no_more_out; /* after rshutdown() */
	bool is_orphan;
};

static inline struct vb_rs_dgram *vb_rs_dgram_of(struct vb_rs *rs)
{
	return (struct vb_rs_dgram *)rs;
}

/* domain: AF_INET or AF_INET6. 0 or an errno. */
int vb_rs_dgram_make(int domain, struct vb_rs **made);

#endif
