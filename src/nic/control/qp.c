/* SPDX-License-Identifier: BSD-2-Clause */

/* Creates, queries and destroys queue pairs. */

#include "nic/control/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/refusal.h"
#include "nic/core/quiesce.h"
#include "nic/core/lowered.h"
#include "nic/core/names.h"
#include "nic/data/acks.h"
#include "nic/queue/comp_cntr.h"
#include "nic/core/domain.h"
#include "nic/data/migrate.h"
#include "nic/mem/mkey.h"
#include "nic/way/peer.h"
#include "nic/control/efa.h"
#include "nic/control/qp_dv.h"
#include "nic/queue/rq.h"
#include "nic/data/window.h"
#include "nic/service/eth/raw.h"
#include "nic/service/eth/rss.h"
#include "nic/service/services.h"
#include "nic/service/tm/tm.h"
#include "nic/service/xrc/xrc.h"
#include "nic/way/qp_export.h"
#include "nic/way/way.h"

static uint32_t power_of_two(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

static bool has_tags(const struct ibv_srq *srq)
{
	return srq && ((const struct vb_srq *)srq)->tm;
}

/* Each of these may be 0 to max. */
static int check_cap(const struct vb_nic *nic, const struct ibv_qp_cap *cap, bool has_rq)
{
#define CAP(field, limit)                                                \
	{                                                                \
#field, cap->field, vb_lowered(nic, VB_LIMIT_##limit) \
	}
	const struct {
		const char *name;
		uint32_t value, max;
	} bounds[] = {
		CAP(max_send_wr, QP_WR),
		CAP(max_send_sge, SGE),
		CAP(max_inline_data, INLINE),
		CAP(max_recv_wr, QP_WR),
		CAP(max_recv_sge, SGE),
	};
#undef CAP
	size_t count = VB_ARRAY_LEN(bounds) - (has_rq ? 0 : 2);

	for (size_t i = 0; i < count; i++)
		if (bounds[i].value > bounds[i].max)
			return vb_refuse(EINVAL, "%s is %u; it may be at most %u", bounds[i].name,
					 bounds[i].value, bounds[i].max);
	return 0;
}

static int check_init(const struct vb_pd *pd, const struct ibv_qp_init_attr *attr,
		      const struct vb_service *service)
{
	uint32_t traits = service->traits;
	const struct vb_nic *nic = vb_nic_of(pd->ibv.context);

	if (service->offered && !(service->offered & nic->identity.persona.services))
		return vb_refuse(EOPNOTSUPP, "the persona %s offers no %s",
				 nic->identity.persona.name, service->name);
	if (!attr->send_cq || attr->send_cq->context != pd->ibv.context)
		return vb_refuse(EINVAL, "send_cq is %s", attr->send_cq ? "of another context"
									: "NULL");
	if ((traits & VB_RECEIVES) &&
	    (!attr->recv_cq || attr->recv_cq->context != pd->ibv.context))
		return vb_refuse(EINVAL, "recv_cq is %s", attr->recv_cq ? "of another context"
									: "NULL");
	/* ibv_create_qp(3): an SRQ goes with RC or UD. With tags: IBV_TM_CAP_RC. */
	if (attr->srq &&
	    (!(traits & VB_TAKES_SRQ) || attr->srq->context != pd->ibv.context ||
	     (!(traits & VB_TAKES_TAGS) && has_tags(attr->srq))))
		return vb_refuse(EINVAL, "this type of QP takes no such SRQ");
	/* ibv_create_qp(3): max_recv_wr and max_recv_sge are ignored with an SRQ. */
	return check_cap(nic, &attr->cap, !attr->srq && (traits & VB_RECEIVES));
}

/* The size of a work request's data. */
static size_t data_room(struct vb_qp *qp, const struct ibv_qp_cap *cap, bool tags)
{
	uint64_t sge_max = vb_max_u64(cap->max_send_sge, tags ? VB_TM_SGE_MAX : 0);
	size_t data = vb_max_u64(sge_max * sizeof(struct ibv_sge), cap->max_inline_data);

	if (qp->made.dv_flags & VB_QP_MKEYS)
		data = vb_max_u64(data, vb_mkey_room(cap) * sizeof(struct vb_mkey_entry));
	return qp->service->create.room ? qp->service->create.room(qp, (uint32_t)data) : data;
}

/* A rendezvous adds work requests of ours. */
static uint32_t sq_places(const struct ibv_qp_init_attr *attr)
{
	return power_of_two(attr->cap.max_send_wr +
			    (has_tags(attr->srq) ? 2 * VB_TM_RNDV_MAX : 0));
}

/* The memory for work requests is allocated at the first post, see vb_qp_sq_make(). */
static void init_queues(struct vb_qp *qp, const struct ibv_qp_init_attr *attr)
{
	size_t stride = sizeof(struct vb_wqe) + data_room(qp, &attr->cap, has_tags(attr->srq));

	qp->req.sq.stride = (uint32_t)((stride + 63) & ~(size_t)63);
	if (attr->srq) {
		qp->recv.rq = &((struct vb_srq *)attr->srq)->rq;
		return;
	}
	vb_rq_init(&qp->recv.own_rq, qp->made.cap.max_recv_wr, qp->made.cap.max_recv_sge);
	qp->recv.rq = &qp->recv.own_rq;
}

static size_t sq_bytes(const struct vb_sq *sq)
{
	return (sq->mask + (size_t)1) * sq->stride;
}

int vb_qp_sq_make(struct vb_qp *qp)
{
	struct vb_sq *sq = &qp->req.sq;

	/* What it posts goes to queues that the service makes. */
	if (qp->service->post.list)
		return VB_POST_ELSEWHERE;
	sq->ring = aligned_alloc(64, sq_bytes(sq));
	return sq->ring ? 0 : ENOMEM;
}

/* A parent domain may provide memory; what it leaves to us is allocated at the first post. */
static int borrow_queues(struct vb_qp *qp)
{
	struct vb_pd *pd = (struct vb_pd *)qp->ibv.qp.pd;
	void *memory = NULL;
	int err = 0;

	if (qp->made.cap.max_send_wr)
		err = vb_buffer_borrow(pd, VB_BUFFER_SQ, sq_bytes(&qp->req.sq), &memory);
	qp->req.sq.ring = memory;
	qp->made.sq_borrowed = memory != NULL;
	if (err || !qp->made.cap.max_recv_wr)
		return err;
	err = vb_buffer_borrow(pd, VB_BUFFER_RQ, vb_rq_bytes(&qp->recv.own_rq), &memory);
	qp->recv.own_rq.ring = memory;
	qp->made.rq_borrowed = memory != NULL;
	return err;
}

static void return_queues(struct vb_qp *qp)
{
	struct vb_pd *pd = (struct vb_pd *)qp->ibv.qp.pd;

	if (qp->made.sq_borrowed) {
		vb_buffer_return(pd, VB_BUFFER_SQ, qp->req.sq.ring);
		qp->req.sq.ring = NULL;
	}
	if (qp->made.rq_borrowed) {
		vb_buffer_return(pd, VB_BUFFER_RQ, qp->recv.own_rq.ring);
		qp->recv.own_rq.ring = NULL;
	}
	qp->made.sq_borrowed = qp->made.rq_borrowed = false;
}

/* Prepares everything that a message with a tag needs. */
static int make_for_tags(struct vb_qp *qp)
{
	qp->recv.tm = calloc(1, sizeof(*qp->recv.tm));
	if (!qp->recv.tm)
		return ENOMEM;
	return qp->req.sq.ring ? 0 : vb_qp_sq_make(qp);
}

static void fill(struct vb_qp *qp, struct vb_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *ibv = &qp->ibv.qp;

	qp->made.cap = attr->cap;
	if (attr->srq || !vb_qp_is(qp, VB_RECEIVES))
		qp->made.cap.max_recv_wr = qp->made.cap.max_recv_sge = 0;
	qp->made.sq_sig_all = attr->sq_sig_all;
	qp->made.wqe_flags = attr->sq_sig_all ? IBV_SEND_SIGNALED : 0;
	qp->attr.path_mig_state = IBV_MIG_MIGRATED;
	qp->to.migreq = vb_qp_is(qp, VB_MIGREQ);
	ibv->context = pd->ibv.context;
	ibv->qp_context = attr->qp_context;
	ibv->pd = &pd->ibv;
	ibv->send_cq = attr->send_cq;
	ibv->recv_cq = vb_qp_is(qp, VB_RECEIVES) ? attr->recv_cq : NULL;
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

static int create(const struct vb_service *service, struct vb_pd *pd, struct ibv_qp_init_attr *attr,
		  const struct vb_qp_extra *extra, struct vb_qp **out)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);
	struct vb_qp *qp;
	int err = check_init(pd, attr, service);

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	qp->nic = nic;
	qp->service = service;
	vb_timer_init(&qp->later.timer, false);
	vb_lock_init(&qp->lock, VB_RANK_QP);
	vb_req_reset(&qp->req);
	vb_resp_reset(&qp->resp);
	fill(qp, pd, attr);
	qp->made.dv_flags = extra->dv_flags;
	qp->req.sq.mask = sq_places(attr) - 1;
	if (vb_refusals_are_wanted())
		qp->sites = calloc(qp->req.sq.mask + (size_t)1, sizeof(*qp->sites));
	if (service->create.make)
		err = service->create.make(qp, extra);
	if (!err) {
		init_queues(qp, attr);
		err = borrow_queues(qp);
	}
	if (!err && has_tags(attr->srq))
		err = make_for_tags(qp);
	/* Last, since packets find it from here on. */
	if (!err)
		err = (vb_nic_is_efa(nic) ? vb_nic_qp_add_narrow
					  : vb_nic_qp_add)(nic, qp, &qp->ibv.qp.qp_num);
	if (err) {
		return_queues(qp);
		vb_qp_free(qp);
		return err;
	}
	qp->ibv.qp.handle = qp->user.qpn = qp->ibv.qp.qp_num;
	qp->made.create_flags = extra->create_flags;
	qp->special.sqpn = extra->create_flags & IBV_QP_CREATE_SOURCE_QPN ? extra->source_qpn
									  : qp->ibv.qp.qp_num;
	count_users(qp, 1);
	attr->cap = qp->made.cap;
	*out = qp;
	return 0;
}

