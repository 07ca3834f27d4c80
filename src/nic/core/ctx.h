/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_CTX_H
#define VB_NIC_CTX_H

/* Contexts, protection domains, and the queue of asynchronous events. */

#include "nic/core/handle.h"
#include "nic/core/nic.h"

struct vb_foreign;

struct vb_event {
	struct vb_event *next;
	struct ibv_async_event event;
	uint32_t *delivered; /* of the object: how many of its events the application has read */
};

struct vb_ctx {
	struct vb_nic *nic;
	vb_lock lock;
	struct vb_event *events, **events_tail;
	struct vb_ctx *next; /* of the NIC's (its lock) */
	uint64_t family; /* its objects can be imported by contexts of the same (handle.h) */
	struct vb_foreign *foreign; /* it stands for a context of another process; or NULL */
	void *run;		  /* belongs to `run` */
	_Atomic uint32_t holders; /* belongs to `abi`: what lives in it */
	struct verbs_context ibv; /* must stay last: `ibv.context` is what the application holds */
};

static inline struct vb_ctx *vb_ctx_of(struct ibv_context *context)
{
	return (struct vb_ctx *)((char *)context - offsetof(struct vb_ctx, ibv.context));
}

/* async_fd: an event fd of the host's, for the host's signal(). The caller fills in ibv. */
int vb_ctx_create(struct vb_nic *nic, int async_fd, struct vb_ctx **ctx);

/* Frees what queues for the application. No object lives in it. */
void vb_ctx_destroy(struct vb_ctx *ctx);

/*
 * The application has closed it, and left objects in it: its QPs and WQs go to the error state, so
 * that nothing of the application's is read or written any more. False: a peer still does so
 * (vb_direct_settle). Any thread.
 */
bool vb_ctx_fail(struct vb_ctx *ctx);

/*
 * Take the next asynchronous event: true if there was one. Call it once for each time that the
 * async fd was successfully read.
 */
bool vb_ctx_event_pop(struct vb_ctx *ctx, struct ibv_async_event *event);

/* Queue an event for the application; delivered may be NULL (unaffiliated). */
void vb_ctx_event_push(struct vb_ctx *ctx, const struct ibv_async_event *event,
		       uint32_t *delivered);

/*
 * Tell all contexts of what is nobody's own: the port's, or the device's. Of each type a context
 * keeps one unread event, the newest: nobody has to read them, and what is true can be asked for.
 */
void vb_nic_event(struct vb_nic *nic, enum ibv_event_type type);

/* Forget the unread events of the object that `delivered` belongs to. */
void vb_ctx_events_cancel(struct vb_ctx *ctx, const uint32_t *delivered);

struct vb_pd {
	struct ibv_pd ibv;
	uint64_t id; /* the domain's number: not 0, and no other of this NIC ever has it */
	_Atomic uint32_t users; /* MRs, QPs, SRQs, AHs, parent domains */
	struct vb_domain *domain; /* of a parent domain (domain.h), which has the id of its PD */
	struct vb_handle handle;
	struct vb_foreign *foreign; /* a PD of another process ... */
	uint64_t foreign_id;	    /* ... with this number there; or NULL */
};

int vb_pd_create(struct vb_ctx *ctx, struct vb_pd **pd);

/*
 * EBUSY: in use, by whatever handle. ENOENT: imported, or was, and destroyed already; EOPNOTSUPP:
 * another process's. With these two it can be given up (import.h).
 */
int vb_pd_destroy(struct vb_pd *pd);

#endif
