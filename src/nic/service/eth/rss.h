/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_RSS_H
#define VB_NIC_RSS_H

/*
 * Receive side scaling: RAW_PACKET QPs without queues of their own. Their frames go to the work
 * queues of a table, chosen by a hash of header fields, so that the frames of a connection stay
 * together and in order.
 */

#include "eth/toeplitz.h"
#include "nic/data/qp.h"
#include "nic/service/eth/wq.h"

extern const struct vb_service vb_service_rss;

/* qp->rss */
struct vb_rss {
	struct vb_rwq_table *table;
	uint64_t fields; /* enum ibv_rx_hash_fields */
	struct vb_toeplitz toeplitz;
};

/* Does ibv_create_qp_ex(3) ask for such a QP? */
static inline bool vb_rss_is_asked(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH);
}

/*
 * vb_qp_create_dv() for such a QP; of dv_flags (qp_extra.h), those about tunnels and loopback
 * apply. The QP has no state: it receives while it has rules. EOPNOTSUPP: not RAW_PACKET, a hash
 * other than Toeplitz, unknown fields. EINVAL: no table or no hash; attributes that it cannot have
 * (queues, CQs, SRQ, flags, operations); a key without VB_TOEPLITZ_KEY_BYTES; fields of both IPv4
 * and IPv6, or of more than one of TCP, UDP and IPsec; IBV_RX_HASH_INNER alone; no field with a
 * table of more than one place.
 */
int vb_rss_qp_create(struct ibv_qp_init_attr_ex *attr, uint32_t dv_flags, struct vb_qp **qp);

/* --- inside nic --- */

/* As vb_qp_modify(), vb_qp_query() and vb_qp_destroy(), which call these; EOPNOTSUPP. */
int vb_rss_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
int vb_rss_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
void vb_rss_qp_destroy(struct vb_qp *qp);
void vb_rss_qp_unmake(struct vb_qp *qp);

/*
 * Chooses the queue of a frame. Fields that it lacks are left out of the hash; without any the hash
 * is 0, which means the first place.
 */
struct vb_rwq *vb_rss_pick(struct vb_qp *qp, const struct vb_eth_frame *frame, uint32_t *hash);

/* ibv_query_device_ex(3) */
void vb_rss_query(struct ibv_device_attr_ex *attr);

#endif
