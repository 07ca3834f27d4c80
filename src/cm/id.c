/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/id.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "cm/repeat.h"
#include "cm/say.h"
#include "wire/bytes.h"

enum { SLOT_SHIFT = 22, ID_BITS = (1 << SLOT_SHIFT) - 1 };

/* --- finding --- */

static struct vb_cm_id *id_at(struct vb_cm_node *node, size_t member)
{
	return node ? (struct vb_cm_id *)((char *)node - member) : NULL;
}

static struct vb_cm_key key_of_number(uint64_t number)
{
	return (struct vb_cm_key){.word = {number}};
}

static struct vb_cm_key key_of_peer(uint64_t guid, uint32_t number, const uint8_t gid[VB_GID_BYTES])
{
	return (struct vb_cm_key){.word = {guid, number, vb_be64_get(gid), vb_be64_get(gid + 8)}};
}

struct vb_cm_id *vb_cm_id_of_local(const struct vb_cm *cm, uint32_t local_id)
{
	struct vb_cm_key key = key_of_number(local_id);

	return id_at(vb_cm_table_find(&cm->by_local, &key), offsetof(struct vb_cm_id, by_local));
}

struct vb_cm_id *vb_cm_id_of_remote(const struct vb_cm *cm, const struct vb_cm_end *remote,
				    const uint8_t gid[VB_GID_BYTES])
{
	struct vb_cm_key key = key_of_peer(remote->guid, remote->id, gid);

	return id_at(vb_cm_table_find(&cm->by_remote, &key), offsetof(struct vb_cm_id, by_remote));
}

struct vb_cm_id *vb_cm_id_of_qpn(const struct vb_cm *cm, const struct vb_cm_end *remote,
				 const uint8_t gid[VB_GID_BYTES])
{
	struct vb_cm_key key = key_of_peer(remote->guid, remote->qpn, gid);

	return id_at(vb_cm_table_find(&cm->by_qpn, &key), offsetof(struct vb_cm_id, by_qpn));
}

struct vb_cm_id *vb_cm_id_of_service(const struct vb_cm *cm, uint64_t service_id,
				     const struct vb_path *path, const struct vb_cm_msg *msg)
{
	struct vb_cm_key key = key_of_number(service_id);
	struct vb_cm_id *best = NULL;
	unsigned best_fit = 0;

	for (struct vb_cm_node *node = vb_cm_table_find(&cm->by_service, &key); node;
	     node = vb_cm_table_next(node)) {
		struct vb_cm_id *id = id_at(node, offsetof(struct vb_cm_id, by_local));
		unsigned fit = cm->host.fit ? cm->host.fit(cm->host.arg, id, path, msg) : 1;

		if (fit > best_fit) {
			best = id;
			best_fit = fit;
		}
	}
	return best;
}

/* --- coming and going --- */

static uint32_t draw_local_id(struct vb_cm *cm)
{
	uint32_t id;

	do {
		id = (uint32_t)cm->settings.slot << SLOT_SHIFT |
		     ((uint32_t)vb_cm_draw(cm) & ID_BITS);
	} while (id == 0 || vb_cm_id_of_local(cm, id));
	return id;
}

/* Another number for every attempt, so that nobody takes one for another. */
static void number(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	struct vb_cm_key key;

	vb_cm_table_remove(&cm->by_local, &id->by_local);
	id->local.id = draw_local_id(cm);
	key = key_of_number(id->local.id);
	vb_cm_table_add(&cm->by_local, &cm->host, &id->by_local, &key);
}

static void *make(struct vb_cm *cm)
{
	if (!vb_cm_clocks_reserve(&cm->clocks, &cm->host, cm->ids_count + cm->lingering_count + 1))
		return NULL;
	return cm->host.alloc(cm->host.arg, sizeof(struct vb_cm_id));
}

struct vb_cm_id *vb_cm_id_make(struct vb_cm *cm, void *context)
{
	struct vb_cm_id *id = make(cm);

	if (!id)
		return NULL;
	*id = (struct vb_cm_id){
		.cm = cm,
		.context = context,
		.owned = true,
		.local.guid = cm->settings.guid,
	};
	TAILQ_INIT(&id->listening.children);
	vb_cm_clock_init(&id->clock);
	number(id);
	TAILQ_INSERT_TAIL(&cm->ids, id, link);
	cm->ids_count++;
	return id;
}

int vb_cm_id_listen(struct vb_cm_id *id, uint64_t service_id, unsigned backlog)
{
	struct vb_cm_key key = key_of_number(service_id);

	if (id->state != VB_CM_STATE_IDLE || backlog == 0)
		return EINVAL;
	vb_cm_table_remove(&id->cm->by_local, &id->by_local);
	vb_cm_table_add(&id->cm->by_service, &id->cm->host, &id->by_local, &key);
	id->listening.service_id = service_id;
	id->listening.backlog = backlog;
	vb_cm_id_enter(id, VB_CM_STATE_LISTEN);
	return 0;
}

struct vb_cm_id *vb_cm_id_make_child(struct vb_cm_id *listener, uint64_t service_id)
{
	struct vb_cm_id *child = vb_cm_id_make(listener->cm, NULL);

	if (!child)
		return NULL;
	child->listening.service_id = service_id;
	child->listening.listener = listener;
	TAILQ_INSERT_TAIL(&listener->listening.children, child, listening.link);
	listener->listening.waiting++;
	return child;
}

