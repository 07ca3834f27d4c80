/* SPDX-License-Identifier: BSD-2-Clause */

/* What the connection manager tells, as events of the application's. */

#include "abi/rdmacm/heard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/connect.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/mcast.h"
#include "abi/rdmacm/qp.h"
#include "abi/rdmacm/why.h"
#include "cm/say.h"
#include "run/cm.h"
#include "wire/cm_ip.h"

/* --- whom a request is for --- */

/* An address fits better than all of them; IPv4 and IPv6 keep apart if the listener says so. */
static unsigned fit(const struct vb_cm_id *listener, const struct vb_path *path,
		    const struct vb_cm_msg *msg)
{
	const struct vb_cma_id *id = listener->context;
	struct vb_cm_ip ip;
	struct sockaddr *src;
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	if (!id)
		return 0;
	memcpy(ip.dst, path->dst, VB_GID_BYTES);
	vb_cm_ip_parse(&ip, msg->private_data);
	src = (struct sockaddr *)&id->pub.route.addr.src_addr;
	if (!vb_cma_is_any(src)) {
		vb_cma_gid_of(src, gid, &scope);
		return memcmp(gid, ip.dst, VB_GID_BYTES) ? 0 : 2;
	}
	if (src->sa_family == AF_INET)
		return vb_gid_is_ipv4(ip.dst);
	return !vb_gid_is_ipv4(ip.dst) || !id->options.afonly;
}

/* --- what a message says of a connection --- */

static void private_copy(struct vb_cma_event *event, const void **data, uint8_t *bytes,
			 const struct vb_cm_msg *msg, unsigned skip)
{
	unsigned left = msg->private_bytes - skip;

	memcpy(event->private_data, msg->private_data + skip, left);
	*data = event->private_data;
	*bytes = (uint8_t)left;
}

static void conn_private(struct vb_cma_event *event, const struct vb_cm_msg *msg, unsigned skip)
{
	private_copy(event, &event->pub.param.conn.private_data,
		     &event->pub.param.conn.private_data_len, msg, skip);
}

/* What the peer answers is what we may ask, and the other way round. */
static void req_read(struct vb_cma_id *id, struct vb_cma_event *event, const struct vb_cm_msg *msg)
{
	struct rdma_conn_param *param = &event->pub.param.conn;
	const struct vb_cm_req *req = &msg->req;

	param->responder_resources = req->initiator_depth;
	param->initiator_depth = req->responder_resources;
	param->flow_control = req->end_to_end_flow_control;
	param->retry_count = req->retry_count;
	param->rnr_retry_count = req->rnr_retry_count;
	param->srq = req->srq;
	param->qp_num = req->local_qpn;
	id->agreed = (struct vb_cma_agreed){
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.psn = vb_cma_psn_random(),
		.peer_psn = req->starting_psn,
		.peer_qpn = req->local_qpn,
		.path_mtu = req->path_mtu,
		.ack_timeout = req->primary.local_ack_timeout,
	};
	id->remote_ece = (struct ibv_ece){.vendor_id = msg->ece_vendor_id,
					  .options = msg->ece_options};
}

static void rep_read(struct vb_cma_id *id, struct vb_cma_event *event, const struct vb_cm_msg *msg)
{
	struct rdma_conn_param *param = &event->pub.param.conn;
	const struct vb_cm_rep *rep = &msg->rep;

	param->responder_resources = rep->initiator_depth;
	param->initiator_depth = rep->responder_resources;
	param->flow_control = rep->end_to_end_flow_control;
	param->rnr_retry_count = rep->rnr_retry_count;
	param->srq = rep->srq;
	param->qp_num = id->pub.qp_type == IBV_QPT_XRC_SEND ? rep->local_eecn : rep->local_qpn;
	id->agreed.responder_resources = rep->initiator_depth;
	id->agreed.initiator_depth = rep->responder_resources;
	id->agreed.rnr_retry_count = rep->rnr_retry_count;
	id->agreed.peer_psn = rep->starting_psn;
	id->agreed.peer_qpn = param->qp_num;
	if (!id->options.ack_timeout)
		id->agreed.ack_timeout = vb_cm_ack_timeout(rep->target_ack_delay,
							   id->path_rec.packet_life_time);
	id->remote_ece = (struct ibv_ece){.vendor_id = msg->ece_vendor_id,
					  .options = msg->ece_options};
	conn_private(event, msg, 0);
}

static void sidr_rep_read(struct vb_cma_id *id, struct vb_cma_event *event,
			  const struct vb_cm_msg *msg)
{
	struct rdma_ud_param *param = &event->pub.param.ud;

	private_copy(event, &param->private_data, &param->private_data_len, msg, 0);
	if (msg->sidr_rep.status)
		return;
	param->qp_num = msg->sidr_rep.qpn;
	param->qkey = msg->sidr_rep.qkey;
	param->ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = id->sgid_index, .hop_limit = id->path.hop_limit,
			.traffic_class = id->path.tclass},
	};
	memcpy(param->ah_attr.grh.dgid.raw, id->path.dst, VB_GID_BYTES);
}

