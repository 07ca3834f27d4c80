/* SPDX-License-Identifier: BSD-2-Clause */

/* Queue pairs and SRQs of ids: made, and brought to their states. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/qp.h"
#include "run/cm.h"

enum { PKEY_INDEX = 0, PORT = 1 };

static bool is_ud(const struct vb_cma_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

/* A QP says which kind of connection it is; without one, the id does. */
static enum ibv_qp_type type_of(const struct vb_cma_id *id)
{
	return id->pub.qp ? id->pub.qp->qp_type : id->pub.qp_type;
}

/* --- the attributes of each state --- */

static int attr_init(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = PKEY_INDEX;
	attr->port_num = PORT;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (is_ud(id)) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return 0;
	}
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->agreed.responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask |= IBV_QP_ACCESS_FLAGS;
	return 0;
}

static void ah_fill(const struct vb_cma_id *id, struct ibv_ah_attr *ah)
{
	*ah = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = PORT,
		.grh = {
			.flow_label = id->path.flow_label,
			.sgid_index = id->sgid_index,
			.hop_limit = id->path.hop_limit,
			.traffic_class = id->path.tclass,
		},
	};
	memcpy(ah->grh.dgid.raw, id->path.dst, VB_GID_BYTES);
}

static int attr_rtr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_type type = type_of(id);

	if (is_ud(id)) {
		*mask = IBV_QP_STATE;
		return 0;
	}
	if (!id->agreed.peer_qpn)
		return EINVAL;
	ah_fill(id, &attr->ah_attr);
	attr->path_mtu = (enum ibv_mtu)id->agreed.path_mtu;
	attr->dest_qp_num = id->agreed.peer_qpn;
	attr->rq_psn = id->agreed.psn;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV) {
		attr->max_dest_rd_atomic = id->agreed.responder_resources;
		attr->min_rnr_timer = vb_cm_rnr_timer(vb_cma_run());
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return 0;
}

static int attr_rts(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_type type = type_of(id);

	attr->sq_psn = id->agreed.peer_psn;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
		attr->max_rd_atomic = id->agreed.initiator_depth;
		attr->retry_cnt = id->agreed.retry_count;
		attr->rnr_retry = id->agreed.rnr_retry_count;
		*mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	}
	if (!is_ud(id) && type != IBV_QPT_UC) {
		attr->timeout = id->agreed.ack_timeout;
		*mask |= IBV_QP_TIMEOUT;
	}
	return 0;
}

/* rdma_init_qp_attr(3): the state that is wanted stands in attr. */
int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return attr_init(id, attr, mask);
	case IBV_QPS_RTR:
		return attr_rtr(id, attr, mask);
	case IBV_QPS_RTS:
		return attr_rts(id, attr, mask);
	default:
		return EINVAL;
	}
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	return vb_cma_result(id->verbs ? vb_cma_qp_attr(vb_cma_of(id), attr, mask) : EINVAL);
}

static int move(struct vb_cma_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, rc;

	rc = vb_cma_qp_attr(id, &attr, &mask);
	return rc ? rc : ibv_modify_qp(id->pub.qp, &attr, mask);
}

int vb_cma_qp_to_rts(struct vb_cma_id *id)
{
	int rc;

	if (!id->pub.qp)
		return 0;
	/* What the two agreed upon is known by now: the rights follow. */
	rc = move(id, IBV_QPS_INIT);
	if (!rc)
		rc = move(id, IBV_QPS_RTR);
	return rc ? rc : move(id, IBV_QPS_RTS);
}

int vb_cma_qp_to_err(struct vb_cma_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return id->pub.qp ? ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE) : 0;
}

/* --- completion queues of the id's own --- */

static int cq_make(struct vb_cma_id *id, uint32_t places, struct ibv_comp_channel **channel,
		   struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->pub.verbs);
	if (!*channel)
		return errno;
	/* Who calls rdma_get_send_comp(3) expects the id there. */
	*cq = ibv_create_cq(id->pub.verbs, (int)(places ? places : 1), id, *channel, 0);
	return *cq ? 0 : errno;
}

static void cq_destroy(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq && *channel)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

/* How many completions there are to be places for; 0: such a CQ is not wanted, or there is one. */
struct places {
	uint32_t sends, recvs;
};

static const struct places both = {1, 1};

static void cqs_destroy(struct vb_cma_id *id, const struct places *which)
{
	struct rdma_cm_id *pub = &id->pub;

	if (which->recvs)
		cq_destroy(&pub->recv_cq_channel, &pub->recv_cq);
	if (which->sends)
		cq_destroy(&pub->send_cq_channel, &pub->send_cq);
}

static int cqs_make(struct vb_cma_id *id, const struct places *places)
{
	struct rdma_cm_id *pub = &id->pub;
	int rc = 0;

	if (places->recvs)
		rc = cq_make(id, places->recvs, &pub->recv_cq_channel, &pub->recv_cq);
	if (!rc && places->sends)
		rc = cq_make(id, places->sends, &pub->send_cq_channel, &pub->send_cq);
	if (rc)
		cqs_destroy(id, places);
	return rc;
}

/* --- queue pairs --- */

