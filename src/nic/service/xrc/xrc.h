/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_H
#define VB_NIC_XRC_H

/*
 * XRC (IBTA Annex A14): domains, and receive QPs that belong to a domain instead of a process
 * (docs/xrc.md). The store (xrc_store.h) has the attributes and progress of such a QP. A struct
 * vb_qp of type IBV_QPT_XRC_RECV is one of two things:
 *
 *  - the application's handle: it only points to the store, and no packet finds it;
 *  - a shadow: the responder of this NIC for packets that name one of its SRQs. It is made when the
 *    first such packet comes, and stays as long as the NIC.
 */

#include "nic/data/demux.h"
#include "nic/data/migrate.h"
#include "nic/data/qp.h"
#include "nic/service/xrc/xrc_store.h"

struct vb_xrcd {
	struct ibv_xrcd ibv;
	uint64_t id; /* in the store; its lower half is `handle` in OFED's programs */
	_Atomic uint32_t users; /* SRQs and QPs of this process */
};

/* What only QPs of type XRC_RECV have. */
struct vb_xrc_qp {
	struct vb_xrc_rcv *rcv;
	struct vb_xrcd *xrcd; /* of a handle; NULL: it is a shadow */
	struct vb_qp *next;   /* in vb_xrc.handles */
	/* Of a shadow: what it has read from the store. */
	uint32_t seq, life;
	uint64_t domain;
	/* Of a shadow: what it has to tell others when the store is no longer busy (xrc_tell.c). */
	bool owes_failure;
	uint32_t owes_events; /* 1 << enum ibv_event_type */
	enum vb_migration_step owes_step;
	uint32_t step_seq; /* of the attributes that owes_step was decided by */
};

/* The NIC's part of XRC, once a domain has been opened. */
struct vb_xrc {
	struct vb_xrc_store *store;
	uint16_t slot; /* by which the store identifies this process */
	vb_lock lock;  /* guards handles, seen */
	struct vb_qp *handles;
	uint64_t seen; /* entries of the log read so far */
	_Atomic(struct vb_qp *) shadow[VB_XRC_RCVS_MAX];
};

/*
 * ibv_open_xrcd(3): file, flags and errors as vb_xrc_domain_open(); EOPNOTSUPP without shared
 * memory.
 */
int vb_xrcd_open(struct vb_ctx *ctx, const uint64_t file[2], int flags, struct vb_xrcd **xrcd);

/* ibv_close_xrcd(3): EBUSY while SRQs or QPs of this process belong to it. */
int vb_xrcd_close(struct vb_xrcd *xrcd);

extern const struct vb_service vb_service_xrc_send, vb_service_xrc_recv, vb_service_xrc_shadow;

/* vb_qp_create_ex() for XRC_RECV, with the same errors. */
int vb_xrc_qp_create(const struct ibv_qp_init_attr_ex *attr, struct vb_qp **qp);

/* ibv_open_qp(3). EINVAL: an attribute is missing, or that domain has no such QP. */
int vb_xrc_qp_open(struct vb_ctx *ctx, const struct ibv_qp_open_attr *attr, struct vb_qp **qp);

/* As vb_qp_modify(), vb_qp_query() and vb_qp_destroy(), which call these. */
int vb_xrc_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
int vb_xrc_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
void vb_xrc_qp_destroy(struct vb_qp *qp);

/* The NIC is destroyed: removes all its entries from the store. */
void vb_xrc_fini(struct vb_nic *nic);

/* The common part of handles (xrc.c) and shadows (xrc_rx.c); NULL: no memory. */
struct vb_qp *vb_xrc_rcv_alloc(struct vb_nic *nic, const struct vb_service *service);
void vb_xrc_rcv_unmake(struct vb_qp *qp);

/*
 * The application has ended a QP, or its own use of it: the NIC that had its last packet has to
 * look at its shadow. Nothing locked.
 */
void vb_xrc_rcv_left(struct vb_nic *nic, const struct vb_xrc_rcv *rcv);

/* Gives an event of that QP to the handles of this process. */
void vb_xrc_handles_tell(struct vb_nic *nic, uint32_t qpn, enum ibv_event_type type);

/*
 * Other processes may have logged events of QPs that this process has open: gives them to its
 * handles.
 */
void vb_xrc_look(struct vb_nic *nic);

/* For the hub's report of SRQs: adds this one, and removes it. ENOMEM: too many. */
int vb_xrc_srq_announce(struct vb_srq *srq);
void vb_xrc_srq_recall(struct vb_srq *srq);

#endif
