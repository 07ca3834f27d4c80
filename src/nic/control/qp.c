/* SPDX-License-Identifier: BSD-2-Clause */

/* Birth and death of a queue pair, and what can be asked about it. */

#include "nic/control/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nic/core/quiesce.h"
#include "nic/data/acks.h"
#include "nic/service/dc/dc.h"
#include "nic/core/domain.h"
#include "nic/data/migrate.h"
#include "nic/mem/mkey.h"
#include "nic/way/peer.h"
#include "nic/service/eth/raw.h"
#include "nic/control/qp_dv.h"
#include "nic/queue/rq.h"
#include "nic/service/eth/rss.h"
#include "nic/data/window.h"
#include "nic/service/tm/tm.h"
#include "nic/way/way.h"
#include "nic/service/xrc/xrc.h"

static uint32_t power_of_two(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/*
 * What ibv_create_qp_ex(3) may ask for beside, and of which types. Flags that are not here are
 * about Ethernet frames.
 */
static const struct type_row {
	enum ibv_qp_type type;
	uint32_t create_flags;
} type_rows[] = {
	{ IBV_QPT_RC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING },
	{ IBV_QPT_UC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING },
	{ IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_PCI_WRITE_END_PADDING |
			      IBV_QP_CREATE_SOURCE_QPN },
	{ IBV_QPT_RAW_PACKET, IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS |
				      IBV_QP_CREATE_BLOCK_SELF_MCAST_LB |
				      IBV_QP_CREATE_PCI_WRITE_END_PADDING },
	{ IBV_QPT_XRC_SEND, 0 },
};

static const struct type_row *row_of(enum ibv_qp_type type)
{
	for (size_t i = 0; i < VB_ARRAY_LEN(type_rows); i++) {
		if (type_rows[i].type == type)
			return &type_rows[i];
	}
	return NULL;
}

static bool has_tags(const struct ibv_srq *srq)
{
	return srq && ((const struct vb_srq *)srq)->tm;
}

static int check_init(const struct vb_pd *pd, const struct ibv_qp_init_attr *attr,
		      const struct vb_dc_attr *dc)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!row_of(attr->qp_type) && !dc)
		return EOPNOTSUPP;
	if (!attr->send_cq || attr->send_cq->context != pd->ibv.context)
		return EINVAL;
	/* IBTA A14: an XRC initiator has no receive queue, and so nothing that goes with one. */
	if (attr->qp_type == IBV_QPT_XRC_SEND) {
		if (attr->srq)
			return EINVAL;
	} else if (!attr->recv_cq || attr->recv_cq->context != pd->ibv.context) {
		return EINVAL;
	}
	/* ibv_create_qp(3): an SRQ goes with RC or UD. One with tags: IBV_TM_CAP_RC. */
	if (attr->srq && (attr->qp_type == IBV_QPT_UC || attr->qp_type == IBV_QPT_RAW_PACKET ||
			  attr->srq->context != pd->ibv.context ||
			  (attr->qp_type != IBV_QPT_RC && has_tags(attr->srq))))
		return EINVAL;
	if (cap->max_send_wr > VB_QP_WR_MAX || cap->max_send_sge > VB_SGE_MAX ||
	    cap->max_inline_data > VB_INLINE_BYTES_MAX)
		return EINVAL;
	/* ibv_create_qp(3): max_recv_wr and max_recv_sge are ignored with an SRQ. */
	if (!attr->srq && attr->qp_type != IBV_QPT_XRC_SEND &&
	    (cap->max_recv_wr > VB_QP_WR_MAX || cap->max_recv_sge > VB_SGE_MAX))
		return EINVAL;
	return 0;
}

/* The room that a work request has at its end. */
static size_t data_room(const struct vb_qp *qp, const struct ibv_qp_cap *cap, bool tags)
{
	uint64_t sge_max = vb_max_u64(cap->max_send_sge, tags ? VB_TM_SGE_MAX : 0);
	size_t data = vb_max_u64(sge_max * sizeof(struct ibv_sge), cap->max_inline_data);

	if (qp->dv_flags & VB_QP_MKEYS)
		data = vb_max_u64(data, vb_mkey_room(cap) * sizeof(struct vb_mkey_entry));
	return qp->raw ? vb_raw_wqe_room(qp->raw, data) : data;
}