static int ud_to_rts(struct vb_cma_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	int rc = move(id, IBV_QPS_INIT);

	if (!rc)
		rc = move(id, IBV_QPS_RTR);
	return rc ? rc : ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* Which PD, or which domain of XRC: the application's, or ours. 0 or an errno. */
static int home_set(const struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		attr->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD;
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
			attr->xrcd = vb_cma_xrcd(id->pub.verbs);
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		return attr->xrcd ? 0 : errno;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pub.pd;
	}
	return attr->pd->context == id->pub.verbs ? 0 : EINVAL;
}

/* For which of its completions a QP needs CQs of the id's own that are not there. */
static struct places places_wanted(const struct rdma_cm_id *pub,
				   const struct ibv_qp_init_attr_ex *attr)
{
	/* It has no queues of its own: what comes is for its domain's SRQs. */
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return (struct places){0, 0};
	return (struct places){
		.sends = attr->send_cq || pub->send_cq ? 0 : attr->cap.max_send_wr,
		.recvs = attr->recv_cq || pub->recv_cq ? 0 : attr->cap.max_recv_wr,
	};
}

/* Those that the application names, or what the id has. */
static void queues_set(const struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return;
	if (!attr->send_cq)
		attr->send_cq = pub->send_cq ? pub->send_cq : pub->recv_cq;
	if (!attr->recv_cq)
		attr->recv_cq = pub->recv_cq ? pub->recv_cq : attr->send_cq;
	if (pub->srq && !attr->srq)
		attr->srq = pub->srq;
	/* As a NIC has it: where a list of pieces fits, data does. */
	if (attr->cap.max_inline_data < attr->cap.max_send_sge * sizeof(struct ibv_sge))
		attr->cap.max_inline_data =
			(uint32_t)(attr->cap.max_send_sge * sizeof(struct ibv_sge));
}

static int qp_make(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *pub = &id->pub;
	struct places made = places_wanted(pub, attr);
	struct ibv_qp *qp;
	int rc;

	if (!pub->verbs || pub->qp)
		return EINVAL;
	/* What is connected may be so in any way: programs have XRC over the port space of TCP. */
	if ((attr->qp_type == IBV_QPT_UD) != is_ud(id))
		return EINVAL;
	rc = home_set(id, attr);
	if (!rc)
		rc = cqs_make(id, &made);
	if (rc)
		return rc;
	queues_set(pub, attr);
	qp = ibv_create_qp_ex(pub->verbs, attr);
	rc = qp ? 0 : errno;
	if (qp) {
		pub->qp = qp;
		rc = is_ud(id) ? ud_to_rts(id) : move(id, IBV_QPS_INIT);
	}
	if (rc && qp)
		ibv_destroy_qp(qp);
	if (rc) {
		pub->qp = NULL;
		cqs_destroy(id, &made);
		return rc;
	}
	if (qp->pd)
		pub->pd = qp->pd;
	if (!pub->send_cq)
		pub->send_cq = attr->send_cq;
	if (!pub->recv_cq)
		pub->recv_cq = attr->recv_cq;
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex made = *attr;
	int rc = qp_make(vb_cma_of(id), &made);

	/* Whoever is refused keeps his attributes as they are. */
	if (!rc)
		*attr = made;
	return vb_cma_result(rc);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex wide;
	int rc;

	memset(&wide, 0, sizeof(wide));
	memcpy(&wide, attr, sizeof(*attr));
	wide.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;
	wide.pd = pd;
	rc = rdma_create_qp_ex(id, &wide);
	memcpy(attr, &wide, sizeof(*attr));
	return rc;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id->qp)
		return;
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	if (!id->srq || id->send_cq_channel || !id->recv_cq_channel)
		cqs_destroy(vb_cma_of(id), &both);
}

/* --- SRQs --- */

static int srq_make(struct vb_cma_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct rdma_cm_id *pub = &id->pub;
	bool xrc = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC;
	struct places made = {0, 0};
	int rc = 0;

	if (!pub->verbs || pub->srq)
		return EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = pub->pd;
	}
	if (attr->pd->context != pub->verbs)
		return EINVAL;
	if (xrc && (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
		attr->xrcd = vb_cma_xrcd(pub->verbs);
		rc = attr->xrcd ? 0 : errno;
	}
	if (!rc && xrc && (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq)) {
		made.recvs = pub->recv_cq ? 0 : attr->attr.max_wr;
		rc = cqs_make(id, &made);
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
		attr->cq = pub->recv_cq;
	}
	if (rc)
		return rc;
	pub->srq = ibv_create_srq_ex(pub->verbs, attr);
	if (!pub->srq) {
		rc = errno;
		cqs_destroy(id, &made);
		return rc;
	}
	pub->pd = attr->pd;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr_ex made = *attr;
	int rc = srq_make(vb_cma_of(id), &made);

	if (!rc)
		*attr = made;
	return vb_cma_result(rc);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex wide;
	int rc;

	memset(&wide, 0, sizeof(wide));
	memcpy(&wide, attr, sizeof(*attr));
	wide.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | (pd ? IBV_SRQ_INIT_ATTR_PD : 0);
	wide.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	wide.pd = pd;
	rc = rdma_create_srq_ex(id, &wide);
	memcpy(attr, &wide, sizeof(*attr));
	return rc;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (!id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (!id->qp)
		cqs_destroy(vb_cma_of(id), &both);
}
