/* SPDX-License-Identifier: BSD-2-Clause */

/* Connections: what the application asks for, as messages. */

#include "abi/rdmacm/connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/qp.h"
#include "cm/say.h"
#include "run/cm.h"
#include "wire/cm_ip.h"

enum {
	RESPONSE_TIMEOUT = 20, /* 4.3 s, as Linux has it */
	RETRIES = 15,
	LIFETIME = 16,
	RETRY_MAX = 7,
	ACK_TIMEOUT_MAX = 31,
	RESPONSE_NS_SHIFT = RESPONSE_TIMEOUT,
};

/* 4.096 us * 2^n, and twice the way. */
#define ASK_TIMEOUT_NS ((4096ull << RESPONSE_TIMEOUT) + (4096ull << (LIFETIME + 1)))

uint32_t vb_cma_psn_random(void)
{
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
		psn = (uint32_t)vb_cm_now_ns();
	return psn & 0xffffff;
}

static uint8_t least(unsigned a, unsigned b)
{
	return (uint8_t)(a < b ? a : b);
}

static bool is_ud(const struct vb_cma_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

static struct vb_cma_id *locked(struct rdma_cm_id *pub)
{
	vb_cma_lock();
	return vb_cma_of(pub);
}

/* --- what the application says of a connection --- */

/* rdma_connect(3), rdma_accept(3): no more READs and atomics under way than the device has. */
static bool depths_fit(const struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	uint8_t most = vb_cma_depth_max();

	return !param || id->pub.ps != RDMA_PS_TCP ||
	       ((param->responder_resources <= most ||
		 param->responder_resources == RDMA_MAX_RESP_RES) &&
		(param->initiator_depth <= most ||
		 param->initiator_depth == RDMA_MAX_INIT_DEPTH));
}

static void param_take(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	static const struct rdma_conn_param defaults = {
		.responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = RETRY_MAX, .rnr_retry_count = RETRY_MAX, .flow_control = 1,
	};
	struct vb_cma_agreed *agreed = &id->agreed;

	if (!param)
		param = &defaults;
	agreed->responder_resources = least(param->responder_resources, vb_cma_depth_max());
	agreed->initiator_depth = least(param->initiator_depth, vb_cma_depth_max());
	agreed->retry_count = least(param->retry_count, RETRY_MAX);
	agreed->rnr_retry_count = least(param->rnr_retry_count, RETRY_MAX);
	agreed->qpn = id->pub.qp ? id->pub.qp->qp_num : param->qp_num;
	agreed->srq = id->pub.qp ? id->pub.srq || id->pub.qp->srq : param->srq;
}

/* --- asking --- */

static void path_fill(const struct vb_cma_id *id, struct vb_cm_path *path)
{
	*path = (struct vb_cm_path){
		.local_lid = 0xffff,
		.remote_lid = 0xffff,
		.flow_label = id->path.flow_label,
		.packet_rate = IBV_RATE_10_GBPS,
		.traffic_class = id->path.tclass,
		.hop_limit = id->path.hop_limit,
		.local_ack_timeout = id->agreed.ack_timeout,
	};
	memcpy(path->local_gid, id->path.src, VB_GID_BYTES);
	memcpy(path->remote_gid, id->path.dst, VB_GID_BYTES);
}

/* The header of IP connections, and what the application adds. */
struct said {
	uint8_t octets[VB_MAD_DATA_BYTES];
	unsigned bytes;
};

/* What rdma_create_ep() was given comes first (rdma_getaddrinfo(3), ai_connect). */
static int private_data(const struct vb_cma_id *id, const void *data, unsigned bytes, unsigned room,
			struct said *said)
{
	struct vb_cm_ip ip = {.sport = vb_cma_port_of(&id->pub.route.addr.src_addr)};
	uint8_t *at = said->octets + VB_CM_IP_BYTES;

	if (id->ep.connect_bytes + bytes > room - VB_CM_IP_BYTES || (bytes && !data))
		return EINVAL;
	memcpy(ip.src, id->path.src, VB_GID_BYTES);
	memcpy(ip.dst, id->path.dst, VB_GID_BYTES);
	ip.ipv4 = id->pub.route.addr.dst_addr.sa_family == AF_INET;
	vb_cm_ip_emit(&ip, said->octets);
	if (id->ep.connect_bytes)
		memcpy(at, id->ep.connect, id->ep.connect_bytes);
	if (bytes)
		memcpy(at + id->ep.connect_bytes, data, bytes);
	said->bytes = VB_CM_IP_BYTES + (unsigned)id->ep.connect_bytes + bytes;
	return 0;
}

static void req_fill(const struct vb_cma_id *id, const struct rdma_conn_param *param,
		     struct vb_cm_msg *msg)
{
	const struct vb_cma_agreed *agreed = &id->agreed;
	bool xrc = id->pub.qp_type == IBV_QPT_XRC_SEND, uc = id->pub.qp_type == IBV_QPT_UC;

	msg->attr = VB_CM_REQ;
	msg->req = (struct vb_cm_req){
		.service_id = vb_cm_service_id((uint16_t)id->pub.ps,
					       vb_cma_port_of(&id->pub.route.addr.dst_addr)),
		.local_qpn = agreed->qpn,
		.starting_psn = agreed->psn,
		.partition_key = 0xffff,
		.responder_resources = agreed->responder_resources,
		.initiator_depth = agreed->initiator_depth,
		.remote_cm_response_timeout = RESPONSE_TIMEOUT,
		.local_cm_response_timeout = RESPONSE_TIMEOUT,
		.max_cm_retries = RETRIES,
		.transport_service_type = xrc  ? VB_CM_TRANSPORT_EXTENDED
					  : uc ? VB_CM_TRANSPORT_UC
					       : VB_CM_TRANSPORT_RC,
		.extended_transport_type = xrc ? VB_CM_EXTENDED_XRC : VB_CM_EXTENDED_NONE,
		.retry_count = agreed->retry_count,
		.rnr_retry_count = agreed->rnr_retry_count,
		.path_mtu = agreed->path_mtu,
		.end_to_end_flow_control = !param || param->flow_control,
		.srq = agreed->srq,
	};
	path_fill(id, &msg->req.primary);
	msg->ece_vendor_id = id->local_ece.vendor_id & 0xffffff;
	msg->ece_options = id->local_ece.options;
}

static void sidr_req_fill(const struct vb_cma_id *id, struct vb_cm_msg *msg)
{
	msg->attr = VB_CM_SIDR_REQ;
	msg->sidr_req.service_id = vb_cm_service_id((uint16_t)id->pub.ps,
					vb_cma_port_of(&id->pub.route.addr.dst_addr));
	msg->sidr_req.partition_key = 0xffff;
}

/* How long the peer may take to acknowledge (rdma_set_option(3), IBTA 12.7.34). */
static uint8_t ack_timeout(const struct vb_cma_id *id)
{
	return id->options.ack_timeout ? id->options.ack_timeout
				       : vb_cm_ack_timeout(vb_cma_ack_delay(), LIFETIME);
}

static int ask(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	bool ud = is_ud(id);
	struct vb_cm_ask asked = {.path = id->path, .timeout_ns = ASK_TIMEOUT_NS,
				  .retries = RETRIES, .ours = id->path.local};
	struct vb_cm_msg msg = {.attr = 0};
	struct said said;
	int rc;

	if (id->state != VB_CMA_ROUTE_RESOLVED || !depths_fit(id, param))
		return EINVAL;
	rc = private_data(id, param ? param->private_data : NULL,
			  param ? param->private_data_len : 0,
			  ud ? VB_CM_SIDR_REQ_PRIVATE_BYTES : VB_CM_REQ_PRIVATE_BYTES, &said);
	if (rc)
		return rc;
	if (!id->cm)
		id->cm = vb_cm_id_make(vb_cma_cm(), id);
	if (!id->cm)
		return ENOMEM;
	id->agreed.ack_timeout = least(ack_timeout(id), ACK_TIMEOUT_MAX);
	id->agreed.psn = vb_cma_psn_random();
	param_take(id, param);
	if (ud)
		sidr_req_fill(id, &msg);
	else
		req_fill(id, param, &msg);
	msg.private_data = said.octets;
	msg.private_bytes = (uint8_t)said.bytes;
	rc = vb_cm_say_ask(id->cm, vb_cm_now_ns(), &msg, &asked);
	if (!rc)
		id->state = VB_CMA_CONNECTING;
	return rc;
}

int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct vb_cma_id *id = locked(pub);
	int rc = ask(id, param);

	vb_cma_unlock();
	if (rc)
		return vb_cma_result(rc);
	if (vb_cma_complete(id))
		return -1;
	return 0;
}