/* --- a request --- */

/* From whom, to whom: what the IP header says, else where the packet came from. */
static void addresses_set(struct vb_cma_id *id, const struct vb_cma_id *listener,
			  const struct vb_path *path, const struct vb_cm_msg *msg)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	struct vb_cm_ip ip = {.ipv4 = vb_gid_is_ipv4(path->src)};

	memcpy(ip.src, path->src, VB_GID_BYTES);
	memcpy(ip.dst, path->dst, VB_GID_BYTES);
	vb_cm_ip_parse(&ip, msg->private_data);
	vb_cma_sockaddr_set(&addr->src_storage, ip.ipv4, ip.dst, (uint16_t)listener->bind.port,
			    path->ifindex);
	vb_cma_sockaddr_set(&addr->dst_storage, ip.ipv4, ip.src, ip.sport, path->ifindex);
	id->path = *path;
	memcpy(id->path.src, path->dst, VB_GID_BYTES);
	memcpy(id->path.dst, path->src, VB_GID_BYTES);
	id->path.hop_limit = 64;
	memcpy(addr->addr.ibaddr.sgid.raw, id->path.src, VB_GID_BYTES);
	memcpy(addr->addr.ibaddr.dgid.raw, id->path.dst, VB_GID_BYTES);
	addr->addr.ibaddr.pkey = htobe16(0xffff);
}

/* What a request asks for is what the listener has. */
static bool is_of_type(const struct vb_cma_id *listener, const struct vb_cm_event *news)
{
	static const enum ibv_qp_type types[] = {
		[VB_CM_TRANSPORT_RC] = IBV_QPT_RC,
		[VB_CM_TRANSPORT_UC] = IBV_QPT_UC,
		[VB_CM_TRANSPORT_EXTENDED] = IBV_QPT_XRC_RECV,
	};

	if (news->type == VB_CM_EVENT_SIDR_REQ)
		return listener->pub.qp_type == IBV_QPT_UD;
	/* Two bits; RD, which there is not, is nobody's type. */
	return listener->pub.qp_type == types[news->msg->req.transport_service_type];
}

static void request(struct vb_cma_id *listener, struct vb_cm_id *cm,
		    const struct vb_cm_event *news)
{
	bool ud = news->type == VB_CM_EVENT_SIDR_REQ;
	struct vb_cma_id *id;
	struct vb_cma_event *event;

	if (!is_of_type(listener, news) || !vb_cma_has_channel(listener)) {
		if (vb_cma_has_channel(listener))
			vb_cma_why_type(listener, news->path);
		cm->context = NULL;
		vb_cm_id_release(cm, vb_cm_now_ns());
		return;
	}
	id = vb_cma_id_make(listener->pub.channel, listener->pub.context, listener->pub.ps,
			    listener->pub.qp_type);
	event = id ? vb_cma_event_make(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (!event) {
		if (id)
			vb_cma_id_free(id);
		vb_cm_id_forget(cm);
		return;
	}
	cm->context = id;
	id->cm = cm;
	id->passive = true;
	id->state = VB_CMA_CONNECTING;
	id->options.tos = listener->options.tos;
	addresses_set(id, listener, news->path, news->msg);
	vb_cma_attach(id, id->path.src);
	id->pub.route.num_paths = 0;
	if (!ud) {
		req_read(id, event, news->msg);
		conn_private(event, news->msg, VB_CM_IP_BYTES);
	} else {
		private_copy(event, &event->pub.param.ud.private_data,
			     &event->pub.param.ud.private_data_len, news->msg, VB_CM_IP_BYTES);
	}
	event->pub.id = &id->pub;
	event->pub.listen_id = &listener->pub;
	vb_cma_event_queue(event);
}

/* --- all others --- */

/* What the application hears; NONE: nothing. */
enum { NONE = -1 };

static int type_of(const struct vb_cm_event *news)
{
	switch (news->type) {
	case VB_CM_EVENT_REP:
		return RDMA_CM_EVENT_CONNECT_RESPONSE;
	case VB_CM_EVENT_RTU:
	case VB_CM_EVENT_ESTABLISHED:
		return RDMA_CM_EVENT_ESTABLISHED;
	case VB_CM_EVENT_REJ:
		return RDMA_CM_EVENT_REJECTED;
	case VB_CM_EVENT_DREQ:
	case VB_CM_EVENT_DREP:
	case VB_CM_EVENT_DREQ_OVERDUE:
		return RDMA_CM_EVENT_DISCONNECTED;
	case VB_CM_EVENT_TIMEWAIT_EXIT:
		return RDMA_CM_EVENT_TIMEWAIT_EXIT;
	case VB_CM_EVENT_REQ_OVERDUE:
	case VB_CM_EVENT_REP_OVERDUE:
	case VB_CM_EVENT_SIDR_REQ_OVERDUE:
		return RDMA_CM_EVENT_UNREACHABLE;
	case VB_CM_EVENT_SIDR_REP:
		return news->msg->sidr_rep.status ? RDMA_CM_EVENT_UNREACHABLE
						  : RDMA_CM_EVENT_ESTABLISHED;
	default:
		return NONE;
	}
}

static int status_of(const struct vb_cm_event *news)
{
	switch (news->type) {
	case VB_CM_EVENT_REJ:
		return news->msg->rej.reason;
	case VB_CM_EVENT_SIDR_REP:
		return news->msg->sidr_rep.status;
	case VB_CM_EVENT_REQ_OVERDUE:
	case VB_CM_EVENT_REP_OVERDUE:
	case VB_CM_EVENT_DREQ_OVERDUE:
	case VB_CM_EVENT_SIDR_REQ_OVERDUE:
		return -ETIMEDOUT;
	default:
		return 0;
	}
}

/* A connection ends once, however that was learnt; timewait ends only what was told to end. */
static bool is_news(struct vb_cma_id *id, int type)
{
	if (type == RDMA_CM_EVENT_DISCONNECTED) {
		if (id->told_over)
			return false;
		id->told_over = true;
	}
	return type != RDMA_CM_EVENT_TIMEWAIT_EXIT || id->told_over;
}

static void state_follow(struct vb_cma_id *id, int type)
{
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		id->state = VB_CMA_CONNECTED;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		id->state = VB_CMA_DISCONNECTING;
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
		/* It may ask again. */
		id->state = id->passive ? VB_CMA_OVER : VB_CMA_ROUTE_RESOLVED;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		id->state = VB_CMA_OVER;
		break;
	default:
		break;
	}
}