/* The memory for the work requests comes with the first post, see vb_qp_sq_make(). */
static void init_queues(struct vb_qp *qp, const struct ibv_qp_init_attr *attr)
{
	/* A rendezvous adds work requests of ours. */
	bool tags = has_tags(attr->srq);
	size_t stride = sizeof(struct vb_wqe) + data_room(qp, &attr->cap, tags);
	uint32_t size = power_of_two(attr->cap.max_send_wr + (tags ? 2 * VB_TM_RNDV_MAX : 0));

	qp->req.sq.stride = (uint32_t)((stride + 63) & ~(size_t)63);
	qp->req.sq.mask = size - 1;
	if (attr->srq) {
		qp->rq = &((struct vb_srq *)attr->srq)->rq;
		return;
	}
	vb_rq_init(&qp->own_rq, qp->cap.max_recv_wr, qp->cap.max_recv_sge);
	qp->rq = &qp->own_rq;
}

static size_t sq_bytes(const struct vb_sq *sq)
{
	return (sq->mask + (size_t)1) * sq->stride;
}

int vb_qp_sq_make(struct vb_qp *qp)
{
	struct vb_sq *sq = &qp->req.sq;

	sq->ring = aligned_alloc(64, sq_bytes(sq));
	return sq->ring ? 0 : ENOMEM;
}

/* A parent domain may have memory for them; what it leaves to us stays for the first post. */
static int borrow_queues(struct vb_qp *qp)
{
	struct vb_pd *pd = (struct vb_pd *)qp->ibv.qp.pd;
	void *memory = NULL;
	int err = 0;

	if (qp->cap.max_send_wr)
		err = vb_buffer_borrow(pd, VB_BUFFER_SQ, sq_bytes(&qp->req.sq), &memory);
	qp->req.sq.ring = memory;
	qp->sq_borrowed = memory != NULL;
	if (err || !qp->cap.max_recv_wr)
		return err;
	err = vb_buffer_borrow(pd, VB_BUFFER_RQ, vb_rq_bytes(&qp->own_rq), &memory);
	qp->own_rq.ring = memory;
	qp->rq_borrowed = memory != NULL;
	return err;
}

static void return_queues(struct vb_qp *qp)
{
	struct vb_pd *pd = (struct vb_pd *)qp->ibv.qp.pd;

	if (qp->sq_borrowed) {
		vb_buffer_return(pd, VB_BUFFER_SQ, qp->req.sq.ring);
		qp->req.sq.ring = NULL;
	}
	if (qp->rq_borrowed) {
		vb_buffer_return(pd, VB_BUFFER_RQ, qp->own_rq.ring);
		qp->own_rq.ring = NULL;
	}
	qp->sq_borrowed = qp->rq_borrowed = false;
}

/* Nothing is left to be made when a message with a tag comes. */
static int make_for_tags(struct vb_qp *qp)
{
	qp->tm = calloc(1, sizeof(*qp->tm));
	if (!qp->tm)
		return ENOMEM;
	return qp->req.sq.ring ? 0 : vb_qp_sq_make(qp);
}

static void fill(struct vb_qp *qp, struct vb_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *ibv = &qp->ibv.qp;

	qp->cap = attr->cap;
	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	qp->sq_sig_all = attr->sq_sig_all;
	qp->attr.path_mig_state = IBV_MIG_MIGRATED;
	qp->migreq = attr->qp_type != IBV_QPT_UD;
	ibv->context = pd->ibv.context;
	ibv->qp_context = attr->qp_context;
	ibv->pd = &pd->ibv;
	ibv->send_cq = attr->send_cq;
	ibv->recv_cq = attr->qp_type == IBV_QPT_XRC_SEND ? NULL : attr->recv_cq;
	ibv->srq = attr->srq;
	ibv->qp_type = attr->qp_type;
	ibv->state = IBV_QPS_RESET;
}

