/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/ctx.h"

#include <errno.h>
#include <stdlib.h>

#include "base/probe.h"
#include "base/refusal.h"
#include "nic/core/domain.h"
#include "nic/core/found.h"
#include "nic/core/internal.h"
#include "nic/core/lowered.h"
#include "nic/core/names.h"

int vb_ctx_create(struct vb_nic *nic, int async_fd, struct vb_ctx **out)
{
	struct vb_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return ENOMEM;
	ctx->nic = nic;
	ctx->family = atomic_fetch_add(&nic->ids.family_last, 1) + 1;
	ctx->events_tail = &ctx->events;
	ctx->ibv.context.async_fd = async_fd;
	vb_lock_init(&ctx->lock, VB_RANK_CTX);
	vb_lock_take(&nic->lock);
	ctx->next = nic->ctxs;
	nic->ctxs = ctx;
	vb_lock_drop(&nic->lock);
	*out = ctx;
	return 0;
}

void vb_ctx_destroy(struct vb_ctx *ctx)
{
	struct vb_ctx **at = &ctx->nic->ctxs;

	vb_lock_take(&ctx->nic->lock);
	while (*at != ctx)
		at = &(*at)->next;
	*at = ctx->next;
	vb_lock_drop(&ctx->nic->lock);
	while (ctx->events) {
		struct vb_event *next = ctx->events->next;

		free(ctx->events);
		ctx->events = next;
	}
	vb_lock_fini(&ctx->lock);
	free(ctx);
}

bool vb_ctx_event_pop(struct vb_ctx *ctx, struct ibv_async_event *event)
{
	struct vb_event *first;

	vb_lock_take(&ctx->lock);
	first = ctx->events;
	if (first) {
		ctx->events = first->next;
		if (!ctx->events)
			ctx->events_tail = &ctx->events;
		*event = first->event;
		if (first->delivered)
			++*first->delivered;
	}
	vb_lock_drop(&ctx->lock);
	free(first);
	return first;
}

void vb_ctx_event_push(struct vb_ctx *ctx, const struct ibv_async_event *event,
		       uint32_t *delivered)
{
	struct vb_event *e = malloc(sizeof(*e));

	VB_PROBE(async_event, event->event_type,
		 vb_event_is_of_qp(event->event_type) ? event->element.qp->qp_num : 0);
	vb_finding_event(ctx, event);
	if (!e) /* no memory for the event; the queues also report the error */
		return;
	*e = (struct vb_event){ .event = *event, .delivered = delivered };
	vb_lock_take(&ctx->lock);
	*ctx->events_tail = e;
	ctx->events_tail = &e->next;
	vb_lock_drop(&ctx->lock);
	ctx->nic->host.process.signal(ctx->nic->host.arg, ctx->ibv.context.async_fd);
}

/* Moves an unread event of that type to the end of the queue. Returns false if there is none. */
static bool event_renew(struct vb_ctx *ctx, enum ibv_event_type type)
{
	struct vb_event **at = &ctx->events, *e;

	vb_lock_take(&ctx->lock);
	while ((e = *at) && e->event.event_type != type)
		at = &e->next;
	if (e && e->next) {
		*at = e->next;
		e->next = NULL;
		*ctx->events_tail = e;
		ctx->events_tail = &e->next;
	}
	vb_lock_drop(&ctx->lock);
	return e;
}

void vb_nic_event(struct vb_nic *nic, enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type };

	if (type != IBV_EVENT_DEVICE_FATAL)
		event.element.port_num = 1;
	vb_lock_take(&nic->lock);
	for (struct vb_ctx *ctx = nic->ctxs; ctx; ctx = ctx->next) {
		if (!event_renew(ctx, type))
			vb_ctx_event_push(ctx, &event, NULL);
	}
	vb_lock_drop(&nic->lock);
}

void vb_ctx_events_cancel(struct vb_ctx *ctx, const uint32_t *delivered)
{
	struct vb_event **at = &ctx->events;

	vb_lock_take(&ctx->lock);
	while (*at) {
		struct vb_event *e = *at;

		if (e->delivered != delivered) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
		ctx->nic->host.process.unsignal(ctx->nic->host.arg, ctx->ibv.context.async_fd);
	}
	ctx->events_tail = at;
	vb_lock_drop(&ctx->lock);
}

/* A PD's handle is its index there. The caller has counted it, so there is room. */
static uint32_t enter(struct vb_nic *nic, uint64_t id, uint64_t family)
{
	struct vb_export_pd *entry;
	uint32_t number;

	vb_lock_take(&nic->lock);
	do {
		number = nic->ids.pd_next++ % VB_PDS_MAX;
		entry = &nic->export->pd[number];
	} while (VB_EXPORT_GET(entry->id));
	VB_EXPORT_SET(entry->family, family);
	VB_EXPORT_SET(entry->id, id);
	vb_lock_drop(&nic->lock);
	return number;
}

int vb_pd_create(struct vb_ctx *ctx, struct vb_pd **out)
{
	struct vb_nic *nic = ctx->nic;
	struct vb_pd *pd;
	int err;

	/* It could not be entered in any export. */
	if (ctx->foreign)
		return EOPNOTSUPP;
	err = vb_lowered_count_up(nic, &nic->counts.pds, VB_LIMIT_PD);
	if (err)
		return err;
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		atomic_fetch_sub(&nic->counts.pds, 1);
		return ENOMEM;
	}
	pd->ibv.context = &ctx->ibv.context;
	pd->id = atomic_fetch_add(&nic->ids.pd_last, 1) + 1;
	pd->ibv.handle = enter(nic, pd->id, ctx->family);
	pd->handle = (struct vb_handle){ .object = pd, .free = free, .number = pd->ibv.handle,
					 .family = ctx->family, .users = &pd->users };
	vb_handle_add(&nic->handles.pds, &pd->handle);
	*out = pd;
	return 0;
}

/* Destroys a parent domain, which is not in the list and cannot be imported. */
static void domain_destroy(struct vb_pd *pd)
{
	vb_domain_destroy(pd->domain);
	atomic_fetch_sub(&vb_nic_of(pd->ibv.context)->counts.pds, 1);
	free(pd);
}

int vb_pd_destroy(struct vb_pd *pd)
{
	struct vb_nic *nic = vb_nic_of(pd->ibv.context);

	if (pd->domain) {
		if (atomic_load(&pd->users))
			return vb_refuse(EBUSY, "%u objects still use the parent domain",
					 (unsigned)atomic_load(&pd->users));
		domain_destroy(pd);
		return 0;
	}
	if (pd->foreign)
		return EOPNOTSUPP;
	if (vb_handle_is_used(&nic->handles.pds, &pd->handle))
		return vb_refuse(EBUSY, "regions, windows, QPs, SRQs or AHs still use the PD");
	if (!vb_handle_kill(&nic->handles.pds, &pd->handle))
		return ENOENT;
	VB_EXPORT_SET(nic->export->pd[pd->ibv.handle].id, 0);
	atomic_fetch_sub(&nic->counts.pds, 1);
	vb_handle_drop(&nic->handles.pds, &pd->handle);
	return 0;
}
