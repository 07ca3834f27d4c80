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

/* Functions of the context for which others are put while somebody watches. */
struct vb_ctx_plain {
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
};

struct vb_ctx {
	struct vb_nic *nic;
	vb_lock lock;
	struct vb_event *events, **events_tail;
	struct vb_ctx *next; /* list of the NIC's contexts (its lock) */
	uint64_t family; /* contexts of one family can import each other's objects (handle.h) */
	struct vb_foreign *foreign; /* for a context of another process; or NULL */
	void *run;		  /* owned by `run` */
	_Atomic uint32_t holders; /* used by `abi`: objects that live in it */
	struct vb_ctx_plain plain; /* owned by `abi` */
	/*
	 * Puts functions in place that measure latencies: those of the context, or of one of its
	 * QPs. NULL: there are none.
	 */
	void (*measure)(struct vb_ctx *ctx, struct vb_qp *qp);
	struct verbs_context ibv; /* must stay last: the application holds `ibv.context` */
};

static inline struct vb_ctx *vb_ctx_of(struct ibv_context *context)
{
	return (struct vb_ctx *)((char *)context - offsetof(struct vb_ctx, ibv.context));
}

/* async_fd: an event fd of the host, for the host's signal(). The caller fills in ibv. */
int vb_ctx_create(struct vb_nic *nic, int async_fd, struct vb_ctx **ctx);

/* Frees it with its unread events. No object may live in it. */
void vb_ctx_destroy(struct vb_ctx *ctx);

/*
 * Takes the next asynchronous event. Returns true if there was one. Call it once after each
 * successful read of the async fd.
 */
bool vb_ctx_event_pop(struct vb_ctx *ctx, struct ibv_async_event *event);

/* Queues an event for the application; delivered may be NULL (unaffiliated). */
void vb_ctx_event_push(struct vb_ctx *ctx, const struct ibv_async_event *event,
		       uint32_t *delivered);

/*
 * Queues an event of the port or the device for all contexts. Each context keeps one unread event
 * of each type, the newest: applications need not read them, and can query the current state.
 */
void vb_nic_event(struct vb_nic *nic, enum ibv_event_type type);

/* Drops the unread events of the object that `delivered` belongs to. */
void vb_ctx_events_cancel(struct vb_ctx *ctx, const uint32_t *delivered);

struct vb_pd {
	struct ibv_pd ibv;
	uint64_t id; /* unique within this NIC, never reused, not 0 */
	_Atomic uint32_t users; /* MRs, QPs, SRQs, AHs, parent domains */
	struct vb_domain *domain; /* of a parent domain (domain.h), which has its PD's id */
	struct vb_handle handle;
	struct vb_foreign *foreign; /* a PD of another process ... */
	uint64_t foreign_id;	    /* ... and its id there; or NULL */
};

int vb_pd_create(struct vb_ctx *ctx, struct vb_pd **pd);

/*
 * EBUSY: in use, through any handle. ENOENT: the object was destroyed through another handle;
 * EOPNOTSUPP: it belongs to another process. In these two cases the handle can be given up
 * (import.h).
 */
int vb_pd_destroy(struct vb_pd *pd);

#endif