static void count_users(const struct vb_qp *qp, uint32_t by)
{
	const struct ibv_qp *ibv = &qp->ibv.qp;

	atomic_fetch_add(&((struct vb_pd *)ibv->pd)->users, by);
	atomic_fetch_add(&((struct vb_cq *)ibv->send_cq)->users, by);
	if (ibv->recv_cq)
		atomic_fetch_add(&((struct vb_cq *)ibv->recv_cq)->users, by);
	if (ibv->srq)
		atomic_fetch_add(&((struct vb_srq *)ibv->srq)->users, by);
}

/* What a QP may be created with beside what any has. */
struct extra {
	uint32_t create_flags, source_qpn, tso_header_max;
	const struct vb_dc_attr *dc;
	uint32_t dv_flags; /* qp_dv.h */
};

static int create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, const struct extra *extra,
		  struct vb_qp **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_qp *qp;
	int err = check_init(pd, attr, extra->dc);

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	qp->nic = nic;
	vb_timer_init(&qp->timer, false);
	vb_lock_init(&qp->lock);
	vb_req_reset(&qp->req);
	vb_resp_reset(&qp->resp);
	fill(qp, pd, attr);
	qp->dv_flags = extra->dv_flags;
	if (attr->qp_type == IBV_QPT_RAW_PACKET)
		err = vb_raw_make(qp, extra->tso_header_max);
	init_queues(qp, attr);
	if (extra->dc)
		err = vb_dc_init(qp, extra->dc);
	if (!err)
		err = borrow_queues(qp);
	if (!err && has_tags(attr->srq))
		err = make_for_tags(qp);
	/* Last: from here on, packets find it. */
	if (!err)
		err = vb_nic_qp_add(nic, qp, &qp->ibv.qp.qp_num);
	if (err) {
		return_queues(qp);
		vb_qp_free(qp);
		return err;
	}
	qp->ibv.qp.handle = qp->ibv.qp.qp_num;
	qp->create_flags = extra->create_flags;
	qp->sqpn = extra->create_flags & IBV_QP_CREATE_SOURCE_QPN ? extra->source_qpn
								  : qp->ibv.qp.qp_num;
	count_users(qp, 1);
	attr->cap = qp->cap;
	*out = qp;
	return 0;
}

int vb_qp_create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **out)
{
	static const struct extra none;

	return create(pd, attr, &none, out);
}

static int check_ex(const struct ibv_qp_init_attr_ex *attr)
{
	static const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
				      IBV_QP_INIT_ATTR_CREATE_FLAGS |
				      IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
				      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool cuts = attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER;

	if ((attr->comp_mask & ~known) || !row_of(attr->qp_type) ||
	    (cuts && attr->qp_type != IBV_QPT_RAW_PACKET))
		return EOPNOTSUPP;
	if (cuts && attr->max_tso_header > VB_TSO_HEADER_BYTES_MAX)
		return EINVAL;
	/* An XRC domain takes the place of a PD, and goes with a receiving end of XRC only. */
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD))
		return EINVAL;
	return 0;
}

static int extra_of(const struct ibv_qp_init_attr_ex *attr, struct extra *extra)
{
	struct vb_nic *nic = vb_nic_of(attr->pd->context);

	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER)
		extra->tso_header_max = attr->max_tso_header;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return 0;
	extra->create_flags = attr->create_flags;
	if (extra->create_flags & ~row_of(attr->qp_type)->create_flags)
		return EINVAL;
	if (!(extra->create_flags & IBV_QP_CREATE_SOURCE_QPN))
		return 0;
	extra->source_qpn = attr->source_qpn;
	if (extra->source_qpn >> 24)
		return EINVAL;
	/* In shared memory the number says who sends, and is checked. */
	return nic->host.no_wire ? EOPNOTSUPP : 0;
}

int vb_qp_create_ex(struct ibv_qp_init_attr_ex *attr, struct vb_qp **out)
{
	return vb_qp_create_with(attr, 0, out);
}

int vb_qp_create_with(struct ibv_qp_init_attr_ex *attr, uint32_t dv_flags, struct vb_qp **out)
{
	struct ibv_qp_init_attr plain;
	struct extra extra = { .dv_flags = dv_flags };
	int err;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return vb_xrc_qp_create(attr, out);
	if (vb_rss_is_asked(attr))
		return vb_rss_qp_create(attr, dv_flags, out);
	err = check_ex(attr);

	if (!err)
		err = extra_of(attr, &extra);
	if (err)
		return err;
	/* The extended attributes begin with the plain ones (verbs.h relies on it as well). */
	memcpy(&plain, attr, sizeof(plain));
	err = create((struct vb_pd *)attr->pd, &plain, &extra, out);
	if (!err)
		attr->cap = plain.cap;
	return err;
}