void vb_cm_id_take(struct vb_cm_id *id)
{
	struct vb_cm_id *listener = id->listening.listener;

	if (!listener)
		return;
	TAILQ_REMOVE(&listener->listening.children, id, listening.link);
	listener->listening.waiting--;
	id->listening.listener = NULL;
}

/* NULL: there is nothing to say. A target of XRC outlives its id, as Linux has it. */
static const struct vb_cm_farewell *farewell_of(const struct vb_cm_id *id)
{
	if (id->is_target && id->state == VB_CM_STATE_ESTABLISHED)
		return NULL;
	return vb_cm_rule_farewell(id->state);
}

static void record_give_back(struct vb_cm_id *id)
{
	const struct vb_cm_host *host = &id->cm->host;

	if (!id->record)
		return;
	vb_cm_record_clear(id->record);
	host->take_back(host->arg, id->record);
	id->record = NULL;
}

static void unlist(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;

	if (id->owned) {
		TAILQ_REMOVE(&cm->ids, id, link);
		cm->ids_count--;
	} else {
		TAILQ_REMOVE(&cm->lingering, id, link);
		cm->lingering_count--;
	}
}

void vb_cm_id_forget(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;

	vb_cm_id_take(id);
	while (!TAILQ_EMPTY(&id->listening.children))
		vb_cm_id_take(TAILQ_FIRST(&id->listening.children));
	if (id->state == VB_CM_STATE_LISTEN)
		vb_cm_table_remove(&cm->by_service, &id->by_local);
	else
		vb_cm_id_enter(id, VB_CM_STATE_IDLE);
	vb_cm_table_remove(&cm->by_local, &id->by_local);
	unlist(id);
	cm->host.release(cm->host.arg, id);
}

void vb_cm_id_release(struct vb_cm_id *id, uint64_t now_ns)
{
	struct vb_cm *cm = id->cm;
	const struct vb_cm_farewell *farewell = farewell_of(id);

	cm->now_ns = now_ns;
	if (farewell && farewell->next != id->state)
		vb_cm_say_farewell(id, farewell);
	if (vb_cm_state_clock(id->state) == VB_CM_CLOCK_NONE ||
	    id->state == VB_CM_STATE_SIDR_REQ_SENT) {
		vb_cm_id_forget(id);
		return;
	}
	vb_cm_id_take(id);
	unlist(id);
	id->owned = false;
	id->context = NULL;
	TAILQ_INSERT_TAIL(&cm->lingering, id, link);
	if (++cm->lingering_count > VB_CM_LINGERING_MAX)
		vb_cm_id_forget(TAILQ_FIRST(&cm->lingering));
}

void vb_cm_id_settle(struct vb_cm_id *id, const struct vb_cm_event *event)
{
	struct vb_cm *cm = id->cm;

	if (id->owned && event->type != VB_CM_EVENT_NONE)
		cm->host.event(cm->host.arg, id, event);
	else if (!id->owned && id->state == VB_CM_STATE_IDLE)
		vb_cm_id_forget(id);
}

/* --- states --- */

void vb_cm_id_meet(struct vb_cm_id *id)
{
	struct vb_cm *cm = id->cm;
	struct vb_cm_key key = key_of_peer(id->remote.guid, id->remote.id, id->path.dst);

	vb_cm_table_add(&cm->by_remote, &cm->host, &id->by_remote, &key);
	if (!id->remote.qpn)
		return;
	key = key_of_peer(id->remote.guid, id->remote.qpn, id->path.dst);
	vb_cm_table_add(&cm->by_qpn, &cm->host, &id->by_qpn, &key);
}

/* Of the attempt that is over. */
static void forget_peer(struct vb_cm_id *id)
{
	vb_cm_table_remove(&id->cm->by_remote, &id->by_remote);
	id->remote = (struct vb_cm_end){0};
	id->tid = (struct vb_cm_tids){0};
	id->local.qpn = 0;
	id->peer = VB_CM_PEER_UNKNOWN;
	number(id);
}

static void record_follow(struct vb_cm_id *id)
{
	const struct vb_cm_host *host = &id->cm->host;

	if (!farewell_of(id)) {
		record_give_back(id);
		return;
	}
	if (!id->record && host->lend)
		id->record = host->lend(host->arg);
	if (id->record)
		vb_cm_record_write(id->record, id);
}

void vb_cm_id_enter(struct vb_cm_id *id, enum vb_cm_state next)
{
	id->state = next;
	id->lap = VB_CM_LAP_STATE_NONE;
	/* A peer that has let go may use its QP for something else. */
	if (next == VB_CM_STATE_TIMEWAIT || next == VB_CM_STATE_REFUSED || next == VB_CM_STATE_IDLE)
		vb_cm_table_remove(&id->cm->by_qpn, &id->by_qpn);
	record_follow(id);
	if (next == VB_CM_STATE_IDLE)
		forget_peer(id);
	vb_cm_repeat_start(id, vb_cm_state_clock(next));
}

void vb_cm_id_alternate_settle(struct vb_cm_id *id, const struct vb_cm_msg *apr)
{
	if (apr->apr.status != VB_CM_APR_LOADED)
		memset(&id->alternate, 0, sizeof(id->alternate));
}

void vb_cm_id_enter_lap(struct vb_cm_id *id, enum vb_cm_lap_state next)
{
	id->lap = next;
	record_follow(id);
	vb_cm_repeat_start(id, vb_cm_lap_state_clock(next));
}