/* No call of the application's could load it, so the peer need not wait for that. */
static void path_refuse(struct vb_cm_id *cm)
{
	static const struct vb_cm_msg apr = {.attr = VB_CM_APR,
					     .apr.status = VB_CM_APR_UNSUPPORTED};

	vb_cm_say(cm, vb_cm_now_ns(), &apr, NULL);
}

static void on_event(struct vb_cm_id *cm, const struct vb_cm_event *news)
{
	struct vb_cma_id *id = cm->context;
	struct vb_cma_event *event;
	int type;

	if (news->type == VB_CM_EVENT_REQ || news->type == VB_CM_EVENT_SIDR_REQ) {
		request(news->listener->context, cm, news);
		return;
	}
	if (news->type == VB_CM_EVENT_LAP)
		path_refuse(cm);
	type = type_of(news);
	if (!id || type == NONE || !is_news(id, type))
		return;
	state_follow(id, type);
	/* Whoever accepts what is over by then learns it by that. */
	if (id->passive && !id->accepted)
		return;
	event = vb_cma_event_make(id, (enum rdma_cm_event_type)type, status_of(news));
	if (!event)
		return;
	if (news->type == VB_CM_EVENT_REP)
		rep_read(id, event, news->msg);
	else if (news->type == VB_CM_EVENT_SIDR_REP)
		sidr_rep_read(id, event, news->msg);
	else if (news->type == VB_CM_EVENT_REJ)
		conn_private(event, news->msg, 0);
	vb_cma_event_queue(event);
}

const struct vb_cm_user vb_cma_user = {.event = on_event, .fit = fit, .fail = vb_cma_ids_fail};

/* --- as the application fetches it --- */

/* The peer has accepted: the QP is connected, and the peer hears so. */
static void response_fetched(struct vb_cma_event *event)
{
	static const struct vb_cm_msg rej = {.attr = VB_CM_REJ,
					     .rej.reason = VB_CM_REJ_CONSUMER_DEFINED};
	struct vb_cma_id *id = event->id;
	int rc;

	if (!id->pub.qp)
		return;
	rc = vb_cma_qp_to_rts(id);
	if (!rc)
		rc = vb_cma_rtu_say(id);
	event->pub.event = rc ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
	event->pub.status = -rc;
	if (!rc)
		return;
	vb_cma_qp_to_err(id);
	vb_cma_lock();
	if (id->cm)
		vb_cm_say(id->cm, vb_cm_now_ns(), &rej, NULL);
	vb_cma_unlock();
}

/* The table of GIDs is asked without the lock. */
static void request_fetched(struct vb_cma_id *id)
{
	int index = vb_cma_gid_index(id->path.src);

	id->sgid_index = (uint8_t)(index < 0 ? 0 : index);
	id->path.local = vb_cma_gid_index(id->path.dst) >= 0;
}

void vb_cma_event_fetched(struct vb_cma_event *event)
{
	switch (event->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		request_fetched(vb_cma_of(event->pub.id));
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		response_fetched(event);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		vb_cma_group_fetched(event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		vb_cma_qp_to_err(event->id);
		break;
	default:
		break;
	}
}