static const struct ibv_pd *pd_of(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
}

int vb_qp_create(struct vb_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **out)
{
	const struct vb_service *service = vb_service_at(&pd->ibv, attr->qp_type, NULL);
	static const struct vb_qp_extra none;

	if (!service)
		return EOPNOTSUPP;
	if (service->handle)
		return vb_refuse(EOPNOTSUPP, "a QP of type %s is made by ibv_create_qp_ex",
				 service->name);
	return create(service, pd, attr, &none, out);
}

static int check_ex(const struct vb_service *service, const struct ibv_qp_init_attr_ex *attr)
{
	static const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
				      IBV_QP_INIT_ATTR_CREATE_FLAGS |
				      IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
				      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool cuts = attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER;

	if ((attr->comp_mask & ~known) || (cuts && !(service->traits & VB_TSO)))
		return vb_refuse(EOPNOTSUPP, "comp_mask 0x%x: a QP of type %s takes at most 0x%x",
				 attr->comp_mask, service->name,
				 service->traits & VB_TSO
					 ? known
					 : known & ~(uint32_t)IBV_QP_INIT_ATTR_MAX_TSO_HEADER);
	if (cuts && attr->max_tso_header > VB_TSO_HEADER_BYTES_MAX)
		return vb_refuse(EINVAL, "max_tso_header is %u; it may be at most %u",
				 attr->max_tso_header, (unsigned)VB_TSO_HEADER_BYTES_MAX);
	/* An XRC domain replaces the PD, for the receiving end of XRC only. */
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD))
		return vb_refuse(EINVAL, "comp_mask 0x%x: a QP of type %s needs "
					 "IBV_QP_INIT_ATTR_PD and pd, and takes no XRC domain",
				 attr->comp_mask, service->name);
	return 0;
}

