/* SPDX-License-Identifier: BSD-2-Clause */

/* Endpoints: ids with their QPs, made from what rdma_getaddrinfo(3) found. */

#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"

enum { RESOLVE_MS = 2000 };

/* What a port space is for; only that of InfiniBand takes any type. */
static bool is_consistent(const struct rdma_addrinfo *res)
{
	switch (res->ai_port_space) {
	case RDMA_PS_TCP:
		return res->ai_qp_type == IBV_QPT_RC;
	case RDMA_PS_UDP:
		return res->ai_qp_type == IBV_QPT_UD;
	case RDMA_PS_IB:
		return true;
	default:
		return false;
	}
}

/* --- the side that listens --- */

/* Its children get such QPs. */
static int passive(struct vb_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		   const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return errno;
	if (pd)
		id->pub.pd = pd;
	if (!attr)
		return 0;
	id->ep.init_attr = malloc(sizeof(*attr));
	if (!id->ep.init_attr)
		return ENOMEM;
	*id->ep.init_attr = *attr;
	id->ep.init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

/* --- the side that connects --- */

static int route(struct vb_cma_id *id, const struct rdma_addrinfo *res)
{
	int rc;

	if (res->ai_route_len)
		rc = rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
				     res->ai_route_len);
	else
		rc = rdma_resolve_route(&id->pub, RESOLVE_MS);
	return rc ? errno : 0;
}

/* What rdma_connect() is to say before the application's own words. */
static int connect_keep(struct vb_cma_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->ep.connect = malloc(res->ai_connect_len);
	if (!id->ep.connect)
		return ENOMEM;
	memcpy(id->ep.connect, res->ai_connect, res->ai_connect_len);
	id->ep.connect_bytes = res->ai_connect_len;
	return 0;
}

static int active(struct vb_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		  struct ibv_qp_init_attr *attr)
{
	int rc;

	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return errno;
	rc = route(id, res);
	if (rc)
		return rc;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->pub, pd, attr))
			return errno;
	}
	return connect_keep(id, res);
}

/* --- both --- */

int rdma_create_ep(struct rdma_cm_id **made, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct vb_cma_id *id;
	int rc = vb_cma_device(NULL);

	if (!rc && !is_consistent(res))
		rc = EINVAL;
	if (rc)
		return vb_cma_result(rc);
	id = vb_cma_id_make(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
			    (enum ibv_qp_type)res->ai_qp_type);
	if (!id)
		return vb_cma_result(ENOMEM);
	vb_cma_lock();
	vb_cma_id_list(id);
	vb_cma_unlock();
	rc = res->ai_flags & RAI_PASSIVE ? passive(id, res, pd, attr) : active(id, res, pd, attr);
	if (rc) {
		rdma_destroy_ep(&id->pub);
		return vb_cma_result(rc);
	}
	*made = &id->pub;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* --- requests --- */

/* The child's QP is as the listener was told. 0 or an errno. */
static int request_equip(const struct vb_cma_id *listener, struct rdma_cm_id *child)
{
	struct ibv_qp_init_attr attr;

	if (!listener->ep.init_attr)
		return 0;
	attr = *listener->ep.init_attr;
	return rdma_create_qp(child, listener->pub.pd, &attr) ? errno : 0;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct vb_cma_id *listener = vb_cma_of(listen);
	struct rdma_cm_event *event;
	int rc;

	if (!listener->sync || listener->state != VB_CMA_LISTENING)
		return vb_cma_result(EINVAL);
	if (vb_cma_complete(listener))
		return -1;
	event = listen->event;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return vb_cma_result(EINVAL);
	/* The event is the child's from now on: it is acknowledged as that goes on. */
	listen->event = NULL;
	event->id->event = event;
	rc = request_equip(listener, event->id);
	if (rc) {
		rdma_destroy_ep(event->id);
		return vb_cma_result(rc);
	}
	*id = event->id;
	return 0;
}