/* --- listening --- */

enum { BACKLOG_DEFAULT = 1024 };

int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	struct sockaddr_in any = {.sin_family = AF_INET};
	int rc = 0;

	if (id->state == VB_CMA_IDLE)
		rc = rdma_bind_addr(pub, (struct sockaddr *)&any) ? errno : 0;
	if (!rc && id->state != VB_CMA_BOUND)
		rc = EINVAL;
	if (backlog <= 0 || backlog > BACKLOG_DEFAULT)
		backlog = BACKLOG_DEFAULT;
	id->bind.backlog = (uint32_t)backlog;
	if (!rc)
		rc = vb_cma_port_bind(id, VB_HUB_BIND_LISTENS);
	if (rc)
		return vb_cma_result(rc);
	vb_cma_lock();
	if (!id->cm)
		id->cm = vb_cm_id_make(vb_cma_cm(), id);
	rc = id->cm ? vb_cm_id_listen(id->cm, vb_cm_service_id((uint16_t)pub->ps,
							       (uint16_t)id->bind.port),
				      (unsigned)backlog)
		    : ENOMEM;
	if (!rc)
		id->state = VB_CMA_LISTENING;
	vb_cma_unlock();
	return vb_cma_result(rc);
}

/* --- answering --- */

static int rep_say(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	const struct vb_cma_agreed *agreed = &id->agreed;
	bool xrc = id->pub.qp_type == IBV_QPT_XRC_RECV;
	struct vb_cm_msg msg = {
		.attr = VB_CM_REP,
		.ece_vendor_id = id->local_ece.vendor_id & 0xffffff,
		.ece_options = id->local_ece.options,
		.rep = {
			.local_qpn = xrc ? 0 : agreed->qpn,
			.local_eecn = xrc ? agreed->qpn : 0,
			.starting_psn = agreed->psn,
			.responder_resources = agreed->responder_resources,
			.initiator_depth = agreed->initiator_depth,
			.target_ack_delay = vb_cma_ack_delay(),
			.failover_accepted = VB_CM_FAILOVER_UNSUPPORTED,
			.rnr_retry_count = id->peer_rnr_retry,
			.end_to_end_flow_control = !param || param->flow_control,
			.srq = xrc || agreed->srq,
		},
		.private_data = param ? param->private_data : NULL,
		.private_bytes = param ? param->private_data_len : 0,
	};

	return vb_cm_say(id->cm, vb_cm_now_ns(), &msg, NULL);
}