static int extra_of(const struct vb_service *service, const struct ibv_qp_init_attr_ex *attr,
		    struct vb_qp_extra *extra)
{
	struct vb_nic *nic = vb_nic_of(attr->pd->context);

	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER)
		extra->tso_header_max = attr->max_tso_header;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return 0;
	extra->create_flags = attr->create_flags;
	if (extra->create_flags & ~service->create.flags)
		return vb_refuse(EINVAL, "create_flags 0x%x: a QP of type %s has only 0x%x",
				 extra->create_flags, service->name,
				 service->create.flags);
	if (!(extra->create_flags & IBV_QP_CREATE_SOURCE_QPN))
		return 0;
	extra->source_qpn = attr->source_qpn;
	if (extra->source_qpn >> 24)
		return EINVAL;
	/* In shared memory the QPN identifies the sender, and is checked. */
	return nic->host.no_wire ? EOPNOTSUPP : 0;
}

/* The checks of ibv_create_qp_ex(3), or those of the service. */
static int check_asked(const struct vb_service *service, const struct ibv_qp_init_attr_ex *attr,
		       struct vb_qp_extra *extra, struct ibv_qp_init_attr *plain)
{
	int err;

	if (service->create.check)
		return service->create.check(attr, extra->dc, plain);
	err = check_ex(service, attr);
	/* The extended attributes begin with the plain ones (verbs.h relies on it as well). */
	memcpy(plain, attr, sizeof(*plain));
	return err ? err : extra_of(service, attr, extra);
}

