/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_RDMACM_RS_DGRAM_QP_H
#define VB_ABI_RDMACM_RS_DGRAM_QP_H

/* The QPs of datagram rsockets. All with the socket's lock. */

#include "abi/rdmacm/rs/dgram.h"

struct vb_rs_qp {
	LIST_ENTRY(vb_rs_qp) link;
	struct rdma_cm_id *id; /* its source is the local address */
	struct ibv_cq *cq;
	bool armed;
	uint8_t sgid_index;
	unsigned mtu_bytes;
	uint8_t *in;
	struct ibv_mr *in_mr;
	struct vb_rs_arrival *arrivals; /* one for each receive */
};

/* The QP by which one gets to that address, made if there is none. 0 or an errno. */
int vb_rs_qp_for(struct vb_rs_dgram *d, const struct sockaddr *to, struct vb_rs_qp **qp);

void vb_rs_qps_free(struct vb_rs_dgram *d);

/* Looks at all completions: arrivals are queued, places become free. */
void vb_rs_qps_turn(struct vb_rs_dgram *d);

/* The next completion makes the channel readable. Look once more afterwards. */
void vb_rs_qps_arm(struct vb_rs_dgram *d);

/* The channel was readable. */
void vb_rs_qps_news_take(struct vb_rs_dgram *d);

/* Has been read: its receive takes another. */
void vb_rs_arrival_done(struct vb_rs_dgram *d, struct vb_rs_arrival *arrival);

/* A free place to compose a datagram in. There is one. */
uint8_t *vb_rs_place_take(struct vb_rs_dgram *d);

/* Sends it to the peer's QP. 0 or an errno; the place is taken back either way. */
int vb_rs_place_send(struct vb_rs_dgram *d, uint8_t *place, uint32_t bytes,
		     const struct vb_rs_peer *peer);

#endif