static int sidr_rep_say(struct vb_cma_id *id, const struct rdma_conn_param *param, unsigned status)
{
	struct vb_cm_msg msg = {
		.attr = VB_CM_SIDR_REP,
		.sidr_rep = {
			.service_id = id->cm->listening.service_id,
			.qpn = status ? 0 : id->agreed.qpn,
			.qkey = status ? 0 : RDMA_UDP_QKEY,
			.status = (uint8_t)status,
		},
		.private_data = param ? param->private_data : NULL,
		.private_bytes = param ? param->private_data_len : 0,
	};

	return vb_cm_say(id->cm, vb_cm_now_ns(), &msg, NULL);
}

static bool fits(const struct rdma_conn_param *param, unsigned room)
{
	return !param || (param->private_data_len <= room &&
			  (param->private_data || !param->private_data_len));
}

/* The depth of one side is at most what the other answers. */
static void depths_settle(struct vb_cma_id *id, const struct rdma_conn_param *param,
			  const struct vb_cma_agreed *asked)
{
	struct vb_cma_agreed *agreed = &id->agreed;

	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		agreed->responder_resources = param->responder_resources;
	else
		agreed->responder_resources = asked->responder_resources;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		agreed->initiator_depth = param->initiator_depth;
	else
		agreed->initiator_depth = asked->initiator_depth;
	agreed->responder_resources = least(agreed->responder_resources, vb_cma_depth_max());
	agreed->initiator_depth = least(agreed->initiator_depth, vb_cma_depth_max());
}

static int accept_check(const struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	unsigned room = is_ud(id) ? VB_CM_SIDR_REP_PRIVATE_BYTES : VB_CM_REP_PRIVATE_BYTES;

	if (!id->cm || !id->passive || id->accepted || id->state != VB_CMA_CONNECTING ||
	    !depths_fit(id, param))
		return EINVAL;
	return fits(param, room) ? 0 : EINVAL;
}