int vb_qp_create_dc(struct ibv_qp_init_attr_ex *attr, const struct vb_dc_attr *dc,
		    uint32_t dv_flags, struct vb_qp **out)
{
	struct ibv_qp_init_attr plain;
	struct extra extra = { .dc = dc, .dv_flags = dv_flags };
	int err;

	if (dc->streams_log > VB_DCI_STREAMS_LOG_MAX || dc->errored_log > VB_DCI_ERRORED_LOG_MAX)
		return EINVAL;
	memcpy(&plain, attr, sizeof(plain));
	/* Half of each end has nothing to do, and nobody has to give it anything. */
	if (dc->target) {
		plain.cap.max_send_wr = plain.cap.max_send_sge = plain.cap.max_inline_data = 0;
		plain.send_cq = plain.send_cq ? plain.send_cq : plain.recv_cq;
	} else {
		plain.srq = NULL;
		plain.recv_cq = plain.recv_cq ? plain.recv_cq : plain.send_cq;
	}
	err = create((struct vb_pd *)attr->pd, &plain, &extra, out);
	if (!err)
		attr->cap = plain.cap;
	return err;
}

int vb_qp_destroy(struct vb_qp *qp)
{
	struct ibv_qp *ibv = &qp->ibv.qp;

	if (qp->attached)
		return EBUSY;
	if (qp->xrc) {
		vb_xrc_qp_destroy(qp);
		return 0;
	}
	if (qp->rss) {
		vb_rss_qp_destroy(qp);
		return 0;
	}
	vb_way_finish(qp);
	if (!vb_export_qp_withdraw(qp))
		return EBUSY;
	vb_export_qp_hide(qp);
	vb_nic_qp_remove(qp->nic, ibv->qp_num);
	/* Whoever found it keeps a right until done with it; packets first, as they set clocks. */
	vb_nic_quiesce(qp->nic);
	if (qp->dc)
		vb_dc_leave(qp);
	/* What was received stays received: the peer must not take our leaving for a loss. */
	vb_lock_take(&qp->lock);
	vb_ack_flush(qp);
	vb_lock_drop(&qp->lock);
	vb_qp_silence(qp);
	vb_peers_look(qp->nic);
	vb_lock_take(&qp->nic->rx);
	vb_ack_forget(qp);
	vb_lock_drop(&qp->nic->rx);
	vb_qp_unbind_locked(qp);
	vb_windows_unbind(qp);
	vb_tm_leave(qp);
	/* Nobody finds it now; its completions point at it no longer. */
	vb_cq_purge((struct vb_cq *)ibv->send_cq, ibv->qp_num);
	if (ibv->recv_cq)
		vb_cq_purge((struct vb_cq *)ibv->recv_cq, ibv->qp_num);
	vb_ctx_events_cancel(vb_ctx_of(ibv->context), &qp->events_delivered);
	return_queues(qp);
	count_users(qp, (uint32_t)-1);
	return 0;
}

void vb_qp_free(struct vb_qp *qp)
{
	vb_raw_free(qp);
	vb_dc_fini(qp);
	free(qp->rss);
	vb_rq_fini(&qp->own_rq);
	free(qp->xrc);
	free(qp->tm);
	free(qp->resp.ring);
	free(qp->req.sq.ring);
	free(qp->snapshots);
	free(qp->migration);
	free(qp->unacked);
	vb_parcels_free(qp);
	vb_lock_fini(&qp->lock);
	free(qp);
}

int vb_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp *ibv = &qp->ibv.qp;

	if (qp->xrc)
		return vb_xrc_qp_query(qp, attr, init);
	if (qp->rss) /* there is neither a state nor anything that one could have set */
		return EOPNOTSUPP;
	vb_lock_take(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = vb_qp_state(qp);
	attr->cap = qp->cap;
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD && !vb_req_drained(&qp->req);
	vb_lock_drop(&qp->lock);
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = qp->cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}
