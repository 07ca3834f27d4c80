/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/eth/rss.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/core/quiesce.h"
#include "nic/data/qp_extra.h"
#include "nic/queue/rq.h"
#include "nic/service/eth/raw_tx.h"
#include "nic/way/peer.h"

#define INNER ((uint64_t)IBV_RX_HASH_INNER)
#define IPV4 ((uint64_t)(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4))
#define IPV6 ((uint64_t)(IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6))
#define TCP ((uint64_t)(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP))
#define UDP ((uint64_t)(IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP))
#define SPI ((uint64_t)IBV_RX_HASH_IPSEC_SPI)
#define FIELDS_KNOWN (IPV4 | IPV6 | TCP | UDP | SPI | INNER)

/*
 * A packet has one network protocol and one transport: fields of different ones cannot be combined.
 */
static int check_fields(uint64_t fields, uint32_t places)
{
	unsigned l3 = !!(fields & IPV4) + !!(fields & IPV6);
	unsigned l4 = !!(fields & TCP) + !!(fields & UDP) + !!(fields & SPI);

	if (fields & ~FIELDS_KNOWN)
		return EOPNOTSUPP;
	if (l3 > 1 || l4 > 1)
		return EINVAL;
	/* A hash of nothing serves those who want a single queue. */
	if (!l3 && !l4 && ((fields & INNER) || places > 1))
		return EINVAL;
	return 0;
}

/* It has no queues, and so none of their attributes. */
static bool asks_too_much(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t needed =
		IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	const struct ibv_qp_cap *cap = &attr->cap;

	return (attr->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_CREATE_FLAGS) != needed ||
	       ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags) ||
	       attr->send_cq || attr->recv_cq || attr->srq || cap->max_send_wr ||
	       cap->max_recv_wr || cap->max_send_sge || cap->max_recv_sge || cap->max_inline_data;
}

static int check(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	const struct vb_rwq_table *table = (struct vb_rwq_table *)attr->rwq_ind_tbl;

	if (attr->qp_type != IBV_QPT_RAW_PACKET ||
	    attr->comp_mask >= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1)
		return EOPNOTSUPP;
	if (asks_too_much(attr) || !attr->pd || !table || table->ibv.context != attr->pd->context)
		return EINVAL;
	if (hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return EOPNOTSUPP;
	if (hash->rx_hash_key_len != VB_TOEPLITZ_KEY_BYTES || !hash->rx_hash_key)
		return EINVAL;
	return check_fields(hash->rx_hash_fields_mask, table->mask + 1);
}

static void fill(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *ibv = &qp->ibv.qp;

	qp->service = &vb_service_rss;
	qp->nic = vb_nic_of(attr->pd->context);
	vb_timer_init(&qp->later.timer, false);
	vb_lock_init(&qp->lock, VB_RANK_QP);
	vb_req_reset(&qp->req);
	vb_resp_reset(&qp->resp);
	vb_rq_init(&qp->recv.own_rq, 0, 0);
	qp->recv.rq = &qp->recv.own_rq;
	ibv->context = attr->pd->context;
	ibv->qp_context = attr->qp_context;
	ibv->pd = attr->pd;
	ibv->qp_type = IBV_QPT_RAW_PACKET;
	ibv->state = IBV_QPS_RESET;
	qp->special.rss->table = (struct vb_rwq_table *)attr->rwq_ind_tbl;
	qp->special.rss->fields = attr->rx_hash_conf.rx_hash_fields_mask;
	vb_toeplitz_init(&qp->special.rss->toeplitz, attr->rx_hash_conf.rx_hash_key);
}

int vb_rss_qp_create(struct ibv_qp_init_attr_ex *attr, uint32_t dv_flags, struct vb_qp **out)
{
	const struct vb_qp_extra extra = { .dv_flags = dv_flags };
	struct vb_qp *qp;
	int err = check(attr);

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	qp->special.rss = calloc(1, sizeof(*qp->special.rss));
	if (!qp->special.rss) {
		free(qp);
		return ENOMEM;
	}
	fill(qp, attr);
	qp->made.dv_flags = dv_flags;
	err = vb_raw_make(qp, &extra);
	if (!err)
		err = vb_nic_qp_add(qp->nic, qp, &qp->ibv.qp.qp_num);
	if (err) {
		vb_qp_free(qp);
		return err;
	}
	qp->ibv.qp.handle = qp->ibv.qp.qp_num;
	atomic_fetch_add(&((struct vb_pd *)attr->pd)->users, 1);
	atomic_fetch_add(&qp->special.rss->table->users, 1);
	*out = qp;
	return 0;
}

int vb_rss_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return EOPNOTSUPP;
}

/* It has no state or attributes that could be set. */
int vb_rss_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	(void)qp;
	(void)attr;
	(void)init;
	return EOPNOTSUPP;
}

void vb_rss_qp_unmake(struct vb_qp *qp)
{
	vb_raw_unmake(qp);
	free(qp->special.rss);
}

void vb_rss_qp_destroy(struct vb_qp *qp)
{
	vb_nic_qp_remove(qp->nic, qp->ibv.qp.qp_num);
	/* waits for threads that are giving a frame to one of the queues */
	vb_nic_quiesce(qp->nic);
	vb_ctx_events_cancel(vb_ctx_of(qp->ibv.qp.context), &qp->events.delivered);
	atomic_fetch_sub(&qp->special.rss->table->users, 1);
	atomic_fetch_sub(&((struct vb_pd *)qp->ibv.qp.pd)->users, 1);
}

struct vb_rwq *vb_rss_pick(struct vb_qp *qp, const struct vb_eth_frame *frame, uint32_t *hash)
{
	const struct vb_rss *rss = qp->special.rss;
	uint8_t input[VB_TOEPLITZ_INPUT_BYTES_MAX];
	uint32_t bytes = vb_toeplitz_input(frame, rss->fields, input);

	*hash = vb_toeplitz_hash(&rss->toeplitz, input, bytes);
	return rss->table->wq[*hash & rss->table->mask];
}

void vb_rss_query(struct ibv_device_attr_ex *attr)
{
	attr->rss_caps = (struct ibv_rss_caps){
		.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
		.max_rwq_indirection_tables = VB_RWQ_TABLES_MAX,
		.max_rwq_indirection_table_size = 1u << VB_RWQ_TABLE_LOG_MAX,
		.rx_hash_fields_mask = FIELDS_KNOWN,
		.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
	};
	attr->max_wq_type_rq = VB_RWQS_MAX;
	attr->raw_packet_caps |= IBV_RAW_PACKET_CAP_DELAY_DROP;
}
