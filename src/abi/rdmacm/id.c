/* SPDX-License-Identifier: BSD-2-Clause */

/* Ids: made, moved, destroyed. */

#include <errno.h>
#include <stdlib.h>

#include "abi/rdmacm/addr.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/check.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/id.h"
#include "abi/rdmacm/lookup.h"
#include "abi/rdmacm/mcast.h"
#include "abi/verbs/abi.h"
#include "run/cm.h"

struct vb_cma_id *vb_cma_id_make(struct rdma_event_channel *channel, void *context,
				 enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct vb_cma_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->sync = !channel;
	id->pub.channel = channel ? channel : vb_cma_channel_make();
	if (!id->pub.channel) {
		free(id);
		return NULL;
	}
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = type;
	TAILQ_INIT(&id->unacked);
	return id;
}

static struct vb_cma_ids ids = LIST_HEAD_INITIALIZER(ids); /* locked */

void vb_cma_id_list(struct vb_cma_id *id)
{
	LIST_INSERT_HEAD(&ids, id, link);
}

void vb_cma_id_unlist(struct vb_cma_id *id)
{
	if (id->link.le_prev)
		LIST_REMOVE(id, link);
	id->link.le_prev = NULL;
}

void vb_cma_ids_fail(void)
{
	struct vb_cma_id *id;

	LIST_FOREACH(id, &ids, link) {
		/* In a forked child those of its parent are listed as well. */
		if (id->pub.verbs && !vb_abi_is_gone(id->pub.verbs))
			vb_cma_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	}
}

void vb_cma_ids_move(struct vb_cma_channel *from, struct vb_cma_channel *to)
{
	struct vb_cma_id *id;

	LIST_FOREACH(id, &ids, link) {
		if (id->pub.channel != &from->pub)
			continue;
		vb_cma_events_move(id, from, to);
		id->pub.channel = &to->pub;
		id->sync = false;
	}
}

static bool is_port_space(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IB;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	struct vb_cma_id *made;
	int rc = vb_cma_device(NULL);

	if (rc)
		return vb_cma_result(rc);
	if (!is_port_space(ps))
		return vb_cma_result(EINVAL);
	made = vb_cma_id_make(channel, context, ps, ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
	if (!made)
		return vb_cma_result(ENOMEM);
	vb_cma_lock();
	vb_cma_id_list(made);
	vb_cma_unlock();
	vb_cma_check_made(made);
	*id = &made->pub;
	return 0;
}

/* What the peer is to hear is said, and nothing more is heard. Locked. */
static void let_go(struct vb_cma_id *id)
{
	vb_cma_events_drop(id);
	if (id->cm) {
		id->cm->context = NULL;
		vb_cm_id_release(id->cm, vb_cm_now_ns());
		id->cm = NULL;
	}
}

void vb_cma_id_deafen(struct vb_cma_id *id)
{
	vb_cma_lock();
	let_go(id);
	id->state = VB_CMA_OVER;
	vb_cma_unlock();
	vb_cma_port_drop(id);
}

void vb_cma_id_free(struct vb_cma_id *id)
{
	if (id->sync)
		vb_cma_channel_free(id->pub.channel);
	rdma_freeaddrinfo(id->found);
	free(id->ep.init_attr);
	free(id->ep.connect);
	free(id);
}

int rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_of(pub);

	vb_cma_lock();
	vb_cma_id_unlist(id);
	vb_cma_lookup_forget(id);
	let_go(id);
	vb_cma_unlock();
	vb_cma_groups_leave(id);
	vb_cma_port_drop(id);
	if (pub->event)
		rdma_ack_cm_event(pub->event);
	vb_cma_acks_wait(id, "rdma_destroy_id");
	vb_cma_id_free(id);
	return 0;
}

/* "Any events that were reported on the old channel must be acknowledged first." */
int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
	struct vb_cma_id *id = vb_cma_of(pub);
	struct rdma_event_channel *old = pub->channel;
	bool sync = !channel;

	if (id->sync && sync)
		return vb_cma_result(EINVAL);
	if (sync)
		channel = rdma_create_event_channel();
	if (!channel)
		return -1;
	if (pub->event) {
		rdma_ack_cm_event(pub->event);
		pub->event = NULL;
	}
	vb_cma_acks_wait(id, "rdma_migrate_id");
	vb_cma_lock();
	vb_cma_events_move(id, (struct vb_cma_channel *)old, (struct vb_cma_channel *)channel);
	pub->channel = channel;
	vb_cma_unlock();
	if (id->sync)
		rdma_destroy_event_channel(old);
	id->sync = sync;
	return 0;
}