static int create_by(const struct vb_service *service, struct ibv_qp_init_attr_ex *attr,
		     const struct vb_qp_dv_attr *dv, struct vb_qp **out)
{
	struct vb_qp_extra extra = { .dc = dv->dc, .dv_flags = dv->flags };
	struct ibv_qp_init_attr plain;
	int err;

	if (service == &vb_service_xrc_recv)
		return vb_xrc_qp_create(attr, out);
	if (!dv->dc && vb_rss_is_asked(attr))
		return vb_rss_qp_create(attr, dv->flags, out);
	err = check_asked(service, attr, &extra, &plain);
	if (!err)
		err = create(service, (struct vb_pd *)attr->pd, &plain, &extra, out);
	if (!err)
		attr->cap = plain.cap;
	return err;
}

int vb_qp_create_ex(struct ibv_qp_init_attr_ex *attr, struct vb_qp **out)
{
	const struct vb_service *service = vb_service_at(pd_of(attr), attr->qp_type, NULL);
	static const struct vb_qp_dv_attr none;

	return service ? create_by(service, attr, &none, out) : EOPNOTSUPP;
}

int vb_qp_create_dv(struct ibv_qp_init_attr_ex *attr, const struct vb_qp_dv_attr *dv,
		    struct vb_qp **out)
{
	const struct vb_service *service = vb_service_at(pd_of(attr), attr->qp_type, dv->dc);
	struct vb_qp *qp;
	int err;

	if ((attr->qp_type == IBV_QPT_DRIVER) != (dv->dc != NULL))
		return EINVAL;
	if (!service)
		return EOPNOTSUPP;
	err = vb_qp_dv_flags_check(dv->flags, service);
	if (!err)
		err = create_by(service, attr, dv, &qp);
	if (err)
		return err;
	if (!(dv->flags & VB_QP_SCATTER_TO_CQE_OFF))
		err = vb_parcels_make(qp, dv->flags & VB_QP_SCATTER_TO_CQE_ON);
	if (err) {
		vb_qp_destroy(qp);
		vb_qp_free(qp);
		return err;
	}
	*out = qp;
	return 0;
}

int vb_qp_destroy(struct vb_qp *qp)
{
	struct ibv_qp *ibv = &qp->ibv.qp;

	if (qp->special.attached)
		return vb_refuse(EBUSY, "QPN 0x%x is still attached to %u multicast groups or flow "
					"rules", ibv->qp_num, qp->special.attached);
	if (qp->service->handle) {
		qp->service->handle->destroy(qp);
		return 0;
	}
	vb_way_finish(qp);
	if (!vb_export_qp_withdraw(qp))
		return EBUSY;
	vb_export_qp_hide(qp);
	vb_nic_qp_remove(qp->nic, ibv->qp_num);
	/* A thread that found it holds a right until done; packets first, as they set timers. */
	vb_nic_quiesce(qp->nic);
	if (qp->service->create.leave)
		qp->service->create.leave(qp);
	/* What was received is acknowledged: the peer must not take the destruction for a loss. */
	vb_ack_settle(qp);
	vb_qp_silence(qp);
	vb_peers_look(qp->nic);
	vb_lock_take(&qp->nic->rx);
	vb_ack_forget(qp);
	vb_lock_drop(&qp->nic->rx);
	vb_qp_unbind_locked(qp);
	vb_windows_unbind(qp);
	vb_tm_leave(qp);
	/* No thread finds it now; its completions no longer point to it. */
	vb_cq_purge((struct vb_cq *)ibv->send_cq, ibv->qp_num);
	if (ibv->recv_cq)
		vb_cq_purge((struct vb_cq *)ibv->recv_cq, ibv->qp_num);
	vb_ctx_events_cancel(vb_ctx_of(ibv->context), &qp->events.delivered);
	return_queues(qp);
	count_users(qp, (uint32_t)-1);
	return 0;
}

void vb_qp_fini(struct vb_qp *qp)
{
	if (qp->service->create.unmake)
		qp->service->create.unmake(qp);
	vb_rq_fini(&qp->recv.own_rq);
	free(qp->recv.tm);
	free(qp->resp.ring);
	free(qp->req.sq.ring);
	free(qp->special.snapshots);
	free(qp->sites);
	free(qp->tally.latency);
	free(qp->to.migration);
	free(qp->recv.unacked);
	vb_counted_free(qp->user.counted);
	vb_parcels_free(qp);
	vb_lock_fini(&qp->lock);
}

void vb_qp_free(struct vb_qp *qp)
{
	vb_qp_fini(qp);
	free(qp);
}

int vb_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp *ibv = &qp->ibv.qp;

	if (qp->service->handle)
		return qp->service->handle->query(qp, attr, init);
	vb_lock_take(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = vb_qp_state(qp);
	attr->cap = qp->made.cap;
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD && !vb_req_drained(&qp->req);
	vb_lock_drop(&qp->lock);
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = qp->made.cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = qp->made.sq_sig_all,
	};
	return 0;
}
