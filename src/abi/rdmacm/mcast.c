/* SPDX-License-Identifier: BSD-2-Clause */

/* Multicast groups: joined at once, and attached to the QP as the application hears of it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/mcast.h"

enum { GROUP_QPN = 0xffffff, HOP_LIMIT = 64 };

static void param_fill(const struct vb_cma_id *id, const struct vb_cma_group *group,
		       struct rdma_ud_param *param)
{
	param->qp_num = GROUP_QPN;
	param->qkey = RDMA_UDP_QKEY;
	param->ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = group->mgid, .sgid_index = id->sgid_index,
			.hop_limit = HOP_LIMIT, .traffic_class = id->options.tos},
	};
}

static int join(struct vb_cma_id *id, const struct sockaddr *addr, bool send_only, void *context)
{
	struct vb_cma_group *group;
	struct vb_cma_event *event;
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	if (id->state < VB_CMA_BOUND || !id->pub.verbs || !vb_cma_gid_of(addr, gid, &scope) ||
	    !vb_gid_is_group(gid) || id->pub.ps != RDMA_PS_UDP)
		return EINVAL;
	group = calloc(1, sizeof(*group));
	event = group ? vb_cma_event_make(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (!event) {
		free(group);
		return ENOMEM;
	}
	memcpy(&group->addr, addr, vb_cma_sockaddr_bytes(addr));
	memcpy(group->mgid.raw, gid, VB_GID_BYTES);
	group->send_only = send_only;
	param_fill(id, group, &event->pub.param.ud);
	event->pub.param.ud.private_data = context;
	event->group = group;
	vb_cma_lock();
	group->next = id->groups;
	id->groups = group;
	vb_cma_event_queue(event);
	vb_cma_unlock();
	return 0;
}

int rdma_join_multicast(struct rdma_cm_id *pub, struct sockaddr *addr, void *context)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	int rc = addr ? join(id, addr, false, context) : EINVAL;

	return rc ? vb_cma_result(rc) : vb_cma_complete(id);
}

int rdma_join_multicast_ex(struct rdma_cm_id *pub, struct rdma_cm_join_mc_attr_ex *attr,
			   void *context)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	int rc;

	if (!attr || attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
	    !(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) || !attr->addr)
		return vb_cma_result(EINVAL);
	if ((attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) &&
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return vb_cma_result(EINVAL);
	rc = join(id, attr->addr,
		  (attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) &&
			  attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		  context);
	return rc ? vb_cma_result(rc) : vb_cma_complete(id);
}

/* Where the pointer to it stands, or NULL. Locked. */
static struct vb_cma_group **find(struct vb_cma_id *id, const struct sockaddr *addr)
{
	struct vb_cma_group **at = &id->groups;
	uint8_t gid[VB_GID_BYTES];
	uint32_t scope;

	if (!vb_cma_gid_of(addr, gid, &scope))
		return NULL;
	while (*at && memcmp((*at)->mgid.raw, gid, VB_GID_BYTES))
		at = &(*at)->next;
	return *at ? at : NULL;
}

static void leave(struct vb_cma_id *id, struct vb_cma_group *group)
{
	if (group->attached && id->pub.qp)
		ibv_detach_mcast(id->pub.qp, &group->mgid, 0);
	free(group);
}

int rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	struct vb_cma_group **at, *group = NULL;

	if (!addr)
		return vb_cma_result(EINVAL);
	vb_cma_lock();
	at = find(id, addr);
	if (at) {
		group = *at;
		*at = group->next;
		vb_cma_group_forget(id, group);
	}
	vb_cma_unlock();
	if (!group)
		return vb_cma_result(EADDRNOTAVAIL);
	leave(id, group);
	return 0;
}

void vb_cma_groups_leave(struct vb_cma_id *id)
{
	while (id->groups) {
		struct vb_cma_group *group = id->groups;

		id->groups = group->next;
		leave(id, group);
	}
}

void vb_cma_group_fetched(struct vb_cma_event *event)
{
	struct vb_cma_id *id = event->id;
	struct vb_cma_group *group = event->group;
	int rc;

	if (!group || group->send_only || !id->pub.qp)
		return;
	rc = ibv_attach_mcast(id->pub.qp, &group->mgid, 0);
	group->attached = !rc;
	if (!rc)
		return;
	event->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->pub.status = -rc;
}
