/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_XRC_H
#define VB_NIC_XRC_H

/*
 * XRC (IBTA Annex A14): domains, and receive QPs that belong to a domain and not to a process
 * (docs/xrc.md). What such a QP is and how far it has come stands in the store (xrc_store.h).
 * A struct vb_qp of type IBV_QPT_XRC_RECV is one of two things:
 *
 *  - what the application holds: it only points to the store, and no packet finds it;
 *  - a shadow: the responder of this NIC for what names one of its SRQs. It is made when the first
 *    such packet comes, and goes with the NIC.
 */

#include "nic/data/demux.h"
#include "nic/data/migrate.h"
#include "nic/data/qp.h"
#include "nic/service/xrc/xrc_store.h"

struct vb_xrcd {
	struct ibv_xrcd ibv;
	uint64_t id; /* in the store; OFED's programs know its lower half as `handle` */
	_Atomic uint32_t users; /* SRQs and QPs of this process */
};

/* What a QP of type XRC_RECV has beside. */
struct vb_xrc_qp {
	struct vb_xrc_rcv *rcv;
	struct vb_xrcd *xrcd; /* of the application's; NULL: it is a shadow */
	struct vb_qp *next;   /* in vb_xrc.handles */
	/* Of a shadow: what it has taken over from the store. */
	uint32_t seq, life;
	uint64_t domain;
	/* Of a shadow: what all are to know, and the store was busy (xrc_tell.c). */
	bool owes_failure;
	uint32_t owes_events; /* 1 << enum ibv_event_type */
};

/* What a NIC needs for XRC, once a domain has been opened. */
struct vb_xrc {
	struct vb_xrc_store *store;
	uint16_t slot; /* by which the store knows this process */
	vb_lock lock;  /* handles, seen */
	struct vb_qp *handles;
	uint64_t seen; /* so many notes of the log */
	_Atomic(struct vb_qp *) shadow[VB_XRC_RCVS_MAX];
};

/*
 * ibv_open_xrcd(3): file, flags and errors as vb_xrc_domain_open(); EOPNOTSUPP where no memory is
 * shared.
 */
int vb_xrcd_open(struct vb_ctx *ctx, const uint64_t file[2], int flags, struct vb_xrcd **xrcd);

/* ibv_close_xrcd(3): EBUSY while SRQs or QPs of this process belong to it. */
int vb_xrcd_close(struct vb_xrcd *xrcd);

extern const struct vb_service vb_service_xrc_send, vb_service_xrc_recv, vb_service_xrc_shadow;

/* The XRC_RECV side of vb_qp_create_ex(), with the same errors. */
int vb_xrc_qp_create(const struct ibv_qp_init_attr_ex *attr, struct vb_qp **qp);

/* ibv_open_qp(3). EINVAL: something is missing, or there is no such QP in that domain. */
int vb_xrc_qp_open(struct vb_ctx *ctx, const struct ibv_qp_open_attr *attr, struct vb_qp **qp);

/*
 * OFED's calls: receive QPs that the application knows by their numbers only. new: this process is
 * registered with it; keep: it goes with its domain and not before, whoever is registered. EINVAL:
 * that domain has no such QP; otherwise as vb_qp_modify() and vb_qp_query().
 */
int vb_xrc_rcv_new(struct vb_xrcd *xrcd, uint32_t *qpn);
void vb_xrc_rcv_keep(struct vb_xrcd *xrcd, uint32_t qpn);
int vb_xrc_rcv_join(struct vb_xrcd *xrcd, uint32_t qpn);
int vb_xrc_rcv_leave(struct vb_xrcd *xrcd, uint32_t qpn); /* also: it is not registered */
int vb_xrc_rcv_modify(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *attr,
		      int mask);
/*
 * What means nothing to a QP that sends nothing, to be told when it is asked for; and the state of
 * migration that it begins with. EINVAL.
 */
int vb_xrc_rcv_remember(struct vb_xrcd *xrcd, uint32_t qpn, const struct ibv_qp_attr *attr,
			int mask);
int vb_xrc_rcv_query(struct vb_xrcd *xrcd, uint32_t qpn, struct ibv_qp_attr *attr,
		     struct ibv_qp_init_attr *init);

/* As vb_qp_modify(), vb_qp_query() and vb_qp_destroy(), which come here. */
int vb_xrc_qp_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
int vb_xrc_qp_query(struct vb_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
void vb_xrc_qp_destroy(struct vb_qp *qp);

/* The NIC goes: nothing of it is left in the store. */
void vb_xrc_fini(struct vb_nic *nic);

/* What every QP of type XRC_RECV has, a handle (xrc.c) or a shadow (xrc_rx.c); NULL: no memory. */
struct vb_qp *vb_xrc_rcv_alloc(struct vb_nic *nic, const struct vb_service *service);
void vb_xrc_rcv_unmake(struct vb_qp *qp);

/* --- shadows (xrc_rx.c) --- */

/* The shadow of a QP with this number, made if there can be one; NULL. */
struct vb_qp *vb_xrc_shadow(struct vb_nic *nic, uint32_t qpn);

/* Have it be what the store says; false: it cannot be said now. Shadow locked. */
bool vb_xrc_refresh(struct vb_qp *qp);

/* Of the table (service.h). */
void vb_xrc_take(struct vb_batch *batch, struct vb_qp *qp, const struct vb_from *from,
		 const struct vb_pkt *pkt, const struct vb_op_info *info);
bool vb_xrc_middle(struct vb_batch *batch, struct vb_qp *qp, const struct vb_lane *lane,
		   const struct vb_ring_frame *from);
void vb_xrc_request(struct vb_batch *batch, struct vb_qp *qp, const struct vb_frame *frame,
		    const struct vb_pkt *pkt, const struct vb_op_info *info);

/*
 * QPs may have come to their end, or to an error: a receive request that was taken for a message
 * which will not go on is flushed. No QP locked.
 */
void vb_xrc_shadows_look(struct vb_nic *nic);

/* There is nobody any more who could be answered through this. Rx right held. */
void vb_xrc_peer_gone(struct vb_peer *peer);

/*
 * The application has taken a QP out of use, all of it or for itself: whoever had its last packet
 * looks at its shadow. Nothing locked.
 */
void vb_xrc_rcv_left(struct vb_nic *nic, const struct vb_xrc_rcv *rcv);

/* Something happened to that QP: those of this process who have it open are told. */
void vb_xrc_handles_tell(struct vb_nic *nic, uint32_t qpn, enum ibv_event_type type);

/* Others may have noted what happened to QPs that this process has open: its own are told. */
void vb_xrc_look(struct vb_nic *nic);

/* What the hub tells of SRQs: this one is there, and is not any more. ENOMEM: too many. */
int vb_xrc_srq_announce(struct vb_srq *srq);
void vb_xrc_srq_recall(struct vb_srq *srq);

/* No packet finds the SRQ any more: no shadow points at it after this. */
void vb_xrc_srq_leave(struct vb_srq *srq);

#endif