int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct vb_cma_id *id = locked(pub);
	struct vb_cma_agreed asked = id->agreed;
	bool ud = is_ud(id);
	int rc = accept_check(id, param);

	if (!rc) {
		param_take(id, param);
		id->agreed.retry_count = asked.retry_count;
		id->agreed.rnr_retry_count = asked.rnr_retry_count;
		depths_settle(id, param, &asked);
		id->peer_rnr_retry = param ? least(param->rnr_retry_count, RETRY_MAX) : RETRY_MAX;
	}
	vb_cma_unlock();
	if (!rc && !ud)
		rc = vb_cma_qp_to_rts(id);
	if (rc) {
		id->agreed = asked;
		return vb_cma_result(rc);
	}
	vb_cma_lock();
	rc = !id->cm ? EINVAL : ud ? sidr_rep_say(id, param, 0) : rep_say(id, param);
	id->accepted = !rc;
	if (!rc && ud)
		id->state = VB_CMA_CONNECTED;
	vb_cma_unlock();
	if (rc && !ud)
		vb_cma_qp_to_err(id);
	if (rc)
		return vb_cma_result(rc);
	return ud ? 0 : vb_cma_complete(id);
}

static int reject(struct rdma_cm_id *pub, const void *data, uint8_t bytes, unsigned reason)
{
	struct vb_cma_id *id = locked(pub);
	const struct rdma_conn_param said = {.private_data = data, .private_data_len = bytes};
	struct vb_cm_msg msg = {.attr = VB_CM_REJ, .rej.reason = (uint16_t)reason,
				.private_data = data, .private_bytes = bytes};
	int rc;

	if (!id->cm || id->state == VB_CMA_LISTENING ||
	    !fits(&said, is_ud(id) ? VB_CM_SIDR_REP_PRIVATE_BYTES : VB_CM_REJ_PRIVATE_BYTES))
		rc = EINVAL;
	else if (is_ud(id))
		rc = sidr_rep_say(id, &said, VB_CM_SIDR_REJECTED);
	else
		rc = vb_cm_say(id->cm, vb_cm_now_ns(), &msg, NULL);
	vb_cma_unlock();
	return vb_cma_result(rc);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, VB_CM_REJ_CONSUMER_DEFINED);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, VB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED);
}

/* --- a connection that is there --- */

int vb_cma_rtu_say(struct vb_cma_id *id)
{
	static const struct vb_cm_msg rtu = {.attr = VB_CM_RTU};
	int rc;

	vb_cma_lock();
	rc = id->cm ? vb_cm_say(id->cm, vb_cm_now_ns(), &rtu, NULL) : EINVAL;
	if (!rc) {
		id->state = VB_CMA_CONNECTED;
		id->connected_once = true;
	}
	vb_cma_unlock();
	return rc;
}

/* Of whoever brings a QP of its own: after CONNECT_RESPONSE. */
int rdma_establish(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_of(pub);

	/* With a QP of the id's it has been done. */
	if (pub->qp)
		return vb_cma_result(EINVAL);
	return vb_cma_result(vb_cma_rtu_say(id));
}

int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
	struct vb_cma_id *id = locked(pub);
	int rc = id->cm && id->state >= VB_CMA_CONNECTING ? 0 : EINVAL;

	if (!rc && event == IBV_EVENT_COMM_EST)
		rc = vb_cm_say_established(id->cm, vb_cm_now_ns());
	else if (!rc && event != IBV_EVENT_QP_LAST_WQE_REACHED)
		rc = event == IBV_EVENT_PATH_MIG ? vb_cm_say_migrated(id->cm) : EINVAL;
	vb_cma_unlock();
	return vb_cma_result(rc);
}

static bool can_part(struct rdma_cm_id *pub)
{
	const struct vb_cma_id *id = locked(pub);
	bool can = id->cm && id->state >= VB_CMA_CONNECTING && id->state != VB_CMA_LISTENING;

	vb_cma_unlock();
	return can;
}

static void part(struct rdma_cm_id *pub)
{
	static const struct vb_cm_msg dreq = {.attr = VB_CM_DREQ}, drep = {.attr = VB_CM_DREP};
	struct vb_cma_id *id = locked(pub);

	if (id->state != VB_CMA_OVER)
		id->state = VB_CMA_DISCONNECTING;
	/* If the peer has asked already, it is answered; if all is over, nothing is left to say. */
	if (vb_cm_say(id->cm, vb_cm_now_ns(), &dreq, NULL))
		vb_cm_say(id->cm, vb_cm_now_ns(), &drep, NULL);
	vb_cma_unlock();
}

int rdma_disconnect(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	int rc;

	if (!can_part(pub))
		return vb_cma_result(EINVAL);
	rc = vb_cma_qp_to_err(id);
	/* Of datagrams that is all, as with Linux: there is nothing to end, and no event comes. */
	if (rc || is_ud(id))
		return vb_cma_result(rc);
	part(pub);
	return vb_cma_complete(id);
}
